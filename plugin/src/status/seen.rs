//! The runtime and its rollouts as far as this plugin can read them: also those of a newer operator.

use std::collections::BTreeMap;

use aicr_crds::{RuntimeRollout, keys::label, reason::Reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{ResourceExt, api::DynamicObject};
use serde::Deserialize;
use serde_json::Value;

use crate::view;

/// What was read.
#[derive(Default)]
pub(crate) struct Seen {
    /// The runtime as stored.
    pub(crate) stored: Option<DynamicObject>,
    /// The runtime as read.
    pub(super) runtime: Option<Runtime>,
    /// Every rollout that this plugin can read, oldest first.
    pub(super) rollouts: Vec<RuntimeRollout>,
    /// Names of unfinished ones that it cannot.
    pub(super) unreadable: Vec<String>,
    /// What is odd around them, a line each.
    pub(crate) warnings: Vec<String>,
}

/// The parts of a runtime that the page shows; words that a newer operator may add stay text.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Runtime {
    #[serde(default)]
    pub(super) spec: Spec,
    #[serde(default)]
    pub(super) status: Status,
    #[serde(skip)]
    pub(super) generation: Option<i64>,
}

/// What holds the operator, and which plan is wanted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub(super) paused: bool,
    pub(super) suspend_engine: bool,
    pub(super) selection: Selection,
}

/// Which plan is wanted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Selection {
    pub(super) pinned_plan_digest: String,
}

/// What the operator says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    pub(super) observed_generation: Option<i64>,
    pub(super) conditions: Vec<Condition>,
    pub(super) active_plan_digest: Option<String>,
    pub(super) candidate_plan_digest: Option<String>,
    pub(super) discovery: Discovery,
    pub(super) aicr: Aicr,
}

/// What discovery found.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Discovery {
    pub(super) snapshot: Option<Snapshot>,
    pub(super) criteria: BTreeMap<String, Value>,
    pub(super) accelerated_nodes: i64,
    pub(super) system_nodes: i64,
}

/// The snapshot in use.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    pub(super) config_map: String,
    pub(super) taken_at: Time,
}

/// The AICR that ran.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Aicr {
    pub(super) version: String,
}

impl Seen {
    /// Reads what the API server returned; an error where the runtime has another shape altogether.
    pub(crate) fn new(runtime: Option<DynamicObject>, rollouts: Vec<DynamicObject>) -> Result<Self, serde_json::Error> {
        let mut seen = Self { runtime: runtime.as_ref().map(read).transpose()?, stored: runtime, ..Self::default() };
        for rollout in rollouts {
            let (name, ended) = (rollout.name_any(), rollout.labels().contains_key(label::OUTCOME));
            match rollout.try_parse::<RuntimeRollout>() {
                Ok(rollout) => seen.rollouts.push(rollout),
                Err(_) if ended => {}
                Err(_) => seen.unreadable.push(name),
            }
        }
        seen.rollouts.sort_by_key(|rollout| (created(rollout), rollout.name_any()));
        Ok(seen)
    }

    /// The rollouts that have not ended.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = &RuntimeRollout> {
        self.rollouts.iter().filter(|rollout| view::ended(rollout).is_none())
    }

    /// The newest rollout that has ended.
    pub(super) fn last(&self) -> Option<&RuntimeRollout> {
        self.rollouts.iter().rev().find(|rollout| view::ended(rollout).is_some())
    }

    /// Whether the spec holds every new step.
    pub(super) fn hold(&self) -> Option<Reason> {
        let spec = &self.runtime.as_ref()?.spec;
        match (spec.suspend_engine, spec.paused) {
            (true, _) => Some(Reason::EngineSuspended),
            (false, true) => Some(Reason::Paused),
            (false, false) => None,
        }
    }
}

impl Runtime {
    /// The condition of this type.
    pub(super) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == kind)
    }

    /// Whether the condition of this type is True.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == "True")
    }
}

fn read(stored: &DynamicObject) -> Result<Runtime, serde_json::Error> {
    let runtime: Runtime = serde_json::from_value(stored.data.clone())?;
    Ok(Runtime { generation: stored.metadata.generation, ..runtime })
}

fn created(rollout: &RuntimeRollout) -> Option<Timestamp> {
    rollout.metadata.creation_timestamp.as_ref().map(|time| time.0)
}
