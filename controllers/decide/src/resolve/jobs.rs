//! What the Jobs of one stage and input say: run, wait, use the output, try again, or stall.

use aicr_crds::reason::Reason;
use jiff::{SignedDuration, Timestamp};

use super::verdict::Stage;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// Judges the runs of one stage and input at `now`.
pub fn run_state(runs: StageRuns<'_>, now: Timestamp) -> RunState<'_> {
    let mut mine: Vec<&JobSeen> =
        runs.jobs.iter().filter(|job| job.stage == runs.stage && job.input == runs.input).collect();
    mine.sort_by_key(|job| job.attempt);
    let Some(last) = mine.last() else { return RunState::Due(1) };
    match &last.phase {
        JobPhase::Suspended => RunState::Due(last.attempt),
        JobPhase::Active(why) => RunState::Active(why.clone().unwrap_or_else(|| "AICR Jobs are running".to_owned())),
        JobPhase::Succeeded { refused: None, .. } => RunState::Done(last),
        JobPhase::Succeeded { refused: Some((reason, text)), .. } => refused(&mine, last, *reason, text),
        JobPhase::Failed { failure, at } => failed(&mine, last, failure, *at, now),
    }
}

/// An output of another version or kind stalls at once; a damaged one counts as a bounded failure.
fn refused<'a>(mine: &[&JobSeen], last: &JobSeen, reason: Reason, text: &str) -> RunState<'a> {
    if reason == Reason::AICRInternal && bounded_runs(mine) < BOUND {
        RunState::Due(last.attempt + 1)
    } else {
        RunState::Stalled(reason, text.to_owned())
    }
}

fn failed<'a>(mine: &[&JobSeen], last: &JobSeen, failure: &Failure, at: Timestamp, now: Timestamp) -> RunState<'a> {
    let said = said(last.stage, failure);
    match failure.class {
        Class::Never | Class::Authorization => RunState::Stalled(failure.reason, said),
        Class::Bounded if bounded_runs(mine) >= BOUND => {
            RunState::Stalled(failure.reason, format!("{said} ({BOUND} runs)"))
        }
        Class::Bounded => RunState::Due(last.attempt + 1),
        Class::Transient => {
            let again = at + backoff(trailing_transient(mine));
            if now >= again {
                RunState::Due(last.attempt + 1)
            } else {
                RunState::Backoff(again, format!("retrying after a transient failure: {said}"))
            }
        }
    }
}

/// `aicr render exited 3: …`, as the pages say it.
pub(crate) fn said(stage: Stage, failure: &Failure) -> String {
    match failure.exit {
        Some(code) => format!("aicr {stage} exited {code}: {}", failure.text),
        None => format!("aicr {stage} ended without an exit code: {}", failure.text),
    }
}

fn bounded_runs(jobs: &[&JobSeen]) -> u32 {
    let bounded = jobs.iter().filter(|job| match &job.phase {
        JobPhase::Failed { failure, .. } => failure.class == Class::Bounded,
        JobPhase::Succeeded { refused, .. } => {
            refused.as_ref().is_some_and(|(reason, _)| *reason == Reason::AICRInternal)
        }
        JobPhase::Suspended | JobPhase::Active(_) => false,
    });
    u32::try_from(bounded.count()).unwrap_or(u32::MAX)
}

fn trailing_transient(jobs: &[&JobSeen]) -> u32 {
    let transient =
        |job: &&&JobSeen| matches!(&job.phase, JobPhase::Failed { failure, .. } if failure.class == Class::Transient);
    u32::try_from(jobs.iter().rev().take_while(transient).count()).unwrap_or(u32::MAX)
}

/// 10 s, doubled each time, at most 5 minutes.
pub(crate) fn backoff(failures: u32) -> SignedDuration {
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

    #[test]
    fn bad_input_stalls_at_once() {
        let stalled = [job(1, failure(2, Class::Never, Reason::AICRInvalidRequest))];
        assert_eq!(
            state(&stalled, 0),
            RunState::Stalled(Reason::AICRInvalidRequest, "aicr render exited 2: [X] it broke".into())
        );
    }
}
