//! Resolution played through: each verdict is carried out on a small cluster, and what is lost is lost.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::resolve::{
    AicrInstall, Class, Failure, NodeSeen,
    record::with_record,
    snapshot::{Reading, Record},
};

/// A cluster with one accelerated node, in which every verdict can be carried out.
struct Play {
    runtime: ClusterRuntime,
    install: Installation,
    types: Vec<&'static str>,
    gpu_operator: Option<Digest>,
    snapshots: Vec<Stored>,
    jobs: Vec<JobSeen>,
    records: Vec<RunRecord>,
    plans: Vec<Digest>,
    credentials: Credentials,
    now: Timestamp,
    runs: usize,
}

fn install() -> Installation {
    Installation {
        aicr: AicrInstall { version: "v1.1.2".into(), image: "r/aicr:1".into() },
        repository: "r/p".into(),
        plain_http: Vec::new(),
        jobs_namespace: "aicr-jobs".into(),
        discovery_namespace: "aicr-discovery".into(),
        agent_service_account: "agent".into(),
        agent_privileged: true,
        agent_requests: None,
        agent_limits: None,
    }
}

impl Play {
    fn new() -> Self {
        let runtime = json!({
            "apiVersion": "operator.aicr.run/v1alpha1", "kind": "ClusterRuntime",
            "metadata": { "name": "cluster", "uid": "u" },
            "spec": { "intent": "training", "placement": { "accelerated": { "nodeSelector": { "pool": "gpu" } } } },
        });
        Self {
            runtime: serde_json::from_value(runtime).unwrap(),
            install: install(),
            types: vec!["p5"],
            gpu_operator: None,
            snapshots: Vec::new(),
            jobs: Vec::new(),
            records: Vec::new(),
            plans: Vec::new(),
            credentials: Credentials::Ready,
            now: "2026-11-29T10:00:00Z".parse().unwrap(),
            runs: 0,
        }
    }

    fn seen(&self) -> Seen<'_> {
        let labels: Vec<BTreeMap<String, String>> = self
            .types
            .iter()
            .map(|kind| {
                let labels = [("pool", "gpu"), ("node.kubernetes.io/instance-type", kind)];
                labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
            })
            .collect();
        let nodes =
            labels.iter().map(|labels| NodeSeen { name: "n", labels, os_image: "Ubuntu", architecture: "amd64" });
        Seen {
            runtime: &self.runtime,
            install: &self.install,
            groups: Groups::count(&self.runtime.spec.placement, nodes),
            snapshots: self.snapshots.clone(),
            jobs: self.jobs.clone(),
            records: self.records.clone(),
            plans: self.plans.clone(),
            gpu_operator: self.gpu_operator,
            credentials: self.credentials.clone(),
            mirror: MirrorSeen::None,
        }
    }

    fn next(&self) -> Verdict {
        next(&self.seen(), self.now)
    }

    /// Carries out verdicts until one waits; a Job that is run stays active.
    fn settle(&mut self) -> Verdict {
        for _ in 0..20 {
            let verdict = self.next();
            match &verdict {
                Verdict::Run(plan) => self.run(plan),
                Verdict::StoreSnapshot { job, record } => self.store(job, record),
                Verdict::Record(record) => self.records = with_record(self.records.clone(), (**record).clone()),
                Verdict::DeleteJobs(names) => self.jobs.retain(|job| !names.contains(&job.name)),
                Verdict::Mirror(plan) => {
                    let digest = plan.bundle;
                    self.plans.push(digest);
                    let newest = self.snapshots.last_mut().unwrap();
                    newest.resolved.insert(input_label(plan.inputs), digest);
                }
                Verdict::Resolved(_) | Verdict::Wait(..) | Verdict::Stall(..) => return verdict,
            }
        }
        panic!("it never settles: {:?}", self.next());
    }

    fn run(&mut self, plan: &JobPlan) {
        assert!(!self.jobs.iter().any(|job| job.name == plan.name), "{} is run twice", plan.name);
        self.runs += 1;
        self.jobs.push(JobSeen {
            name: plan.name.clone(),
            stage: plan.stage,
            input: plan.input.clone(),
            attempt: plan.attempt,
            run: format!("run-{}", self.runs),
            phase: JobPhase::Active(None),
        });
    }

    fn store(&mut self, job: &str, record: &Record) {
        self.jobs.retain(|seen| seen.name != job);
        let reading = Reading {
            version: "1.1.2".into(),
            service: Some("eks".into()),
            accelerator: Some("h100".into()),
            os: Some("ubuntu".into()),
            kubernetes: Some("v1.34.4".into()),
            nodes: Some(1),
        };
        self.snapshots.push(Stored {
            name: format!("aicr-snapshot-{}", self.snapshots.len() + 1),
            taken_at: self.now,
            record: record.clone(),
            reading: Ok(reading),
            text: "text".into(),
            resolved: BTreeMap::new(),
        });
    }

    fn active(&self) -> Vec<&str> {
        let active = self.jobs.iter().filter(|job| matches!(job.phase, JobPhase::Active(_)));
        active.map(|job| job.name.as_str()).collect()
    }

    /// The one Job that runs ends so.
    fn end(&mut self, phase: &JobPhase) {
        let mut active = self.jobs.iter_mut().filter(|job| matches!(job.phase, JobPhase::Active(_)));
        active.next().unwrap().phase = phase.clone();
        assert!(active.next().is_none(), "more than one Job runs");
    }

    fn succeed(&mut self) {
        let message = Digest::of(b"bundle").to_string();
        self.end(&JobPhase::Succeeded { message, output: Some("doc".into()), refused: None, at: self.now });
    }

    fn fail(&mut self, exit: i32, class: Class, reason: Reason) {
        let failure = Failure { exit: Some(exit), text: "[X] it broke".into(), class, reason };
        self.end(&JobPhase::Failed { failure, at: self.now });
    }

    /// Everything goes well until the inputs have a plan.
    fn resolve(&mut self) {
        for _ in 0..10 {
            if let Verdict::Resolved(_) = self.settle() {
                return;
            }
            self.succeed();
        }
        panic!("not resolved: {:?}", self.next());
    }

    fn annotate(&mut self, token: &str) {
        let annotations = self.runtime.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::RESNAPSHOT.to_owned(), token.to_owned());
    }

    fn overrides(&mut self, value: &str) {
        let overrides = json!([{ "component": "gpu-operator", "path": "driver.version", "value": value }]);
        self.runtime.spec.overrides = serde_json::from_value(overrides).unwrap();
    }
}

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

