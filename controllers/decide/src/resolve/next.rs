//! The way from inputs to a plan: node groups, snapshot, recipe, render, mirror; the first that is not done decides.

use std::collections::BTreeMap;

use aicr_crds::{ClusterRuntime, Digest, keys::annotation, reason::Reason, runtime::Criteria};
use jiff::Timestamp;

use super::{
    args,
    discovery::Groups,
    inputs::{self, Installation, input_label},
    jobs::{JobPhase, JobSeen, RunState, StageRuns, backoff, run_state},
    snapshot::{self, Stored},
    verdict::{JobPlan, MirrorPlan, Output, Stage, Verdict},
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
    /// They could not be had; why.
    Unavailable(String),
}

/// What the last mirror run came to; lost with a restart, since it can be run again at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MirrorSeen {
    /// None has run.
    #[default]
    None,
    /// It failed, for these inputs.
    Failed {
        /// Hash of the inputs.
        inputs: Digest,
        /// The reason when it stalls; `None` when it is retried.
        reason: Option<Reason>,
        /// More.
        message: String,
        /// When.
        at: Timestamp,
        /// How often in a row.
        times: u32,
    },
}

/// What resolution does next.
pub fn next(seen: &Seen<'_>, now: Timestamp) -> Verdict {
    let spec = &seen.runtime.spec;
    if let Err((reason, message)) = seen.groups.check(&spec.placement) {
        return Verdict::Stall(reason, message);
    }
    let token = seen
        .runtime
        .metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(annotation::RESNAPSHOT))
        .cloned();
    let present = snapshot::present(&spec.placement, &seen.groups, &seen.install.aicr, seen.gpu_operator, token, now);
    let newest =
        seen.snapshots.iter().max_by(|one, other| (one.taken_at, &one.name).cmp(&(other.taken_at, &other.name)));
    match snapshot::due(newest.map(|stored| &stored.record), &present) {
        Some(cause) => take_snapshot(seen, snapshot::Record { cause: cause.to_owned(), ..present }, now),
        None => newest
            .map_or_else(|| Verdict::Wait("no snapshot".to_owned(), None), |stored| with_snapshot(seen, stored, now)),
    }
}

/// Runs the snapshot stage; its input is the state of all triggers, so overlapping triggers make one run.
fn take_snapshot(seen: &Seen<'_>, record: snapshot::Record, now: Timestamp) -> Verdict {
    let input = input_label(inputs::hash(&snapshot::Record { cause: String::new(), ..record.clone() }));
    let runs = StageRuns { stage: Stage::Snapshot, jobs: &seen.jobs, input: &input };
    match run_state(runs, now) {
        RunState::Due(attempt) => {
            let name = job_name(Stage::Snapshot, &input, attempt);
            let args = args::snapshot(&seen.runtime.spec, seen.install, &name);
            let plan = JobPlan {
                name,
                stage: Stage::Snapshot,
                input,
                attempt,
                args,
                inputs: BTreeMap::new(),
                output: Output::ConfigMap,
            };
            Verdict::Run(Box::new(plan))
        }
        RunState::Done(job) => Verdict::StoreSnapshot { job: job.name.clone(), record: Box::new(record) },
        other @ (RunState::Backoff(..) | RunState::Active(_) | RunState::Stalled(..)) => waiting(other),
    }
}

/// With a snapshot that serves: its readings, then the plan of these inputs, or the stage that is due.
fn with_snapshot(seen: &Seen<'_>, stored: &Stored, now: Timestamp) -> Verdict {
    let spec = &seen.runtime.spec;
    let reading = match &stored.reading {
        Ok(reading) => reading,
        Err((reason, message)) => return Verdict::Stall(*reason, message.clone()),
    };
    if !seen.install.aicr.is(&reading.version) {
        return Verdict::Stall(Reason::AICRVersionMismatch, mismatch(&reading.version, seen.install));
    }
    let criteria = match snapshot::criteria(&spec.criteria, reading) {
        Ok(criteria) => criteria,
        Err((reason, message)) => return Verdict::Stall(reason, message),
    };
    let inputs = inputs::of_render(inputs::of_spec(spec, &seen.install.aicr), &stored.name);
    if let Some(digest) = stored.resolved.get(&input_label(inputs)).filter(|digest| seen.plans.contains(digest)) {
        let done: Vec<String> =
            seen.jobs.iter().filter(|job| is_finished_render(job)).map(|job| job.name.clone()).collect();
        return if done.is_empty() { Verdict::Resolved(*digest) } else { Verdict::DeleteJobs(done) };
    }
    render(seen, stored, inputs, criteria, now)
}

/// Successful recipe and render Jobs are of no use once the plan is stored; a failed one stays for people until its TTL.
fn is_finished_render(job: &JobSeen) -> bool {
    let succeeded = match job.phase {
        JobPhase::Succeeded { .. } => true,
        JobPhase::Suspended | JobPhase::Active(_) | JobPhase::Failed { .. } => false,
    };
    let rendering = match job.stage {
        Stage::Recipe | Stage::Base | Stage::Render => true,
        Stage::Snapshot | Stage::Assessment | Stage::Validation => false,
    };
    succeeded && rendering
}

