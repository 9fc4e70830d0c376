//! Placement: which nodes carry accelerators, and where control components run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
