//! Whether a rollout is due, and the first thing that keeps it back.

use aicr_crds::{
    Digest,
    application::Application,
    keys::{annotation, label},
    plan::StoredPlan,
    reason::Outcome,
    rollout::{RolloutKind, SCHEMA_VERSION},
};
use jiff::Timestamp;

use super::{
    create, fitness,
    verdict::{Verdict, Why, Write},
};
use crate::{
    assess::{Transition, blocked, plan_of, steps, touched_by, unsuccessful},
    message::listed,
    resolve::{self, JobPlan, JobSeen, Output, RunState, Stage, StageRuns, run_state},
    rollout::{self, Hold, ObjectRef, Position, is_owned},
    seen::{Assessment, ResolutionState, World, outcome},
};

/// What happens next with the runtime.
pub fn next(world: &World, now: Timestamp) -> Verdict {
    if let Some(message) = unreadable(world) {
        return Verdict::Wait(Why::Unreadable(message), None);
    }
    if let Some(unfinished) = world.unfinished() {
        let seen = world.around(unfinished);
        let verdict = rollout::next(unfinished, &seen, now);
        let step = step_words(&Position::find(unfinished, &seen.applications));
        let name = unfinished.metadata.name.clone().unwrap_or_default();
        return Verdict::Wait(Why::InProgress { name, verdict: Box::new(verdict), step }, None);
    }
    if world.runtime.metadata.deletion_timestamp.is_some() {
        return Verdict::Wait(Why::Deleting, None);
    }
    if let Some(message) = orphaned(world) {
        return Verdict::Wait(Why::OrphanedObjects(message), None);
    }
    // While no candidate is known, nothing is due that is not there already.
    let Some(target) = world.target().or_else(|| world.active()) else { return Verdict::Wait(Why::NoTarget, None) };
    if !is_due(world, target) {
        return up_to_date(world, target);
    }
    ended_badly(world, target).or_else(|| held(world)).unwrap_or_else(|| prepare(world, target, now))
}

/// A rollout or plan that this operator cannot read: nothing is written to Argo CD.
pub(super) fn unreadable(world: &World) -> Option<String> {
    let newer = world.rollouts.iter().find(|rollout| rollout.spec.schema_version != SCHEMA_VERSION);
    if let Some(rollout) = newer {
        let name = rollout.metadata.name.as_deref().unwrap_or_default();
        let schema = &rollout.spec.schema_version;
        return Some(format!(
            "rollouts written by a newer operator: {name} has schema version {schema:?}; upgrade the operator"
        ));
    }
    if create::changed_by(world).is_err() {
        let key = annotation::SPEC_CHANGED_BY;
        return Some(format!("the runtime's annotation {key} cannot be read: restore the JSON list of {{user, at}}"));
    }
    let (name, why) = world.unreadable.first()?;
    Some(format!("{why} (in {name})"))
}

/// Applications that are the operator's and of another runtime: never taken over silently.
fn orphaned(world: &World) -> Option<String> {
    let foreign = |application: &&Application| {
        let ours = application.label(label::MANAGED_BY) == Some(label::MANAGED_BY_VALUE);
        ours && application.annotation(annotation::RUNTIME_UID).is_some_and(|uid| uid != world.uid())
    };
    let named: Vec<String> = world
        .applications
        .iter()
        .filter(foreign)
        .map(|application| {
            format!(
                "{} (runtime {})",
                application.name(),
                application.annotation(annotation::RUNTIME_UID).unwrap_or_default()
            )
        })
        .collect();
    (!named.is_empty()).then(|| {
        format!("Applications of another runtime exist: {}; delete them, which leaves their resources running, or adopt them", listed(&named, 5))
    })
}

/// `9/18 gpu-operator (Upgrade)`.
fn step_words(position: &Position<'_>) -> Option<String> {
    let index = position.in_flight.or(position.next)?;
    let step = &position.steps()[index];
    Some(format!("{}/{} {} ({})", index + 1, position.steps().len(), step.release, step.operation))
}

/// The target differs from the active plan, or an unsuccessful rollout may since have moved a release.
fn is_due(world: &World, target: Digest) -> bool {
    let moved = || unsuccessful(world).any(|rollout| !touched_by(rollout, &world.applications).is_empty());
    world.active() != Some(target) || moved()
}

/// Nothing is due; unchanged releases' annotations follow the active plan before the next inventory is taken.
fn up_to_date(world: &World, active: Digest) -> Verdict {
    let behind = |application: &&Application| {
        is_owned(application, world.uid()) && plan_of(application) != Some(active) && !application.is_deleting()
    };
    let free = !world.runtime.spec.suspend_engine && world.engine.reason().is_none();
    let stored = world.plans.get(&active).map(|(_, stored)| stored);
    let follower = world
        .applications
        .iter()
        .filter(behind)
        .find(|application| stored.is_some_and(|stored| at_content(world, application, stored)));
    match follower.filter(|_| free) {
        Some(application) => Verdict::Do(Write::Follow { on: ObjectRef::of(application), plan: active }, Why::UpToDate),
        None => Verdict::Wait(Why::UpToDate, None),
    }
}

fn at_content(world: &World, application: &Application, stored: &StoredPlan) -> bool {
    let transition = Transition { world, active: None, target: &stored.plan };
    stored.plan.release(application.name()).is_some_and(|release| transition.holds(application, release))
}

