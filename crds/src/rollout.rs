//! RuntimeRollout: one move between two plans; its spec never changes but for approval, revocation and acknowledgements.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    digest::{CanonicalError, Digest},
    reason::{Outcome, words},
    runtime::{DeploymentValidation, SelectionPolicy},
};

/// The schema of rollouts that this operator writes, and the only one on which it acts.
pub const SCHEMA_VERSION: &str = "1";

/// What is to be done; fixed at creation.
///
/// There are no schema defaults here, now or ever: a default that a later CRD adds would appear in stored rollouts and
/// break the binding of what is already approved.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "operator.aicr.run",
    version = "v1alpha1",
    kind = "RuntimeRollout",
    plural = "runtimerollouts",
    singular = "runtimerollout",
    shortname = "aicrro",
    status = "RuntimeRolloutStatus",
    derive = "PartialEq",
    doc = "One change of the GPU stack between two plans."
)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeRolloutSpec {
    /// Schema of this object; an unknown one is never acted on or rewritten.
    #[schemars(length(min = 1, max = 16))]
    pub schema_version: String,
    /// The runtime that this changes.
    pub runtime: RuntimeRef,
    /// Change, Adopt or Remove.
    pub kind: RolloutKind,
    /// The active plan at creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_plan_digest: Option<Digest>,
    /// The plan to reach; absent for Remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_plan_digest: Option<Digest>,
    /// The target's first 16 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), regex(pattern = r"^[0-9a-f]{16}$"))]
    pub target: Option<String>,
    /// One more than the highest attempt that existed under this name's prefix.
    #[schemars(range(min = 1))]
    pub attempt: i32,
    /// Value of the runtime's retry annotation at creation, whoever caused the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub retry_token: Option<String>,
    /// The runtime's selection policy at creation.
    pub selection: SelectionPolicy,
    /// Who asked for it, as far as known; 64 at most.
    #[schemars(length(max = 64))]
    pub requested_by: Vec<Author>,
    /// Steps in order; 256 at most.
    #[schemars(length(max = 256))]
    pub steps: Vec<Step>,
    /// Every owned Application at creation; 256 at most.
    #[schemars(length(max = 256))]
    pub inventory: Vec<InventoryItem>,
    /// Time for each step, a Kubernetes duration string.
    #[schemars(length(max = 32))]
    pub action_timeout: String,
    /// When the whole rollout ends, whatever it waits for.
    pub deadline: Time,
    /// Whether success needs deployment validation.
    pub validation: DeploymentValidation,
    /// The stored upgrade-check report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assessment: Option<AssessmentRef>,
    /// Written once, by an approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Written once, by any approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation: Option<Revocation>,
    /// One for each manual release; 64 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub acknowledgements: Vec<Acknowledgement>,
}

impl RuntimeRolloutSpec {
    /// What an approval binds: sha256 over the canonical JSON of the spec without approval, revocation and
    /// acknowledgements.
    pub fn binding_digest(&self) -> Result<Digest, CanonicalError> {
        let bare = Self { approval: None, revocation: None, acknowledgements: Vec::new(), ..self.clone() };
        Digest::of_canonical(&bare)
    }

    /// Whether any step waits for an approver.
    pub fn needs_approval(&self) -> bool {
        self.steps.iter().any(|step| step.approval.need == Need::Required)
    }
}

/// A runtime, by name and UID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeRef {
    /// Name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// UID.
    #[schemars(length(min = 1, max = 36))]
    pub uid: String,
}

words! {
    /// What a rollout is for.
    RolloutKind {
        /// From one plan to another.
        Change,
        /// Takes over an earlier runtime's Applications.
        Adopt,
        /// Deletes every release.
        Remove,
    }
}

/// Somebody who changed the runtime's spec.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Author {
    /// User name, as the API server reports it.
    #[schemars(length(max = 256))]
    pub user: String,
    /// When last.
    pub at: Time,
}

