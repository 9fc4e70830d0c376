//! What the Jobs of one stage and input say: run, wait, use the output, try again, or stall.

use std::borrow::Cow;

use aicr_crds::reason::Reason;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{record::RunRecord, verdict::Stage};

/// First wait after a transient failure.
const BACKOFF_FIRST: SignedDuration = SignedDuration::from_secs(10);
/// Longest wait after a transient failure.
const BACKOFF_MAX: SignedDuration = SignedDuration::from_secs(300);
/// How many runs of class `bounded` there are before the stage stalls.
const BOUND: u32 = 3;

/// One AICR Job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSeen {
    /// Name.
    pub name: String,
    /// Stage label.
    pub stage: Stage,
    /// Input label.
    pub input: String,
    /// Attempt label.
    pub attempt: u32,
    /// Run label.
    pub run: String,
    /// Where it is.
    pub phase: JobPhase,
}

/// Where a Job is.
#[derive(Clone, Debug, PartialEq)]
pub enum JobPhase {
    /// Created suspended; its inputs are not complete yet.
    Suspended,
    /// It runs, or waits; why its pod is not running, as the condition says it.
    Active(Option<String>),
    /// Exit 0.
    Succeeded {
        /// Termination message: the bundle's digest.
        message: String,
        /// The output document, where it writes one.
        output: Option<String>,
        /// Why the output is not what it should be.
        refused: Option<(Reason, String)>,
        /// When it ended.
        at: Timestamp,
    },
    /// It failed.
    Failed {
        /// How.
        failure: Failure,
        /// When it ended.
        at: Timestamp,
    },
}

/// How a Job failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Exit code, where one is known.
    pub exit: Option<i32>,
    /// The end of its error output.
    pub text: String,
    /// Retry class.
    pub class: Class,
    /// The reason when it stalls.
    pub reason: Reason,
}

/// Retry classes, as the metrics name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Stalled until the inputs change.
    Never,
    /// Up to three runs.
    Bounded,
    /// Without end, with backoff.
    Transient,
    /// Stalled; a new snapshot tries again.
    Authorization,
}

impl Class {
    /// Every class, as the metrics list them.
    pub const ALL: [Self; 4] = [Self::Never, Self::Bounded, Self::Transient, Self::Authorization];

    /// The word of metrics and Events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Bounded => "bounded",
            Self::Transient => "transient",
            Self::Authorization => "authorization",
        }
    }
}

/// The Jobs of one stage and input.
#[derive(Clone, Copy, Debug)]
pub struct StageRuns<'a> {
    /// The stage.
    pub stage: Stage,
    /// Every Job of the installation.
    pub jobs: &'a [JobSeen],
    /// The input label.
    pub input: &'a str,
}

/// What they say together.
#[derive(Clone, Debug, PartialEq)]
pub enum RunState<'a> {
    /// A run with this attempt number is due.
    Due(u32),
    /// The next run is due at this time; why the last failed.
    Backoff(Timestamp, String),
    /// A run is on its way.
    Active(String),
    /// This run's output can be used.
    Done(&'a JobSeen),
    /// No further run; why.
    Stalled(Reason, String),
}

impl<'a> StageRuns<'a> {
    /// The Jobs of this stage and input, oldest attempt first.
    pub(super) fn mine(&self) -> Vec<&'a JobSeen> {
        let mut mine: Vec<&JobSeen> =
            self.jobs.iter().filter(|job| job.stage == self.stage && job.input == self.input).collect();
        mine.sort_by_key(|job| job.attempt);
        mine
    }
}

impl JobSeen {
    /// How it failed: by its exit, or by an output that cannot be used.
    pub fn failure(&self) -> Option<Cow<'_, Failure>> {
        broke(self).map(|(failure, _)| failure)
    }
}

/// How and when a run failed. An output that cannot be read is as if AICR had failed inside; one of another version
/// or kind comes again as it is.
pub(super) fn broke(job: &JobSeen) -> Option<(Cow<'_, Failure>, Timestamp)> {
    match &job.phase {
        JobPhase::Failed { failure, at } => Some((Cow::Borrowed(failure), *at)),
        JobPhase::Succeeded { refused: Some((reason, text)), at, .. } => {
            let class = if *reason == Reason::AICRInternal { Class::Bounded } else { Class::Never };
            Some((Cow::Owned(Failure { exit: Some(0), text: text.clone(), class, reason: *reason }), *at))
        }
        JobPhase::Succeeded { refused: None, .. } | JobPhase::Suspended | JobPhase::Active(_) => None,
    }
}

