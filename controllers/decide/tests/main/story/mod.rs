//! A cluster for stories: a runtime, plans, rollouts and Applications, and the operator's decisions carried out on them.

pub(crate) mod argo;
mod people;
pub(crate) mod plans;
pub(crate) mod script;
mod words;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use aicr_crds::{
    ClusterRuntime, Digest, RuntimeRollout,
    application::{Application, Engine},
    keys::{annotation, finalizer, label},
    plan::StoredPlan,
    reason::Outcome,
};
use aicr_decide::{
    facts::Facts,
    report::{EventNote, outcome_event, rollout_status, runtime_status, stalled_event},
    resolve::{AicrInstall, Installation, JobSeen},
    rollout::{self, Position, Verdict},
    runtime,
    seen::{Assessment, EngineState, Resolution, Settings, World, outcome},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// How many rounds the operator may need before the test says that it runs away.
const RUNAWAY: usize = 200;

/// The cluster.
pub(crate) struct Story {
    pub(crate) now: Timestamp,
    pub(crate) runtime: ClusterRuntime,
    pub(crate) engine: EngineState,
    pub(crate) validation_installed: bool,
    pub(crate) resolution: Resolution,
    pub(crate) plans: BTreeMap<Digest, (Timestamp, StoredPlan)>,
    pub(crate) unreadable: Vec<(String, String)>,
    pub(crate) rollouts: Vec<RuntimeRollout>,
    pub(crate) applications: BTreeMap<String, Value>,
    pub(crate) assessments: BTreeMap<String, Assessment>,
    pub(crate) jobs: Vec<JobSeen>,
    pub(crate) facts: Facts,
    /// Applications of which the API server refuses any change of automated sync, and the annotation of orphaning.
    pub(crate) refusing: BTreeSet<String>,
    pub(crate) log: Vec<String>,
    told: BTreeSet<String>,
    shown: BTreeMap<String, String>,
    version: u64,
    wake: Option<Timestamp>,
}

impl Story {
    pub(crate) fn new() -> Self {
        let runtime = json!({
            "metadata": {"name": "cluster", "uid": "uid-runtime", "generation": 1, "resourceVersion": "0", "finalizers": [finalizer::CLEANUP]},
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
            validation_installed: false,
            resolution: Resolution::default(),
            plans: BTreeMap::new(),
            unreadable: Vec::new(),
            rollouts: Vec::new(),
            applications: BTreeMap::new(),
            assessments: BTreeMap::new(),
            jobs: Vec::new(),
            facts: facts(),
            refusing: BTreeSet::new(),
            log: Vec::new(),
            told: BTreeSet::new(),
            shown: BTreeMap::new(),
            version: 0,
            wake: None,
        }
    }

    pub(crate) fn say(&mut self, line: impl Into<String>) {
        self.log.push(line.into());
    }

    pub(crate) fn tick(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    pub(crate) fn application(&self, name: &str) -> Application {
        serde_json::from_value(self.applications[name].clone()).unwrap()
    }

    pub(crate) fn world(&self) -> World {
        let uid = self.runtime.metadata.uid.clone().unwrap();
        World {
            settings: Arc::new(Settings { engine: engine(), validation_installed: self.validation_installed }),
            install: Arc::new(install()),
            runtime: Arc::new(self.runtime.clone()),
            engine: self.engine,
            resolution: Resolution { generation: self.runtime.metadata.generation, ..self.resolution.clone() },
            plans: self.plans.iter().map(|(digest, (at, plan))| (*digest, (*at, Arc::new(plan.clone())))).collect(),
            unreadable: self.unreadable.clone(),
            rollouts: self
                .rollouts
                .iter()
                .filter(|rollout| rollout.spec.runtime.uid == uid)
                .cloned()
                .map(Arc::new)
                .collect(),
            rollout_names: self
                .rollouts
                .iter()
                .filter_map(|rollout| rollout.metadata.name.clone())
                .collect::<BTreeSet<_>>(),
            applications: Arc::new(self.applications.keys().map(|name| Arc::new(self.application(name))).collect()),
            jobs: self.jobs.clone(),
            assessments: self.assessments.iter().map(|(key, one)| (key.clone(), Arc::new(one.clone()))).collect(),
            facts: Arc::new(self.facts.clone()),
        }
    }

    /// The operator acts until it waits; each write is logged.
    pub(crate) fn operator(&mut self) {
        for _ in 0..RUNAWAY {
            let before = self.statuses();
            let acted = self.reconcile_runtime() | self.reconcile_rollouts();
            // A status write is an event too: the operator is at rest only once a whole round changes none.
            if !acted && self.statuses() == before {
                // A rollout is not created in the second of another.
                match self.wake.take().filter(|at| at.duration_since(self.now) <= SignedDuration::from_secs(1)) {
                    Some(at) if at > self.now => self.now = at,
                    Some(_) | None => return self.report(),
                }
            }
        }
        panic!("the operator runs away:\n{}", self.log.join("\n"));
    }

    /// The operator reconciles so many times, and is then stopped.
    pub(crate) fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            self.reconcile_runtime();
            self.reconcile_rollouts();
        }
        self.say("  the operator is stopped here");
    }

    fn statuses(&self) -> String {
        let rollouts: Vec<_> = self.rollouts.iter().map(|rollout| &rollout.status).collect();
        serde_json::to_string(&(&self.runtime.status, rollouts)).unwrap()
    }

    /// An Event, unless one of its name was created before.
    pub(crate) fn tell(&mut self, on: &str, note: &EventNote) {
        if self.told.insert(note.name.clone()) {
            let kind = note.reason.event_type().as_str();
            self.say(format!("  Event on {on}: {kind} {}: {}", note.reason, note.note));
        }
    }

    fn reconcile_runtime(&mut self) -> bool {
        if self.runtime.metadata.finalizers.iter().flatten().next().is_none()
            && self.runtime.metadata.deletion_timestamp.is_some()
        {
            return false;
        }
        let world = self.world();
        let verdict = runtime::next(&world, self.now);
        let status = runtime_status(&world, &verdict, self.now);
        if let Some(note) = stalled_event(&world.runtime, &status.conditions) {
            self.tell("the runtime", &note);
        }
        if self.runtime.status.as_ref() != Some(&status) {
            self.runtime.status = Some(status);
            self.runtime.metadata.resource_version = Some(self.tick());
        }
        match verdict {
            runtime::Verdict::Wait(_, at) => {
                self.wake = at;
                false
            }
            runtime::Verdict::Do(write, _) => self.runtime_write(&world, write),
        }
    }

    fn reconcile_rollouts(&mut self) -> bool {
        let open: Vec<usize> =
            (0..self.rollouts.len()).filter(|index| outcome(&self.rollouts[*index]).is_none()).collect();
        let acted: Vec<bool> = open.into_iter().map(|index| self.reconcile_rollout(index)).collect();
        acted.into_iter().any(|acted| acted)
    }

    fn reconcile_rollout(&mut self, index: usize) -> bool {
        let rollout = self.rollouts[index].clone();
        let seen = self.world().around(&rollout);
        let verdict = rollout::next(&rollout, &seen, self.now);
        let acted = match &verdict {
            Verdict::Wait(..) => false,
            Verdict::End(outcome, why) => {
                self.say(format!("  ends {outcome}: {why}"));
                self.end(index, *outcome);
                self.tell("the rollout", &outcome_event(&rollout, *outcome, &why.to_string()));
                true
            }
            Verdict::Do(write, why) => {
                self.rollout_write(index, write, &why.to_string());
                true
            }
        };
        if let Some(status) = rollout_status(&Position::find(&rollout, &seen.applications), &seen, &verdict, self.now) {
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

    /// Ready and Stalled always, the other conditions where they changed; then the unfinished rollout.
    fn report(&mut self) {
        let status = self.runtime.status.clone().unwrap_or_default();
        for condition in &status.conditions {
            let kind = condition.type_.clone();
            let text = format!("{kind}={} {}: {}", condition.status, condition.reason, condition.message);
            let changed = self.shown.insert(kind.clone(), text.clone()).as_ref() != Some(&text);
            if matches!(kind.as_str(), "Ready" | "Stalled") || changed {
                self.say(format!("  {text}"));
            }
        }
        if let Some(rollout) = self.rollouts.iter().find(|rollout| outcome(rollout).is_none()) {
            let status = rollout.status.clone().unwrap_or_default();
            let phase = status.phase.map_or("Pending".to_owned(), |phase| phase.to_string());
            let step = status.step.unwrap_or_default();
            self.say(format!("  rollout {phase} {step}: {}", status.message.unwrap_or_default()));
        }
    }

    pub(crate) fn unfinished(&mut self) -> &mut RuntimeRollout {
        self.rollouts.iter_mut().find(|rollout| outcome(rollout).is_none()).expect("an unfinished rollout")
    }

    pub(crate) fn later(&mut self, by: SignedDuration) {
        self.now += by;
    }

    /// Every change of an Application by somebody else moves its version.
    pub(crate) fn touched(&mut self, name: &str) {
        let version = self.tick();
        self.applications.get_mut(name).unwrap()["metadata"]["resourceVersion"] = json!(version);
    }
}

fn facts() -> Facts {
    let mut facts = Facts::default();
    facts.validation.place.namespace = "aicr-validation".into();
    facts
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
