//! What resolution stores: each written, read back through the watch, and only then relied on.

use aicr_crds::Digest;
use aicr_decide::resolve::{self, JobPhase, MirrorPlan, RunRecord, input_label, snapshot::Record};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{Pass, entries};
use crate::{
    controller::Look,
    error::DriveError,
    watch::{Content, ResolvedEntry, Watches},
    write::{RUNS, Written, snapshot_map},
};

/// Keeps what a failed run says where it outlives its Job, and reads it back before the next run is decided on.
pub(super) async fn remember(pass: &Pass<'_>, record: RunRecord) -> Result<Look, DriveError> {
    let act = format!("remember attempt {} of stage {}", record.attempt, record.stage);
    let there = pass.hands.gather.document(RUNS);
    let records = resolve::with_record(pass.seen.records.clone(), record.clone());
    if let Written::Stale = pass.hands.write.remember(there.as_deref(), &records).await? {
        return Ok(Look::Soon);
    }
    let kept = |watches: &Watches| {
        watches.documents.get(RUNS).is_some_and(|document| match &document.content {
            Content::Runs(records) => records.contains(&record),
            Content::Plan(_) | Content::Snapshot(_) | Content::Assessment(_) | Content::Other => false,
        })
    };
    pass.hands.gather.until(&act, kept).await?;
    tracing::info!(stage = %record.stage, attempt = record.attempt, counted = record.bounded, "a failed run is remembered");
    Ok(Look::Soon)
}

/// Stores, reads back, and only then deletes the Job that holds the only copy.
pub(super) async fn snapshot(pass: Pass<'_>, job: &str, record: &Record) -> Result<Look, DriveError> {
    let act = || format!("store the snapshot of Job {job}");
    let done = pass.seen.jobs.iter().find(|seen| seen.name == job);
    let Some((run, JobPhase::Succeeded { output: Some(text), .. })) = done.map(|seen| (&seen.run, &seen.phase)) else {
        return Err(DriveError::Content { act: act(), problem: "it has no output".to_owned() });
    };
    let map = snapshot_map(pass.hands.namespace(), run, record, text);
    let name = map.metadata.name.clone().unwrap_or_default();
    let _ = pass.hands.write.create_document(&map).await?;
    pass.hands.gather.until(&act(), |watches| watches.documents.get(&name).is_some()).await?;
    let kept = pass.hands.gather.document(&name).is_some_and(|document| match &document.content {
        Content::Snapshot(snapshot) => snapshot.text == *text,
        Content::Plan(_) | Content::Assessment(_) | Content::Runs(_) | Content::Other => false,
    });
    if !kept {
        return Err(DriveError::Content { act: act(), problem: format!("ConfigMap {name} holds something else") });
    }
    tracing::info!(run, snapshot = name, cause = record.cause, "a snapshot is stored");
    pass.hands.delete_job(job).await?;
    retain(&pass, &name).await?;
    Ok(Look::Soon)
}

/// Keeps the newest snapshots, the one just stored included.
async fn retain(pass: &Pass<'_>, newest: &str) -> Result<(), DriveError> {
    for name in entries::surplus(&pass.seen.snapshots, newest) {
        if let Some(document) = pass.hands.gather.document(name) {
            let _ = pass.hands.write.delete_document(&document).await?;
        }
    }
    Ok(())
}

/// Stores a plan; one of another runtime, or one without a recipe, is replaced.
pub(super) async fn plan(pass: &Pass<'_>, map: &ConfigMap, digest: Digest) -> Result<(), DriveError> {
    let name = map.metadata.name.clone().unwrap_or_default();
    let act = format!("store plan {name}");
    let uid = pass.world.uid().to_owned();
    if let Some(there) = pass.hands.gather.document(&name).filter(|there| !holds(&there.content, &uid)) {
        let _ = pass.hands.write.delete_document(&there).await?;
    }
    let _ = pass.hands.write.create_document(map).await?;
    let is_there =
        |watches: &Watches| watches.documents.get(&name).is_some_and(|document| holds(&document.content, &uid));
    pass.hands.gather.until(&act, is_there).await?;
    tracing::info!(plan = %digest, "a plan is stored");
    Ok(())
}

/// Whether this is a plan of that runtime, resolved with a recipe.
fn holds(content: &Content, uid: &str) -> bool {
    match content {
        Content::Plan(plan) => {
            plan.as_ref().as_ref().is_ok_and(|stored| stored.context.runtime_uid == uid && stored.recipe.is_some())
        }
        Content::Snapshot(_) | Content::Assessment(_) | Content::Runs(_) | Content::Other => false,
    }
}

/// Writes on the snapshot which plan its inputs came to.
pub(super) async fn record(pass: &Pass<'_>, mirror: &MirrorPlan, plan: Digest) -> Result<(), DriveError> {
    let act = format!("record plan {plan} on {}", mirror.snapshot);
    let Some(document) = pass.hands.gather.document(&mirror.snapshot) else { return Ok(()) };
    let Content::Snapshot(snapshot) = &document.content else { return Ok(()) };
    let entry = ResolvedEntry {
        input: input_label(mirror.inputs),
        spec: entries::spec_label(&pass.world.runtime.spec, pass.seen),
        plan,
    };
    let entries = entries::with_entry(snapshot.resolved.clone(), entry.clone());
    let _ = pass.hands.write.resolved(&document, &entries).await?;
    let has = |watches: &Watches| {
        watches.documents.get(&mirror.snapshot).is_some_and(|document| match &document.content {
            Content::Snapshot(snapshot) => snapshot.resolved.contains(&entry),
            Content::Plan(_) | Content::Assessment(_) | Content::Runs(_) | Content::Other => false,
        })
    };
    pass.hands.gather.until(&act, has).await
}

/// What the present inputs came to stands last, so that it stays the candidate when the inputs can not be resolved.
pub(super) async fn make_newest(pass: &Pass<'_>, plan: Digest) -> Result<(), DriveError> {
    let Some(stored) = pass.seen.snapshots.last() else { return Ok(()) };
    let Some(document) = pass.hands.gather.document(&stored.name) else { return Ok(()) };
    let Content::Snapshot(snapshot) = &document.content else { return Ok(()) };
    if snapshot.resolved.last().is_none_or(|last| last.plan == plan) {
        return Ok(());
    }
    let Some(entry) = snapshot.resolved.iter().rev().find(|entry| entry.plan == plan) else { return Ok(()) };
    let _ =
        pass.hands.write.resolved(&document, &entries::with_entry(snapshot.resolved.clone(), entry.clone())).await?;
    Ok(())
}
