//! The resolver against an API server that tells its watches of each write at once, or of none.

mod plans;
mod snapshots;

use std::sync::Arc;

use aicr_crds::{
    ClusterRuntime, Digest,
    keys::{annotation, label},
    plan::{Archive, ChartContent, Plan, PlanContext, ReleaseContent, StoredPlan},
    runtime::Criteria,
};
use aicr_decide::{
    resolve::{JobPhase, JobSeen, Stage},
    seen::{Resolution, ResolutionState},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    credentials::Held,
    mirror::{Worker, mirror},
    played::{Played, Wrote, settings},
};

const OWN: &str = "/api/v1/namespaces/aicr-system/configmaps";
const UID: &str = "u";

fn now() -> Timestamp {
    "2026-11-29T10:00:00Z".parse().unwrap()
}

/// A runtime with two accelerated nodes and one of the system's.
struct Scene {
    played: Played,
    hands: Hands,
    resolver: Resolver,
    worker: Worker,
    runtime: ClusterRuntime,
    jobs: Vec<JobSeen>,
    resolution: Resolution,
}

fn scene() -> Scene {
    let settings = Arc::new(settings());
    let (played, client, watches) = Played::new(&settings);
    for (name, pool) in [("a", "gpu"), ("b", "gpu"), ("s", "system")] {
        played.have("/api/v1/nodes", json!({ "metadata": { "name": name, "labels": { "pool": pool } } }));
    }
    let (mirror, worker) = mirror(&watches.changes);
    let resolver = Resolver::new(mirror, &settings);
    let hands = Hands::new(&client, watches, settings, Held::default());
    let runtime = json!({
        "apiVersion": "operator.aicr.run/v1alpha1", "kind": "ClusterRuntime",
        "metadata": { "name": "cluster", "uid": UID },
        "spec": { "intent": "training", "placement": {
            "accelerated": { "nodeSelector": { "pool": "gpu" } }, "system": { "nodeSelector": { "pool": "system" } },
        } },
    });
    let runtime = serde_json::from_value(runtime).unwrap();
    Scene { played, hands, resolver, worker, runtime, jobs: Vec::new(), resolution: Resolution::default() }
}

/// A snapshot that resolution can go on from.
fn snapshot() -> String {
    let of = |kind: &str, subtype: &str, key: &str, value: &str| json!({ "type": kind, "subtypes": [{ "subtype": subtype, "data": { key: value } }] });
    let measurements = [
        of("K8s", "node", "provider", "eks"),
        of("K8s", "server", "version", "v1.34.4"),
        of("GPU", "hardware", "model", "NVIDIA H100"),
        of("OS", "release", "ID", "ubuntu"),
        of("NodeTopology", "summary", "node-count", "3"),
    ];
    let (version, kind) = (json!({ "version": "v1.1.2" }), "Snapshot");
    json!({ "apiVersion": "aicr.run/v1", "kind": kind, "metadata": version, "measurements": measurements }).to_string()
}

/// A plan of one release with these values.
fn plan(values: &str) -> StoredPlan {
    let id = || "gpu-operator".to_owned();
    let release = ReleaseContent {
        id: id(),
        component: id(),
        namespace: "gpu".to_owned(),
        chart: ChartContent { repository: "charts/gpu-operator".to_owned(), content: Digest::of(b"chart") },
        values: values.to_owned(),
        depends_on: vec![],
        readiness_gate: false,
    };
    let archive = Archive { id: id(), version: "v25.3.0".to_owned(), digest: Digest::of(b"archive"), crds: vec![] };
    let context = PlanContext {
        runtime_uid: UID.to_owned(),
        aicr_version: Some("1.1.2".to_owned()),
        aicr_image: None,
        snapshot: None,
        inputs: None,
        criteria: Criteria::default(),
        created: now(),
    };
    let plan = Plan::new(vec![release], vec![archive]).unwrap();
    StoredPlan { plan, recipe: Some("kind: recipe\n".to_owned()), context }
}

/// `POST jobs/aicr-recipe-…`, of what was written.
fn shown((path, body): &Wrote) -> String {
    let (method, path) = path.split_once(' ').unwrap();
    let mut last: Vec<&str> = path.rsplit('/').take(2).collect();
    if method == "POST" {
        last = vec![body["metadata"]["name"].as_str().unwrap(), last[0]];
    }
    format!("{method} {}/{}", last[1], last[0])
}

fn begun(job: &Value) -> JobSeen {
    let of = |key: &str| job["metadata"]["labels"][key].as_str().unwrap().to_owned();
    JobSeen {
        name: job["metadata"]["name"].as_str().unwrap().to_owned(),
        stage: Stage::parse(&of(label::STAGE)).unwrap(),
        input: of(label::INPUT),
        attempt: of(label::ATTEMPT).parse().unwrap(),
        run: of(label::RUN),
        phase: JobPhase::Active(None),
    }
}

impl Scene {
    /// One reconcile in the world as it is, and what it wrote.
    async fn tried(&mut self) -> (Result<Look, DriveError>, Vec<String>) {
        let (runtime, resolution) = (Arc::new(self.runtime.clone()), self.resolution.clone());
        let mut world = self.hands.gather.world(runtime, resolution, &self.jobs).await.world;
        let looked = self.resolver.step(&mut self.hands, &mut world, now()).await;
        self.resolution = world.resolution;
        let wrote = self.played.wrote();
        for (path, body) in &wrote {
            match path.split_once(' ').unwrap() {
                ("POST", path) if path.ends_with("/jobs") => self.jobs.push(begun(body)),
                ("DELETE", path) => self.jobs.retain(|job| !path.ends_with(&job.name)),
                _ => {}
            }
        }
        (looked, wrote.iter().map(shown).collect())
    }

    async fn step(&mut self) -> Vec<String> {
        let (looked, wrote) = self.tried().await;
        looked.unwrap();
        wrote
    }

    /// The newest Job ends well.
    fn succeed(&mut self, output: &str) {
        let (message, output) = (Digest::of(b"bundle").to_string(), Some(output.to_owned()));
        self.jobs.last_mut().unwrap().phase = JobPhase::Succeeded { message, output, refused: None, at: now() };
    }

    /// Snapshot, recipe and render go well, and a mirror run is asked for.
    async fn rendered(&mut self) {
        self.step().await;
        self.succeed(&snapshot());
        self.step().await;
        for _ in [Stage::Recipe, Stage::Render] {
            self.step().await;
            self.succeed("kind: recipe\n");
        }
        self.step().await;
    }

    /// The same, and the charts are mirrored; the name of the plan's ConfigMap.
    async fn resolved(&mut self, stored: StoredPlan) -> String {
        let digest = stored.plan.digest();
        self.rendered().await;
        assert!(self.worker.ended(Ok(stored)).is_some(), "a run was asked for");
        self.step().await;
        self.step().await;
        assert_eq!((&self.resolution.state, self.resolution.candidate), (&ResolutionState::Resolved, Some(digest)));
        Plan::config_map_name(digest)
    }

    fn resnapshot(&mut self, token: &str) {
        let annotations = self.runtime.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::RESNAPSHOT.to_owned(), token.to_owned());
    }
}
