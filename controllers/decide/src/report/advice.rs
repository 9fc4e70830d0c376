//! What to do next, for reasons whose message says only what went wrong.

use aicr_crds::reason::Reason;

/// The message, ending with what to do next.
pub(super) fn advised(reason: Reason, message: &str) -> String {
    match advice(reason) {
        Some(advice) if !message.ends_with(advice) => format!("{message}; {advice}"),
        Some(_) | None => message.to_owned(),
    }
}

/// The message of a stalled assessment: it is keyed on the two recipes, so that a snapshot does not run it again.
pub(super) fn assessed(message: &str) -> String {
    format!(
        "{message}; revert the input or pin another plan, or fix the cause and delete its failed aicr-assessment-* Jobs \
         to run it again"
    )
}

fn advice(reason: Reason) -> Option<&'static str> {
    ADVICE.iter().find(|(known, _)| *known == reason).map(|(_, advice)| *advice)
}

/// Reasons of resolution that AICR or a registry causes; the others name their own fix.
const ADVICE: [(Reason, &str); 9] = [
    (Reason::AICRInvalidRequest, "correct the input that changed, or revert it"),
    (Reason::AICRNotFound, "correct the input that changed, or revert it"),
    (
        Reason::AICRUnauthorized,
        "fix the permission, then request a snapshot with the operator.aicr.run/resnapshot annotation",
    ),
    (
        Reason::AICRInternal,
        "read the Job's log and fix the cause, then request a snapshot with the operator.aicr.run/resnapshot annotation",
    ),
    (
        Reason::AICRTimeout,
        "read the Job's log and fix the cause, then request a snapshot with the operator.aicr.run/resnapshot annotation",
    ),
    (Reason::AICRVersionMismatch, "set aicr.version and aicr.image together"),
    (Reason::AICRArtifactUnsupported, "install an AICR version that this operator supports, or upgrade the operator"),
    (
        Reason::Unauthorized,
        "check the identity's policy and registry.repository, then request a snapshot with the operator.aicr.run/resnapshot annotation",
    ),
    (Reason::RegistryCredentialsUnavailable, "resolution resumes by itself once credentials work"),
];
