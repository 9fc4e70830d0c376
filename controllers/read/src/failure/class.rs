//! What a failed AICR run means for the next one: by its innermost cause, else by its exit code.

use aicr_crds::reason::Reason;

use super::Failure;

/// Whether and how a failed run is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Not until the inputs change.
    Never,
    /// Up to three runs in all.
    Bounded,
    /// Again, with backoff and without end.
    Transient,
    /// Not until a person or a new snapshot asks for it.
    Authorization,
}

/// A class, and the reason with which the stage stalls once it is not repeated; transient failures have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// Whether and how it is repeated.
    pub class: Class,
    /// The reason of the condition when it stalls.
    pub reason: Option<Reason>,
}

const TRANSIENT: Ruling = Ruling { class: Class::Transient, reason: None };
const AUTHORIZATION: Ruling = Ruling { class: Class::Authorization, reason: Some(Reason::AICRUnauthorized) };

/// The ruling for a Job whose deadline passed, where the pod and its exit are usually gone.
pub fn deadline_exceeded() -> Ruling {
    Ruling { class: Class::Bounded, reason: Some(Reason::AICRTimeout) }
}

/// Judges a failed run. No exit code means that the process did not end by itself: evicted, its node lost, or never
/// started.
///
/// The exit code alone misleads (an API server that refuses is 3 or 8, wrong registry credentials are 6), so the
/// parts of the error chain are asked first, from the innermost outwards.
pub fn class(exit_code: Option<i32>, failure: &Failure) -> Ruling {
    failure.text.rsplit(": ").find_map(|part| by_cause(part, &failure.text)).unwrap_or_else(|| by_exit(exit_code))
}

fn by_exit(exit_code: Option<i32>) -> Ruling {
    let stalls = |class, reason| Ruling { class, reason: Some(reason) };
    match exit_code {
        None | Some(6 | 7 | 9) => TRANSIENT,
        Some(2) => stalls(Class::Never, Reason::AICRInvalidRequest),
        Some(3) => stalls(Class::Never, Reason::AICRNotFound),
        Some(4) => AUTHORIZATION,
        Some(5) => deadline_exceeded(),
        Some(_) => stalls(Class::Bounded, Reason::AICRInternal),
    }
}

/// Connections that were refused, timed out, reset or not resolved.
const CONNECTION: [&str; 14] = [
    "connection refused",
    "connection reset",
    "connection timed out",
    "i/o timeout",
    "tls handshake timeout",
    "client.timeout exceeded",
    "request canceled while waiting for connection",
    "no such host",
    "temporary failure in name resolution",
    "server misbehaving",
    "no route to host",
    "network is unreachable",
    "broken pipe",
    "unexpected eof",
];

/// Answers of servers that are busy or broken, in words.
const SERVER: [&str; 7] = [
    "too many requests",
    "bad gateway",
    "service unavailable",
    "gateway timeout",
    "gateway time-out",
    "internal server error",
    "currently unable to handle the request",
];

const REFUSAL: [&str; 5] = ["forbidden", "unauthorized", "denied", "authentication required", "credential not found"];

fn by_cause(part: &str, chain: &str) -> Option<Ruling> {
    let part = without_codes(part).to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| part.contains(word));
    let status = status(&part);
    if says(&CONNECTION)
        || says(&SERVER)
        || part == DEADLINE && of_request(chain)
        || status.is_some_and(|code| code == 429 || code >= 500)
    {
        return Some(TRANSIENT);
    }
    (says(&REFUSAL) || status.is_some_and(|code| code == 401 || code == 403)).then_some(AUTHORIZATION)
}

const DEADLINE: &str = "context deadline exceeded";

/// Go's deadline error also ends AICR's own time limits; only behind a request (`Get "https://...": `) or a dial it
/// speaks of a connection.
fn of_request(chain: &str) -> bool {
    let before = chain.trim_end_matches(DEADLINE).trim_end_matches(": ");
    let last = before.rsplit(": ").next().unwrap_or_default();
    last.starts_with("dial ") || last.ends_with('"') && last.contains("://")
}

/// Codes such as `[UNAUTHORIZED]` are AICR's own judgment, which the exit code repeats.
fn without_codes(part: &str) -> &str {
    match part.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((code, rest)) if code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') => rest,
        Some(_) | None => part,
    }
}

