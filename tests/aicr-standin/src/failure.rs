//! How a run fails: AICR's error codes, its chain of messages and its exit codes.

use std::error::Error;
use std::fmt;

/// AICR's error codes; each has one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Not classified: the flag library's own errors.
    Usage,
    InvalidRequest,
    Conflict,
    NotFound,
    Unauthorized,
    Timeout,
    ServiceUnavailable,
    RateLimitExceeded,
    Internal,
    Cancelled,
}

impl Code {
    /// The exit code of the process.
    pub(crate) fn exit(self) -> u8 {
        match self {
            Self::Usage => 1,
            Self::InvalidRequest | Self::Conflict => 2,
            Self::NotFound => 3,
            Self::Unauthorized => 4,
            Self::Timeout => 5,
            Self::ServiceUnavailable => 6,
            Self::RateLimitExceeded => 7,
            Self::Internal => 8,
            Self::Cancelled => 9,
        }
    }

    fn tag(self) -> &'static str {
        match self {
            Self::Usage => "",
            Self::InvalidRequest => "[INVALID_REQUEST] ",
            Self::Conflict => "[CONFLICT] ",
            Self::NotFound => "[NOT_FOUND] ",
            Self::Unauthorized => "[UNAUTHORIZED] ",
            Self::Timeout => "[TIMEOUT] ",
            Self::ServiceUnavailable => "[SERVICE_UNAVAILABLE] ",
            Self::RateLimitExceeded => "[RATE_LIMIT_EXCEEDED] ",
            Self::Internal => "[INTERNAL] ",
            Self::Cancelled => "[CANCELLED] ",
        }
    }
}

/// A failed run. Its text is the chain AICR prints, so causes of other libraries are part of the message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    message: String,
    cause: Option<Box<Failure>>,
    exit: Option<u8>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), cause: None, exit: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// A failure that a test asked for: any exit code.
    pub(crate) fn wanted(exit: u8, message: impl Into<String>) -> Self {
        Self { exit: Some(exit), ..Self::new(Code::Usage, message) }
    }

    /// The same failure seen from one level further out; the outer code decides the exit.
    pub(crate) fn within(self, code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), cause: Some(Box::new(self)), exit: None }
    }

    pub(crate) fn exit(&self) -> u8 {
        self.exit.unwrap_or_else(|| self.code.exit())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.code.tag(), self.message)?;
        match &self.cause {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

impl Error for Failure {}

/// The text without line breaks, so that a failure stays one log line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The texts of an error and its sources in one line, in the words of Go's network library where they are known.
pub(crate) fn in_words(error: &dyn Error) -> String {
    let mut parts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        next = source.source();
    }
    let text = one_line(&parts.join(": "));
    if text.contains("Connection refused") {
        return text.replace("Connection refused (os error 111)", "connect: connection refused");
    }
    if text.contains("InvalidContentType") || text.contains("corrupt message") {
        return "http: server gave HTTP response to HTTPS client".into();
    }
    text
}

/// What the API server said, or why it could not be asked.
pub(crate) fn api_words(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error { status.message.clone() } else { in_words(error) }
}

/// The HTTP status of an API error; none when the server was not reached.
pub(crate) fn api_status(error: &kube::Error) -> Option<u16> {
    if let kube::Error::Api(status) = error { Some(status.code) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_code_picks_the_exit_code() {
        let inner = Failure::invalid("failed to decode YAML: line 3");
        let outer = inner.within(Code::Internal, "failed to deserialize object from \"r.yaml\"");
        assert_eq!(outer.exit(), 8);
        assert_eq!(
            outer.to_string(),
            "[INTERNAL] failed to deserialize object from \"r.yaml\": [INVALID_REQUEST] failed to decode YAML: line 3"
        );
    }

    #[test]
    fn exit_codes_are_those_of_the_table() {
        let table = [
            (Code::Usage, 1),
            (Code::InvalidRequest, 2),
            (Code::Conflict, 2),
            (Code::NotFound, 3),
            (Code::Unauthorized, 4),
            (Code::Timeout, 5),
            (Code::ServiceUnavailable, 6),
            (Code::RateLimitExceeded, 7),
            (Code::Internal, 8),
            (Code::Cancelled, 9),
        ];
        for (code, exit) in table {
            assert_eq!(Failure::new(code, "x").exit(), exit, "{code:?}");
        }
    }

    #[test]
    fn a_text_of_several_lines_becomes_one() {
        assert_eq!(in_words(&std::io::Error::other("401\n  Unauthorized\n")), "401 Unauthorized");
    }

    #[test]
    fn a_refused_connection_reads_as_go_says_it() {
        let error = std::io::Error::from_raw_os_error(111);
        assert_eq!(in_words(&error), "connect: connection refused");
    }
}
