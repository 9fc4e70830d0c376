//! Deployment validation: a new snapshot, then `aicr validate` on the bundle's recipe; once, and what its runs say.

use std::collections::BTreeMap;

use aicr_crds::{Digest, reason::Outcome, rollout::RolloutKind, runtime::DeploymentValidation};
use jiff::Timestamp;

use super::{
    position::Position,
    verdict::{Verdict, Write},
    why::Why,
};
use crate::{
    message::listed,
    resolve::{
        JobPhase, JobPlan, JobSeen, Output, RunState, Stage, StageRuns, input_label, job_name, launched, run_state,
    },
    seam,
    seen::{RolloutSeen, TargetSeen},
};

/// How many checks a message names.
const NAMED: usize = 10;

/// Where a rollout's validation stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Validation {
    /// The rollout has none.
    None,
    /// Its next Job.
    Due(Box<JobPlan>),
    /// A Job runs.
    Running {
        /// Run ID.
        run: String,
        /// Why its pod is not running, or that it is.
        message: String,
    },
    /// A run ended without a verdict; the next is due at this time.
    Backoff(Timestamp, String),
    /// It cannot run now.
    Unavailable(String),
    /// Passed.
    Passed {
        /// Run ID.
        run: String,
        /// Reference of the evidence.
        evidence: Option<String>,
    },
    /// Failed for good.
    Failed(String),
}

/// Whether a rollout ends with validation; the copied `validation` counts, not a later edit of the runtime.
pub(super) fn is_needed(position: &Position<'_>) -> bool {
    match (position.rollout.spec.kind, position.rollout.spec.validation) {
        (RolloutKind::Change, DeploymentValidation::Required) => true,
        (RolloutKind::Change, DeploymentValidation::Disabled) | (RolloutKind::Adopt | RolloutKind::Remove, _) => false,
    }
}

/// Input label of a rollout's validation Jobs: its own UID, so that another rollout is another run.
pub fn validation_input(rollout: &aicr_crds::RuntimeRollout) -> String {
    let uid = rollout.metadata.uid.as_deref().unwrap_or_default();
    input_label(Digest::of(format!("validation/{uid}").as_bytes()))
}

/// The Jobs of this rollout's validation; found by label, so that lost status does not run it twice.
pub(super) fn jobs<'a>(position: &Position<'_>, seen: &'a RolloutSeen) -> Vec<&'a JobSeen> {
    if !is_needed(position) || seen.facts.validation.jobs.is_empty() {
        return Vec::new();
    }
    let input = validation_input(position.rollout);
    seen.facts.validation.jobs.iter().filter(|job| job.input == input).collect()
}

/// Whether validation has begun: from then on neither expiry nor revocation can come.
pub(crate) fn is_begun(position: &Position<'_>, seen: &RolloutSeen) -> bool {
    !jobs(position, seen).is_empty() && !seam::is_broken("validation: begun")
}