/// The HTTP status that the part states: a number that stands alone or at its beginning, or after `status` or `code`.
fn status(part: &str) -> Option<u16> {
    let mut before = "";
    for (index, word) in part.split_whitespace().enumerate() {
        let word = word.trim_matches([',', '.', ';', '(', ')']);
        let stated = index == 0 || matches!(before, "status" | "code" | "http" | "http/1.1" | "http/2.0");
        if let Some(code) = word.parse().ok().filter(|code| (400..600).contains(code))
            && stated
            && word.len() == 3
        {
            return Some(code);
        }
        before = word;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::read;
    use rstest::rstest;

    fn judge(exit: i32, chain: &str) -> Ruling {
        class(Some(exit), &read(Some(exit), &format!("[cli] command failed: error={chain} exitCode={exit}")))
    }

    #[rstest]
    #[case(Some(1), Class::Bounded, Some("AICRInternal"))]
    #[case(Some(2), Class::Never, Some("AICRInvalidRequest"))]
    #[case(Some(3), Class::Never, Some("AICRNotFound"))]
    #[case(Some(4), Class::Authorization, Some("AICRUnauthorized"))]
    #[case(Some(5), Class::Bounded, Some("AICRTimeout"))]
    #[case(Some(6), Class::Transient, None)]
    #[case(Some(7), Class::Transient, None)]
    #[case(Some(8), Class::Bounded, Some("AICRInternal"))]
    #[case(Some(9), Class::Transient, None)]
    #[case(Some(137), Class::Bounded, Some("AICRInternal"))]
    #[case(Some(0), Class::Bounded, Some("AICRInternal"))]
    #[case(None, Class::Transient, None)]
    fn without_a_known_cause_the_exit_code_decides(
        #[case] exit: Option<i32>,
        #[case] expected: Class,
        #[case] reason: Option<&str>,
    ) {
        let ruling = class(exit, &read(exit, "something broke"));
        assert_eq!(ruling.class, expected);
        assert_eq!(ruling.reason.map(|reason| reason.to_string()).as_deref(), reason);
    }

    #[rstest]
    #[case::api_server_refuses_a_read(
        3,
        "[NOT_FOUND] failed to get ConfigMap ns/name: Get \"https://10.0.0.1:443/x\": dial tcp 10.0.0.1:443: connect: connection refused"
    )]
    #[case::api_server_refuses_a_write(
        8,
        "[INTERNAL] failed to serialize x: [INTERNAL] failed to apply ConfigMap: dial tcp: i/o timeout"
    )]
    #[case::unresolved(8, "[INTERNAL] x: dial tcp: lookup r.example.com on 10.0.0.10:53: no such host")]
    #[case::registry(6, "[SERVICE_UNAVAILABLE] registry push failed after retries: connect: connection refused")]
    #[case::status(8, "[INTERNAL] push failed: response status code 503")]
    #[case::status_with_words(2, "[INVALID_REQUEST] push failed: unexpected status: 502 Bad Gateway")]
    #[case::busy(8, "[INTERNAL] x: the server is currently unable to handle the request")]
    #[case::rate(8, "[INTERNAL] x: response status code 429: Too Many Requests")]
    #[case::request_deadline(5, "[TIMEOUT] x: Get \"https://r.example.com/v2/\": context deadline exceeded")]
    #[case::dial_deadline(8, "[INTERNAL] x: dial tcp 10.0.0.1:443: context deadline exceeded")]
    #[case::outer_says_denied(8, "[INTERNAL] access denied or server gone: connection reset by peer")]
    fn a_broken_connection_is_transient_whatever_the_exit(#[case] exit: i32, #[case] chain: &str) {
        assert_eq!(judge(exit, chain), TRANSIENT);
    }

    #[rstest]
    #[case::forbidden_read(
        3,
        "[NOT_FOUND] failed to get ConfigMap ns/name: configmaps \"name\" is forbidden: User \"u\" cannot get resource \"configmaps\""
    )]
    #[case::forbidden_write(
        8,
        "[INTERNAL] failed to apply ConfigMap: configmaps \"x\" is forbidden: User \"u\" cannot patch resource"
    )]
    #[case::wrong_password(6, "[SERVICE_UNAVAILABLE] registry push failed: response status code 401: Unauthorized")]
    #[case::no_credentials(6, "[SERVICE_UNAVAILABLE] registry push failed: basic credential not found")]
    #[case::denied(6, "[SERVICE_UNAVAILABLE] registry push failed: requested access to the resource is denied")]
    #[case::status(6, "[SERVICE_UNAVAILABLE] push failed: response status code 403")]
    #[case::preflight(
        4,
        "[UNAUTHORIZED] insufficient permissions to deploy agent: missing required permissions:\n  create roles"
    )]
    #[case::outer_says_refused(8, "[INTERNAL] connection refused or worse: registry says: unauthorized")]
    fn refused_rights_are_authorization_whatever_the_exit(#[case] exit: i32, #[case] chain: &str) {
        assert_eq!(judge(exit, chain), AUTHORIZATION);
    }

    #[rstest]
    #[case::own_deadline(
        5,
        "[TIMEOUT] job failed: [TIMEOUT] job completion timeout: context deadline exceeded",
        Class::Bounded
    )]
    #[case::own_deadline_with_url(
        5,
        "[TIMEOUT] bundle oci://r/x: [TIMEOUT] push: context deadline exceeded",
        Class::Bounded
    )]
    #[case::number_in_text(2, "[INVALID_REQUEST] bad value: nodes must be below 500", Class::Never)]
    #[case::number_of_rows(2, "[INVALID_REQUEST] found 403 components, at most 256", Class::Never)]
    #[case::code_is_no_cause(8, "[INTERNAL] wrapped: [UNAUTHORIZED] no token", Class::Bounded)]
    #[case::not_found(3, "[NOT_FOUND] failed to get ConfigMap ns/name: configmaps \"name\" not found", Class::Never)]
    fn words_that_only_look_like_a_cause_leave_it_to_the_exit(
        #[case] exit: i32,
        #[case] chain: &str,
        #[case] expected: Class,
    ) {
        assert_eq!(judge(exit, chain).class, expected);
    }
}
