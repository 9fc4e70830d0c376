//! Ready: the fixed order of its answers, and the words for a rollout's progress.

use aicr_crds::{reason::Reason, rollout::RolloutKind, runtime::DeploymentValidation};
use jiff::Timestamp;

use super::{
    available::first_unhealthy,
    conditions::{Answer, engine},
};
use crate::{
    message::listed,
    rollout::{Verdict as RolloutVerdict, Why as RolloutWhy, is_stalled, is_unapproved},
    runtime::{Suspension, Verdict, Why, orphaning_refused, owned, suspension},
    seen::World,
};

/// How many Applications a message names.
const NAMED: usize = 5;

/// The answers of `design/status.md`, in its order.
pub(super) fn ready(world: &World, verdict: &Verdict, available: &Answer, now: Timestamp) -> Answer {
    if world.runtime.metadata.deletion_timestamp.is_some() {
        return Answer::no(Reason::Deleting, deleting(world, verdict));
    }
    if let Why::Unreadable(message) = verdict.why() {
        return Answer::no(Reason::PlanUnreadable, message);
    }
    if let Some(reason) = world.engine.reason() {
        return Answer::no(reason, engine(world, now).message);
    }
    if let Some(answer) = suspended(world) {
        return answer;
    }
    if world.runtime.spec.paused && is_held_or_due(verdict.why()) {
        return Answer::no(Reason::Paused, "spec.paused holds the rollout; set it to false to go on");
    }
    let why = verdict.why();
    let blocked = matches!(why, Why::OrphanedObjects(_) | Why::AdoptionBlocked(_));
    if *why == Why::UpToDate {
        up_to_date(world, available)
    } else if *why == Why::NoTarget || (blocked && world.target().is_none()) {
        Answer::no(Reason::NoActivePlan, "no rollout has succeeded yet")
    } else {
        Answer::no(Reason::RollingOut, rolling_out(why))
    }
}

fn deleting(world: &World, verdict: &Verdict) -> String {
    let mut what = "the runtime is being deleted".to_owned();
    if let Why::Deleting(message) = verdict.why() {
        what = format!("{what}: {message}");
    } else if let Why::InProgress { name, verdict, step } = verdict.why() {
        what = format!("{what}: {}", in_progress(name, verdict, step.as_deref()));
    } else if let Why::Held(hold) = verdict.why() {
        what = format!("{what}: no removal starts: {hold}");
    }
    match orphaning_refused(world) {
        Some(refused) => format!("{what}; {refused}"),
        None => what,
    }
}

fn suspended(world: &World) -> Option<Answer> {
    let wanted = world.runtime.spec.suspend_engine;
    let stands = suspension(world);
    if !stands.refused.is_empty() {
        return Some(Answer::no(Reason::EngineSuspensionRefused, stands.refusal()));
    }
    // Resumed only once every Application reads so.
    if !wanted && stands.is_done() {
        return None;
    }
    let first = match first_unhealthy(world) {
        Some((release, why)) => format!("release {release}: {why}"),
        None if owned(world).next().is_none() => "no release is there".to_owned(),
        None => "every release is healthy".to_owned(),
    };
    let message = format!("{}; {first}; set spec.suspendEngine to false to go on", switched(&stands, wanted));
    Some(Answer::no(Reason::EngineSuspended, message))
}

fn switched(stands: &Suspension, wanted: bool) -> String {
    let word = if wanted { "off" } else { "on" };
    let state = if stands.pending.is_empty() {
        format!("Argo CD's automated sync is {word}, and no rollout or step starts")
    } else {
        format!("Argo CD's automated sync is being switched {word}: {} to go", listed(&stands.pending, NAMED))
    };
    if stands.in_flight.is_empty() {
        return state;
    }
    format!("{state}; operations that Argo CD finishes: {}", listed(&stands.in_flight, NAMED))
}

fn up_to_date(world: &World, available: &Answer) -> Answer {
    if !available.status {
        return available.clone();
    }
    let done = world.newest_success().map(|rollout| (rollout.spec.kind, rollout.spec.validation));
    match done {
        Some((RolloutKind::Change, DeploymentValidation::Required)) => {
            Answer::yes(Reason::RolledOut, "the target plan is rolled out and validated")
        }
        Some((RolloutKind::Adopt, _)) if world.runtime.spec.validation.deployment == DeploymentValidation::Required => {
            Answer::yes(Reason::ValidationDisabled, "the target plan was adopted, which validates nothing")
        }
        Some((RolloutKind::Change | RolloutKind::Adopt | RolloutKind::Remove, _)) | None => {
            Answer::yes(Reason::ValidationDisabled, "the target plan is rolled out; deployment validation is disabled")
        }
    }
}

fn is_held_or_due(why: &Why) -> bool {
    matches!(why, Why::InProgress { .. } | Why::Held(_))
}

/// `rollout <name>: step 9/18 gpu-operator (Upgrade)` and its likes.
fn rolling_out(why: &Why) -> String {
    if let Why::InProgress { name, verdict, step } = why {
        return in_progress(name, verdict, step.as_deref());
    }
    if let Why::EndedBadly { name, outcome, .. } = why {
        return format!("rollout {name} ended {outcome}");
    }
    let waits = if matches!(why, Why::Stabilizing(_)) { "; its stabilization window has not passed" } else { "" };
    format!("the target plan is not rolled out yet{waits}")
}

/// Where a rollout is, in the words of the page.
pub(super) fn in_progress(name: &str, verdict: &RolloutVerdict, step: Option<&str>) -> String {
    let why = verdict.why();
    if is_unapproved(verdict) {
        return format!("rollout {name} awaiting approval");
    }
    if is_stalled(verdict) {
        return format!("rollout {name} stalled: {why}");
    }
    if let RolloutWhy::Validating { run, .. } = why {
        return format!("rollout {name}: deployment validation run {run}");
    }
    match step {
        Some(step) if !matches!(why, RolloutWhy::AcknowledgementOwed { .. }) => format!("rollout {name}: step {step}"),
        Some(_) | None => format!("rollout {name}: {why}"),
    }
}
