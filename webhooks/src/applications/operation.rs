//! Operations and status: a sync of the spec's own source, a termination, and nothing else.

use serde_json::value::RawValue;

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

/// Of status the operator writes only that the operation in flight shall terminate.
pub(super) fn status(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Some((new, old)) = case.act.written() else { return Ok(()) };
    let before = old.and_then(|old| old.status);
    if same(before, new.status) || is_termination(before, new.status) {
        return Ok(());
    }
    Err(Rule::ApplicationStatus
        .forbids("of an Application's status the operator writes a termination alone; leave the rest to Argo CD"))
}

fn is_termination(before: Option<&RawValue>, after: Option<&RawValue>) -> bool {
    let fields = |value: Option<&'_ RawValue>| value.map(|value| Fields::of(value).unwrap_or_default().to_value());
    let (Some(Ok(mut before)), Some(Ok(after))) = (fields(before), fields(after)) else { return false };
    let Some(phase) = before.pointer_mut("/operationState/phase") else { return false };
    *phase = serde_json::json!("Terminating");
    before == after
}
