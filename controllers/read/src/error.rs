//! Why a document, bundle or chart could not be read.

/// Why something that AICR or a chart source wrote was not taken.
///
/// The three kinds have different consequences: `Unsupported` is `AICRArtifactUnsupported` and stays until the AICR
/// version or the operator changes, `TooLarge` is `ContentTooLarge` for what goes into a plan, `Damaged` is
/// `AICRInternal` and worth another run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is whole, but of a kind, version or layout that this operator does not know.
    #[error("{what} is not supported: found {found}, this operator reads {expected}")]
    Unsupported {
        /// The document or the part of it.
        what: String,
        /// What stands there, at most 80 characters of it.
        found: String,
        /// What would have been read.
        expected: String,
    },
    /// It is larger than this operator reads.
    #[error("{what} has {size} bytes or more; at most {limit} are read")]
    TooLarge {
        /// The document or archive.
        what: String,
        /// Its size in bytes, or for something packed the size at which expanding it stopped.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// It is truncated, malformed, or at odds with itself.
    #[error("{what} is damaged: {problem}")]
    Damaged {
        /// The document or the part of it.
        what: String,
        /// What is wrong with it and where.
        problem: String,
    },
}

impl ReadError {
    pub(crate) fn damaged(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), problem: problem.into() }
    }

    pub(crate) fn unsupported(what: impl Into<String>, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), found: found.into(), expected: expected.into() }
    }
}

/// Foreign text as it may stand in a message: quoted, escaped, 80 characters at most.
pub(crate) fn quoted(text: &str) -> String {
    let mut head: String = text.chars().take(80).collect();
    if head.len() < text.len() {
        head.push('\u{2026}');
    }
    format!("{head:?}")
}

/// Refuses more bytes than the limit.
pub(crate) fn bounded(what: &str, size: usize, limit: usize) -> Result<(), ReadError> {
    if size <= limit {
        return Ok(());
    }
    Err(ReadError::TooLarge { what: what.to_owned(), size: size as u64, limit: limit as u64 })
}
