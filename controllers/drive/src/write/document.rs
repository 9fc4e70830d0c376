//! Plans, snapshots and assessments as ConfigMaps of the operator's namespace.

use std::collections::BTreeMap;

use aicr_crds::keys::{annotation, label, role};
use aicr_decide::resolve::{RunRecord, snapshot::Record};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Api;
use serde_json::json;

use super::{Writer, Written, body, create, delete, merge, status::object_ref};
use crate::{
    error::DriveError,
    watch::{Document, ResolvedEntry},
};

/// The ConfigMap with what is remembered of failed runs, beside the snapshots.
pub(crate) const RUNS: &str = "aicr-runs";

impl Writer {
    /// Creates a ConfigMap of the operator's namespace; stale where one of its name exists.
    pub(crate) async fn create_document(&self, map: &ConfigMap) -> Result<Written<()>, DriveError> {
        let name = map.metadata.name.as_deref().unwrap_or_default();
        create(&self.documents(), format!("create ConfigMap {name}"), map).await.map(Written::forget)
    }

    /// Deletes exactly this ConfigMap.
    pub(crate) async fn delete_document(&self, document: &Document) -> Result<Written<()>, DriveError> {
        let on = object_ref(&document.metadata);
        let act = format!("delete ConfigMap {}", on.name);
        delete(&self.documents(), &on.name, act, &on.uid, Some(&on.resource_version)).await
    }

    /// Says on a snapshot which plans were resolved from it.
    pub(crate) async fn resolved(
        &self,
        snapshot: &Document,
        entries: &[ResolvedEntry],
    ) -> Result<Written<()>, DriveError> {
        let on = object_ref(&snapshot.metadata);
        let act = format!("annotate ConfigMap {}", on.name);
        let text = serde_json::to_string(entries)
            .map_err(|error| DriveError::Content { act: act.clone(), problem: error.to_string() })?;
        let patch = body::annotations(&on, &[(annotation::RESOLVED, Some(text))]);
        merge(&self.documents(), &on.name, act, &patch).await.map(Written::forget)
    }

    /// Stores what is remembered of failed runs, in the place of what was there.
    pub(crate) async fn remember(
        &self,
        there: Option<&Document>,
        records: &[RunRecord],
    ) -> Result<Written<()>, DriveError> {
        let act = format!("write ConfigMap {RUNS}");
        let text = serde_json::to_string(records)
            .map_err(|error| DriveError::Content { act: act.clone(), problem: error.to_string() })?;
        let Some(there) = there else {
            return self
                .create_document(&document(&self.namespace, RUNS, role::RUNS, crate::watch::RUNS_KEY, &text))
                .await;
        };
        let patch = json!({
            "metadata": body::guard(&object_ref(&there.metadata)),
            "data": { crate::watch::RUNS_KEY: text },
        });
        merge(&self.documents(), RUNS, act, &patch).await.map(Written::forget)
    }

    fn documents(&self) -> Api<ConfigMap> {
        self.namespaced(&self.namespace)
    }
}

/// A snapshot as it is stored; not immutable, since what is resolved from it is written on it.
pub(crate) fn snapshot_map(namespace: &str, run: &str, record: &Record, text: &str) -> ConfigMap {
    let record = serde_json::to_string(record).unwrap_or_default();
    let mut map =
        document(namespace, &format!("aicr-snapshot-{run}"), role::SNAPSHOT, crate::watch::SNAPSHOT_KEY, text);
    map.metadata.annotations = Some([(annotation::SNAPSHOT_RECORD.to_owned(), record)].into());
    map
}

/// An assessment as it is stored, named after its input.
pub(crate) fn assessment_map(namespace: &str, input: &str, text: &str) -> ConfigMap {
    let name = format!("aicr-assessment-{input}");
    let mut map = document(namespace, &name, role::ASSESSMENT, crate::watch::REPORT_KEY, text);
    map.metadata.labels.get_or_insert_default().insert(label::INPUT.to_owned(), input.to_owned());
    map.immutable = Some(true);
    map
}

fn document(namespace: &str, name: &str, role: &str, key: &str, text: &str) -> ConfigMap {
    let labels = [(label::ROLE, role), (label::MANAGED_BY, label::MANAGED_BY_VALUE)];
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(key.to_owned(), text.to_owned())])),
        ..ConfigMap::default()
    }
}