/// One write to Argo CD, and what was known of it at creation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Release, which is the Application's name too.
    #[schemars(length(min = 1, max = 53))]
    pub release: String,
    /// What is done.
    pub operation: Operation,
    /// What is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ChartRef>,
    /// What will be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ChartRef>,
    /// Whether the values differ.
    pub values_changed: bool,
    /// AICR's verdict; absent where it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// CRDs that the step adds, changes or drops; 128 at most.
    #[schemars(length(max = 128))]
    pub crds: Vec<CrdChange>,
    /// Whether it waits for an approver, and why.
    pub approval: StepApproval,
    /// A manual release with recorded steps after the apply.
    pub acknowledge: bool,
    /// What a person should know before approving; 16 at most.
    #[schemars(length(max = 16), inner(length(max = 512)))]
    pub warnings: Vec<String>,
}

words! {
    /// What a step does.
    Operation {
        /// Creates the release.
        Install,
        /// Moves it to other content.
        Upgrade,
        /// Deletes it.
        Remove,
        /// Runs a readiness gate again.
        Verify,
        /// Writes ownership annotations only.
        Adopt,
    }
}

words! {
    /// AICR's assessment of one component's change.
    Verdict {
        /// Recorded as safe.
        Safe = "safe",
        /// Recorded with steps for a person.
        Manual = "manual",
        /// Needs a migration.
        Blocked = "blocked",
        /// No record.
        Unknown = "unknown",
        /// Versions do not compare.
        Unversioned = "unversioned",
    }
}

/// A chart, by what people and Argo CD call it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartRef {
    /// Repository below the registry prefix.
    #[schemars(length(max = 253))]
    pub chart: String,
    /// Version of the archive.
    #[schemars(length(max = 128))]
    pub version: String,
    /// Digest of the archive's manifest.
    pub digest: Digest,
}

/// A CRD that a step touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrdChange {
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// What happens to it.
    pub change: CrdEffect,
}

words! {
    /// What happens to a CRD.
    CrdEffect {
        /// New with this chart.
        Added,
        /// In both charts: the new one's definition is applied.
        Changed,
        /// Not in the new chart: Argo CD prunes it, and its custom resources go with it.
        Dropped,
    }
}

/// Whether a step waits for an approver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepApproval {
    /// Required or not.
    pub need: Need,
    /// Why.
    #[schemars(length(max = 512))]
    pub reason: String,
}

words! {
    /// Required or not.
    Need {
        /// An approver must agree.
        Required,
        /// It may run by itself.
        NotRequired,
    }
}

/// An owned Application at the rollout's creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InventoryItem {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub application: String,
    /// Its UID.
    #[schemars(length(min = 1, max = 36))]
    pub uid: String,
    /// The plan that its annotation names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<Digest>,
    /// Fingerprint of its source and destination.
    pub fingerprint: Digest,
}

/// The stored upgrade-check report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssessmentRef {
    /// Its ConfigMap in the operator namespace.
    #[schemars(length(min = 1, max = 253))]
    pub config_map: String,
    /// Digest of the report's bytes.
    pub digest: Digest,
}

/// A person, as the API server reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Person {
    /// User name.
    #[schemars(length(max = 256))]
    pub username: String,
    /// Groups; 64 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 256)))]
    pub groups: Vec<String>,
}

/// An approver's statement that this may be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Why.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Until when steps may start; not after the deadline.
    pub expires_at: Time,
    /// The binding digest that the approver saw.
    pub binding_digest: Digest,
    /// Who.
    pub approved_by: Person,
    /// When.
    pub approved_at: Time,
}

/// An approver's withdrawal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revocation {
    /// Why.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Who.
    pub revoked_by: Person,
    /// When.
    pub revoked_at: Time,
}

/// An approver's statement that a manual release's recorded steps are done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Acknowledgement {
    /// The release.
    #[schemars(length(min = 1, max = 53))]
    pub release: String,
    /// What was done.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Who.
    pub acknowledged_by: Person,
    /// When.
    pub acknowledged_at: Time,
}

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
