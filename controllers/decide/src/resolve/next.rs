//! The way from inputs to a plan: node groups, snapshot, recipe, render, mirror; the first that is not done decides.

use aicr_crds::{ClusterRuntime, Digest, keys::annotation, reason::Reason, runtime::Criteria};
use jiff::Timestamp;

use super::{
    cleanup,
    discovery::Groups,
    inputs::{self, Installation, input_label},
    jobs::{JobPhase, JobSeen, RunState, StageRuns, run_state_recorded},
    mirror::{self, MirrorSeen},
    plans,
    record::{RunRecord, record_of},
    snapshot::{self, Stored},
    verdict::{JobPlan, MirrorPlan, Stage, Verdict},
};

/// What is seen around resolution.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The runtime.
    pub runtime: &'a ClusterRuntime,
    /// The installation.
    pub install: &'a Installation,
    /// The node groups of its placement.
    pub groups: Groups,
    /// Snapshots stored in the operator namespace.
    pub snapshots: Vec<Stored>,
    /// AICR Jobs of this installation.
    pub jobs: Vec<JobSeen>,
    /// What is remembered of failed runs, also of those whose Jobs are gone.
    pub records: Vec<RunRecord>,
    /// Plans of this runtime that can be read.
    pub plans: Vec<Digest>,
    /// Identity of the active plan's gpu-operator chart.
    pub gpu_operator: Option<Digest>,
    /// Registry credentials.
    pub credentials: Credentials,
    /// The last mirror run.
    pub mirror: MirrorSeen,
}

/// Whether the registry can be spoken to with credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// They are there, or none are needed.
    Ready,
    /// They are being fetched for the first time.
    Pending,
    /// They could not be had; why.
    Unavailable(String),
}

/// What resolution does next.
pub fn next(seen: &Seen<'_>, now: Timestamp) -> Verdict {
    if let Some(record) = unrecorded(seen) {
        return Verdict::Record(Box::new(record));
    }
    let placement = &seen.runtime.spec.placement;
    if let Err((reason, message)) = seen.groups.check(placement) {
        return Verdict::Stall(reason, message);
    }
    let annotations = seen.runtime.metadata.annotations.as_ref();
    let token = annotations.and_then(|annotations| annotations.get(annotation::RESNAPSHOT)).cloned();
    let present = snapshot::present(placement, &seen.groups, &seen.install.aicr, seen.gpu_operator, token, now);
    let mut stored: Vec<&Stored> = seen.snapshots.iter().collect();
    stored.sort_by_key(|stored| (stored.taken_at, &stored.name));
    let trigger = input_label(inputs::hash(&present));
    let records: Vec<&snapshot::Record> = stored.iter().map(|stored| &stored.record).collect();
    match (snapshot::due(&records, &present), stored.last()) {
        (None, Some(newest)) => with_snapshot(seen, newest, &trigger, now),
        (cause, _) => {
            let cause = cause.unwrap_or("first resolution").to_owned();
            take_snapshot(seen, snapshot::Record { cause, ..present }, &trigger, now)
        }
    }
}

/// A failed run of resolution that is not remembered yet: that comes before anything is decided on it, or its Job goes.
fn unrecorded(seen: &Seen<'_>) -> Option<RunRecord> {
    let resolves = |stage: Stage| match stage {
        Stage::Snapshot | Stage::Recipe | Stage::Base | Stage::Render => true,
        // Of the first, deleting its failed Jobs is how a person asks for another run.
        Stage::Assessment | Stage::Validation => false,
    };
    seen.jobs.iter().filter(|job| resolves(job.stage)).find_map(|job| {
        let runs = StageRuns { stage: job.stage, jobs: &seen.jobs, input: &job.input };
        let known = record_of(&seen.records, job.stage, &job.input);
        RunRecord::of(runs, known).filter(|record| Some(record) != known)
    })
}

fn judged<'a>(seen: &'a Seen<'_>, stage: Stage, input: &'a str, now: Timestamp) -> RunState<'a> {
    let runs = StageRuns { stage, jobs: &seen.jobs, input };
    run_state_recorded(runs, record_of(&seen.records, stage, input), now)
}

/// Runs the snapshot stage; its input is the state of all triggers, so overlapping triggers make one run.
fn take_snapshot(seen: &Seen<'_>, record: snapshot::Record, input: &str, now: Timestamp) -> Verdict {
    let obsolete = cleanup::before_snapshot(&seen.jobs, input);
    if !obsolete.is_empty() {
        return Verdict::DeleteJobs(obsolete);
    }
    match judged(seen, Stage::Snapshot, input, now) {
        RunState::Due(attempt) => Verdict::Run(Box::new(plans::snapshot(seen, input, attempt))),
        RunState::Done(job) => Verdict::StoreSnapshot { job: job.name.clone(), record: Box::new(record) },
        other @ (RunState::Backoff(..) | RunState::Active(_) | RunState::Stalled(..)) => waiting(other),
    }
}