/// Judges the runs of one stage and input at `now`, by their Jobs alone.
pub fn run_state(runs: StageRuns<'_>, now: Timestamp) -> RunState<'_> {
    run_state_recorded(runs, None, now)
}

/// The same with what is remembered of runs whose Jobs are gone.
pub fn run_state_recorded<'a>(runs: StageRuns<'a>, known: Option<&RunRecord>, now: Timestamp) -> RunState<'a> {
    let mine = runs.mine();
    let record = RunRecord::of(runs, known);
    let newest = mine.last().filter(|last| record.as_ref().is_none_or(|record| last.attempt >= record.attempt));
    match (newest, record) {
        (None, None) => RunState::Due(1),
        (None, Some(record)) => remembered(&record),
        (Some(last), record) => match &last.phase {
            JobPhase::Suspended => RunState::Due(last.attempt),
            JobPhase::Active(why) => {
                RunState::Active(why.clone().unwrap_or_else(|| "AICR Jobs are running".to_owned()))
            }
            JobPhase::Succeeded { refused: None, .. } => RunState::Done(last),
            JobPhase::Failed { failure, at } if failure.class == Class::Transient => {
                again(last, failure, *at + backoff(trailing_transient(&mine)), now)
            }
            JobPhase::Succeeded { refused: Some(_), .. } | JobPhase::Failed { .. } => {
                record.map_or(RunState::Due(last.attempt + 1), |record| remembered(&record))
            }
        },
    }
}

/// The newest run broke, and not for a while only.
fn remembered<'a>(record: &RunRecord) -> RunState<'a> {
    match record.class {
        Class::Never | Class::Authorization => RunState::Stalled(record.reason, record.message.clone()),
        Class::Bounded if record.bounded >= BOUND => {
            RunState::Stalled(record.reason, format!("{} ({BOUND} runs)", record.message))
        }
        Class::Bounded | Class::Transient => RunState::Due(record.attempt + 1),
    }
}

fn again<'a>(last: &JobSeen, failure: &Failure, at: Timestamp, now: Timestamp) -> RunState<'a> {
    if now >= at {
        RunState::Due(last.attempt + 1)
    } else {
        RunState::Backoff(at, format!("retrying after a transient failure: {}", said(last.stage, failure)))
    }
}

/// `aicr render exited 3: …`, as the pages say it.
pub(crate) fn said(stage: Stage, failure: &Failure) -> String {
    match failure.exit {
        // What AICR wrote is at fault, not how it ended.
        Some(0) => format!("aicr {stage}: {}", failure.text),
        Some(code) => format!("aicr {stage} exited {code}: {}", failure.text),
        None => format!("aicr {stage} ended without an exit code: {}", failure.text),
    }
}

fn trailing_transient(jobs: &[&JobSeen]) -> u32 {
    let transient =
        |job: &&&JobSeen| matches!(&job.phase, JobPhase::Failed { failure, .. } if failure.class == Class::Transient);
    u32::try_from(jobs.iter().rev().take_while(transient).count()).unwrap_or(u32::MAX)
}

