//! What the operator says about a runtime; all of it can be lost and is found anew.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Criteria;
use crate::{digest::Digest, rollout::Phase};

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