/// From a recipe to a bundle that is mirrored.
pub(super) fn render(seen: &Seen<'_>, stored: &Stored, inputs: Digest, criteria: Criteria, now: Timestamp) -> Verdict {
    let input = input_label(inputs);
    let recipe = match stage(seen, Stage::Recipe, &input, now, |attempt| recipe_job(seen, stored, &input, attempt)) {
        Ok(job) => job,
        Err(verdict) => return verdict,
    };
    let JobPhase::Succeeded { output: Some(recipe), .. } = &recipe.phase else {
        return Verdict::Wait("the recipe is being read".to_owned(), None);
    };
    if let Credentials::Unavailable(why) = &seen.credentials {
        return Verdict::Stall(Reason::RegistryCredentialsUnavailable, why.clone());
    }
    let overrides = seen.runtime.spec.overrides.clone();
    let base = if overrides.is_empty() {
        None
    } else {
        match bundle(seen, Stage::Base, recipe, &input, now) {
            Ok(digest) => Some(digest),
            Err(verdict) => return refused(verdict, Stage::Base),
        }
    };
    let bundle = match bundle(seen, Stage::Render, recipe, &input, now) {
        Ok(digest) => digest,
        // The render without overrides passed, so they are what AICR refuses.
        Err(verdict) => return refused(verdict, if base.is_some() { Stage::Render } else { Stage::Base }),
    };
    mirror(seen, MirrorPlan { bundle, base, overrides, inputs, snapshot: stored.name.clone(), criteria }, now)
}

/// The digest of a rendered bundle, or what is due before it is known.
fn bundle(seen: &Seen<'_>, of: Stage, recipe: &str, input: &str, now: Timestamp) -> Result<Digest, Verdict> {
    let done = stage(seen, of, input, now, |attempt| bundle_job(seen, of, recipe, input, attempt))?;
    let JobPhase::Succeeded { message, .. } = &done.phase else {
        return Err(Verdict::Wait("the bundle's digest is being read".to_owned(), None));
    };
    message.trim().parse().map_err(|_| {
        let said = crate::message::bounded(message, 200);
        Verdict::Stall(Reason::AICRInternal, format!("aicr {of} wrote no bundle digest: {said}"))
    })
}

/// What a bundle command refuses by its exit code 2: the overrides that only `aicr render` has, or else selectors and
/// tolerations where its words name them.
fn refused(verdict: Verdict, stage: Stage) -> Verdict {
    match verdict {
        Verdict::Stall(Reason::AICRInvalidRequest, message) => {
            let placement = ["node-selector", "node selector", "nodeSelector", "toleration"];
            let reason = if stage == Stage::Render {
                Reason::InvalidOverride
            } else if placement.iter().any(|word| message.contains(word)) {
                Reason::InvalidPlacement
            } else {
                Reason::AICRInvalidRequest
            };
            Verdict::Stall(reason, message)
        }
        other @ (Verdict::Run(_)
        | Verdict::StoreSnapshot { .. }
        | Verdict::Mirror(_)
        | Verdict::DeleteJobs(_)
        | Verdict::Resolved(_)
        | Verdict::Wait(..)
        | Verdict::Stall(..)) => other,
    }
}

fn stage<'a>(
    seen: &'a Seen<'_>,
    stage: Stage,
    input: &'a str,
    now: Timestamp,
    job: impl FnOnce(u32) -> JobPlan,
) -> Result<&'a JobSeen, Verdict> {
    match run_state(StageRuns { stage, jobs: &seen.jobs, input }, now) {
        RunState::Done(done) => Ok(done),
        RunState::Due(attempt) => Err(Verdict::Run(Box::new(job(attempt)))),
        other @ (RunState::Backoff(..) | RunState::Active(_) | RunState::Stalled(..)) => Err(waiting(other)),
    }
}

fn recipe_job(seen: &Seen<'_>, stored: &Stored, input: &str, attempt: u32) -> JobPlan {
    let name = job_name(Stage::Recipe, input, attempt);
    JobPlan {
        args: args::recipe(&seen.runtime.spec, seen.install, &name),
        name,
        stage: Stage::Recipe,
        input: input.to_owned(),
        attempt,
        inputs: [("snapshot.yaml".to_owned(), stored.text.clone())].into(),
        output: Output::ConfigMap,
    }
}

fn bundle_job(seen: &Seen<'_>, stage: Stage, recipe: &str, input: &str, attempt: u32) -> JobPlan {
    let overrides = if stage == Stage::Base { &[] } else { seen.runtime.spec.overrides.as_slice() };
    JobPlan {
        name: job_name(stage, input, attempt),
        stage,
        input: input.to_owned(),
        attempt,
        args: args::bundle(&seen.runtime.spec, overrides, seen.install, &format!("{stage}-{input}")),
        inputs: [("recipe.yaml".to_owned(), recipe.to_owned())].into(),
        output: Output::Registry,
    }
}

fn mirror(seen: &Seen<'_>, plan: MirrorPlan, now: Timestamp) -> Verdict {
    match &seen.mirror {
        MirrorSeen::Failed { inputs, reason: Some(reason), message, .. } if *inputs == plan.inputs => {
            Verdict::Stall(*reason, message.clone())
        }
        MirrorSeen::Failed { inputs, reason: None, message, at, times }
            if *inputs == plan.inputs && now < *at + backoff(*times) =>
        {
            Verdict::Wait(message.clone(), Some(*at + backoff(*times)))
        }
        MirrorSeen::None | MirrorSeen::Failed { .. } => Verdict::Mirror(Box::new(plan)),
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

/// Says which version was reported and which is installed.
pub(crate) fn mismatch(reported: &str, install: &Installation) -> String {
    let (version, image) = (&install.aicr.version, &install.aicr.image);
    format!("the image {image} reports version {reported}, but aicr.version is {version}; set both to the same release")
}
