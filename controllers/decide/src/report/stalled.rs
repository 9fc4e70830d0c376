//! The Stalled condition: the first thing that needs a person, in a fixed order, and how many others there are.

use aicr_crds::reason::{Outcome, Reason};

use super::conditions::{Answer, engine};
use crate::{
    rollout::{Hold, Why as RolloutWhy},
    runtime::{Verdict, Why},
    seen::{ResolutionState, World},
};

/// Plans unreadable, engine, resolution, transition, rollout.
pub(super) fn stalled(world: &World, verdict: &Verdict) -> Answer {
    let mut all: Vec<(Reason, String)> = Vec::new();
    if let Why::Unreadable(message) = verdict.why() {
        all.push((Reason::PlanUnreadable, message.clone()));
    }
    all.extend(world.engine.reason().map(|reason| (reason, engine(world).message)));
    if let ResolutionState::Stalled { reason, message } = &world.resolution.state {
        all.push((*reason, message.clone()));
    }
    all.extend(of(verdict.why()));
    let rest = all.len().saturating_sub(1);
    match all.into_iter().next() {
        None => Answer::no(Reason::Progressing, "no person is needed"),
        Some((reason, message)) if rest == 0 => Answer::yes(reason, message),
        Some((reason, message)) => Answer::yes(reason, format!("{message} (and {rest} more)")),
    }
}

/// The reason, with what to do next.
fn of(why: &Why) -> Option<(Reason, String)> {
    match why {
        Why::InProgress { name, verdict, .. } => in_progress(name, verdict.why()),
        Why::EndedBadly { foreign: Some(application), .. } => Some((
            Reason::ForeignObject,
            format!("Application {application} exists and is not the operator's; rename or delete it, then retry"),
        )),
        Why::EndedBadly { name, outcome, message, foreign: None } => {
            let message = format!(
                "rollout {name} ended {outcome}: {message}; change the target, or retry with the operator.aicr.run/retry annotation"
            );
            Some((ended(*outcome)?, message))
        }
        Why::Unfit(reason, message) | Why::AssessmentStalled(reason, message) => Some((*reason, message.clone())),
        Why::Blocked(message) => Some((Reason::TransitionBlocked, message.clone())),
        Why::OrphanedObjects(message) => Some((Reason::OrphanedObjectsPresent, message.clone())),
        Why::Unreadable(_)
        | Why::NoTarget
        | Why::Deleting
        | Why::UpToDate
        | Why::Held(_)
        | Why::Unresolved
        | Why::Stabilizing(_)
        | Why::Assessing(_)
        | Why::Creating(_) => None,
    }
}

fn ended(outcome: Outcome) -> Option<Reason> {
    match outcome {
        Outcome::Failed => Some(Reason::RolloutFailed),
        Outcome::Expired => Some(Reason::RolloutExpired),
        Outcome::Revoked => Some(Reason::RolloutRevoked),
        Outcome::Succeeded | Outcome::Superseded | Outcome::Orphaned => None,
    }
}

fn in_progress(name: &str, why: &RolloutWhy) -> Option<(Reason, String)> {
    let (reason, what) = match why {
        RolloutWhy::AwaitingApproval(_) => (
            Reason::AwaitingApproval,
            format!(
                "rollout {name}: {why}; kubectl aicr describe {name}, then kubectl aicr approve {name} --reason \"...\""
            ),
        ),
        RolloutWhy::ApprovalMismatch => (Reason::AwaitingApproval, format!("rollout {name}: {why}")),
        RolloutWhy::AcknowledgementOwed { .. } => (
            Reason::AwaitingAcknowledgement,
            format!("rollout {name}: {why}: kubectl aicr acknowledge {name} --reason \"...\""),
        ),
        RolloutWhy::Drift(_) => (Reason::InventoryDrift, format!("rollout {name}: {why}")),
        RolloutWhy::StepUnknown(_) => (Reason::StepUnknown, format!("rollout {name}: {why}")),
        RolloutWhy::Unfit(reason, message) => (*reason, format!("rollout {name}: {message}")),
        RolloutWhy::ValidationUnavailable => (Reason::ValidationUnavailable, format!("rollout {name}: {why}")),
        RolloutWhy::Held(
            Hold::Paused | Hold::EngineSuspended | Hold::Engine(_) | Hold::Unreadable(_) | Hold::Resolution(..),
        )
        | RolloutWhy::Ended(_)
        | RolloutWhy::NewerOperator(_)
        | RolloutWhy::RuntimeGone
        | RolloutWhy::DeadlinePassed { .. }
        | RolloutWhy::Revoked { .. }
        | RolloutWhy::Superseded(_)
        | RolloutWhy::ApprovalExpired(_)
        | RolloutWhy::Step { .. }
        | RolloutWhy::StepFailed { .. }
        | RolloutWhy::StepReady { .. }
        | RolloutWhy::Foreign(_)
        | RolloutWhy::Starting { .. }
        | RolloutWhy::TokenSpent
        | RolloutWhy::Complete => return None,
    };
    Some((reason, what))
}
