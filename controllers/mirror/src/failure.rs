//! What a failed mirror run means for resolution: the reason it stalls with, or none when it is tried again.

use aicr_crds::{plan::PlanError, reason::Reason};
use aicr_read::{ReadError, values::ValuesError};

use crate::error::MirrorError;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MirrorFailure {
    /// The reason when resolution stalls; `None` when the same run is tried again with backoff.
    pub reason: Option<Reason>,
    /// What is wrong and with what; holds neither values nor credentials.
    pub message: String,
}

impl MirrorFailure {
    /// A failure that needs a person or other inputs.
    pub(crate) fn stalled(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason: Some(reason), message: message.into() }
    }

    /// A failure that may be gone at the next try; `code` is AICR's word for it.
    fn transient(code: &str, message: &str) -> Self {
        Self { reason: None, message: format!("[{code}] {message}") }
    }

    /// A failure of the registry, where `absent` and `damaged` say what it means that something is not there, or is
    /// not what it should be.
    fn of_registry(error: &MirrorError, absent: Reason, damaged: Reason) -> Self {
        let text = error.to_string();
        match error {
            MirrorError::Unauthorized { .. } => Self::stalled(Reason::Unauthorized, text),
            MirrorError::Unavailable { .. } => Self::transient("SERVICE_UNAVAILABLE", &text),
            MirrorError::TooLarge { .. } => Self::stalled(Reason::ContentTooLarge, text),
            MirrorError::Conflict { .. } => Self::stalled(Reason::Conflict, text),
            // Our own registry is forbidden only where it sends on to an address that is.
            MirrorError::NotFound { .. } | MirrorError::Forbidden { .. } => Self::stalled(absent, text),
            MirrorError::NoRepository { .. } => Self::stalled(Reason::NotFound, format!("[NOT_FOUND] {text}")),
            MirrorError::Damaged { .. } => Self::stalled(damaged, text),
            MirrorError::Repository(_) | MirrorError::Client(_) | MirrorError::Refused { .. } => {
                Self::transient("INTERNAL", &text)
            }
        }
    }

    /// A failure while the bundle was pulled: what AICR pushed is gone or is not what it said.
    pub(crate) fn of_bundle(error: &MirrorError) -> Self {
        Self::of_registry(error, Reason::AICRInternal, Reason::AICRInternal)
    }

    /// A failure at a chart's source: what is not there, or is no chart, cannot be mirrored.
    pub(crate) fn of_source(error: &MirrorError) -> Self {
        Self::of_registry(error, Reason::ChartSourceUnsupported, Reason::ChartSourceUnsupported)
    }

    /// A failure while our own registry was read or written.
    pub(crate) fn of_mirror(error: &MirrorError) -> Self {
        match error {
            // What is gone or damaged here is repaired by the next push, or by a person; neither needs other inputs.
            MirrorError::NotFound { .. } => Self::transient("NOT_FOUND", &error.to_string()),
            MirrorError::Damaged { .. } | MirrorError::Forbidden { .. } => {
                Self::transient("INTERNAL", &error.to_string())
            }
            MirrorError::Repository(_)
            | MirrorError::Client(_)
            | MirrorError::Unauthorized { .. }
            | MirrorError::Unavailable { .. }
            | MirrorError::NoRepository { .. }
            | MirrorError::TooLarge { .. }
            | MirrorError::Refused { .. }
            | MirrorError::Conflict { .. } => Self::of_registry(error, Reason::Conflict, Reason::Conflict),
        }
    }
}

impl From<ReadError> for MirrorFailure {
    fn from(error: ReadError) -> Self {
        let reason = match error {
            ReadError::Unsupported { .. } => Reason::AICRArtifactUnsupported,
            ReadError::TooLarge { .. } => Reason::ContentTooLarge,
            ReadError::Damaged { .. } => Reason::AICRInternal,
        };
        Self::stalled(reason, error.to_string())
    }
}

impl From<PlanError> for MirrorFailure {
    fn from(error: PlanError) -> Self {
        let reason = match error {
            PlanError::Schema(_) | PlanError::Canonical(_) | PlanError::Archives(_) => Reason::AICRInternal,
            PlanError::Duplicate(_) | PlanError::Name(_) | PlanError::Dependency { .. } => {
                Reason::AICRArtifactUnsupported
            }
        };
        Self::stalled(reason, format!("the bundle makes no plan: {error}"))
    }
}

