//! Promises 3 and 7 where deployment validation is concerned: when it may run, and that it comes to one verdict.

use aicr_crds::{rollout::RolloutKind, runtime::DeploymentValidation};
use aicr_decide::{
    resolve::{Class, JobPhase, JobPlan, JobSeen, Stage},
    rollout::{Verdict, Write, validation_input},
    seen::World,
};

use super::{
    Broken, Context, Progress, must,
    starts::{consent, drifted, held, over, owed, target_unfit},
};
use crate::cluster::Cluster;

/// How far a rollout's validation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// It has none, or none has begun.
    None,
    /// One has begun, and the next Job is due, or waits.
    Begun,
    /// A Job runs.
    Runs,
    /// It passed.
    Passed,
    /// It failed for good.
    Failed,
}

/// Whether a rollout ends with validation.
pub(super) fn is_required(context: &Context<'_>) -> bool {
    let spec = &context.rollout.spec;
    spec.validation == DeploymentValidation::Required && spec.kind == RolloutKind::Change
}

/// How far it has come, as the Jobs say.
pub(super) fn run(context: &Context<'_>) -> Run {
    let world = &context.view.world;
    if !is_required(context) || !context.view.is_own(context.id) || world.jobs.is_empty() {
        return Run::None;
    }
    let input = validation_input(context.rollout);
    let mine = world.jobs.iter().filter(|job| job.input == input);
    let last = |stage: Stage| mine.clone().filter(|job| job.stage == stage).max_by_key(|job| job.attempt);
    match (last(Stage::Validation), last(Stage::Snapshot)) {
        (Some(job), _) => verdict(world, job),
        (None, Some(job)) if is_active(job) => Run::Runs,
        (None, Some(_)) => Run::Begun,
        (None, None) => Run::None,
    }
}

fn is_active(job: &JobSeen) -> bool {
    match job.phase {
        JobPhase::Suspended | JobPhase::Active(_) => true,
        JobPhase::Succeeded { .. } | JobPhase::Failed { .. } => false,
    }
}

fn verdict(world: &World, job: &JobSeen) -> Run {
    let failed = world.facts.validation.reports.get(&job.name).is_some_and(|report| !report.failed.is_empty());
    match &job.phase {
        JobPhase::Suspended | JobPhase::Active(_) => Run::Runs,
        JobPhase::Succeeded { .. } | JobPhase::Failed { .. } if failed => Run::Failed,
        JobPhase::Succeeded { .. } => Run::Passed,
        JobPhase::Failed { failure, .. } if failure.class == Class::Never => Run::Failed,
        JobPhase::Failed { .. } => Run::Begun,
    }
}

/// Promise 3: a Job of it is created only once all steps are done, nothing holds, and no verdict is there.
pub(super) fn validates(context: &Context<'_>, progress: &Progress<'_>, decided: &Verdict) -> Option<Broken> {
    let Verdict::Do(Write::RunValidation(_), _) = decided else { return None };
    let broken = |how: String| Broken { promise: 3, how: format!("validation runs although {how}") };
    let undone = progress.open.or(progress.flying).map(|place| context.steps()[place].release.clone());
    let done = match run(context) {
        Run::None | Run::Begun => None,
        Run::Runs => Some("it runs already"),
        Run::Passed | Run::Failed => Some("it has come to its verdict"),
    };
    let lacks = context.view.world.facts.validation.lacks.clone();
    over(context)
        .or_else(|| consent(context))
        .or_else(|| undone.map(|release| broken(format!("{release} is not done"))))
        .or_else(|| held(context).map(|what| broken(what.to_owned())))
        .or_else(|| owed(context, progress).map(|release| broken(format!("{release} is owed an acknowledgement"))))
        .or_else(|| target_unfit(context).map(|what| broken(what.to_owned())))
        .or_else(|| drifted(context, progress, None).map(broken))
        .or_else(|| lacks.map(broken))
        .or_else(|| done.map(|what| broken(what.to_owned())))
        .or_else(|| must(is_required(context), 3, || "validation runs and is not required".to_owned()))
}

/// Promise 7, where a Job is created: none of its stage has come to a verdict, or runs.
pub(crate) fn runs_once(cluster: &Cluster, plan: &JobPlan) -> Option<Broken> {
    let world = &cluster.truth.world;
    let others = world.jobs.iter().filter(|job| {
        job.stage == plan.stage && job.input == plan.input && job.name != plan.name && job.attempt < plan.attempt
    });
    let last = others.max_by_key(|job| job.attempt)?;
    let open = verdict(world, last) == Run::Begun;
    must(open, 7, || format!("{} runs, and {} has come to its end", plan.name, last.name))
}
