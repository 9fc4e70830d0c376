//! From "due" to "created": fitness, resolution, stabilization, assessment.

use aicr_crds::{Digest, plan::StoredPlan, runtime::SelectionPolicy};
use jiff::Timestamp;

use super::{
    create, fitness,
    verdict::{Verdict, Why, Write},
};
use crate::{
    assess::{Transition, blocked, steps},
    resolve::{self, JobPlan, JobSeen, Output, RunState, Stage, StageRuns, run_state},
    seen::{Assessment, ResolutionState, World},
};

/// Everything between "due" and "created".
pub(super) fn prepare(world: &World, target: Digest, now: Timestamp) -> Verdict {
    let stored = match fitness(world, target, world.runtime.spec.validation.deployment) {
        Ok(stored) => stored,
        Err((reason, message)) => return Verdict::Wait(Why::Unfit(reason, message), None),
    };
    let resolved = match &world.resolution.state {
        ResolutionState::Resolved => true,
        ResolutionState::Resolving { plan_stands, .. } => *plan_stands,
        ResolutionState::Unknown | ResolutionState::Stalled { .. } => false,
    };
    if !resolved || !is_of_this_spec(world) {
        return Verdict::Wait(Why::Unresolved, None);
    }
    let created = world.plans.get(&target).map_or(now, |(created, _)| *created);
    let window = aicr_crds::duration::parse(&world.runtime.spec.rollout.stabilization_window).unwrap_or_default();
    if now < created + window {
        return Verdict::Wait(Why::Stabilizing(created + window), Some(created + window));
    }
    let active = world.active().and_then(|digest| world.plans.get(&digest)).map(|(_, stored)| stored.as_ref());
    let transition = Transition::new(world, active.map(|stored| &stored.plan), &stored.plan);
    assess(&transition, active, stored, now)
}

/// A candidate that an earlier spec resolved to carries none of the edits since, and its success must not free their authors
/// of them; a pinned plan frees nobody.
fn is_of_this_spec(world: &World) -> bool {
    let same = world.resolution.generation == world.runtime.metadata.generation;
    match world.runtime.spec.selection.policy {
        SelectionPolicy::Automatic => same,
        SelectionPolicy::Pinned => true,
    }
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
    create::verdict(transition.world, rollout, now)
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
