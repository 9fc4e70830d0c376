//! A simulated cluster: a runtime, plans, rollouts and Applications, and the operator's writes carried out on them.

pub(crate) mod argo;
pub(crate) mod plans;
pub(crate) mod script;

use std::collections::{BTreeMap, BTreeSet};

use aicr_crds::{
    ClusterRuntime, Digest, RuntimeRollout,
    application::{Application, Engine},
    keys::{annotation, label},
    plan::StoredPlan,
    reason::Outcome,
    rollout::{Acknowledgement, Approval, Person, Revocation},
};
use aicr_decide::{
    report::{rollout_status, runtime_status},
    resolve::{AicrInstall, Installation, JobSeen},
    rollout::{self, Verdict, Write},
    runtime,
    seen::{Assessment, EngineState, Resolution, ResolutionState, Settings, World, outcome},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

/// How many writes the operator may do in one go before the test says that it runs away.
const RUNAWAY: usize = 200;

/// The cluster.
pub(crate) struct Sim {
    pub(crate) now: Timestamp,
    pub(crate) runtime: ClusterRuntime,
    pub(crate) engine: EngineState,
    pub(crate) resolution: Resolution,
    pub(crate) plans: BTreeMap<Digest, (Timestamp, StoredPlan)>,
    pub(crate) rollouts: Vec<RuntimeRollout>,
    pub(crate) applications: BTreeMap<String, Value>,
    pub(crate) assessments: BTreeMap<String, Assessment>,
    pub(crate) jobs: Vec<JobSeen>,
    pub(crate) log: Vec<String>,
    version: u64,
}

impl Sim {
    pub(crate) fn new() -> Self {
        let runtime = json!({
            "metadata": {"name": "cluster", "uid": "uid-runtime", "generation": 1},
            "spec": {
                "intent": "training",
                "placement": {"accelerated": {"nodeSelector": {"pool": "gpu"}}},
                "validation": {"deployment": "Disabled"},
            },
        });
        Self {
            now: "2026-11-29T12:00:00Z".parse().unwrap(),
            runtime: serde_json::from_value(runtime).unwrap(),
            engine: EngineState::Available,
            resolution: Resolution::default(),
            plans: BTreeMap::new(),
            rollouts: Vec::new(),
            applications: BTreeMap::new(),
            assessments: BTreeMap::new(),
            jobs: Vec::new(),
            log: Vec::new(),
            version: 0,
        }
    }

    pub(crate) fn say(&mut self, line: impl Into<String>) {
        self.log.push(line.into());
    }

    fn tick(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    pub(crate) fn application(&self, name: &str) -> Application {
        serde_json::from_value(self.applications[name].clone()).unwrap()
    }

    pub(crate) fn world(&self) -> World {
        World {
            settings: Settings { engine: engine(), validation_installed: false },
            install: install(),
            runtime: self.runtime.clone(),
            engine: self.engine,
            resolution: self.resolution.clone(),
            plans: self.plans.clone(),
            unreadable: Vec::new(),
            rollouts: self.rollouts.clone(),
            rollout_names: self
                .rollouts
                .iter()
                .filter_map(|rollout| rollout.metadata.name.clone())
                .collect::<BTreeSet<_>>(),
            applications: self.applications.keys().map(|name| self.application(name)).collect(),
            jobs: self.jobs.clone(),
            assessments: self.assessments.clone(),
        }
    }

    /// The operator acts until it waits; each write is logged.
    pub(crate) fn operator(&mut self) {
        for _ in 0..RUNAWAY {
            let before = self.statuses();
            let acted = self.reconcile_runtime() | self.reconcile_rollouts();
            // A status write is an event too: the operator is at rest only once a whole round changes none.
            if !acted && self.statuses() == before {
                return self.report();
            }
        }
        panic!("the operator runs away:\n{}", self.log.join("\n"));
    }

    fn statuses(&self) -> String {
        let rollouts: Vec<_> = self.rollouts.iter().map(|rollout| &rollout.status).collect();
        serde_json::to_string(&(&self.runtime.status, rollouts)).unwrap()
    }

    fn reconcile_runtime(&mut self) -> bool {
        let world = self.world();
        let verdict = runtime::next(&world, self.now);
        self.runtime.status = Some(runtime_status(&world, &verdict, self.now));
        match verdict {
            runtime::Verdict::Wait(..) => false,
            runtime::Verdict::Do(write, _) => {
                self.runtime_write(write);
                true
            }
        }
    }

    fn runtime_write(&mut self, write: runtime::Write) {
        match write {
            runtime::Write::CreateRollout(mut rollout) => {
                let name = rollout.metadata.name.clone().unwrap();
                self.say(format!("  creates {name}"));
                for step in &rollout.spec.steps {
                    let verdict = step.verdict.map_or(String::new(), |verdict| format!(" [{verdict}]"));
                    let owes = if step.acknowledge { ", acknowledged" } else { "" };
                    self.log.push(format!(
                        "    {} {}{verdict}: {}, {}{owes}",
                        step.operation, step.release, step.approval.need, step.approval.reason
                    ));
                }
                rollout.metadata.uid = Some(format!("uid-{name}"));
                rollout.metadata.creation_timestamp = Some(Time(self.now));
                rollout.metadata.resource_version = Some(self.tick());
                self.rollouts.push(*rollout);
            }
            runtime::Write::Follow { on, plan } => {
                self.say(format!("  {}: plan-digest follows", on.name));
                self.applications.get_mut(&on.name).unwrap()["metadata"]["annotations"][annotation::PLAN_DIGEST] =
                    json!(plan);
            }
            runtime::Write::RunAssessment(job) => panic!("no assessment was given for {:?}", job.input),
            runtime::Write::StoreAssessment { .. } => panic!("no assessment Job was given"),
        }
    }

    fn reconcile_rollouts(&mut self) -> bool {
        let Some(index) = self.rollouts.iter().position(|rollout| outcome(rollout).is_none()) else { return false };
        let rollout = self.rollouts[index].clone();
        let seen = self.world().around(&rollout);
        let verdict = rollout::next(&rollout, &seen, self.now);
        let acted = match &verdict {
            Verdict::Wait(..) => false,
            Verdict::End(outcome, why) => {
                self.say(format!("  ends {outcome}: {why}"));
                self.end(index, *outcome);
                true
            }
            Verdict::Do(write, why) => {
                self.write(index, write, &why.to_string());
                true
            }
        };
        if let Some(status) = rollout_status(&rollout, &seen, &verdict, self.now) {
            self.rollouts[index].status = Some(status);
        }
        acted
    }

    fn end(&mut self, index: usize, outcome: Outcome) {
        let finished = self.now.to_string();
        let metadata = &mut self.rollouts[index].metadata;
        metadata.labels.get_or_insert_default().insert(label::OUTCOME.into(), outcome.to_string());
        metadata.annotations.get_or_insert_default().insert(annotation::FINISHED_AT.into(), finished);
    }

    fn write(&mut self, index: usize, write: &Write, why: &str) {
        let version = self.tick();
        match write {
            Write::Begin { .. } => {}
            Write::Create(desired) => {
                assert!(!self.applications.contains_key(&desired.name), "creates {} which exists", desired.name);
                self.say(format!("  creates Application {}", desired.name));
                let mut body = desired.body(Some(&format!("uid-{}-{version}", desired.name)));
                body["metadata"]["resourceVersion"] = json!(version);
                self.applications.insert(desired.name.clone(), body);
            }
            Write::Apply { desired, on } => {
                self.say(format!("  applies Application {}", on.name));
                let kept = self.guarded(&on.name, &on.uid, &on.resource_version).clone();
                let mut body = desired.body(Some(&on.uid));
                body["metadata"]["resourceVersion"] = json!(version);
                body["status"] = kept["status"].clone();
                self.applications.insert(on.name.clone(), body);
            }
            Write::Refresh { on, .. } => {
                self.say(format!("  refreshes {} ({why})", on.name));
                self.guarded(&on.name, &on.uid, &on.resource_version)["metadata"]["annotations"]
                    [annotation::ARGO_REFRESH] = json!("normal");
            }
            Write::Sync { on, source } => {
                self.say(format!("  starts a sync of {} ({why})", on.name));
                let rollout = self.rollouts[index].metadata.name.clone();
                let info = json!([{"name": aicr_crds::application::ROLLOUT_INFO, "value": rollout}]);
                self.guarded(&on.name, &on.uid, &on.resource_version)["operation"] =
                    json!({"sync": {"source": source}, "info": info});
            }
            Write::Terminate { on } => {
                self.say(format!("  terminates the operation of {} ({why})", on.name));
                self.guarded(&on.name, &on.uid, &on.resource_version)["status"]["operationState"]["phase"] =
                    json!("Terminating");
            }
            Write::PrepareRemove { on } => self.prepare(index, &on.name),
            Write::WithdrawRemove { on } => self.withdraw(&on.name),
            Write::Delete { on } => {
                self.say(format!("  deletes {}", on.name));
                let now = self.now.to_string();
                self.guarded(&on.name, &on.uid, &on.resource_version)["metadata"]["deletionTimestamp"] = json!(now);
            }
            Write::Record { release, entry } => {
                self.say(format!("  records {release} {}", if entry.ready { "ready" } else { "written" }));
                let mut all = rollout::written(&self.rollouts[index]);
                all.insert(release.clone(), entry.clone());
                let text = serde_json::to_string(&all).unwrap();
                self.rollouts[index]
                    .metadata
                    .annotations
                    .get_or_insert_default()
                    .insert(annotation::WRITTEN.into(), text);
            }
            Write::SpendToken { token } => {
                self.say(format!("  spends token {token}"));
                self.rollouts[index]
                    .metadata
                    .annotations
                    .get_or_insert_default()
                    .insert(annotation::RETRY_SPENT.into(), token.clone());
            }
        }
    }

    fn prepare(&mut self, index: usize, name: &str) {
        self.say(format!("  marks {name} for removal"));
        let rollout = self.rollouts[index].metadata.name.clone();
        let metadata = &mut self.applications.get_mut(name).unwrap()["metadata"];
        metadata["annotations"][annotation::DELETE_ROLLOUT] = json!(rollout);
        metadata["finalizers"] = json!([aicr_crds::keys::finalizer::ARGO_CASCADE[0]]);
    }

    fn withdraw(&mut self, name: &str) {
        self.say(format!("  takes the removal marks off {name}"));
        let metadata = &mut self.applications.get_mut(name).unwrap()["metadata"];
        metadata["annotations"].as_object_mut().unwrap().remove(annotation::DELETE_ROLLOUT);
        metadata.as_object_mut().unwrap().remove("finalizers");
    }

    /// The Application, once its uid and resourceVersion were checked as the API server does.
    fn guarded(&mut self, name: &str, uid: &str, version: &str) -> &mut Value {
        let application = self.applications.get_mut(name).unwrap();
        assert_eq!(application["metadata"]["uid"], json!(uid), "uid of {name}");
        assert_eq!(application["metadata"]["resourceVersion"], json!(version), "resourceVersion of {name}");
        application
    }

    /// Every change of an Application by somebody else moves its version.
    pub(crate) fn touched(&mut self, name: &str) {
        let version = self.tick();
        self.applications.get_mut(name).unwrap()["metadata"]["resourceVersion"] = json!(version);
    }

    pub(crate) fn later(&mut self, by: SignedDuration) {
        self.now += by;
    }

    pub(crate) fn unfinished(&mut self) -> &mut RuntimeRollout {
        self.rollouts.iter_mut().find(|rollout| outcome(rollout).is_none()).expect("an unfinished rollout")
    }

    pub(crate) fn approve(&mut self, expires_in: Option<SignedDuration>) {
        let now = self.now;
        let spec = &mut self.unfinished().spec;
        let expires_at = expires_in.map_or(spec.deadline.clone(), |window| Time(now + window));
        let binding_digest = spec.binding_digest().unwrap();
        spec.approval = Some(Approval {
            reason: "maintenance".into(),
            expires_at,
            binding_digest,
            approved_by: person("alice"),
            approved_at: Time(now),
        });
    }

    pub(crate) fn revoke(&mut self) {
        let now = self.now;
        self.unfinished().spec.revocation =
            Some(Revocation { reason: "not yet".into(), revoked_by: person("bob"), revoked_at: Time(now) });
    }

    pub(crate) fn acknowledge(&mut self, release: &str) {
        let entry = Acknowledgement {
            release: release.into(),
            reason: "done".into(),
            acknowledged_by: person("alice"),
            acknowledged_at: Time(self.now),
        };
        self.unfinished().spec.acknowledgements.push(entry);
    }

    /// Losing all of status must lose nothing.
    pub(crate) fn lose_status(&mut self) {
        self.runtime.status = None;
        for rollout in &mut self.rollouts {
            rollout.status = None;
        }
    }

    fn report(&mut self) {
        let status = self.runtime.status.clone().unwrap();
        for condition in
            status.conditions.iter().filter(|condition| matches!(condition.type_.as_str(), "Ready" | "Stalled"))
        {
            let shown =
                format!("  {}={} {}: {}", condition.type_, condition.status, condition.reason, condition.message);
            self.log.push(shown);
        }
        if let Some(rollout) = self.rollouts.iter().find(|rollout| outcome(rollout).is_none()) {
            let status = rollout.status.clone().unwrap_or_default();
            let phase = status.phase.map_or("Pending".to_owned(), |phase| phase.to_string());
            let shown = format!(
                "  rollout {phase} {}: {}",
                status.step.unwrap_or_default(),
                status.message.unwrap_or_default()
            );
            self.log.push(shown);
        }
    }

    /// A new target, resolved from the inputs.
    pub(crate) fn candidate(&mut self, digest: Digest) {
        self.resolution.candidate = Some(digest);
        self.resolution.state = ResolutionState::Resolved;
    }
}

pub(crate) fn person(name: &str) -> Person {
    Person { username: name.into(), groups: vec![] }
}

pub(crate) fn engine() -> Engine {
    Engine { namespace: "argocd".into(), project: "aicr".into(), repository: "registry.test/aicr".into() }
}

pub(crate) fn install() -> Installation {
    Installation {
        aicr: AicrInstall { version: "v1.1.2".into(), image: "registry.test/aicr@sha256:0".into() },
        repository: "registry.test/aicr".into(),
        plain_http: vec![],
        jobs_namespace: "aicr-jobs".into(),
        discovery_namespace: "aicr-discovery".into(),
        agent_service_account: "aicr-snapshot-agent".into(),
        agent_privileged: true,
        agent_requests: None,
        agent_limits: None,
    }
}