/// B79: two tokens within a second, and the daily run: one winner, each run with an ID of its own.
#[test]
fn overlapping_triggers_make_one_snapshot() {
    let mut play = Play::new();
    play.annotate("1");
    play.settle();
    let first = play.jobs[0].clone();
    play.annotate("2");
    assert_eq!(play.next(), Verdict::DeleteJobs(vec![first.name.clone()]), "the first is cancelled");
    play.settle();
    play.now += SignedDuration::from_hours(14);
    play.types.push("p6");
    play.settle();
    assert_eq!(play.active().len(), 1);
    assert_ne!(play.jobs[0].run, first.run);
    play.succeed();
    play.settle();
    assert_eq!(play.snapshots.len(), 1);
    let record = &play.snapshots[0].record;
    assert_eq!((record.token.as_deref(), record.day.as_str(), record.node_types.len()), (Some("2"), "2026-11-30", 2));
    play.resolve();
    assert_eq!(play.snapshots.len(), 1, "and no trigger acts again");
}

#[rstest]
#[case::day(|play: &mut Play| play.now += SignedDuration::from_hours(24), "first resolution of the day")]
#[case::placement(|play: &mut Play| {
    let more = ("node.kubernetes.io/instance-type".to_owned(), "p5".to_owned());
    play.runtime.spec.placement.accelerated.node_selector.extend([more]);
}, "accelerated placement changed")]
#[case::image(|play: &mut Play| play.install.aicr.image = "r/aicr:2".into(), "AICR image changed")]
#[case::types(|play: &mut Play| play.types.push("p6"), "accelerated node types changed")]
#[case::release(|play: &mut Play| play.gpu_operator = Some(Digest::of(b"g")), "gpu-operator release of the active plan changed")]
#[case::token(|play: &mut Play| play.annotate("1"), "requested")]
fn each_of_the_six_triggers_takes_one_snapshot(#[case] change: fn(&mut Play), #[case] cause: &str) {
    let mut play = Play::new();
    play.resolve();
    change(&mut play);
    play.resolve();
    assert_eq!(play.snapshots.len(), 2);
    assert_eq!(play.snapshots[1].record.cause, cause);
    // Status, Jobs and process are lost; the record beside the snapshot is not.
    play.jobs.clear();
    play.resolve();
    assert_eq!(play.snapshots.len(), 2);
}

#[test]
fn nothing_else_takes_a_snapshot() {
    let mut play = Play::new();
    play.resolve();
    play.overrides("1");
    play.install.aicr.version = "1.1.2".into();
    play.runtime.spec.paused = true;
    play.types.push("p5");
    play.resolve();
    assert_eq!(play.snapshots.len(), 1);
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
