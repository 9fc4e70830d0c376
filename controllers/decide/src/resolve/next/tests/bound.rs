//! Runs that fail: how many there are, what is remembered of them, and what begins anew.

use aicr_crds::reason::Reason;
use jiff::SignedDuration;

use crate::resolve::{Class, JobPhase, JobSeen, Stage, Verdict, cleanup, next::play::Play};

/// Must show 4: the TTL takes the Jobs, the operator starts again, another leads; in that order.
#[test]
fn the_bound_of_three_outlives_the_jobs_the_operator_and_the_leader() {
    let mut play = Play::new();
    play.settle();
    play.succeed();
    play.settle();
    for attempt in 1..=3 {
        assert_eq!(play.active().len(), 1, "attempt {attempt}");
        assert_eq!(play.jobs.last().unwrap().attempt, attempt);
        play.fail(8, Class::Bounded, Reason::AICRInternal);
        let recorded = play.records.len();
        assert!(matches!(play.next(), Verdict::Record(_)), "remembered before anything else: {recorded}");
        play.settle();
        // The TTL may strike at any time; what is remembered is all that a new process or another leader has.
        if attempt != 2 {
            play.jobs.retain(|job| matches!(job.phase, JobPhase::Active(_)));
        }
    }
    let stalled = play.settle();
    let expected = "aicr recipe exited 8: [X] it broke (3 runs)";
    assert_eq!(stalled, Verdict::Stall(Reason::AICRInternal, expected.into()));
    play.jobs.clear();
    play.now += SignedDuration::from_hours(10);
    assert_eq!(play.settle(), stalled);
    assert_eq!(play.runs, 4);
    // A new snapshot is a new input, and so is a new day.
    play.annotate("1");
    play.settle();
    assert_eq!(play.jobs[0].stage, Stage::Snapshot);
    play.succeed();
    play.settle();
    assert_eq!((play.jobs[0].stage, play.jobs[0].attempt), (Stage::Recipe, 1));
}

#[test]
fn what_aicr_does_not_find_stalls_under_its_own_reason_at_once() {
    let mut play = Play::new();
    play.settle();
    play.succeed();
    play.settle();
    play.fail(3, Class::Never, Reason::AICRNotFound);
    let stalled = Verdict::Stall(Reason::AICRNotFound, "aicr recipe exited 3: [X] it broke".into());
    assert_eq!(play.settle(), stalled);
    play.jobs.clear();
    play.now += SignedDuration::from_hours(10);
    assert_eq!((play.settle(), play.runs), (stalled, 2));
}

#[test]
fn a_stalled_snapshot_is_remembered_too_and_a_new_token_asks_again() {
    let mut play = Play::new();
    play.settle();
    play.fail(4, Class::Authorization, Reason::AICRUnauthorized);
    assert!(matches!(play.settle(), Verdict::Stall(Reason::AICRUnauthorized, _)));
    play.jobs.clear();
    assert!(matches!(play.settle(), Verdict::Stall(Reason::AICRUnauthorized, _)));
    play.annotate("1");
    play.settle();
    assert_eq!(play.active().len(), 1);
}

#[test]
fn a_stalled_stage_is_not_run_again_when_inputs_come_back_to_it() {
    let mut play = Play::new();
    play.resolve();
    play.overrides("bad");
    for _ in 0..2 {
        play.settle();
        play.succeed();
    }
    play.settle();
    play.fail(2, Class::Never, Reason::AICRInvalidRequest);
    assert!(matches!(play.settle(), Verdict::Stall(Reason::InvalidOverride, _)));
    let runs = play.runs;
    play.runtime.spec.overrides.clear();
    assert!(matches!(play.settle(), Verdict::Resolved(_)), "the earlier plan stands");
    play.overrides("bad");
    assert!(!matches!(play.settle(), Verdict::Resolved(_)));
    // Recipe and base are rendered again, the stalled render is not.
    for _ in 0..2 {
        play.succeed();
        play.settle();
    }
    assert!(matches!(play.settle(), Verdict::Stall(Reason::InvalidOverride, _)));
    assert_eq!(play.runs, runs + 2);
}

#[test]
fn failed_jobs_of_a_stalled_stage_are_kept_and_no_others() {
    let mut play = Play::new();
    play.settle();
    play.succeed();
    for _ in 0..2 {
        play.settle();
        play.fail(8, Class::Bounded, Reason::AICRInternal);
    }
    play.settle();
    let kept = |play: &Play| cleanup::kept_longer(&play.jobs, &play.records, play.now).len();
    assert_eq!(kept(&play), 0);
    play.fail(8, Class::Bounded, Reason::AICRInternal);
    play.settle();
    assert_eq!(kept(&play), 3);
    // The assessment's failed Jobs alone are its record.
    let of_assessment = |attempt| JobSeen { stage: Stage::Assessment, attempt, ..play.jobs[0].clone() };
    let all: Vec<JobSeen> = (1..=3).map(of_assessment).collect();
    assert_eq!(cleanup::kept_longer(&all, &[], play.now).len(), 3);
    assert_eq!(cleanup::kept_longer(&all[..2], &[], play.now).len(), 0);
}
