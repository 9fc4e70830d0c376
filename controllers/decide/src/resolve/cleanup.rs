//! Which Jobs may go, which must stay for long, and which are cancelled because the inputs have changed.

use jiff::Timestamp;

use super::{
    jobs::{JobPhase, JobSeen, RunState, StageRuns, run_state_recorded},
    record::{RunRecord, record_of},
    verdict::Stage,
};

/// How long a failed Job of a stalled stage stays, in seconds: seven days.
pub const KEPT_SECONDS: i32 = 7 * 86_400;

fn is_rendering(stage: Stage) -> bool {
    match stage {
        Stage::Recipe | Stage::Base | Stage::Render => true,
        Stage::Snapshot | Stage::Assessment | Stage::Validation => false,
    }
}

fn has_failed(job: &JobSeen) -> bool {
    match &job.phase {
        JobPhase::Failed { .. } | JobPhase::Succeeded { refused: Some(_), .. } => true,
        JobPhase::Suspended | JobPhase::Active(_) | JobPhase::Succeeded { refused: None, .. } => false,
    }
}

fn has_succeeded(job: &JobSeen) -> bool {
    match &job.phase {
        JobPhase::Succeeded { refused: None, .. } => true,
        JobPhase::Suspended
        | JobPhase::Active(_)
        | JobPhase::Failed { .. }
        | JobPhase::Succeeded { refused: Some(_), .. } => false,
    }
}

fn names<'a>(jobs: &'a [JobSeen], goes: impl Fn(&'a JobSeen) -> bool) -> Vec<String> {
    jobs.iter().filter(|job| goes(job)).map(|job| job.name.clone()).collect()
}

/// While a snapshot with this input is due: what other triggers began, and renders that will have another input.
/// Failed ones of before stay until that input is there.
pub(super) fn before_snapshot(jobs: &[JobSeen], input: &str) -> Vec<String> {
    names(jobs, |job| match job.stage {
        Stage::Snapshot => job.input != input,
        Stage::Recipe | Stage::Base | Stage::Render => !has_failed(job),
        Stage::Assessment | Stage::Validation => false,
    })
}

/// Once a snapshot serves: renders of other inputs, and snapshot Jobs that have nothing more to give. A failed one of
/// the present triggers stays for people until its TTL.
pub(super) fn with_snapshot(jobs: &[JobSeen], trigger: &str, input: &str) -> Vec<String> {
    names(jobs, |job| match job.stage {
        Stage::Snapshot => job.input != trigger || !has_failed(job),
        Stage::Recipe | Stage::Base | Stage::Render => job.input != input,
        Stage::Assessment | Stage::Validation => false,
    })
}

/// Once the plan is stored: successful renders are of no use; a failed one stays for people until its TTL.
pub(super) fn resolved(jobs: &[JobSeen]) -> Vec<String> {
    names(jobs, |job| is_rendering(job.stage) && has_succeeded(job))
}

/// Failed Jobs of stalled stages: they outlive the usual TTL, as record and for their logs.
pub fn kept_longer<'a>(jobs: &'a [JobSeen], records: &[RunRecord], now: Timestamp) -> Vec<&'a str> {
    let stalled = |job: &JobSeen| {
        let runs = StageRuns { stage: job.stage, jobs, input: &job.input };
        match run_state_recorded(runs, record_of(records, job.stage, &job.input), now) {
            RunState::Stalled(..) => true,
            RunState::Due(_) | RunState::Backoff(..) | RunState::Active(_) | RunState::Done(_) => false,
        }
    };
    jobs.iter().filter(|job| has_failed(job) && stalled(job)).map(|job| job.name.as_str()).collect()
}
