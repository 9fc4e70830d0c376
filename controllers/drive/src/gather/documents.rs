//! Plans, snapshots and assessments out of the ConfigMaps that hold them.

use std::{collections::BTreeMap, sync::Arc};

use aicr_crds::{Digest, keys::label, plan::StoredPlan};
use aicr_decide::{
    resolve::{RunRecord, snapshot::Stored},
    seen::{Assessment, World},
};
use jiff::Timestamp;
use kube::core::ObjectMeta;

use crate::{
    watch::{Content, Document, SnapshotDocument},
    write::RUNS,
};

/// Component whose release is one of a snapshot's triggers.
const GPU_OPERATOR: &str = "gpu-operator";

/// Plans by digest with the time of their ConfigMaps.
type Plans = BTreeMap<Digest, (Timestamp, Arc<StoredPlan>)>;

fn name(metadata: &ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}

fn created(metadata: &ObjectMeta) -> Timestamp {
    metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

/// Plans that can be read; and the names of those that cannot, with why.
pub(super) fn plans(documents: &[Arc<Document>]) -> (Plans, Vec<(String, String)>) {
    let (mut plans, mut unreadable) = (BTreeMap::new(), Vec::new());
    for document in documents {
        let Content::Plan(plan) = &document.content else { continue };
        match plan.as_ref() {
            Ok(stored) => {
                plans.insert(stored.plan.digest(), (created(&document.metadata), Arc::new(stored.clone())));
            }
            Err(why) => unreadable.push((name(&document.metadata), why.clone())),
        }
    }
    unreadable.sort();
    (plans, unreadable)
}

/// Stored snapshots, oldest first.
pub(super) fn snapshots(documents: &[Arc<Document>]) -> Vec<Stored> {
    let mut all: Vec<Stored> = documents
        .iter()
        .filter_map(|document| match &document.content {
            Content::Snapshot(snapshot) => Some(stored(&document.metadata, snapshot)),
            Content::Plan(_) | Content::Assessment(_) | Content::Runs(_) | Content::Other => None,
        })
        .collect();
    all.sort_by(|one, other| (one.taken_at, &one.name).cmp(&(other.taken_at, &other.name)));
    all
}

fn stored(metadata: &ObjectMeta, snapshot: &SnapshotDocument) -> Stored {
    Stored {
        name: name(metadata),
        taken_at: created(metadata),
        record: snapshot.record.clone(),
        reading: snapshot.reading.clone(),
        text: snapshot.text.clone(),
        resolved: snapshot.resolved.iter().map(|entry| (entry.input.clone(), entry.plan)).collect(),
    }
}

/// What is remembered of failed runs.
pub(super) fn records(documents: &[Arc<Document>]) -> Vec<RunRecord> {
    let runs = documents.iter().find_map(|document| match &document.content {
        Content::Runs(records) if document.metadata.name.as_deref() == Some(RUNS) => Some(records),
        Content::Runs(_) | Content::Plan(_) | Content::Snapshot(_) | Content::Assessment(_) | Content::Other => None,
    });
    runs.map(|records| Vec::clone(records)).unwrap_or_default()
}

/// Stored assessments that can be read, by input label.
pub(super) fn assessments(documents: &[Arc<Document>]) -> BTreeMap<String, Arc<Assessment>> {
    let read = documents.iter().filter_map(|document| {
        let Content::Assessment(report) = &document.content else { return None };
        let input = document.metadata.labels.as_ref()?.get(label::INPUT)?;
        match report.as_ref() {
            Ok(assessment) => Some((input.clone(), Arc::new(assessment.clone()))),
            Err(why) => {
                tracing::warn!(config_map = name(&document.metadata), why, "an assessment cannot be read");
                None
            }
        }
    });
    read.collect()
}

/// Identity of the active plan's gpu-operator chart.
pub(super) fn gpu_operator(world: &World) -> Option<Digest> {
    let (_, stored) = world.plans.get(&world.active()?)?;
    stored.plan.release(GPU_OPERATOR).map(|release| release.content.chart.content)
}
