//! ClusterRuntime: what a person wants of the cluster's GPU stack, and what the operator says about it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    rollout::Phase,
    vocabulary::{Accelerator, Intent, Os, Platform, Service},
};

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

/// Node groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The nodes that carry accelerators.
    pub accelerated: AcceleratedGroup,
    /// The nodes where control components run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<SystemGroup>,
}

/// The accelerated node group; its selector is required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceleratedGroup {
    /// Labels that these nodes carry; 1 to 16.
    #[schemars(length(min = 1, max = 16))]
    pub node_selector: BTreeMap<String, String>,
    /// Passed to AICR as accelerated tolerations; 16 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
}

/// The system node group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemGroup {
    /// Labels that these nodes carry; 16 at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(length(max = 16))]
    pub node_selector: BTreeMap<String, String>,
    /// Passed to AICR as system tolerations; 16 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
}

/// A toleration, as AICR takes it: `key[=value][:effect]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Taint key; empty tolerates every key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 317))]
    pub key: String,
    /// `Exists` or `Equal` (the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<TolerationOperator>,
    /// Taint value, with `Equal`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub value: String,
    /// Taint effect; absent tolerates every effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
}

/// How a toleration compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TolerationOperator {
    /// The key is there.
    Exists,
    /// The key has this value.
    Equal,
}

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TaintEffect {
    /// Nothing new is scheduled.
    NoSchedule,
    /// Scheduling elsewhere is preferred.
    PreferNoSchedule,
    /// Running pods are evicted too.
    NoExecute,
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

/// What the operator says; all of it can be lost and is found anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRuntimeStatus {
    /// Generation that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions, one of each type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
    /// Target of the newest `Succeeded` rollout: what is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_plan_digest: Option<Digest>,
    /// Its first 16 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub active_plan: Option<String>,
    /// The newest plan resolved from the current inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_plan_digest: Option<Digest>,
    /// The rollout in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutInProgress>,
    /// What discovery found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
    /// The AICR that the resolver ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aicr: Option<Aicr>,
}

/// The rollout in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutInProgress {
    /// Its name.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Its phase; absent before it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
}

/// What discovery found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// The snapshot in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotRef>,
    /// The criteria as resolved.
    #[serde(default)]
    pub criteria: Criteria,
    /// Nodes that the accelerated selector matches.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub accelerated_nodes: i32,
    /// Nodes that the system selector matches.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub system_nodes: i32,
}

/// A stored snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRef {
    /// Its ConfigMap in the operator namespace.
    #[schemars(length(max = 253))]
    pub config_map: String,
    /// When it was taken.
    pub taken_at: Time,
    /// What caused it.
    #[schemars(length(max = 256))]
    pub cause: String,
}

/// The AICR that the resolver ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Aicr {
    /// Version that its output records.
    #[schemars(length(max = 64))]
    pub version: String,
    /// Image that ran.
    #[schemars(length(max = 512))]
    pub image: String,
}
