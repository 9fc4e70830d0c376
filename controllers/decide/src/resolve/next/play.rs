//! Resolution played through: each verdict is carried out on a small cluster, and what is lost is lost.

use std::collections::BTreeMap;

use aicr_crds::{ClusterRuntime, Digest, keys::annotation, reason::Reason};
use jiff::Timestamp;
use serde_json::json;

use super::next;
use crate::resolve::{
    AicrInstall, Class, Credentials, Failure, Groups, Installation, JobPhase, JobPlan, JobSeen, MirrorPlan, MirrorSeen,
    NodeSeen, RunRecord, Seen, Stage, Verdict, input_label,
    record::with_record,
    snapshot::{Reading, Record, Stored},
};

/// Why a mirror run fails: the reason when it stalls, and more.
type MirrorFailure = (Option<Reason>, &'static str);

/// A cluster with one accelerated node, in which every verdict can be carried out.
pub(super) struct Play {
    pub(super) runtime: ClusterRuntime,
    pub(super) install: Installation,
    pub(super) types: Vec<&'static str>,
    pub(super) gpu_operator: Option<Digest>,
    pub(super) snapshots: Vec<Stored>,
    pub(super) jobs: Vec<JobSeen>,
    pub(super) records: Vec<RunRecord>,
    pub(super) plans: Vec<Digest>,
    pub(super) credentials: Credentials,
    /// What every mirror run comes to, where it fails.
    pub(super) registry: Option<MirrorFailure>,
    pub(super) mirror: MirrorSeen,
    pub(super) mirrored: usize,
    pub(super) now: Timestamp,
    pub(super) runs: usize,
}

/// An installation for tests.
pub(in crate::resolve) fn install() -> Installation {
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
    pub(super) fn new() -> Self {
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
            registry: None,
            mirror: MirrorSeen::None,
            mirrored: 0,
            now: "2026-11-29T10:00:00Z".parse().unwrap(),
            runs: 0,
        }
    }

    pub(super) fn seen(&self) -> Seen<'_> {
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
            mirror: self.mirror.clone(),
        }
    }

    pub(super) fn next(&self) -> Verdict {
        next(&self.seen(), self.now)
    }

    /// Carries out verdicts until one waits; a Job that is run stays active.
    pub(super) fn settle(&mut self) -> Verdict {
        for _ in 0..20 {
            let verdict = self.next();
            match &verdict {
                Verdict::Run(plan) => self.run(plan),
                Verdict::StoreSnapshot { job, record } => self.store(job, record),
                Verdict::Record(record) => self.records = with_record(self.records.clone(), (**record).clone()),
                Verdict::DeleteJobs(names) => self.jobs.retain(|job| !names.contains(&job.name)),
                Verdict::Mirror(plan) => self.mirror(plan),
                Verdict::Resolved(_) | Verdict::Wait(..) | Verdict::Stall(..) => return verdict,
            }
        }
        panic!("it never settles: {:?}", self.next());
    }

    fn mirror(&mut self, plan: &MirrorPlan) {
        self.mirrored += 1;
        if let Some((reason, message)) = self.registry {
            self.mirror = self.mirror.failed(plan.inputs, reason, message.to_owned(), self.now);
            return;
        }
        self.mirror = MirrorSeen::None;
        self.plans.push(plan.bundle);
        let newest = self.snapshots.last_mut().unwrap();
        newest.resolved.insert(input_label(plan.inputs), plan.bundle);
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

    pub(super) fn store(&mut self, job: &str, record: &Record) {
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

    pub(super) fn active(&self) -> Vec<&str> {
        let active = self.jobs.iter().filter(|job| matches!(job.phase, JobPhase::Active(_)));
        active.map(|job| job.name.as_str()).collect()
    }

    /// The one Job that runs ends so.
    fn end(&mut self, phase: &JobPhase) {
        let mut active = self.jobs.iter_mut().filter(|job| matches!(job.phase, JobPhase::Active(_)));
        active.next().unwrap().phase = phase.clone();
        assert!(active.next().is_none(), "more than one Job runs");
    }

    pub(super) fn succeed(&mut self) {
        let message = Digest::of(b"bundle").to_string();
        self.end(&JobPhase::Succeeded { message, output: Some("doc".into()), refused: None, at: self.now });
    }

    pub(super) fn fail(&mut self, exit: i32, class: Class, reason: Reason) {
        let failure = Failure { exit: Some(exit), text: "[X] it broke".into(), class, reason };
        self.end(&JobPhase::Failed { failure, at: self.now });
    }

    /// Everything goes well until the last bundle is rendered; what comes of it is next.
    pub(super) fn rendered(&mut self) {
        for _ in 0..10 {
            self.settle();
            let last = self.jobs.last().unwrap().stage == Stage::Render;
            self.succeed();
            if last {
                return;
            }
        }
        panic!("not rendered: {:?}", self.next());
    }

    /// Everything goes well until the inputs have a plan.
    pub(super) fn resolve(&mut self) {
        for _ in 0..10 {
            if let Verdict::Resolved(_) = self.settle() {
                return;
            }
            self.succeed();
        }
        panic!("not resolved: {:?}", self.next());
    }

    pub(super) fn annotate(&mut self, token: &str) {
        let annotations = self.runtime.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::RESNAPSHOT.to_owned(), token.to_owned());
    }

    pub(super) fn overrides(&mut self, value: &str) {
        let overrides = json!([{ "component": "gpu-operator", "path": "driver.version", "value": value }]);
        self.runtime.spec.overrides = serde_json::from_value(overrides).unwrap();
    }
}