/// Values of one release that cannot be handed on; says where, never what stands there.
pub(crate) fn of_values(release: &str, error: &ValuesError) -> MirrorFailure {
    let (reason, problem) = match error {
        ValuesError::TooLarge { size, limit } => {
            (Reason::ContentTooLarge, format!("have {size} bytes, more than the limit of {limit}"))
        }
        ValuesError::Syntax { problem } => (Reason::AICRInternal, format!("do not parse: {problem}")),
        ValuesError::Number { line, .. } => (
            Reason::AICRArtifactUnsupported,
            format!("hold a number at line {line} that YAML readers take differently; quote it or write it otherwise"),
        ),
        ValuesError::Root { found } => (Reason::AICRArtifactUnsupported, format!("are {found} at the root, not a map")),
    };
    MirrorFailure::stalled(reason, format!("the values of release {release} {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aicr_crds::Digest;
    use rstest::rstest;

    fn what() -> String {
        "pull it".to_owned()
    }

    fn conflict() -> MirrorError {
        MirrorError::Conflict { place: "r/charts/a:1".into(), found: Digest::of(b"1"), wanted: Digest::of(b"2") }
    }

    #[rstest]
    #[case(MirrorError::Unauthorized { what: what() }, Some(Reason::Unauthorized), "pull it: the registry")]
    #[case(MirrorError::Unavailable { what: what(), cause: "HTTP 503".into() }, None, "[SERVICE_UNAVAILABLE] pull it: HTTP 503")]
    #[case(MirrorError::TooLarge { what: what(), limit: 5 }, Some(Reason::ContentTooLarge), "more than 5 bytes")]
    #[case(MirrorError::Refused { what: what(), cause: "HTTP 405".into() }, None, "[INTERNAL] pull it")]
    #[case(conflict(), Some(Reason::Conflict), "holds sha256:6b86")]
    fn registry_failures_mean_the_same_everywhere(
        #[case] error: MirrorError,
        #[case] reason: Option<Reason>,
        #[case] said: &str,
    ) {
        for failure in
            [MirrorFailure::of_bundle(&error), MirrorFailure::of_source(&error), MirrorFailure::of_mirror(&error)]
        {
            assert_eq!(failure.reason, reason);
            assert!(failure.message.contains(said), "{failure}");
        }
        assert!(MirrorFailure::of_mirror(&conflict()).message.contains("sha256:d473"));
    }

    #[test]
    fn absence_and_damage_depend_on_whose_it_is() {
        let absent = MirrorError::NotFound { what: what() };
        let damaged = MirrorError::Damaged { what: what(), problem: "bad".into() };
        let forbidden = MirrorError::Forbidden { what: what(), refusal: "no".into() };
        for error in [&absent, &damaged, &forbidden] {
            assert_eq!(MirrorFailure::of_bundle(error).reason, Some(Reason::AICRInternal));
            assert_eq!(MirrorFailure::of_source(error).reason, Some(Reason::ChartSourceUnsupported));
            assert_eq!(MirrorFailure::of_mirror(error).reason, None);
        }
    }

    /// B34: a push to a repository that the registry does not create stalls and names it.
    #[test]
    fn b34_a_missing_repository_is_named_with_what_to_create_and_not_tried_for_ever() {
        let missing = MirrorError::NoRepository { what: what(), repository: "r.example.com/aicr/charts/a".into() };
        let failure = MirrorFailure::of_mirror(&missing);
        assert_eq!(failure.reason, Some(Reason::NotFound));
        for said in [
            "[NOT_FOUND] ",
            "no repository r.example.com/aicr/charts/a",
            "repository creation template",
            "request a snapshot",
        ] {
            assert!(failure.message.contains(said), "{failure}");
        }
    }

    #[rstest]
    #[case(ReadError::Unsupported { what: what(), found: "a".into(), expected: "b".into() }, Reason::AICRArtifactUnsupported)]
    #[case(ReadError::TooLarge { what: what(), size: 2, limit: 1 }, Reason::ContentTooLarge)]
    #[case(ReadError::Damaged { what: what(), problem: "cut".into() }, Reason::AICRInternal)]
    fn what_cannot_be_read_has_its_reason(#[case] error: ReadError, #[case] reason: Reason) {
        assert_eq!(MirrorFailure::from(error).reason, Some(reason));
    }

    #[rstest]
    #[case("a: 'hidden'\nb: 0123456\n", Reason::AICRArtifactUnsupported, "release x hold a number at line 2")]
    #[case("- hidden\n", Reason::AICRArtifactUnsupported, "a list at the root")]
    #[case("a: 'hidden'\na: 'hidden'\n", Reason::AICRInternal, "do not parse")]
    fn values_are_refused_without_quoting_them(#[case] text: &str, #[case] reason: Reason, #[case] said: &str) {
        let failure = of_values("x", &aicr_read::values::check(text).unwrap_err());
        assert_eq!(failure.reason, Some(reason));
        assert!(failure.message.contains(said), "{failure}");
        assert!(!failure.message.contains("hidden") && !failure.message.contains("0123456"), "{failure}");
    }

    /// B18: said with size, limit and release before anything is written.
    #[test]
    fn b18_values_that_are_too_large_are_refused_with_their_size_and_the_limit() {
        let large = format!("a: {}", "x".repeat(200 * 1024));
        let failure = of_values("gpu-operator", &aicr_read::values::check(&large).unwrap_err());
        assert_eq!(failure.reason, Some(Reason::ContentTooLarge));
        for words in ["gpu-operator", "204803", "65536"] {
            assert!(failure.message.contains(words), "{failure}");
        }
    }
}
