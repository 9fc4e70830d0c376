//! The slices that are stored instead of whole objects, and what is cut off those that are stored whole.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use aicr_crds::{
    Digest,
    keys::{annotation, label, role},
    plan::StoredPlan,
    reason::Reason,
    rollout::Verdict,
};
use aicr_decide::{
    resolve::{
        RunRecord,
        snapshot::{Reading, Record},
    },
    seen::{Assessment, AssessmentRow},
};
use aicr_read::{ReadError, upgrade};
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{ConfigMap, Pod},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::core::{NamespaceResourceScope, Resource};
use serde::{Deserialize, Serialize};

use crate::error::chain;

/// Key of a snapshot's text.
pub(crate) const SNAPSHOT_KEY: &str = "snapshot.yaml";
/// Key of an assessment's text.
pub(crate) const REPORT_KEY: &str = "report.json";
/// Key of what is remembered of failed runs.
pub(crate) const RUNS_KEY: &str = "runs.json";

/// Makes a kind of a slice that is stored in its place.
macro_rules! slice_of {
    ($name:ident, $scope:ty, $group:literal, $version:literal, $kind:literal, $plural:literal) => {
        impl Resource for $name {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(super) use slice_of;

slice_of!(Project, NamespaceResourceScope, "argoproj.io", "v1alpha1", "AppProject", "appprojects");
slice_of!(Document, NamespaceResourceScope, "", "v1", "ConfigMap", "configmaps");

/// An AppProject, reduced to where it lets Applications deploy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Project {
    pub(crate) metadata: ObjectMeta,
    spec: ProjectSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct ProjectSpec {
    destinations: Vec<ProjectDestination>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct ProjectDestination {
    namespace: String,
}

impl Project {
    /// The namespaces, as globs.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.spec.destinations.iter().map(|destination| destination.namespace.as_str())
    }
}

/// A ConfigMap of the operator's namespace, read once when it arrives.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "ConfigMap")]
pub(crate) struct Document {
    pub(crate) metadata: ObjectMeta,
    pub(crate) content: Content,
}

/// What a ConfigMap holds, by its `role` label.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A plan, or why it cannot be read.
    Plan(Arc<Result<StoredPlan, String>>),
    /// A snapshot.
    Snapshot(Arc<SnapshotDocument>),
    /// An upgrade-check report, or why it cannot be read.
    Assessment(Arc<Result<Assessment, String>>),
    /// What is remembered of failed runs; what cannot be read is as if absent, and counted from the Jobs that are left.
    Runs(Arc<Vec<RunRecord>>),
    /// None of these.
    Other,
}

/// A stored snapshot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SnapshotDocument {
    pub(crate) record: Record,
    pub(crate) reading: Result<Reading, (Reason, String)>,
    pub(crate) text: String,
    pub(crate) resolved: Vec<ResolvedEntry>,
}

/// Which plan some inputs came to; newest last in the annotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResolvedEntry {
    /// Input label: spec and snapshot.
    pub(crate) input: String,
    /// Hash of the spec alone.
    pub(crate) spec: String,
    /// The plan.
    pub(crate) plan: Digest,
}

/// The `resolved` annotation; one that cannot be read is as if absent, and the inputs are resolved once more.
pub(crate) fn resolved_entries(metadata: &ObjectMeta) -> Vec<ResolvedEntry> {
    let text = metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation::RESOLVED));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

impl From<ConfigMap> for Document {
    fn from(map: ConfigMap) -> Self {
        let role = map.metadata.labels.as_ref().and_then(|labels| labels.get(label::ROLE));
        let content = match role.map(String::as_str) {
            Some(role::PLAN) => {
                Content::Plan(Arc::new(StoredPlan::from_config_map(&map).map_err(|error| chain(&error))))
            }
            Some(role::SNAPSHOT) => Content::Snapshot(Arc::new(snapshot(&map))),
            Some(role::ASSESSMENT) => Content::Assessment(Arc::new(assessment(&map))),
            Some(role::RUNS) => Content::Runs(Arc::new(serde_json::from_str(text(&map, RUNS_KEY)).unwrap_or_default())),
            Some(_) | None => Content::Other,
        };
        Self { metadata: map.metadata, content }
    }
}

