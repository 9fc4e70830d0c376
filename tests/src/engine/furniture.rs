//! What stands around the operator, put there and cleared away.

use aicr_crds::keys::label;
use aicr_crds::{ClusterRuntime, RuntimeRollout, crd};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::{conditions, wait};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::operator::{ENGINE_NAMESPACE, JOB_NAMESPACES, NAMESPACE, PROJECT};
use super::{Engine, sight};
use crate::samples;

/// Who writes what the test makes.
const MANAGER: &str = "somebody";

/// Our kinds, namespaces, a node with an accelerator, and the project.
pub(super) async fn furnish(client: &Client) -> Result<(), kube::Error> {
    let params = PatchParams::apply(MANAGER).force();
    let crds = Api::all(client.clone());
    for crd in [crd::cluster_runtime(), crd::runtime_rollout()] {
        crds.patch(&crd.name_any(), &params, &Patch::Apply(&crd)).await?;
        let established = wait::await_condition(crds.clone(), &crd.name_any(), conditions::is_crd_established()).await;
        established.map_err(|error| kube::Error::Service(Box::new(error)))?;
    }
    let namespace = |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    for name in JOB_NAMESPACES.into_iter().chain([NAMESPACE]) {
        apply(client, &namespace(name)).await?;
    }
    apply(
        client,
        &json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": "gpu-1", "labels": { "nvidia.com/gpu.present": "true" } },
        }),
    )
    .await?;
    apply(client, &project()).await
}

/// The project, which lets releases go anywhere.
fn project() -> Value {
    let anywhere = json!([{ "server": "https://kubernetes.default.svc", "namespace": "*" }]);
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": { "name": PROJECT, "namespace": ENGINE_NAMESPACE },
        "spec": { "destinations": anywhere, "sourceRepos": ["*"] },
    })
}

/// Applies any object.
pub(super) async fn apply(client: &Client, object: &Value) -> Result<(), kube::Error> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (version, kind) = (text("/apiVersion"), text("/kind"));
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api: Api<DynamicObject> = match object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.patch(&text("/metadata/name"), &PatchParams::apply(MANAGER).force(), &Patch::Apply(object)).await.map(drop)
}

/// A runtime that pins a plan, and waits for nothing but approval.
pub(super) fn runtime(pinned: &str) -> Value {
    json!({
        "apiVersion": "operator.aicr.run/v1alpha1", "kind": "ClusterRuntime",
        "metadata": { "name": aicr_crds::runtime::NAME },
        "spec": {
            "intent": "training",
            "placement": { "accelerated": { "nodeSelector": { "nvidia.com/gpu.present": "true" } } },
            "selection": { "policy": "Pinned", "pinnedPlanDigest": pinned },
            "rollout": { "stabilizationWindow": "0s" },
            "validation": { "deployment": "Disabled" },
        },
    })
}

pub(super) async fn clear(client: &Client) -> Result<(), kube::Error> {
    let (delete, all) = (DeleteParams::default(), ListParams::default());
    let ours = ListParams::default().labels(&format!("{}={}", label::MANAGED_BY, label::MANAGED_BY_VALUE));
    let runtimes: Api<ClusterRuntime> = Api::all(client.clone());
    let no_finalizer = json!({ "metadata": { "finalizers": null } });
    if runtimes.get_opt(aicr_crds::runtime::NAME).await?.is_some() {
        runtimes.patch(aicr_crds::runtime::NAME, &PatchParams::default(), &Patch::Merge(&no_finalizer)).await?;
    }
    drop(runtimes.delete_collection(&delete, &all).await?);
    drop(Api::<RuntimeRollout>::all(client.clone()).delete_collection(&delete, &all).await?);
    let applications: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), ENGINE_NAMESPACE, &sight::application_kind());
    for application in applications.list(&all).await?.items.iter().filter(|one| !one.finalizers().is_empty()) {
        applications.patch(&application.name_any(), &PatchParams::default(), &Patch::Merge(&no_finalizer)).await?;
    }
    drop(applications.delete_collection(&delete, &all).await?);
    drop(Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE).delete_collection(&delete, &ours).await?);
    for namespace in ["default", ENGINE_NAMESPACE] {
        drop(Api::<Event>::namespaced(client.clone(), namespace).delete_collection(&delete, &all).await?);
    }
    // A story that failed may have left it gone.
    apply(client, &project()).await
}

impl Engine {
    /// This many Applications of others, such as Argo CD writes them: with a status, and not in our project.
    pub fn foreign_applications(&self, count: usize) {
        let resources: Vec<Value> = (0..40)
            .map(|place| {
                json!({
                    "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "theirs",
                    "name": format!("deployment-{place}"), "status": "Synced",
                })
            })
            .collect();
        let made = (0..count).map(|number| {
            json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": { "name": format!("theirs-{number}"), "namespace": ENGINE_NAMESPACE },
                "spec": {
                    "project": "theirs", "destination": { "server": "https://kubernetes.default.svc", "namespace": "theirs" },
                    "source": { "repoURL": "https://charts.example", "chart": "theirs", "targetRevision": "1.0.0" },
                },
                "status": { "sync": { "status": "Synced" }, "health": { "status": "Healthy" }, "resources": resources },
            })
        });
        self.apply_all(made);
    }

    /// This many ended rollouts of an earlier runtime.
    pub fn old_rollouts(&self, count: usize) {
        let made = (0..count).map(|number| {
            let mut rollout = samples::rollout(&format!("rollout-bbbbbbbbbbbbbbbb-{}", number + 1));
            rollout["metadata"]["labels"] = json!({ label::OUTCOME: "Succeeded" });
            rollout
        });
        self.apply_all(made);
    }

    /// Does something while the project is gone.
    pub fn without_project(&self, act: impl FnOnce()) {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", "AppProject"));
        let projects: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), ENGINE_NAMESPACE, &kind);
        let gone = self.wait(projects.delete(PROJECT, &DeleteParams::default()));
        gone.unwrap_or_else(|error| panic!("delete the project: {error}"));
        act();
        self.apply_all(std::iter::once(project()));
    }

    fn apply_all(&self, objects: impl Iterator<Item = Value>) {
        for object in objects {
            self.wait(apply(&self.client, &object)).unwrap_or_else(|error| panic!("apply: {error}"));
        }
    }
}
