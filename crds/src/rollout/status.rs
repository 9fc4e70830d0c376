//! What the operator says about a rollout: all of status can be lost; the `written` annotation cannot.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::step::Operation;
use crate::reason::{Outcome, words};

words! {
    /// Where a rollout is, as `status.phase` says it; nothing is decided by it.
    Phase {
        /// An approver is waited for.
        AwaitingApproval,
        /// A step is in flight or next.
        Progressing,
        /// Recorded steps of a manual release are owed.
        AwaitingAcknowledgement,
        /// A person is needed.
        Stalled,
        /// Deployment validation runs.
        Validating,
        /// Ended: every step is ready.
        Succeeded,
        /// Ended: a step or the validation failed.
        Failed,
        /// Ended: deadline or expiry.
        Expired,
        /// Ended: revoked.
        Revoked,
        /// Ended: replaced.
        Superseded,
        /// Ended: its runtime is gone.
        Orphaned,
    }
}

impl From<Outcome> for Phase {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Failed => Self::Failed,
            Outcome::Expired => Self::Expired,
            Outcome::Revoked => Self::Revoked,
            Outcome::Superseded => Self::Superseded,
            Outcome::Orphaned => Self::Orphaned,
        }
    }
}

words! {
    /// What has become of a rollout's approval, as `status.approval` says it.
    ApprovalState {
        /// No step needs one.
        NotRequired,
        /// One is waited for.
        Required,
        /// It was given.
        Approved,
        /// Its time is over.
        Expired,
        /// It was withdrawn.
        Revoked,
    }
}

/// What the operator says about a rollout; all of it can be lost and is found anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeRolloutStatus {
    /// Phase; absent before it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What has become of the approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalState>,
    /// Step in flight or next, and how many there are: `9/18`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub step: Option<String>,
    /// Why the rollout is where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32_768))]
    pub message: Option<String>,
    /// When its first step started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// The step in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentStep>,
    /// State of each release that was begun; 256 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub releases: Vec<ReleaseStatus>,
    /// Deployment validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<ValidationStatus>,
}

/// The step in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CurrentStep {
    /// Its release.
    #[schemars(length(max = 53))]
    pub release: String,
    /// Its place among the steps, from 0.
    #[schemars(range(min = 0))]
    pub index: i32,
    /// What it does.
    pub operation: Operation,
    /// When it was begun, before its write.
    pub started_at: Time,
    /// From when its action timeout counts.
    pub timeout_from: Time,
    /// The last observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub observed: Option<String>,
    /// Whether it was halted (paused, suspended, no engine) when last looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub halted: bool,
    /// When a comparison was asked for last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refreshed_at: Option<Time>,
    /// When one past Argo CD's caches was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard_refreshed_at: Option<Time>,
    /// Since when the release's own gate passes; it must for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_passed_since: Option<Time>,
    /// When a sync was started by the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_started_at: Option<Time>,
    /// When an operation for other content was told to terminate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated_at: Option<Time>,
    /// Since when an observation that fails the step after its grace is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Time>,
}

words! {
    /// State of one release of a rollout.
    ReleaseState {
        /// Its step is in flight.
        Progressing,
        /// Its step is done.
        Ready,
        /// Its step failed.
        Failed,
        /// Its step is halted.
        Suspended,
        /// It is being deleted.
        Deleting,
        /// It is gone.
        Removed,
    }
}

/// One release of a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseStatus {
    /// The release.
    #[schemars(length(max = 53))]
    pub release: String,
    /// Its state.
    pub state: ReleaseState,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
    /// When its step was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When its step was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}

/// Deployment validation of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidationStatus {
    /// Its Job.
    #[schemars(length(max = 253))]
    pub job: String,
    /// Its run ID.
    #[schemars(length(max = 63))]
    pub run: String,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub result: Option<String>,
    /// Reference of the evidence that was pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub evidence: Option<String>,
}

/// The `written` annotation: what a rollout did, kept outside status.
pub type Written = BTreeMap<String, WrittenEntry>;

/// What a rollout did to one release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenEntry {
    /// UID of the Application that it wrote or deletes.
    pub uid: String,
    /// Whether its step was found ready.
    pub ready: bool,
}