fn text<'a>(map: &'a ConfigMap, key: &str) -> &'a str {
    map.data.as_ref().and_then(|data| data.get(key)).map_or("", String::as_str)
}

fn snapshot(map: &ConfigMap) -> SnapshotDocument {
    let record = map.metadata.annotations.as_ref().and_then(|all| all.get(annotation::SNAPSHOT_RECORD));
    let text = text(map, SNAPSHOT_KEY);
    SnapshotDocument {
        record: record.and_then(|record| serde_json::from_str(record).ok()).unwrap_or_default(),
        reading: reading(text),
        text: text.to_owned(),
        resolved: resolved_entries(&map.metadata),
    }
}

fn reading(text: &str) -> Result<Reading, (Reason, String)> {
    let read = aicr_read::snapshot::read(text.as_bytes()).map_err(|error| {
        let reason = match error {
            ReadError::Unsupported { .. } => Reason::AICRArtifactUnsupported,
            ReadError::TooLarge { .. } => Reason::ContentTooLarge,
            ReadError::Damaged { .. } => Reason::AICRInternal,
        };
        (reason, error.to_string())
    })?;
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok(Reading {
        service: owned(read.service()),
        accelerator: owned(read.accelerator()),
        os: owned(read.os()),
        kubernetes: owned(read.kubernetes_version()),
        nodes: read.node_count(),
        version: read.version,
    })
}

fn assessment(map: &ConfigMap) -> Result<Assessment, String> {
    let text = text(map, REPORT_KEY);
    let report = upgrade::read(text.as_bytes()).map_err(|error| error.to_string())?;
    let rows: BTreeMap<String, AssessmentRow> =
        report.rows.into_iter().map(|row| (row.component.clone(), assessed(row))).collect();
    Ok(Assessment {
        config_map: map.metadata.name.clone().unwrap_or_default(),
        digest: Digest::of(text.as_bytes()),
        rows,
    })
}

fn assessed(row: upgrade::Row) -> AssessmentRow {
    let why = row.explanation.or(row.summary).or(row.reason).unwrap_or_default();
    let explanation = match row.stopped_at {
        Some(version) => format!("{why} (stops at {version})"),
        None => why,
    };
    let verdict = row.verdict.map(|verdict| match verdict {
        upgrade::Verdict::Safe => Verdict::Safe,
        upgrade::Verdict::Manual => Verdict::Manual,
        upgrade::Verdict::Blocked => Verdict::Blocked,
        upgrade::Verdict::Unknown => Verdict::Unknown,
        upgrade::Verdict::Unversioned => Verdict::Unversioned,
    });
    AssessmentRow { verdict, explanation, steps: row.steps.into_iter().map(|step| step.id).collect() }
}

/// The pod template of an AICR Job repeats what its arguments were made of.
pub(super) fn prune_job(job: &mut Job) {
    if let Some(spec) = &mut job.spec {
        spec.template.spec = None;
    }
}

/// Of a pod, its status says everything.
pub(super) fn prune_pod(pod: &mut Pod) {
    pod.spec = None;
    pod.metadata.annotations = None;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_config_map_is_read_by_its_role() {
        let map = |role: &str| -> Document {
            serde_json::from_value(json!({
                "metadata": { "name": "m", "labels": { label::ROLE: role } },
                "data": { REPORT_KEY: r#"{"components":[],"summary":{"components":0}}"# },
            }))
            .unwrap()
        };
        assert!(matches!(map("plan").content, Content::Plan(plan) if plan.is_err()));
        assert!(matches!(map("snapshot").content, Content::Snapshot(snapshot) if snapshot.reading.is_err()));
        assert!(matches!(map("assessment").content, Content::Assessment(report) if report.is_ok()));
        assert!(matches!(map("runs").content, Content::Runs(records) if records.is_empty()));
        assert!(matches!(map("else").content, Content::Other));
    }
}
