//! What people put on a rollout: who asked for it, approved, revoked, acknowledged.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

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