/// Where it stands; asked only once every step is ready.
pub fn validation(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Validation {
    if !is_needed(position) {
        return Validation::None;
    }
    let input = validation_input(position.rollout);
    let facts = &seen.facts.validation;
    let runs = |stage| StageRuns { stage, jobs: &facts.jobs, input: &input };
    let snapshot = match run_state(runs(Stage::Snapshot), now) {
        RunState::Due(attempt) => return next_job(seen, || snapshot_job(seen, &input, attempt)),
        RunState::Active(message) => return running(&facts.jobs, &input, Stage::Snapshot, message),
        RunState::Backoff(at, why) => return Validation::Backoff(at, why),
        RunState::Stalled(_, message) => return Validation::Unavailable(format!("its snapshot failed: {message}")),
        RunState::Done(job) => output(job),
    };
    validated(seen, &input, snapshot, now)
}

/// Unless what it needs is missing; a run that is on its way, or has its verdict, needs nothing any more.
fn next_job(seen: &RolloutSeen, job: impl FnOnce() -> JobPlan) -> Validation {
    match &seen.facts.validation.lacks {
        Some(lacks) => Validation::Unavailable(lacks.clone()),
        None => Validation::Due(Box::new(job())),
    }
}

fn validated(seen: &RolloutSeen, input: &str, snapshot: &str, now: Timestamp) -> Validation {
    let facts = &seen.facts.validation;
    let last = facts.jobs.iter().filter(|job| job.stage == Stage::Validation && job.input == *input);
    let last = last.max_by_key(|job| job.attempt);
    if let Some(verdict) = last.and_then(|job| reported(job, seen)) {
        return verdict;
    }
    let runs = StageRuns { stage: Stage::Validation, jobs: &facts.jobs, input };
    match run_state(runs, now) {
        RunState::Due(attempt) => match recipe(seen) {
            Some(recipe) => next_job(seen, || validate_job(seen, input, attempt, recipe, snapshot)),
            None => Validation::Unavailable("the target plan's recipe cannot be read".to_owned()),
        },
        RunState::Active(message) => running(&facts.jobs, input, Stage::Validation, message),
        RunState::Backoff(at, why) => Validation::Backoff(at, why),
        RunState::Stalled(_, message) => Validation::Failed(format!(
            "deployment validation failed: {message}; read the Job in {}",
            facts.place.namespace
        )),
        // Exit 0 without a report that could be read: success, without a reference.
        RunState::Done(job) => Validation::Passed { run: job.run.clone(), evidence: None },
    }
}

/// What a finished run's report says; `None` where it wrote none.
fn reported(job: &JobSeen, seen: &RolloutSeen) -> Option<Validation> {
    let report = seen.facts.validation.reports.get(&job.name)?;
    let evidence = report.evidence.clone();
    match &job.phase {
        JobPhase::Succeeded { refused: None, .. } if report.failed.is_empty() => {
            Some(Validation::Passed { run: job.run.clone(), evidence })
        }
        JobPhase::Succeeded { .. } | JobPhase::Failed { .. } if !report.failed.is_empty() => {
            let evidence = evidence.map_or(String::new(), |reference| format!("; evidence {reference}"));
            Some(Validation::Failed(format!(
                "deployment validation run {} failed: {}{evidence}; read Job {}",
                job.run,
                listed(&report.failed, NAMED),
                job.name
            )))
        }
        JobPhase::Suspended | JobPhase::Active(_) | JobPhase::Succeeded { .. } | JobPhase::Failed { .. } => None,
    }
}

fn running(jobs: &[JobSeen], input: &str, stage: Stage, message: String) -> Validation {
    let mine = jobs.iter().filter(|job| job.stage == stage && job.input == *input).max_by_key(|job| job.attempt);
    Validation::Running { run: mine.map(|job| job.run.clone()).unwrap_or_default(), message }
}

fn output(job: &JobSeen) -> &str {
    match &job.phase {
        JobPhase::Succeeded { output: Some(text), .. } => text,
        JobPhase::Succeeded { output: None, .. }
        | JobPhase::Suspended
        | JobPhase::Active(_)
        | JobPhase::Failed { .. } => "",
    }
}

fn recipe(seen: &RolloutSeen) -> Option<&str> {
    match &seen.target {
        TargetSeen::Plan(stored) => stored.recipe.as_deref(),
        TargetSeen::None | TargetSeen::Unfit(..) => None,
    }
}

fn snapshot_job(seen: &RolloutSeen, input: &str, attempt: u32) -> JobPlan {
    let place = &seen.facts.validation.place;
    let name = job_name(Stage::Snapshot, input, attempt);
    let mut args = place.snapshot.clone();
    args.extend(launched(&name, &place.discovery_namespace));
    JobPlan {
        name,
        stage: Stage::Snapshot,
        input: input.to_owned(),
        attempt,
        args,
        inputs: BTreeMap::new(),
        output: Output::ConfigMap,
    }
}

fn validate_job(seen: &RolloutSeen, input: &str, attempt: u32, recipe: &str, snapshot: &str) -> JobPlan {
    let place = &seen.facts.validation.place;
    let name = job_name(Stage::Validation, input, attempt);
    let push = format!("oci://{}/evidence:{name}", place.repository);
    let pairs = [
        ("--recipe", "/in/recipe.yaml".to_owned()),
        ("--snapshot", "/in/snapshot.yaml".to_owned()),
        ("--phase", "deployment".to_owned()),
        ("--namespace", place.namespace.clone()),
        ("--emit-attestation", "evidence".to_owned()),
        ("--push", push),
        ("--output", format!("cm://{}/{name}", place.namespace)),
    ];
    let mut args = vec!["--log-json".to_owned(), "validate".to_owned()];
    args.extend(pairs.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]));
    args.push("--no-sign".to_owned());
    args.extend(place.plain_http.then(|| "--plain-http".to_owned()));
    let inputs = [("recipe.yaml", recipe), ("snapshot.yaml", snapshot)];
    JobPlan {
        name,
        stage: Stage::Validation,
        input: input.to_owned(),
        attempt,
        args,
        inputs: inputs.map(|(key, text)| (key.to_owned(), text.to_owned())).into(),
        output: Output::ConfigMap,
    }
}

/// Gate 8, second half: a run that is on its way is finished, and a verdict counts, also while held.
pub(super) fn in_flight(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Option<Verdict> {
    if !is_begun(position, seen) {
        return None;
    }
    match validation(position, seen, now) {
        Validation::Running { run, message } => {
            Some(Verdict::Wait(Why::Validating { run, message }, Some(position.rollout.spec.deadline.0)))
        }
        Validation::Failed(message) => Some(Verdict::End(Outcome::Failed, Why::ValidationFailed(message))),
        Validation::None
        | Validation::Due(_)
        | Validation::Backoff(..)
        | Validation::Unavailable(_)
        | Validation::Passed { .. } => None,
    }
}

/// Gate 16: the next Job, or why there is none; what it needs is looked at again until it is there or the deadline ends it.
pub(super) fn due(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Option<Verdict> {
    if position.next.is_some() || position.in_flight.is_some() {
        return None;
    }
    let until = Some(position.rollout.spec.deadline.0);
    match validation(position, seen, now) {
        Validation::None | Validation::Passed { .. } | Validation::Failed(_) => None,
        Validation::Due(plan) => {
            if let Some(trouble) = &seen.facts.trouble {
                return Some(Verdict::Wait(Why::ValidationUnavailable(trouble.clone()), until));
            }
            let why = Why::Validating { run: plan.name.clone(), message: "AICR Jobs are running".to_owned() };
            Some(Verdict::Do(Write::RunValidation(plan), why))
        }
        Validation::Running { run, message } => Some(Verdict::Wait(Why::Validating { run, message }, until)),
        Validation::Backoff(at, message) => {
            let run = jobs(position, seen).last().map(|job| job.run.clone()).unwrap_or_default();
            Some(Verdict::Wait(Why::Validating { run, message }, Some(at)))
        }
        Validation::Unavailable(message) => Some(Verdict::Wait(Why::ValidationUnavailable(message), until)),
    }
}
