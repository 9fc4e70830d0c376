//! How a command fails: what is printed, and the exit code by type.

use std::{
    error::Error,
    io::{self, ErrorKind, Write},
    process::ExitCode,
};

use crate::{acknowledge, approve, client::ClientError, revoke, text::clean};

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line asks for something that cannot be; exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The person answered no.
    #[error("not confirmed; nothing was changed")]
    NotConfirmed,
    /// This rollout cannot be approved.
    #[error(transparent)]
    Approve(#[from] approve::Refusal),
    /// Nothing can be acknowledged here.
    #[error(transparent)]
    Acknowledge(#[from] acknowledge::Refusal),
    /// This rollout cannot be revoked.
    #[error(transparent)]
    Revoke(#[from] revoke::Refusal),
    /// The API server said no, or could not be asked.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The runtime is in words of another release.
    #[error("read the ClusterRuntime; use the plugin of the operator's release")]
    Unreadable(#[source] serde_json::Error),
    /// The terminal could not be read or written.
    #[error("read or write the terminal")]
    Terminal(#[from] io::Error),
    /// The output has no YAML form.
    #[error("write YAML")]
    Yaml(#[from] serde_saphyr::ser::Error),
    /// The output has no JSON form.
    #[error("write JSON")]
    Json(#[from] serde_json::Error),
    /// The async runtime did not start.
    #[error("start the runtime")]
    Runtime(#[source] io::Error),
    /// Another TLS provider was there first.
    #[error("a TLS provider is already installed")]
    TlsProvider,
}

impl Failure {
    fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::NotConfirmed
            | Self::Approve(_)
            | Self::Acknowledge(_)
            | Self::Revoke(_)
            | Self::Client(_)
            | Self::Unreadable(_)
            | Self::Terminal(_)
            | Self::Yaml(_)
            | Self::Json(_)
            | Self::Runtime(_)
            | Self::TlsProvider => ExitCode::FAILURE,
        }
    }

    /// Whether the reader of our output went away, as `head` does: nothing to complain about, and nobody to hear it.
    fn reader_left(&self) -> bool {
        matches!(self, Self::Terminal(source) if source.kind() == ErrorKind::BrokenPipe)
    }
}

/// Prints the failure on standard error and gives its exit code.
pub(crate) fn exit(result: Result<ExitCode, Failure>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(failure) if failure.reader_left() => ExitCode::SUCCESS,
        Err(failure) => {
            // Where standard error is closed, the exit code still says it.
            let _ = writeln!(anstream::stderr(), "{}", words(&failure));
            failure.code()
        }
    }
}

/// A denial is its message alone, since it speaks to the person itself; everything else is ours, and marked so.
fn words(failure: &Failure) -> String {
    let text = clean(&chain(failure));
    match failure {
        Failure::Client(ClientError::Denied(_) | ClientError::Conflict(_)) => text,
        Failure::Client(
            ClientError::Answered(_)
            | ClientError::Call { .. }
            | ClientError::Unreadable { .. }
            | ClientError::Kubeconfig(_),
        )
        | Failure::Usage(_)
        | Failure::NotConfirmed
        | Failure::Approve(_)
        | Failure::Acknowledge(_)
        | Failure::Revoke(_)
        | Failure::Unreadable(_)
        | Failure::Terminal(_)
        | Failure::Yaml(_)
        | Failure::Json(_)
        | Failure::Runtime(_)
        | Failure::TlsProvider => format!("error: {text}"),
    }
}

/// The error with its causes, leaving out those that a text before them already repeats.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_two_and_everything_else_is_one() {
        assert_eq!(Failure::Usage(String::new()).code(), ExitCode::from(2));
        assert_eq!(Failure::NotConfirmed.code(), ExitCode::from(1));
        assert_eq!(Failure::Client(ClientError::Denied("no".into())).code(), ExitCode::from(1));
    }

    #[test]
    fn a_cause_is_printed_once() {
        let failure = Failure::Runtime(io::Error::other("too many threads"));
        assert_eq!(chain(&failure), "start the runtime: too many threads");
        assert_eq!(chain(&Failure::Client(ClientError::Denied("no".into()))), "no");
    }

    #[test]
    fn a_denial_has_no_words_of_ours_and_paints_over_nothing() {
        let denied = |text: &str| words(&Failure::Client(ClientError::Denied(text.into())));
        assert_eq!(denied("not yours\nask one"), "not yours\nask one");
        assert_eq!(denied("no\x1b[2J"), "no\u{fffd}[2J");
        assert_eq!(words(&Failure::Client(ClientError::Answered("gone".into()))), "error: gone");
    }

    #[test]
    fn a_reader_that_left_is_no_failure() {
        assert!(Failure::Terminal(ErrorKind::BrokenPipe.into()).reader_left());
        assert!(!Failure::Terminal(ErrorKind::StorageFull.into()).reader_left());
    }
}
