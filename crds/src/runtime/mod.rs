//! ClusterRuntime: what a person wants of the cluster's GPU stack, and what the operator says about it.

mod placement;
mod status;

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::vocabulary::{Accelerator, Intent, Os, Platform, Service};

pub use placement::{AcceleratedGroup, Placement, SystemGroup, TaintEffect, Toleration, TolerationOperator};
pub use status::{Aicr, ClusterRuntimeStatus, Discovery, RolloutInProgress, SnapshotRef};

/// The one name a ClusterRuntime may have.
pub const NAME: &str = "cluster";

/// What a person wants.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "operator.aicr.run",
    version = "v1alpha1",
    kind = "ClusterRuntime",
    plural = "clusterruntimes",
    singular = "clusterruntime",
    shortname = "aicrrt",
    status = "ClusterRuntimeStatus",
    derive = "PartialEq",
    doc = "The GPU software stack of this cluster; exactly one, named cluster."
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRuntimeSpec {
    /// AICR intent.
    pub intent: Intent,
    /// AICR platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// AICR profile as `name=value`; 128 characters at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = r"^[^=]+=.+$"))]
    pub profile: Option<String>,
    /// What discovery cannot measure yet; must agree with the snapshot.
    #[serde(default, skip_serializing_if = "Criteria::is_empty")]
    pub criteria: Criteria,
    /// Which nodes carry accelerators, and where control components run.
    pub placement: Placement,
    /// Passed on to `aicr bundle`.
    #[serde(default)]
    pub configuration: Configuration,
    /// AICR `--set` values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub overrides: Vec<Override>,
    /// Which plan is the target.
    #[serde(default)]
    pub selection: Selection,
    /// Times of the rollouts created from now on.
    #[serde(default)]
    pub rollout: RolloutSettings,
    /// What must be proved when a rollout's steps are ready.
    #[serde(default)]
    pub validation: Validation,
    /// Holds new rollouts and steps.
    #[serde(default)]
    pub paused: bool,
    /// Switches Argo CD's automated sync off on every owned Application.
    #[serde(default)]
    pub suspend_engine: bool,
    /// What deletion of this object does to the stack.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// The earlier runtime whose Applications may be adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<Adoption>,
}

/// Criteria that a person declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Criteria {
    /// Kubernetes service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// Accelerator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<Accelerator>,
    /// Operating system of the accelerated nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<Os>,
}

impl Criteria {
    /// Whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Options of `aicr bundle`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// `StorageClass` of components with volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage_class: Option<String>,
    /// `StorageClass` of shared volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub shared_storage_class: Option<String>,
    /// Label of nodes that opt in to DRA eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub dra_eviction_node_label: Option<String>,
    /// Advisory node count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub nodes: Option<i32>,
    /// `--workload-selector`; absent, the accelerated selector; 16 entries at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(length(max = 16))]
    pub workload_selector: BTreeMap<String, String>,
    /// Bundle with `--readiness-hooks`.
    #[serde(default = "yes")]
    pub readiness_gates: bool,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            storage_class: None,
            shared_storage_class: None,
            dra_eviction_node_label: None,
            nodes: None,
            workload_selector: BTreeMap::new(),
            readiness_gates: true,
        }
    }
}

fn yes() -> bool {
    true
}

/// One AICR `--set`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// Component, by AICR's name.
    #[schemars(length(min = 1, max = 63))]
    pub component: String,
    /// Path of the value.
    #[schemars(length(min = 1, max = 253))]
    pub path: String,
    /// Value, a scalar as text.
    #[schemars(length(max = 4096))]
    pub value: String,
    /// The path need not exist yet.
    #[serde(default)]
    pub additive: bool,
}

/// Which plan is the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// The candidate, or a pinned plan.
    #[serde(default)]
    pub policy: SelectionPolicy,
    /// Digest of the pinned plan; empty with Automatic.
    #[serde(default)]
    #[schemars(length(max = 71), regex(pattern = r"^(sha256:[0-9a-f]{64})?$"))]
    pub pinned_plan_digest: String,
}

/// How the target is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum SelectionPolicy {
    /// The newest plan resolved from the inputs.
    #[default]
    Automatic,
    /// The plan that `pinnedPlanDigest` names.
    Pinned,
}

/// Times; Kubernetes duration strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSettings {
    /// Wait after a candidate's creation; 0s to 24h, 10m by default.
    #[serde(default = "ten_minutes")]
    #[schemars(length(max = 32))]
    pub stabilization_window: String,
    /// Time for each step; 1m to 24h, 30m by default, not longer than the deadline.
    #[serde(default = "half_an_hour")]
    #[schemars(length(max = 32))]
    pub action_timeout: String,
    /// Time for a whole rollout from its creation; 10m to 168h, 6h by default.
    #[serde(default = "six_hours")]
    #[schemars(length(max = 32))]
    pub deadline: String,
}

fn ten_minutes() -> String {
    "10m".to_owned()
}

fn half_an_hour() -> String {
    "30m".to_owned()
}

fn six_hours() -> String {
    "6h".to_owned()
}

impl Default for RolloutSettings {
    fn default() -> Self {
        Self { stabilization_window: ten_minutes(), action_timeout: half_an_hour(), deadline: six_hours() }
    }
}

/// What must be proved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// AICR's deployment phase.
    #[serde(default)]
    pub deployment: DeploymentValidation,
}

/// Whether deployment validation is part of a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum DeploymentValidation {
    /// A rollout succeeds only with it.
    #[default]
    Required,
    /// It is left out.
    Disabled,
}

/// What deletion of the runtime does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum DeletionPolicy {
    /// The stack stays and keeps running.
    #[default]
    Orphan,
    /// An approved removal rollout deletes every release first.
    Delete,
}

/// Adoption of an earlier runtime's Applications.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adoption {
    /// UID of the earlier runtime.
    #[serde(rename = "runtimeUID")]
    #[schemars(length(max = 36), regex(pattern = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"))]
    pub runtime_uid: String,
}
