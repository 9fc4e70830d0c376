//! An Application as Argo CD stores it, only while it is read: unknown words and missing fields are borne, not refused.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde::Deserialize;
use serde_json::Value;

use super::{
    annotations::Annotations,
    fingerprint::{fingerprint, policy, pruned},
    seen,
};
use crate::{digest::Digest, keys::manager};

const MESSAGE_LIMIT: usize = 1024;
const LIST_LIMIT: usize = 10;

#[derive(Deserialize)]
pub(super) struct Application {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Option<Status>,
    #[serde(default)]
    operation: Option<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    project: String,
    destination: Option<Value>,
    source: Option<Value>,
    sources: Option<Value>,
    source_hydrator: Option<Value>,
    sync_policy: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    sync: Sync,
    health: Health,
    reconciled_at: Option<String>,
    conditions: Vec<Condition>,
    operation_state: Option<OperationState>,
    resources: Vec<ResourceStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Sync {
    status: String,
    compared_to: Option<ComparedTo>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ComparedTo {
    source: Option<Value>,
    sources: Option<Value>,
    destination: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Health {
    status: String,
    last_transition_time: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OperationState {
    phase: String,
    started_at: Option<String>,
    finished_at: Option<String>,
    retry_count: i64,
    message: String,
    operation: Operation,
    sync_result: Option<SyncResult>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Operation {
    sync: Option<SyncOperation>,
    initiated_by: InitiatedBy,
    info: Vec<Info>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
    name: String,
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InitiatedBy {
    username: String,
    automated: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SyncOperation {
    source: Option<Value>,
    manifests: Vec<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SyncResult {
    source: Option<Value>,
    resources: Vec<ResultResource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResultResource {
    kind: String,
    namespace: String,
    name: String,
    status: String,
    hook_phase: String,
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceStatus {
    kind: String,
    namespace: String,
    name: String,
    status: String,
    requires_pruning: bool,
}

impl From<Application> for seen::Application {
    fn from(mut wire: Application) -> Self {
        let spec = wire.spec;
        let fingerprint = fingerprint(
            spec.source.as_ref(),
            spec.sources.as_ref(),
            spec.source_hydrator.as_ref(),
            spec.destination.as_ref(),
        );
        let managers = managers(&wire.metadata);
        Self {
            annotations: Annotations::read(wire.metadata.annotations.take().unwrap_or_default()),
            metadata: wire.metadata,
            project: spec.project,
            destination: destination(spec.destination.as_ref()),
            source: source(spec.source.as_ref()),
            // A spec that has no canonical form (it cannot hold NaN) is like no other.
            fingerprint: fingerprint.unwrap_or_else(|_| Digest::of(b"unreadable")),
            source_id: source_id(spec.source.as_ref()),
            foreign_source: [&spec.sources, &spec.source_hydrator]
                .into_iter()
                .flatten()
                .any(|value| pruned(value).is_some()),
            automated: automated(spec.sync_policy.as_ref()),
            policy: policy(spec.sync_policy.as_ref()),
            managers,
            status: wire.status.unwrap_or_default().into(),
            operation_requested: wire.operation.is_some(),
        }
    }
}

fn automated(policy: Option<&Value>) -> seen::AutomatedSync {
    match policy.and_then(|policy| policy.get("automated")).filter(|automated| automated.is_object()) {
        None => seen::AutomatedSync::Absent,
        Some(stanza) if stanza.get("enabled") == Some(&Value::Bool(false)) => seen::AutomatedSync::Disabled,
        Some(_) => seen::AutomatedSync::Enabled,
    }
}

/// Who else owns fields of the spec, as far as the API server says.
fn managers(metadata: &ObjectMeta) -> Vec<String> {
    let spec =
        |entry: &&ManagedFieldsEntry| entry.fields_v1.as_ref().is_some_and(|fields| fields.0.get("f:spec").is_some());
    let ours = |name: &String| name == manager::APPLY || name == manager::PATCH;
    let mut names: Vec<String> = metadata
        .managed_fields
        .iter()
        .flatten()
        .filter(spec)
        .filter_map(|entry| entry.manager.clone())
        .filter(|name| !ours(name))
        .collect();
    names.sort();
    names.dedup();
    names.truncate(LIST_LIMIT);
    names
}

impl From<Status> for seen::ApplicationStatus {
    fn from(wire: Status) -> Self {
        let compared = wire.sync.compared_to.filter(|compared| compared.source.is_some() || compared.sources.is_some());
        let resources = wire.resources.len();
        Self {
            sync: sync_status(&wire.sync.status),
            compared_to: compared.and_then(|compared| {
                fingerprint(compared.source.as_ref(), compared.sources.as_ref(), None, compared.destination.as_ref())
                    .ok()
            }),
            health: health_status(&wire.health.status),
            health_since: time(wire.health.last_transition_time.as_deref()),
            reconciled_at: time(wire.reconciled_at.as_deref()),
            conditions: wire.conditions.into_iter().map(condition).collect(),
            operation: wire.operation_state.and_then(operation_state),
            unsynced: wire
                .resources
                .iter()
                .filter(|r| !matches!(r.status.as_str(), "Synced" | ""))
                .take(LIST_LIMIT)
                .map(unsynced)
                .collect(),
            resources,
        }
    }
}

fn sync_status(word: &str) -> Option<seen::SyncStatus> {
    match word {
        "" => None,
        "Synced" => Some(seen::SyncStatus::Synced),
        "OutOfSync" => Some(seen::SyncStatus::OutOfSync),
        _ => Some(seen::SyncStatus::Unknown),
    }
}

fn health_status(word: &str) -> Option<seen::HealthStatus> {
    match word {
        "" => None,
        "Healthy" => Some(seen::HealthStatus::Healthy),
        "Progressing" => Some(seen::HealthStatus::Progressing),
        "Degraded" => Some(seen::HealthStatus::Degraded),
        "Suspended" => Some(seen::HealthStatus::Suspended),
        "Missing" => Some(seen::HealthStatus::Missing),
        _ => Some(seen::HealthStatus::Unknown),
    }
}

fn condition(wire: Condition) -> seen::ArgoCondition {
    seen::ArgoCondition { kind: wire.r#type, message: cut(&wire.message) }
}

fn operation_state(wire: OperationState) -> Option<seen::OperationState> {
    let phase = match wire.phase.as_str() {
        "" => return None,
        "Running" => seen::OperationPhase::Running,
        "Terminating" => seen::OperationPhase::Terminating,
        "Succeeded" => seen::OperationPhase::Succeeded,
        "Failed" => seen::OperationPhase::Failed,
        _ => seen::OperationPhase::Error,
    };
    let asked = wire.operation.sync.as_ref().and_then(|sync| source_id(sync.source.as_ref()));
    let applied = wire.sync_result.as_ref().and_then(|result| source_id(result.source.as_ref()));
    let rollout =
        wire.operation.info.iter().find(|info| info.name == seen::ROLLOUT_INFO).map(|info| info.value.clone());
    // Its state is patched by merges, so that both may stand there: nothing tells which is of this operation (A22).
    let initiated_by = match wire.operation.initiated_by {
        InitiatedBy { automated: false, username } => username,
        InitiatedBy { automated: true, username } if username.is_empty() => "automated".to_owned(),
        InitiatedBy { automated: true, username } => format!("automated, or {username}"),
    };
    Some(seen::OperationState {
        phase,
        started_at: time(wire.started_at.as_deref()),
        finished_at: time(wire.finished_at.as_deref()),
        retries: wire.retry_count,
        message: cut(&wire.message),
        source_id: asked.or(applied),
        has_result: wire.sync_result.is_some(),
        local_manifests: wire.operation.sync.is_some_and(|sync| !sync.manifests.is_empty()),
        initiated_by,
        rollout,
        failures: wire.sync_result.map(|result| failures(&result.resources)).unwrap_or_default(),
    })
}

fn failures(resources: &[ResultResource]) -> Vec<String> {
    let failed = |r: &&ResultResource| r.status == "SyncFailed" || matches!(r.hook_phase.as_str(), "Failed" | "Error");
    resources
        .iter()
        .filter(failed)
        .take(LIST_LIMIT)
        .map(|r| cut(&format!("{}: {}", object(&r.kind, &r.namespace, &r.name), r.message)))
        .collect()
}

fn unsynced(wire: &ResourceStatus) -> seen::UnsyncedResource {
    seen::UnsyncedResource {
        name: object(&wire.kind, &wire.namespace, &wire.name),
        requires_pruning: wire.requires_pruning,
    }
}

fn object(kind: &str, namespace: &str, name: &str) -> String {
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

fn destination(value: Option<&Value>) -> seen::Destination {
    seen::Destination {
        server: text(value, &["server"]),
        name: text(value, &["name"]),
        namespace: text(value, &["namespace"]),
    }
}

fn source(value: Option<&Value>) -> seen::Source {
    seen::Source {
        repo_url: text(value, &["repoURL"]),
        target_revision: text(value, &["targetRevision"]),
        release_name: text(value, &["helm", "releaseName"]),
        values: text(value, &["helm", "values"]),
    }
}

fn text(value: Option<&Value>, path: &[&str]) -> String {
    let found = value.and_then(|value| path.iter().try_fold(value, |value, key| value.get(key)));
    found.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn source_id(value: Option<&Value>) -> Option<Digest> {
    Digest::of_canonical(&pruned(value?)?).ok()
}

fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

fn cut(message: &str) -> String {
    message.chars().take(MESSAGE_LIMIT).collect()
}
