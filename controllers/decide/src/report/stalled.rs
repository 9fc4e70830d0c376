//! The Stalled condition: the first thing that needs a person, in a fixed order, and which others there are.

use aicr_crds::reason::{Outcome, Reason};
use jiff::Timestamp;

use super::{
    advice::{advised, assessed},
    conditions::{Answer, engine},
};
use crate::{
    message::listed,
    rollout::Why as RolloutWhy,
    runtime::{Verdict, Why, lost, moved_missing, recovered, suspension},
    seen::{ResolutionState, World},
};

/// How many others, or releases, a message names.
const NAMED: usize = 10;
/// How a retry is asked for.
const RETRY: &str = "retry with the operator.aicr.run/retry annotation";

/// Plans unreadable, deletion and adoption, engine, resolution, transition, rollout.
pub(super) fn stalled(world: &World, verdict: &Verdict, now: Timestamp) -> Answer {
    let mut all = Vec::new();
    let own = of(verdict.why());
    let own_in = |group: Group| own.iter().filter(|(of, ..)| *of == group).cloned().collect::<Vec<_>>();
    all.extend(own_in(Group::Plans));
    all.extend(own_in(Group::Ownership));
    all.extend(world.engine.reason().map(|reason| (Group::Engine, reason, engine(world, now).message)));
    let suspension = suspension(world);
    if !suspension.refused.is_empty() {
        all.push((Group::Engine, Reason::EngineSuspensionRefused, suspension.refusal()));
    }
    all.extend(resolution(world));
    all.extend(plan_missing(world));
    all.extend(own_in(Group::Transition));
    all.extend(moved(world, verdict.why()));
    all.extend(own_in(Group::Rollout));
    let others: Vec<String> = all.iter().skip(1).map(|(_, reason, _)| reason.to_string()).collect();
    match all.into_iter().next() {
        None => Answer::no(Reason::Progressing, "no person is needed"),
        Some((_, reason, message)) if others.is_empty() => Answer::yes(reason, message),
        Some((_, reason, message)) => {
            Answer::yes(reason, format!("{message} (and {} more: {})", others.len(), listed(&others, NAMED)))
        }
    }
}

/// The groups of the fixed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Plans,
    Ownership,
    Engine,
    Resolution,
    Transition,
    Rollout,
}

type Stall = (Group, Reason, String);

fn resolution(world: &World) -> Option<Stall> {
    // While the runtime is in deletion nothing resolves.
    let resolves = world.runtime.metadata.deletion_timestamp.is_none();
    match &world.resolution.state {
        ResolutionState::Stalled { reason, message } if resolves => {
            Some((Group::Resolution, *reason, advised(*reason, message)))
        }
        ResolutionState::Stalled { .. }
        | ResolutionState::Unknown
        | ResolutionState::Resolving { .. }
        | ResolutionState::Resolved => None,
    }
}

/// The active plan's ConfigMap is gone and cannot be written back.
fn plan_missing(world: &World) -> Option<Stall> {
    let lost = lost(world).filter(|_| world.unfinished().is_none())?;
    let why = recovered(world, lost).err()?;
    let what =
        "the next rollout assesses every upgrade unknown and needs approval; undo the edit to have it written back";
    Some((Group::Transition, Reason::PlanMissing, format!("{why}; {what}")))
}

/// A release that an unsuccessful rollout may have moved, without an Application: nothing writes it by itself.
fn moved(world: &World, why: &Why) -> Option<Stall> {
    let waits =
        matches!(why, Why::EndedBadly { .. } | Why::Held(_) | Why::Unresolved | Why::Unfit(..) | Why::Blocked(_));
    let seen = !world.engine.is_absent();
    let missing: Vec<String> = moved_missing(world).into_iter().filter(|_| waits && seen).collect();
    (!missing.is_empty()).then(|| {
        let message = format!(
            "release {}: its Application is gone, and a rollout that did not succeed may have moved it; {RETRY} to install \
             it at the target plan, or revert the runtime change to have it installed from the active plan",
            listed(&missing, NAMED)
        );
        (Group::Rollout, Reason::MovedReleaseMissing, message)
    })
}

/// What the runtime's own verdict stalls for, with what to do next.
fn of(why: &Why) -> Vec<Stall> {
    match why {
        Why::Unreadable(message) => vec![(Group::Plans, Reason::PlanUnreadable, message.clone())],
        Why::OrphanedObjects(message) => vec![(Group::Ownership, Reason::OrphanedObjectsPresent, message.clone())],
        Why::AdoptionBlocked(message) => vec![(Group::Ownership, Reason::AdoptionBlocked, message.clone())],
        Why::RemovalFailed { name, outcome, message } => {
            let words =
                format!("rollout {name} ended {outcome}: {message}; {RETRY}, or set spec.deletionPolicy to Orphan");
            vec![(Group::Ownership, Reason::RemovalFailed, words)]
        }
        Why::InProgress { name, verdict, .. } => in_progress(name, verdict.why()).into_iter().collect(),
        Why::EndedBadly { name, outcome, message, foreign } => ended(name, *outcome, message, foreign.as_deref()),
        Why::Unfit(reason, message) => vec![(Group::Transition, *reason, message.clone())],
        Why::AssessmentStalled(reason, message) => vec![(Group::Transition, *reason, assessed(message))],
        Why::Blocked(message) => vec![(Group::Transition, Reason::TransitionBlocked, message.clone())],
        Why::NoTarget
        | Why::Deleting(_)
        | Why::UpToDate
        | Why::Upkeep
        | Why::Held(_)
        | Why::Unresolved
        | Why::Stabilizing(_)
        | Why::Assessing(_)
        | Why::Creating(_) => Vec::new(),
    }
}

fn ended(name: &str, outcome: Outcome, message: &str, foreign: Option<&str>) -> Vec<Stall> {
    let reason = match outcome {
        Outcome::Failed => Reason::RolloutFailed,
        Outcome::Expired => Reason::RolloutExpired,
        Outcome::Revoked => Reason::RolloutRevoked,
        Outcome::Succeeded | Outcome::Superseded | Outcome::Orphaned => return Vec::new(),
    };
    let words = format!("rollout {name} ended {outcome}: {message}; change the target, or {RETRY}");
    let foreign = foreign.map(|application| {
        let words =
            format!("Application {application} exists and is not the operator's; rename or delete it, then {RETRY}");
        (Group::Rollout, Reason::ForeignObject, words)
    });
    foreign.into_iter().chain([(Group::Rollout, reason, words)]).collect()
}

fn in_progress(name: &str, why: &RolloutWhy) -> Option<Stall> {
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
        RolloutWhy::Unfit(reason, message) => (*reason, format!("rollout {name}: {message}; or {RETRY}")),
        RolloutWhy::ValidationUnavailable(_) => (Reason::ValidationUnavailable, format!("rollout {name}: {why}")),
        RolloutWhy::Held(_)
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
        | RolloutWhy::Validating { .. }
        | RolloutWhy::ValidationFailed(_)
        | RolloutWhy::Validated { .. }
        | RolloutWhy::Complete => return None,
    };
    Some((Group::Rollout, reason, what))
}
