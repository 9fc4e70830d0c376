//! Steps: one write to Argo CD each, and what was known of it when the rollout was created.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{digest::Digest, reason::words};

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
