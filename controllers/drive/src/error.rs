//! Why the hands could not do what was decided.

use std::{error::Error, fmt::Write as _};

use aicr_decide::message::bounded;

/// What a failed call, or a document that is not what it should be, stopped.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The API server refused or did not answer.
    #[error("{act}")]
    Api {
        /// What was being done, to what.
        act: String,
        /// What the client said.
        #[source]
        source: Box<kube::Error>,
    },
    /// No answer came in time.
    #[error("{act}: no answer within {seconds} s")]
    Timeout {
        /// What was being done, to what.
        act: String,
        /// The bound.
        seconds: u64,
    },
    /// What was written is not what is read back, or has no form in which it can be written.
    #[error("{act}: {problem}")]
    Content {
        /// What was being done, to what.
        act: String,
        /// What is wrong.
        problem: String,
    },
    /// A watch ended, which none does.
    #[error("the watches ended")]
    WatchesEnded,
    /// The mirror ended, which it does not.
    #[error("the mirror ended")]
    MirrorEnded,
    /// The keeper of the registry's token ended, which it does not.
    #[error("the keeper of the registry's token ended")]
    KeeperEnded,
}

impl DriveError {
    /// Whether the API server refused, and will again until somebody changes something.
    pub(crate) fn is_denial(&self) -> bool {
        match self {
            Self::Api { source, .. } => is_answer(source, &[401, 403, 404, 422]),
            Self::Timeout { .. }
            | Self::Content { .. }
            | Self::WatchesEnded
            | Self::MirrorEnded
            | Self::KeeperEnded => false,
        }
    }

    /// The retry class, as the metrics name it; each is retried.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Api { source, .. } if is_answer(source, &REFUSALS) => "authorization",
            Self::Api { .. } | Self::Timeout { .. } => "transient",
            Self::Content { .. } | Self::WatchesEnded | Self::MirrorEnded | Self::KeeperEnded => "bounded",
        }
    }
}

/// Codes of an answer that is a refusal.
pub(crate) const REFUSALS: [u16; 2] = [401, 403];

/// Whether the API server answered with one of these codes.
pub(crate) fn is_answer(error: &kube::Error, codes: &[u16]) -> bool {
    if let kube::Error::Api(status) = error { codes.contains(&status.code) } else { false }
}

/// What the API server says of a refusal is cut here: it may quote what was sent.
const REFUSAL_LIMIT: usize = 256;

/// An error of the client in few words; the library would print the whole answer, twice.
pub(crate) fn said(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        format!("{} {}: {}", status.code, status.reason, bounded(&status.message, REFUSAL_LIMIT))
    } else {
        error.to_string()
    }
}

/// An error with all its causes, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let boxed = error.downcast_ref::<Box<kube::Error>>().map(AsRef::as_ref);
        if let Some(error) = boxed.or_else(|| error.downcast_ref::<kube::Error>()) {
            let _ = write!(text, ": {}", said(error));
            break;
        }
        let said = error.to_string();
        // Some libraries repeat the cause in their own text.
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16) -> DriveError {
        let status = kube::core::Status { code, ..kube::core::Status::failure("no", "Reason") };
        DriveError::Api { act: "patch Application a".to_owned(), source: Box::new(kube::Error::Api(Box::new(status))) }
    }

    #[test]
    fn a_refusal_is_of_class_authorization_and_anything_else_is_tried_again() {
        assert_eq!(api(403).class(), "authorization");
        assert_eq!(api(401).class(), "authorization");
        assert_eq!(api(500).class(), "transient");
    }

    #[test]
    fn a_chain_names_the_act_and_the_cause_once() {
        let text = chain(&api(500));
        assert!(text.starts_with("patch Application a: "), "{text}");
        assert_eq!(text, "patch Application a: 500 Reason: no");
    }
}
