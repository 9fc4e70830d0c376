//! Operations and status: a sync of the spec's own source, a termination, and nothing else.

use serde_json::{Value, json, value::RawValue};

use super::{App, Case};
use crate::{
    fields::{Fields, same},
    verdict::{Denial, Rule},
};

/// What an operation of the operator may hold.
const OPERATION: [&str; 4] = ["initiatedBy", "info", "retry", "sync"];
/// What its sync may hold: no manifests, no selection of resources, no other revision.
const SYNC: [&str; 3] = ["source", "prune", "syncOptions"];

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Some((new, old)) = case.act.written() else { return Ok(()) };
    if same(old.and_then(|old| old.operation), new.operation) {
        return Ok(());
    }
    match new.operation {
        Some(operation) if is_own_sync(operation, new) => Ok(()),
        Some(_) => Err(Rule::ApplicationOperation
            .forbids("an operation syncs the Application's own source and nothing else; ask for such a sync")),
        None => Err(Rule::ApplicationOperation.forbids("an operation is terminated, not taken off; leave it as it is")),
    }
}

fn is_own_sync(operation: &RawValue, new: &App<'_>) -> bool {
    let Ok(operation) = Fields::of(operation) else { return false };
    let Some(sync) = operation.get("sync").and_then(|sync| Fields::of(sync).ok()) else { return false };
    let within = |fields: &Fields<'_>, known: &[&str]| fields.names().all(|name| known.contains(&name));
    let own = sync.get("source").is_none_or(|source| same(Some(source), new.spec.get("source")));
    sync.is_object() && within(&operation, &OPERATION) && within(&sync, &SYNC) && own
}

/// Of status the operator writes only that the operation in flight shall terminate, and takes the last one's state off with
/// a sync that it starts.
pub(super) fn status(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Some((new, old)) = case.act.written() else { return Ok(()) };
    let before = old.and_then(|old| old.status);
    let starts = new.operation.is_some() && old.is_some_and(|old| old.operation.is_none());
    let changed = |change: fn(&mut Value) -> Option<()>| is_changed(before, new.status, change);
    if same(before, new.status) || changed(terminated) || (starts && changed(forgotten)) {
        return Ok(());
    }
    Err(Rule::ApplicationStatus
        .forbids("of an Application's status the operator writes a termination alone; leave the rest to Argo CD"))
}

/// Whether the one is the other after this change, which may be impossible.
fn is_changed(before: Option<&RawValue>, after: Option<&RawValue>, change: fn(&mut Value) -> Option<()>) -> bool {
    let fields = |value: Option<&'_ RawValue>| value.map(|value| Fields::of(value).unwrap_or_default().to_value());
    let (Some(Ok(mut before)), Some(Ok(after))) = (fields(before), fields(after)) else { return false };
    change(&mut before).is_some() && before == after
}

fn terminated(status: &mut Value) -> Option<()> {
    *status.pointer_mut("/operationState/phase")? = json!("Terminating");
    Some(())
}

/// Only what has ended is forgotten.
fn forgotten(status: &mut Value) -> Option<()> {
    let state = status.as_object_mut()?.remove("operationState")?;
    let phase = state.get("phase").and_then(Value::as_str);
    (!matches!(phase, Some("Running" | "Terminating"))).then_some(())
}
