//! RuntimeRollout: one move between two plans; its spec never changes but for approval, revocation and acknowledgements.

mod people;
mod status;
mod step;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    digest::{CanonicalError, Digest},
    reason::words,
    runtime::{DeploymentValidation, SelectionPolicy},
};

pub use people::{Acknowledgement, Approval, Author, Person, Revocation};
pub use status::{
    ApprovalState, CurrentStep, Phase, ReleaseState, ReleaseStatus, RuntimeRolloutStatus, ValidationStatus, Written,
    WrittenEntry,
};
pub use step::{ChartRef, CrdChange, CrdEffect, Need, Operation, Step, StepApproval, Verdict};

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
    /// The rollout whose approved Remove was deleting it already: it may go without being missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub removed_by: Option<String>,
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
