//! The six conditions of a runtime, in the words of the Day-2 page.

use aicr_crds::reason::{ConditionType, Reason};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::{advice::advised, available::available, ready, ready::in_progress, stalled::stalled};
use crate::{
    message::{CONDITION_LIMIT, bounded},
    rollout::{Verdict as RolloutVerdict, Why as RolloutWhy, is_stalled, is_unapproved},
    runtime::{self, Verdict, Why},
    seen::{ResolutionState, World},
};

/// Evidence of every Application that is older says that Argo CD's application controller does not work (A16).
const EVIDENCE_OLD: SignedDuration = SignedDuration::from_mins(10);

/// What one condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// True or False.
    pub status: bool,
    /// Why.
    pub reason: Reason,
    /// More.
    pub message: String,
}

impl Answer {
    pub(super) fn yes(reason: Reason, message: impl Into<String>) -> Self {
        Self { status: true, reason, message: message.into() }
    }

    pub(super) fn no(reason: Reason, message: impl Into<String>) -> Self {
        Self { status: false, reason, message: message.into() }
    }
}

/// The conditions to be stored: `lastTransitionTime` moves only when the status does.
pub fn conditions(world: &World, verdict: &Verdict, now: Timestamp) -> Vec<Condition> {
    // What is put right meanwhile changes nothing of what the runtime waits for.
    let standing = if *verdict.why() == Why::Upkeep { runtime::standing(world, now) } else { verdict.clone() };
    let available = available(world);
    let answers = [
        (ConditionType::Ready, ready::ready(world, &standing, &available, now)),
        (ConditionType::Available, available),
        (ConditionType::Reconciling, reconciling(world, &standing)),
        (ConditionType::Stalled, stalled(world, &standing, now)),
        (ConditionType::Resolved, resolved(world)),
        (ConditionType::EngineAvailable, engine(world, now)),
    ];
    answers.iter().map(|(kind, answer)| condition(world, *kind, answer, now)).collect()
}

fn condition(world: &World, kind: ConditionType, answer: &Answer, now: Timestamp) -> Condition {
    let status = if answer.status { "True" } else { "False" };
    let stored = world
        .runtime
        .status
        .as_ref()
        .and_then(|stored| stored.conditions.iter().find(|stored| stored.type_ == kind.as_str()));
    let since =
        stored.filter(|stored| stored.status == status).map_or(Time(now), |stored| stored.last_transition_time.clone());
    Condition {
        last_transition_time: since,
        message: bounded(&answer.message, CONDITION_LIMIT),
        observed_generation: world.runtime.metadata.generation,
        reason: answer.reason.to_string(),
        status: status.to_owned(),
        type_: kind.to_string(),
    }
}

fn reconciling(world: &World, verdict: &Verdict) -> Answer {
    // While the runtime is in deletion nothing resolves.
    if world.runtime.metadata.deletion_timestamp.is_none() {
        match &world.resolution.state {
            ResolutionState::Resolving { message, .. } => return Answer::yes(Reason::Resolving, message),
            ResolutionState::Unknown => return Answer::yes(Reason::Resolving, "the inputs are being looked at"),
            ResolutionState::Resolved | ResolutionState::Stalled { .. } => {}
        }
    }
    busy(world, verdict.why()).unwrap_or_else(|| Answer::no(Reason::RolledOut, "nothing is in progress"))
}

fn busy(world: &World, why: &Why) -> Option<Answer> {
    if let Why::Stabilizing(until) = why {
        return Some(Answer::yes(Reason::Stabilizing, format!("the target plan is stable at {until}")));
    }
    if let Why::Assessing(message) = why {
        return Some(Answer::yes(Reason::Assessing, message));
    }
    if let Why::Creating(name) = why {
        return Some(Answer::yes(Reason::RollingOut, format!("rollout {name} is being created")));
    }
    let Why::InProgress { name, verdict, step } = why else { return None };
    let place = in_progress(name, verdict, step.as_deref());
    is_moving(world, verdict).then(|| {
        if let RolloutWhy::Validating { message, .. } = verdict.why() {
            // Which Job it is, and why its pod does not run.
            Answer::yes(Reason::Validating, format!("{place}: {message}"))
        } else {
            Answer::yes(Reason::RollingOut, place)
        }
    })
}

/// Neither held, nor stalled, nor waiting for a person.
fn is_moving(world: &World, verdict: &RolloutVerdict) -> bool {
    let why = verdict.why();
    let waits = is_unapproved(verdict) || is_stalled(verdict);
    let held = matches!(
        why,
        RolloutWhy::AcknowledgementOwed { .. } | RolloutWhy::Held(_) | RolloutWhy::ValidationUnavailable(_)
    );
    // A validation that runs is finished also while held.
    let validates = matches!(why, RolloutWhy::Validating { .. });
    let halted = world.runtime.spec.paused || world.runtime.spec.suspend_engine;
    !waits && !held && (!halted || validates)
}

fn resolved(world: &World) -> Answer {
    match &world.resolution.state {
        ResolutionState::Resolved => Answer::yes(Reason::Resolved, "the current inputs have a plan"),
        ResolutionState::Resolving { message, plan_stands: true } => Answer::yes(Reason::Resolved, message),
        ResolutionState::Resolving { message, plan_stands: false } => Answer::no(Reason::Resolving, message),
        ResolutionState::Stalled { reason, message } => Answer::no(*reason, advised(*reason, message)),
        ResolutionState::Unknown => Answer::no(Reason::Resolving, "the inputs are being looked at"),
    }
}

pub(super) fn engine(world: &World, now: Timestamp) -> Answer {
    let project = &world.settings.engine.project;
    match world.engine.reason() {
        None => Answer::yes(
            Reason::EngineAvailable,
            format!("Argo CD's CRDs and the project are there{}", evidence(world, now).unwrap_or_default()),
        ),
        Some(reason @ Reason::EngineMissing) => Answer::no(reason, "Argo CD's CRDs are not installed; install Argo CD"),
        Some(reason @ Reason::ProjectMissing) => {
            Answer::no(reason, format!("AppProject {project} is missing; restore it, or run helm upgrade"))
        }
        Some(reason @ Reason::Unauthorized) => {
            Answer::no(reason, "the operator may not read or write Applications; restore its Role")
        }
        Some(reason) => Answer::no(
            reason,
            "the registry token is absent or expires within an hour; fix the operator's AWS identity",
        ),
    }
}

/// Said where no Application was compared for long, since the last status stays green when the controller is down.
fn evidence(world: &World, now: Timestamp) -> Option<String> {
    let owned = world.applications.iter().filter(|application| crate::rollout::is_owned(application, world.uid()));
    let newest = owned.filter_map(|application| application.status.reconciled_at).max()?;
    (now.duration_since(newest) > EVIDENCE_OLD).then(|| {
        format!("; but it has compared no Application since {newest}: look whether its application controller runs")
    })
}
