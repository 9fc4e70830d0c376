//! The six conditions of a runtime, in the words of the Day-2 page.

use aicr_crds::{
    application::{Application, HealthStatus, SyncStatus},
    keys::annotation,
    reason::{ConditionType, Reason},
    rollout::Operation,
    runtime::DeploymentValidation,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::stalled::stalled;
use crate::{
    message::{CONDITION_LIMIT, bounded},
    rollout::{Position, Verdict as RolloutVerdict, Why as RolloutWhy, is_owned, is_stalled, is_unapproved, written},
    runtime::{Verdict, Why},
    seen::{ResolutionState, World},
};

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
    let available = available(world);
    let answers = [
        (ConditionType::Ready, ready(world, verdict, &available)),
        (ConditionType::Available, available),
        (ConditionType::Reconciling, reconciling(world, verdict)),
        (ConditionType::Stalled, stalled(world, verdict)),
        (ConditionType::Resolved, resolved(world)),
        (ConditionType::EngineAvailable, engine(world)),
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

/// The fixed order of `design/status.md`.
fn ready(world: &World, verdict: &Verdict, available: &Answer) -> Answer {
    let spec = &world.runtime.spec;
    if world.runtime.metadata.deletion_timestamp.is_some() {
        return Answer::no(Reason::Deleting, "the runtime is being deleted");
    }
    if let Why::Unreadable(message) = verdict.why() {
        return Answer::no(Reason::PlanUnreadable, message);
    }
    if let Some(reason) = world.engine.reason() {
        return Answer::no(reason, engine(world).message);
    }
    if spec.suspend_engine {
        let first = first_unready(world).map_or_else(
            || "every release is healthy".to_owned(),
            |(release, why)| format!("release {release}: {why}"),
        );
        return Answer::no(
            Reason::EngineSuspended,
            format!("no rollout or step starts; this version leaves Argo CD's automated sync on; {first}"),
        );
    }
    if spec.paused && is_held_or_due(verdict) {
        return Answer::no(Reason::Paused, "spec.paused holds the rollout");
    }
    match verdict.why() {
        Why::UpToDate => up_to_date(world, available),
        Why::NoTarget => Answer::no(Reason::NoActivePlan, "no rollout has succeeded yet"),
        Why::Unreadable(_)
        | Why::Deleting
        | Why::OrphanedObjects(_)
        | Why::InProgress { .. }
        | Why::EndedBadly { .. }
        | Why::Held(_)
        | Why::Unresolved
        | Why::Unfit(..)
        | Why::Stabilizing(_)
        | Why::Assessing(_)
        | Why::AssessmentStalled(..)
        | Why::Blocked(_)
        | Why::Creating(_) => Answer::no(Reason::RollingOut, rolling_out(verdict.why())),
    }
}

fn up_to_date(world: &World, available: &Answer) -> Answer {
    if !available.status {
        return available.clone();
    }
    let validated = world.newest_success().map(|rollout| rollout.spec.validation);
    match validated {
        Some(DeploymentValidation::Required) => {
            Answer::yes(Reason::RolledOut, "the target plan is rolled out and validated")
        }
        Some(DeploymentValidation::Disabled) | None => {
            Answer::yes(Reason::ValidationDisabled, "the target plan is rolled out; deployment validation is disabled")
        }
    }
}

fn is_held_or_due(verdict: &Verdict) -> bool {
    match verdict.why() {
        Why::InProgress { .. } | Why::Held(_) => true,
        Why::Unreadable(_)
        | Why::NoTarget
        | Why::Deleting
        | Why::OrphanedObjects(_)
        | Why::UpToDate
        | Why::EndedBadly { .. }
        | Why::Unresolved
        | Why::Unfit(..)
        | Why::Stabilizing(_)
        | Why::Assessing(_)
        | Why::AssessmentStalled(..)
        | Why::Blocked(_)
        | Why::Creating(_) => false,
    }
}

/// `rollout <name>: step 9/18 gpu-operator (Upgrade)` and its likes.
fn rolling_out(why: &Why) -> String {
    match why {
        Why::InProgress { name, verdict, step } => in_progress(name, verdict, step.as_deref()),
        Why::Stabilizing(_) => {
            "the target plan is not rolled out yet; its stabilization window has not passed".to_owned()
        }
        Why::EndedBadly { name, outcome, .. } => format!("rollout {name} ended {outcome}"),
        Why::Unreadable(_)
        | Why::NoTarget
        | Why::Deleting
        | Why::OrphanedObjects(_)
        | Why::UpToDate
        | Why::Held(_)
        | Why::Unresolved
        | Why::Unfit(..)
        | Why::Assessing(_)
        | Why::AssessmentStalled(..)
        | Why::Blocked(_)
        | Why::Creating(_) => "the target plan is not rolled out yet".to_owned(),
    }
}

fn in_progress(name: &str, verdict: &RolloutVerdict, step: Option<&str>) -> String {
    let why = verdict.why();
    if is_unapproved(verdict) {
        return format!("rollout {name} awaiting approval");
    }
    if is_stalled(verdict) {
        return format!("rollout {name} stalled: {why}");
    }
    match step {
        Some(step) if !matches!(why, RolloutWhy::AcknowledgementOwed { .. }) => format!("rollout {name}: step {step}"),
        Some(_) | None => format!("rollout {name}: {why}"),
    }
}

/// Every release that should be ready by now, judged at the plan it is at.
pub(super) fn available(world: &World) -> Answer {
    if world.runtime.spec.suspend_engine {
        return Answer::no(Reason::NotReady, "the engine is suspended");
    }
    if world.active().is_none() {
        return Answer::no(Reason::NoActivePlan, "no rollout has succeeded yet");
    }
    match first_unready(world) {
        Some((release, why)) => Answer::no(Reason::NotReady, format!("release {release}: {why}")),
        None => Answer::yes(Reason::Healthy, "every release is ready"),
    }
}

/// The first release, by place, that is not ready: one being removed does not count, nor the step in flight.
fn first_unready(world: &World) -> Option<(String, String)> {
    let unfinished = world.unfinished();
    let in_flight = unfinished.and_then(|rollout| {
        let position = Position::find(rollout, &world.applications);
        position.in_flight.map(|index| position.steps()[index].release.clone())
    });
    let removed = |release: &str| {
        unfinished.is_some_and(|rollout| {
            rollout.spec.steps.iter().any(|step| step.release == release && step.operation == Operation::Remove)
        })
    };
    let moved = unfinished.map(written).unwrap_or_default();
    let active = world.active().and_then(|digest| world.plans.get(&digest));
    let releases: Vec<String> = match active {
        Some((_, stored)) => stored.plan.releases().map(|release| release.content.id.clone()).collect(),
        // Without the plan, what is there is judged.
        None => owned(world),
    };
    if releases.is_empty() {
        return Some(("of the active plan".to_owned(), "the plan is missing, and so is every Application".to_owned()));
    }
    let installed = moved.into_iter().filter(|(_, entry)| entry.ready).map(|(release, _)| release);
    let mut all: Vec<String> = releases.into_iter().chain(installed).collect();
    all.dedup();
    let counted = all.into_iter().filter(|release| Some(release) != in_flight.as_ref() && !removed(release));
    counted.filter_map(|release| Some((unready(world, &release)?, release))).map(|(why, release)| (release, why)).next()
}

fn owned(world: &World) -> Vec<String> {
    let owned = world.applications.iter().filter(|application| is_owned(application, world.uid()));
    owned.map(|application| application.name().to_owned()).collect()
}

fn unready(world: &World, release: &str) -> Option<String> {
    let Some(application) = world
        .applications
        .iter()
        .find(|application| application.name() == release && is_owned(application, world.uid()))
    else {
        return Some("its Application is missing".to_owned());
    };
    let why = release_state(application)?;
    Some(why.to_owned())
}

fn release_state(application: &Application) -> Option<&'static str> {
    let written = application.annotation(annotation::FINGERPRINT).and_then(|digest| digest.parse().ok());
    if application.is_deleting() {
        return Some("Deleting");
    }
    if written.is_some_and(|written: aicr_crds::Digest| written != application.fingerprint) {
        return Some("SpecDrifted");
    }
    match application.status.sync {
        Some(SyncStatus::Synced) => {}
        Some(SyncStatus::OutOfSync) => return Some("OutOfSync"),
        Some(SyncStatus::Unknown) | None => return Some("ComparisonError"),
    }
    match application.status.health {
        Some(HealthStatus::Healthy) => None,
        Some(HealthStatus::Progressing) => Some("HealthProgressing"),
        Some(HealthStatus::Degraded) => Some("HealthDegraded"),
        Some(HealthStatus::Suspended) => Some("HealthSuspended"),
        Some(HealthStatus::Missing) => Some("HealthMissing"),
        Some(HealthStatus::Unknown) | None => Some("HealthUnknown"),
    }
}

fn reconciling(world: &World, verdict: &Verdict) -> Answer {
    if let ResolutionState::Resolving { message, .. } = &world.resolution.state {
        return Answer::yes(Reason::Resolving, message);
    }
    if world.resolution.state == ResolutionState::Unknown {
        return Answer::yes(Reason::Resolving, "the inputs are being looked at");
    }
    match verdict.why() {
        Why::Stabilizing(until) => Answer::yes(Reason::Stabilizing, format!("the target plan is stable at {until}")),
        Why::Assessing(message) => Answer::yes(Reason::Assessing, message),
        Why::Creating(name) => Answer::yes(Reason::RollingOut, format!("rollout {name} is being created")),
        Why::InProgress { name, verdict, step } if is_moving(world, verdict) => {
            Answer::yes(Reason::RollingOut, in_progress(name, verdict, step.as_deref()))
        }
        Why::InProgress { .. }
        | Why::Unreadable(_)
        | Why::NoTarget
        | Why::Deleting
        | Why::OrphanedObjects(_)
        | Why::UpToDate
        | Why::EndedBadly { .. }
        | Why::Held(_)
        | Why::Unresolved
        | Why::Unfit(..)
        | Why::AssessmentStalled(..)
        | Why::Blocked(_) => Answer::no(Reason::RolledOut, "nothing is in progress"),
    }
}

/// Neither held, nor stalled, nor waiting for a person.
fn is_moving(world: &World, verdict: &RolloutVerdict) -> bool {
    let waits = matches!(
        verdict.why(),
        RolloutWhy::AwaitingApproval(_)
            | RolloutWhy::ApprovalMismatch
            | RolloutWhy::AcknowledgementOwed { .. }
            | RolloutWhy::Held(_)
    );
    !waits
        && !is_unapproved(verdict)
        && !is_stalled(verdict)
        && !world.runtime.spec.paused
        && !world.runtime.spec.suspend_engine
}

fn resolved(world: &World) -> Answer {
    match &world.resolution.state {
        ResolutionState::Resolved => Answer::yes(Reason::Resolved, "the current inputs have a plan"),
        ResolutionState::Resolving { message, plan_stands: true } => Answer::yes(Reason::Resolved, message),
        ResolutionState::Resolving { message, plan_stands: false } => Answer::no(Reason::Resolving, message),
        ResolutionState::Stalled { reason, message } => Answer::no(*reason, message),
        ResolutionState::Unknown => Answer::no(Reason::Resolving, "the inputs are being looked at"),
    }
}

pub(super) fn engine(world: &World) -> Answer {
    let project = &world.settings.engine.project;
    match world.engine.reason() {
        None => Answer::yes(Reason::EngineAvailable, "Argo CD's CRDs and the project are there"),
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
