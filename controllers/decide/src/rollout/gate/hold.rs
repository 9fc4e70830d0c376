//! The gates that hold or stall the next step.

use aicr_crds::{reason::Reason, rollout::RolloutKind};
use jiff::Timestamp;

use super::super::{
    drift,
    position::Position,
    verdict::Verdict,
    why::{Hold, Why},
};
use crate::seen::{ResolutionState, RolloutSeen, RuntimeFacts, RuntimeSeen, TargetSeen};

/// 12. Paused, suspended, without engine, or with a stalled resolution: no step starts.
pub(super) fn held(position: &Position<'_>, seen: &RolloutSeen, _: Timestamp) -> Option<Verdict> {
    let hold = hold_of(position, seen)?;
    Some(Verdict::Wait(Why::Held(hold), Some(position.rollout.spec.deadline.0)))
}

/// What keeps steps of this rollout from starting, if anything does.
pub(in super::super) fn hold_of(position: &Position<'_>, seen: &RolloutSeen) -> Option<Hold> {
    match &seen.runtime {
        RuntimeSeen::Gone => None,
        RuntimeSeen::There(facts) => hold(position.rollout.spec.kind, facts, seen),
    }
}

fn hold(kind: RolloutKind, facts: &RuntimeFacts, seen: &RolloutSeen) -> Option<Hold> {
    if let Some(message) = &seen.unreadable {
        return Some(Hold::Unreadable(message.clone()));
    }
    if facts.suspend_engine {
        return Some(Hold::EngineSuspended);
    }
    if facts.paused {
        return Some(Hold::Paused);
    }
    if let Some(reason) = seen.engine.reason() {
        return Some(Hold::Engine(reason));
    }
    if facts.suspension_refused {
        return Some(Hold::Engine(Reason::EngineSuspensionRefused));
    }
    match (&seen.resolution, kind) {
        // Removal and adoption never wait for resolution, else a broken image would lock the runtime in.
        (ResolutionState::Stalled { reason, message }, RolloutKind::Change) => {
            Some(Hold::Resolution(*reason, message.clone()))
        }
        (ResolutionState::Stalled { .. }, RolloutKind::Adopt | RolloutKind::Remove)
        | (ResolutionState::Unknown | ResolutionState::Resolving { .. } | ResolutionState::Resolved, _) => None,
    }
}

/// 13. The check repeats, so undoing the change resumes.
pub(super) fn drift(position: &Position<'_>, seen: &RolloutSeen, _: Timestamp) -> Option<Verdict> {
    let differences = drift::drift(position, seen);
    (!differences.is_empty()).then_some(Verdict::Wait(Why::Drift(differences), Some(position.rollout.spec.deadline.0)))
}

/// 14. The target can be read, is this runtime's, and has the step's release.
pub(super) fn unfit(position: &Position<'_>, seen: &RolloutSeen, _: Timestamp) -> Option<Verdict> {
    let until = Some(position.rollout.spec.deadline.0);
    let validates = super::super::validation::is_needed(position);
    let Some(next) = position.next else {
        // Validation needs the target's recipe as well.
        return match &seen.target {
            TargetSeen::Unfit(reason, message) if validates => {
                Some(Verdict::Wait(Why::Unfit(*reason, message.clone()), until))
            }
            TargetSeen::Unfit(..) | TargetSeen::None | TargetSeen::Plan(_) => None,
        };
    };
    let step = &position.steps()[next];
    match &seen.target {
        TargetSeen::None => None,
        TargetSeen::Unfit(reason, message) => Some(Verdict::Wait(Why::Unfit(*reason, message.clone()), until)),
        TargetSeen::Plan(stored) => {
            let removes = step.operation == aicr_crds::rollout::Operation::Remove;
            let unknown = !removes && stored.plan.release(&step.release).is_none();
            unknown.then(|| Verdict::Wait(Why::StepUnknown(step.release.clone()), until))
        }
    }
}