/// How long to wait after so many failures in a row: 10 s, doubled each time, at most 5 minutes.
pub fn backoff(failures: u32) -> SignedDuration {
    let doublings = failures.saturating_sub(1).min(5);
    (BACKOFF_FIRST * 2_i32.pow(doublings)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn job(attempt: u32, phase: JobPhase) -> JobSeen {
        JobSeen {
            name: format!("j{attempt}"),
            stage: Stage::Render,
            input: "i".into(),
            attempt,
            run: "r".into(),
            phase,
        }
    }

    fn failure(exit: i32, class: Class, reason: Reason) -> JobPhase {
        JobPhase::Failed {
            failure: Failure { exit: Some(exit), text: "[X] it broke".into(), class, reason },
            at: at(0),
        }
    }

    fn state(jobs: &[JobSeen], now: i64) -> RunState<'_> {
        run_state(StageRuns { stage: Stage::Render, jobs, input: "i" }, at(now))
    }

    #[test]
    fn a_stage_without_runs_is_due_and_other_inputs_do_not_count() {
        assert_eq!(state(&[], 0), RunState::Due(1));
        let other = JobSeen { input: "other".into(), ..job(1, failure(2, Class::Never, Reason::AICRInvalidRequest)) };
        assert_eq!(state(&[other], 0), RunState::Due(1));
    }

    #[test]
    fn bounded_failures_stall_at_the_third_run() {
        let fail = || failure(8, Class::Bounded, Reason::AICRInternal);
        assert_eq!(state(&[job(1, fail())], 0), RunState::Due(2));
        assert_eq!(state(&[job(1, fail()), job(2, fail())], 0), RunState::Due(3));
        let stalled = [job(1, fail()), job(2, fail()), job(3, fail())];
        assert_eq!(
            state(&stalled, 0),
            RunState::Stalled(Reason::AICRInternal, "aicr render exited 8: [X] it broke (3 runs)".into())
        );
    }

    #[test]
    fn transient_failures_back_off_without_end_and_do_not_count() {
        let fail = |attempt| job(attempt, failure(6, Class::Transient, Reason::AICRInternal));
        let one = [fail(1)];
        assert_eq!(
            state(&one, 9),
            RunState::Backoff(at(10), "retrying after a transient failure: aicr render exited 6: [X] it broke".into())
        );
        assert_eq!(state(&one, 10), RunState::Due(2));
        let many: Vec<JobSeen> = (1..=9).map(fail).collect();
        assert_eq!(
            state(&many, 299),
            RunState::Backoff(at(300), "retrying after a transient failure: aicr render exited 6: [X] it broke".into())
        );
        assert_eq!(state(&many, 300), RunState::Due(10));
    }

    /// What is remembered after these Jobs.
    fn record(jobs: &[JobSeen], known: Option<&RunRecord>) -> RunRecord {
        RunRecord::of(StageRuns { stage: Stage::Render, jobs, input: "i" }, known).unwrap()
    }

    fn recorded<'a>(jobs: &'a [JobSeen], known: &RunRecord) -> RunState<'a> {
        run_state_recorded(StageRuns { stage: Stage::Render, jobs, input: "i" }, Some(known), at(0))
    }

    #[test]
    fn the_bound_of_three_holds_when_the_jobs_are_gone() {
        let fail = || failure(8, Class::Bounded, Reason::AICRInternal);
        let one = record(&[job(1, fail())], None);
        assert_eq!((one.attempt, one.bounded), (1, 1));
        assert_eq!(recorded(&[], &one), RunState::Due(2));
        let two = record(&[job(2, fail())], Some(&one));
        assert_eq!(recorded(&[], &two), RunState::Due(3));
        // The first two are gone, the third is there; then all are gone.
        let third = [job(3, fail())];
        let stalled = RunState::Stalled(Reason::AICRInternal, "aicr render exited 8: [X] it broke (3 runs)".into());
        assert_eq!(recorded(&third, &two), stalled);
        let three = record(&third, Some(&two));
        assert_eq!((three.attempt, three.bounded), (3, 3));
        assert_eq!(recorded(&[], &three), stalled);
        // Counted once, however often it is seen.
        assert_eq!(record(&third, Some(&three)), three);
        assert_eq!(recorded(&third, &three), stalled);
    }

    #[test]
    fn a_stage_that_stalled_at_once_stays_stalled_when_its_job_is_gone() {
        let known = record(&[job(1, failure(2, Class::Never, Reason::AICRInvalidRequest))], None);
        let stalled = RunState::Stalled(Reason::AICRInvalidRequest, "aicr render exited 2: [X] it broke".into());
        assert_eq!(recorded(&[], &known), stalled);
    }

    #[test]
    fn transient_failures_are_not_remembered_and_keep_what_is() {
        let jobs = [
            job(1, failure(8, Class::Bounded, Reason::AICRInternal)),
            job(2, failure(6, Class::Transient, Reason::AICRInternal)),
        ];
        let known = record(&jobs, None);
        assert_eq!((known.attempt, known.bounded), (1, 1));
        assert!(matches!(recorded(&jobs, &known), RunState::Backoff(..)));
        assert_eq!(RunRecord::of(StageRuns { stage: Stage::Render, jobs: &jobs[1..], input: "i" }, None), None);
    }

    #[test]
    fn an_output_that_cannot_be_read_is_a_failed_run_and_one_of_another_kind_comes_again_as_it_is() {
        let refused = |reason| JobPhase::Succeeded {
            message: String::new(),
            output: None,
            refused: Some((reason, "it is damaged".into())),
            at: at(0),
        };
        let damaged = job(1, refused(Reason::AICRInternal));
        assert_eq!(damaged.failure().unwrap().class, Class::Bounded);
        assert_eq!(state(&[damaged], 0), RunState::Due(2));
        let other = [job(1, refused(Reason::AICRArtifactUnsupported))];
        assert_eq!(other[0].failure().unwrap().class, Class::Never);
        assert!(matches!(state(&other, 0), RunState::Stalled(Reason::AICRArtifactUnsupported, _)));
    }

    #[test]
    fn bad_input_stalls_at_once() {
        let stalled = [job(1, failure(2, Class::Never, Reason::AICRInvalidRequest))];
        assert_eq!(
            state(&stalled, 0),
            RunState::Stalled(Reason::AICRInvalidRequest, "aicr render exited 2: [X] it broke".into())
        );
    }
}