/// The newest rollout failed, expired or was revoked for this very target: none is due until a retry.
fn ended_badly(world: &World, target: Digest) -> Option<Verdict> {
    let newest = world
        .newest()
        .filter(|newest| newest.spec.kind == RolloutKind::Change && newest.spec.target_plan_digest == Some(target))?;
    let outcome = outcome(newest)?;
    match outcome {
        Outcome::Failed | Outcome::Expired | Outcome::Revoked if world.new_token().is_none() => {
            let foreign = world.applications.iter().find(|application| {
                let named = newest.spec.steps.iter().any(|step| step.release == application.name());
                named && !is_owned(application, world.uid())
            });
            let why = Why::EndedBadly {
                name: newest.metadata.name.clone().unwrap_or_default(),
                outcome,
                message: newest.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default(),
                foreign: foreign.map(|application| application.name().to_owned()),
            };
            Some(Verdict::Wait(why, None))
        }
        Outcome::Failed
        | Outcome::Expired
        | Outcome::Revoked
        | Outcome::Succeeded
        | Outcome::Superseded
        | Outcome::Orphaned => None,
    }
}

fn held(world: &World) -> Option<Verdict> {
    let spec = &world.runtime.spec;
    let hold = if spec.suspend_engine {
        Hold::EngineSuspended
    } else if spec.paused {
        Hold::Paused
    } else {
        Hold::Engine(world.engine.reason()?)
    };
    Some(Verdict::Wait(Why::Held(hold), None))
}

/// Everything between "due" and "created".
fn prepare(world: &World, target: Digest, now: Timestamp) -> Verdict {
    let stored = match fitness(world, target, world.runtime.spec.validation.deployment) {
        Ok(stored) => stored,
        Err((reason, message)) => return Verdict::Wait(Why::Unfit(reason, message), None),
    };
    let resolved = match &world.resolution.state {
        ResolutionState::Resolved => true,
        ResolutionState::Resolving { plan_stands, .. } => *plan_stands,
        ResolutionState::Unknown | ResolutionState::Stalled { .. } => false,
    };
    if !resolved {
        return Verdict::Wait(Why::Unresolved, None);
    }
    let created = world.plans.get(&target).map_or(now, |(created, _)| *created);
    let window = aicr_crds::duration::parse(&world.runtime.spec.rollout.stabilization_window).unwrap_or_default();
    if now < created + window {
        return Verdict::Wait(Why::Stabilizing(created + window), Some(created + window));
    }
    let active = world.active().and_then(|digest| world.plans.get(&digest)).map(|(_, stored)| stored);
    let transition = Transition { world, active: active.map(|stored| &stored.plan), target: &stored.plan };
    assess(&transition, active, stored, now)
}

fn assess(transition: &Transition<'_>, active: Option<&StoredPlan>, target: &StoredPlan, now: Timestamp) -> Verdict {
    if let Some(message) = blocked(transition, None) {
        return Verdict::Wait(Why::Blocked(message), None);
    }
    let assessment = match assessment(transition.world, active, target, now) {
        Ok(assessment) => assessment,
        Err(verdict) => return *verdict,
    };
    if let Some(message) = blocked(transition, assessment) {
        return Verdict::Wait(Why::Blocked(message), None);
    }
    let rollout = create::rollout(transition, steps(transition, assessment), assessment, now);
    let name = rollout.metadata.name.clone().unwrap_or_default();
    Verdict::Do(Write::CreateRollout(Box::new(rollout)), Why::Creating(name))
}

/// The stored report of the two recipes; `None` where one side has no recipe, or both are the same.
fn assessment<'a>(
    world: &'a World,
    active: Option<&StoredPlan>,
    target: &StoredPlan,
    now: Timestamp,
) -> Result<Option<&'a Assessment>, Box<Verdict>> {
    let recipes = active.and_then(|active| active.recipe.as_ref()).zip(target.recipe.as_ref());
    let Some((from, to)) = recipes.filter(|(from, to)| from != to) else { return Ok(None) };
    let input = resolve::input_label(Digest::of(
        format!("{}{}", Digest::of(from.as_bytes()), Digest::of(to.as_bytes())).as_bytes(),
    ));
    if let Some(stored) = world.assessments.get(&input) {
        return Ok(Some(stored));
    }
    let runs = StageRuns { stage: Stage::Assessment, jobs: &world.jobs, input: &input };
    Err(Box::new(match run_state(runs, now) {
        RunState::Due(attempt) => {
            let job = job(world, &input, attempt, from, to);
            Verdict::Do(Write::RunAssessment(Box::new(job)), Why::Assessing("AICR Jobs are running".to_owned()))
        }
        RunState::Done(JobSeen { name, .. }) => Verdict::Do(
            Write::StoreAssessment { job: name.clone(), input },
            Why::Assessing("the report is being stored".to_owned()),
        ),
        RunState::Backoff(at, why) => Verdict::Wait(Why::Assessing(why), Some(at)),
        RunState::Active(why) => Verdict::Wait(Why::Assessing(why), None),
        RunState::Stalled(reason, message) => Verdict::Wait(Why::AssessmentStalled(reason, message), None),
    }))
}

fn job(world: &World, input: &str, attempt: u32, from: &str, to: &str) -> JobPlan {
    let name = resolve::job_name(Stage::Assessment, input, attempt);
    JobPlan {
        args: resolve::upgrade_check(&world.install, &name),
        name,
        stage: Stage::Assessment,
        input: input.to_owned(),
        attempt,
        inputs: [("from.yaml".to_owned(), from.to_owned()), ("to.yaml".to_owned(), to.to_owned())].into(),
        output: Output::ConfigMap,
    }
}
