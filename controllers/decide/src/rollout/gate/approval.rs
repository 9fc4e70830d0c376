//! The gates of people's consent: approval and acknowledgement.

use aicr_crds::reason::Outcome;
use jiff::Timestamp;

use super::{
    super::{drift::drift, position::Position, verdict::Verdict, why::Why},
    end::after_step,
};
use crate::{seam, seen::RolloutSeen};

/// 7. After the step in flight, however that ends and even if it was the last; no longer once validation has begun.
pub(super) fn expired(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Option<Verdict> {
    let spec = &position.rollout.spec;
    let expires = spec.approval.as_ref().filter(|_| spec.needs_approval())?.expires_at.0;
    if super::super::validation::is_begun(position, seen) {
        return None;
    }
    (now >= expires).then(|| after_step(position, seen, now, Outcome::Expired, Why::ApprovalExpired(expires)))
}

/// 9. A manual release with recorded steps after the apply, once ready, waits for an approver to say they are done.
pub(super) fn acknowledgement(position: &Position<'_>, _: &RolloutSeen, _: Timestamp) -> Option<Verdict> {
    let acknowledged =
        |release: &str| position.rollout.spec.acknowledgements.iter().any(|entry| entry.release == release);
    let done = position.steps().iter().enumerate().filter(|(index, step)| step.acknowledge && position.is_done(*index));
    let owed = done.map(|(_, step)| step.release.as_str()).find(|release| !acknowledged(release))?;
    Some(Verdict::Wait(Why::AcknowledgementOwed { release: owed.to_owned() }, Some(position.rollout.spec.deadline.0)))
}

/// 10. Needed and missing, also while held: people may approve during a freeze. Drift is named, since the approval
///     would only stall.
pub(super) fn missing(position: &Position<'_>, seen: &RolloutSeen, _: Timestamp) -> Option<Verdict> {
    let spec = &position.rollout.spec;
    if !spec.needs_approval() {
        return None;
    }
    let until = Some(spec.deadline.0);
    match &spec.approval {
        None => Some(Verdict::Wait(Why::AwaitingApproval(drift(position, seen)), until)),
        Some(approval) if seam::binding(position.rollout) != Some(approval.binding_digest) => {
            Some(Verdict::Wait(Why::ApprovalMismatch, until))
        }
        Some(_) => None,
    }
}