/// With a snapshot that serves: its readings, then the plan of these inputs, or the stage that is due.
fn with_snapshot(seen: &Seen<'_>, stored: &Stored, trigger: &str, now: Timestamp) -> Verdict {
    let spec = &seen.runtime.spec;
    let inputs = inputs::of_render(inputs::of_spec(spec, &seen.install.aicr), &stored.name);
    let input = input_label(inputs);
    let obsolete = cleanup::with_snapshot(&seen.jobs, trigger, &input);
    if !obsolete.is_empty() {
        return Verdict::DeleteJobs(obsolete);
    }
    let criteria = match readings(seen, stored) {
        Ok(criteria) => criteria,
        Err((reason, message)) => return Verdict::Stall(reason, message),
    };
    if let Some(digest) = stored.resolved.get(&input).filter(|digest| seen.plans.contains(digest)) {
        let done = cleanup::resolved(&seen.jobs);
        return if done.is_empty() { Verdict::Resolved(*digest) } else { Verdict::DeleteJobs(done) };
    }
    render(seen, stored, inputs, criteria, now).unwrap_or_else(|verdict| *verdict)
}

/// The criteria as the newest snapshot and the spec make them, where they do.
pub fn criteria(seen: &Seen<'_>) -> Option<Criteria> {
    let newest = seen.snapshots.iter().max_by_key(|stored| (stored.taken_at, &stored.name))?;
    readings(seen, newest).ok()
}

fn readings(seen: &Seen<'_>, stored: &Stored) -> Result<Criteria, (Reason, String)> {
    let reading = stored.reading.as_ref().map_err(Clone::clone)?;
    let aicr = &seen.install.aicr;
    if !aicr.is(&reading.version) {
        return Err((Reason::AICRVersionMismatch, aicr.mismatch(&reading.version)));
    }
    snapshot::criteria(&seen.runtime.spec.criteria, reading)
}

pub(super) fn render(
    seen: &Seen<'_>,
    stored: &Stored,
    inputs: Digest,
    criteria: Criteria,
    now: Timestamp,
) -> Result<Verdict, Box<Verdict>> {
    let input = &input_label(inputs);
    let recipe = stage(seen, Stage::Recipe, input, now, |attempt| plans::recipe(seen, stored, input, attempt))?;
    let JobPhase::Succeeded { output: Some(recipe), .. } = &recipe.phase else {
        return Ok(Verdict::Wait("the recipe is being read".to_owned(), None));
    };
    match &seen.credentials {
        Credentials::Ready => {}
        Credentials::Pending => {
            return Ok(Verdict::Wait("the registry's credentials are being fetched".to_owned(), None));
        }
        Credentials::Unavailable(why) => {
            return Ok(Verdict::Stall(Reason::RegistryCredentialsUnavailable, why.clone()));
        }
    }
    let bundle = |of: Stage| -> Result<Digest, Box<Verdict>> {
        let job = stage(seen, of, input, now, |attempt| plans::bundle(seen, of, recipe, input, attempt))?;
        digest(of, job)
    };
    let overrides = seen.runtime.spec.overrides.clone();
    let base = (!overrides.is_empty()).then(|| bundle(Stage::Base)).transpose()?;
    let bundle = bundle(Stage::Render)?;
    let plan = MirrorPlan { bundle, base, overrides, inputs, snapshot: stored.name.clone(), criteria };
    Ok(mirror::next(&seen.mirror, plan, now))
}

/// The bundle that a Job pushed.
fn digest(stage: Stage, job: &JobSeen) -> Result<Digest, Box<Verdict>> {
    let JobPhase::Succeeded { message, .. } = &job.phase else {
        return Err(Box::new(Verdict::Wait("the bundle's digest is being read".to_owned(), None)));
    };
    message.trim().parse().map_err(|_| {
        let shown = crate::message::bounded(message, 200);
        Box::new(Verdict::Stall(Reason::AICRInternal, format!("aicr {stage} wrote no bundle digest: {shown}")))
    })
}

fn stage<'a>(
    seen: &'a Seen<'_>,
    stage: Stage,
    input: &'a str,
    now: Timestamp,
    job: impl FnOnce(u32) -> JobPlan,
) -> Result<&'a JobSeen, Box<Verdict>> {
    match judged(seen, stage, input, now) {
        RunState::Done(done) => Ok(done),
        RunState::Due(attempt) => Err(Box::new(Verdict::Run(Box::new(job(attempt))))),
        RunState::Stalled(reason, message) => {
            let (reason, message) = plans::blamed(seen, stage, reason, message);
            Err(Box::new(Verdict::Stall(reason, message)))
        }
        other @ (RunState::Backoff(..) | RunState::Active(_)) => Err(Box::new(waiting(other))),
    }
}

fn waiting(state: RunState<'_>) -> Verdict {
    match state {
        RunState::Backoff(at, why) => Verdict::Wait(why, Some(at)),
        RunState::Active(why) => Verdict::Wait(why, None),
        RunState::Stalled(reason, message) => Verdict::Stall(reason, message),
        RunState::Due(_) | RunState::Done(_) => Verdict::Wait("AICR Jobs are running".to_owned(), None),
    }
}

/// `aicr-<stage>-<first 12 hex of the input>-<attempt>`: creating it twice is creating it once.
pub(crate) fn job_name(stage: Stage, input: &str, attempt: u32) -> String {
    let cut = input.get(..12).unwrap_or(input);
    format!("aicr-{stage}-{cut}-{attempt}")
}

#[cfg(test)]
pub(super) mod play;
#[cfg(test)]
mod tests;
