//! From inputs to a plan: one Job after the other, what AICR refuses, and what a crash in between costs.

use aicr_crds::{Digest, reason::Reason};
use jiff::SignedDuration;
use rstest::rstest;

use crate::resolve::{Class, Credentials, JobPhase, JobSeen, Stage, Verdict, next::play::Play, plans};

#[test]
fn inputs_become_a_plan_by_one_job_after_the_other_and_no_job_stays() {
    let mut play = Play::new();
    let mut stages = Vec::new();
    loop {
        if let Verdict::Resolved(_) = play.settle() {
            break;
        }
        stages.push(play.jobs.last().unwrap().stage);
        play.succeed();
    }
    assert_eq!(stages, [Stage::Snapshot, Stage::Recipe, Stage::Render]);
    assert_eq!(play.jobs, []);
    assert!(matches!(play.settle(), Verdict::Resolved(_)), "and nothing further happens");
    assert_eq!(play.runs, 3);
}

#[test]
fn overrides_are_rendered_without_them_first() {
    let mut play = Play::new();
    play.overrides("1");
    let mut args = Vec::new();
    for _ in 0..4 {
        play.settle();
        play.succeed();
        if let Verdict::Run(plan) = play.next() {
            args.push((plan.stage, plan.args.contains(&"--set".to_owned())));
        }
        if let Verdict::Mirror(plan) = play.next() {
            assert!(plan.base.is_some());
        }
    }
    assert_eq!(args, [(Stage::Base, false), (Stage::Render, true)]);
}

#[test]
fn what_aicr_refuses_only_with_overrides_is_the_overrides_fault() {
    let mut play = Play::new();
    play.overrides("1");
    for _ in 0..3 {
        play.settle();
        play.succeed();
    }
    play.settle();
    play.fail(2, Class::Never, Reason::AICRInvalidRequest);
    let Verdict::Stall(reason, message) = play.settle() else { panic!("{:?}", play.next()) };
    assert_eq!(reason, Reason::InvalidOverride);
    assert_eq!(message, "aicr render exited 2: [X] it broke; correct spec.overrides");
}

#[rstest]
#[case::toleration("invalid toleration \"a=b=c\"", Reason::InvalidPlacement)]
#[case::selector("kube-prometheus-stack requires --system-node-selector", Reason::InvalidPlacement)]
#[case::anything("unknown component", Reason::AICRInvalidRequest)]
fn what_aicr_refuses_of_a_placement_is_the_placements_fault(#[case] text: &str, #[case] expected: Reason) {
    let play = Play::new();
    let message = format!("aicr render exited 2: {text}");
    let blamed = |stage| plans::blamed(&play.seen(), stage, Reason::AICRInvalidRequest, message.clone()).0;
    assert_eq!(blamed(Stage::Render), expected);
    assert_eq!(blamed(Stage::Recipe), Reason::AICRInvalidRequest);
}

#[test]
fn changed_inputs_cancel_what_runs_for_the_old_ones_and_take_failed_jobs_away() {
    let mut play = Play::new();
    play.settle();
    play.succeed();
    play.settle();
    play.fail(6, Class::Transient, Reason::AICRInternal);
    play.now += SignedDuration::from_secs(10);
    play.settle();
    assert_eq!((play.jobs.len(), play.active().len()), (2, 1), "a failed one stays, with its logs");
    let old: Vec<String> = play.jobs.iter().map(|job| job.name.clone()).collect();
    play.overrides("1");
    assert_eq!(play.next(), Verdict::DeleteJobs(old));
    play.settle();
    assert_eq!((play.jobs.len(), play.jobs[0].attempt), (1, 1));
}

/// B82: the process may die after each write; what a run said is used once, and no run is repeated.
#[test]
fn a_crash_between_the_end_of_a_run_and_any_write_repeats_no_run() {
    let mut play = Play::new();
    play.settle();
    play.succeed();
    // Stored, and the process dies before the Job is deleted.
    let Verdict::StoreSnapshot { job, record } = play.next() else { panic!() };
    let there = play.jobs.clone();
    play.store(&job, &record);
    play.jobs = there;
    assert_eq!(play.next(), Verdict::DeleteJobs(vec![job]), "it is stored already");
    play.resolve();
    assert_eq!((play.runs, play.snapshots.len()), (3, 1));
    // The plan is stored and recorded, and the process dies before the Jobs are deleted.
    let leftover = JobSeen {
        name: "aicr-render-x-1".into(),
        stage: Stage::Render,
        input: play.snapshots[0].resolved.keys().next().unwrap().clone(),
        attempt: 1,
        run: "r".into(),
        phase: JobPhase::Succeeded {
            message: Digest::of(b"bundle").to_string(),
            output: None,
            refused: None,
            at: play.now,
        },
    };
    play.jobs.push(leftover);
    assert!(matches!(play.settle(), Verdict::Resolved(_)));
    assert_eq!((play.jobs.len(), play.runs), (0, 3));
}

#[test]
fn without_credentials_it_waits_for_the_first_and_stalls_for_missing_ones() {
    let mut play = Play::new();
    for _ in 0..2 {
        play.settle();
        play.succeed();
    }
    play.credentials = Credentials::Pending;
    assert_eq!(play.next(), Verdict::Wait("the registry's credentials are being fetched".into(), None));
    play.credentials = Credentials::Unavailable("no identity".into());
    assert_eq!(play.next(), Verdict::Stall(Reason::RegistryCredentialsUnavailable, "no identity".into()));
    play.credentials = Credentials::Ready;
    play.resolve();
}

#[test]
fn a_snapshot_of_another_aicr_stops_the_operator() {
    let mut play = Play::new();
    play.settle();
    play.succeed();
    play.settle();
    play.jobs.clear();
    play.snapshots[0].reading.as_mut().unwrap().version = "v1.0.0".into();
    let Verdict::Stall(reason, message) = play.settle() else { panic!() };
    assert_eq!(reason, Reason::AICRVersionMismatch);
    assert!(message.contains("reports version v1.0.0, but aicr.version is v1.1.2"), "{message}");
}

#[test]
fn a_recipe_that_is_smaller_than_what_was_asked_for_names_what_was_left_out() {
    assert_eq!(plans::left_out(&[]), None);
    let one = plans::LeftOut {
        overlay: "h100-eks".into(),
        why: "OS.release.ID expects ubuntu, the snapshot reads rhel".into(),
    };
    let (reason, message) = plans::left_out(&[one]).unwrap();
    assert_eq!(reason, Reason::CriteriaConflict);
    assert!(message.contains("h100-eks (OS.release.ID expects ubuntu, the snapshot reads rhel)"), "{message}");
}
