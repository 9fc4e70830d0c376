//! An Application as it is read: a typed slice, some kilobytes instead of the whole tree.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{NamespaceResourceScope, Resource};
use serde::Deserialize;

use super::{annotations::Annotations, wire};
use crate::digest::Digest;

/// An Application, reduced to what decisions rest on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "wire::Application")]
pub struct Application {
    /// Metadata as stored, but for the annotations.
    pub metadata: ObjectMeta,
    /// The annotations that mean something.
    pub annotations: Annotations,
    /// `spec.project`.
    pub project: String,
    /// `spec.destination`.
    pub destination: Destination,
    /// `spec.source`, the fields that we write.
    pub source: Source,
    /// Fingerprint of source, sources, hydrator and destination as stored.
    pub fingerprint: Digest,
    /// Digest of `spec.source` alone, to attribute operations.
    pub source_id: SourceId,
    /// Whether `sources` or `sourceHydrator` stand beside or above `source`.
    pub foreign_source: bool,
    /// `spec.syncPolicy.automated`.
    pub automated: AutomatedSync,
    /// Digest of `spec.syncPolicy` but for `automated.enabled`.
    pub policy: Option<Digest>,
    /// Field managers of `spec` other than the operator, sorted; read from `managedFields`.
    pub managers: Vec<String>,
    /// What Argo CD says.
    pub status: ApplicationStatus,
    /// Whether a top-level `operation` waits or runs.
    pub operation_requested: bool,
}

/// Name of the entry in an operation's `info` that names the rollout which started it.
pub const ROLLOUT_INFO: &str = "aicr-rollout";

/// Digest of one source.
pub type SourceId = Option<Digest>;

/// Where a release is installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// Cluster by server.
    pub server: String,
    /// Cluster by name, which we never write.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}

/// The fields of a source that we write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// `repoURL`.
    pub repo_url: String,
    /// `targetRevision`.
    pub target_revision: String,
    /// `helm.releaseName`.
    pub release_name: String,
    /// `helm.values`.
    pub values: String,
}

/// `syncPolicy.automated`, as it acts (absent `enabled` means enabled).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutomatedSync {
    /// The stanza is there and not disabled.
    Enabled,
    /// `enabled: false`.
    Disabled,
    /// No stanza: manual sync only.
    Absent,
}

/// The parts of `status` that mean something (`facts/argocd.md` section 2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationStatus {
    /// `sync.status`.
    pub sync: Option<SyncStatus>,
    /// Fingerprint of `sync.comparedTo`.
    pub compared_to: Option<Digest>,
    /// `health.status`.
    pub health: Option<HealthStatus>,
    /// `health.lastTransitionTime`: since when it is that.
    pub health_since: Option<Timestamp>,
    /// `reconciledAt`: when the last full comparison began.
    pub reconciled_at: Option<Timestamp>,
    /// Conditions; presence is truth.
    pub conditions: Vec<ArgoCondition>,
    /// The last operation, whatever it was for.
    pub operation: Option<OperationState>,
    /// Managed resources that are not `Synced`; ten at most.
    pub unsynced: Vec<UnsyncedResource>,
    /// How many resources are managed.
    pub resources: usize,
}

/// Comparison result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncStatus {
    /// Live objects are as rendered.
    Synced,
    /// They differ.
    OutOfSync,
    /// Argo CD does not know, or says a word that we do not.
    Unknown,
}

/// Aggregated health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthStatus {
    /// Healthy.
    Healthy,
    /// On its way.
    Progressing,
    /// Unhealthy.
    Degraded,
    /// Suspended.
    Suspended,
    /// Nothing is there.
    Missing,
    /// Argo CD does not know, or says a word that we do not.
    Unknown,
}

/// A condition of an Application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgoCondition {
    /// Its type.
    pub kind: String,
    /// Its message, 1024 characters at most.
    pub message: String,
}

/// Phase of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationPhase {
    /// In flight; with `finished_at`, between two tries.
    Running,
    /// Told to stop.
    Terminating,
    /// Applied.
    Succeeded,
    /// Ended without success.
    Failed,
    /// Ended in an error.
    Error,
}

/// The last operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationState {
    /// Its phase.
    pub phase: OperationPhase,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it, or its last try, finished.
    pub finished_at: Option<Timestamp>,
    /// How often it was retried.
    pub retries: i64,
    /// Its message, 1024 characters at most.
    pub message: String,
    /// The source that it was for, as far as it says.
    pub source_id: SourceId,
    /// Whether it has a `syncResult`.
    pub has_result: bool,
    /// Whether it syncs local manifests instead of the source.
    pub local_manifests: bool,
    /// Who started it: a user name, or `automated`.
    pub initiated_by: String,
    /// The rollout that started it, as its `info` says.
    pub rollout: Option<String>,
    /// Objects that failed, with their messages; ten at most.
    pub failures: Vec<String>,
}

/// A managed resource that is not `Synced`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsyncedResource {
    /// `Kind namespace/name`.
    pub name: String,
    /// Whether it waits to be pruned.
    pub requires_pruning: bool,
}

impl Application {
    /// Object name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// UID, empty only where the API server gave none.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// One label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Whether its deletion takes the release's resources along: one of Argo CD's three finalizers is there.
    pub fn cascades(&self) -> bool {
        let all = self.metadata.finalizers.iter().flatten();
        all.into_iter().any(|name| crate::keys::finalizer::ARGO_CASCADE.contains(&name.as_str()))
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

impl Resource for Application {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Application".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "argoproj.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "applications".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
