//! Fields that somebody else put into an Application's spec: taken over before an apply, so that what the apply leaves out goes.
//!
//! Server-side apply removes a field that its manager leaves out, and only then. One that came by an Update (a person's
//! patch, an older operator, an adopted stack) would stay for ever (kubernetes/kubernetes#99003).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::{Map, Value, json};

/// How an apply's entry is marked.
const APPLY: &str = "Apply";
/// How an update's or a patch's entry is marked.
const UPDATE: &str = "Update";
/// Managers whose fields are theirs: Argo CD sets defaults in spec and takes operations off.
const ENGINE: &str = "argocd";

/// The entries with every updated field of spec handed to `manager`; `None` where there is none. One that was never applied by
/// it, as an Application out of a backup, gets an entry of its own.
pub(super) fn taken_over(entries: &[ManagedFieldsEntry], manager: &str) -> Option<Vec<ManagedFieldsEntry>> {
    let own = entries.iter().find(|entry| is_ours(entry, manager)).cloned();
    let mut own = own.or_else(|| entries.iter().find(|entry| is_foreign(entry)).map(|entry| fresh(entry, manager)))?;
    let mut rest: Vec<ManagedFieldsEntry> = entries.iter().filter(|entry| !is_ours(entry, manager)).cloned().collect();
    let mut taken = false;
    for entry in rest.iter_mut().filter(|entry| is_foreign(entry)) {
        let Some(Value::Object(fields)) = entry.fields_v1.as_mut().map(|fields| &mut fields.0) else { continue };
        let Some(spec) = fields.remove("f:spec") else { continue };
        let Some(Value::Object(kept)) = own.fields_v1.as_mut().map(|fields| &mut fields.0) else { return None };
        unite(kept, json!({ "f:spec": spec }));
        taken = true;
    }
    rest.retain(|entry| !is_empty(entry));
    rest.push(own);
    taken.then_some(rest)
}

/// Of nothing yet, in the version of this one.
fn fresh(like: &ManagedFieldsEntry, manager: &str) -> ManagedFieldsEntry {
    ManagedFieldsEntry {
        manager: Some(manager.to_owned()),
        operation: Some(APPLY.to_owned()),
        fields_v1: Some(FieldsV1(json!({}))),
        ..like.clone()
    }
}

fn is_ours(entry: &ManagedFieldsEntry, manager: &str) -> bool {
    entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some(APPLY) && is_whole(entry)
}

fn is_foreign(entry: &ManagedFieldsEntry) -> bool {
    let engine = entry.manager.as_deref().is_some_and(|manager| manager.starts_with(ENGINE));
    entry.operation.as_deref() == Some(UPDATE) && !engine && is_whole(entry)
}

/// Not of a subresource.
fn is_whole(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref().unwrap_or_default().is_empty()
}

fn is_empty(entry: &ManagedFieldsEntry) -> bool {
    entry.fields_v1.as_ref().is_some_and(|fields| fields.0.as_object().is_some_and(Map::is_empty))
}

/// Field sets are trees of objects; a leaf is an empty one.
fn unite(into: &mut Map<String, Value>, other: Value) {
    let Value::Object(other) = other else { return };
    for (key, value) in other {
        match into.get_mut(&key) {
            Some(Value::Object(held)) => unite(held, value),
            Some(_) => {}
            None => drop(into.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(value: Value) -> Vec<ManagedFieldsEntry> {
        serde_json::from_value(value).unwrap()
    }

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({ "manager": manager, "operation": operation, "apiVersion": "argoproj.io/v1alpha1", "fieldsType": "FieldsV1",
            "fieldsV1": fields })
    }

    fn ours() -> Value {
        entry("aicr-operator", "Apply", &json!({ "f:spec": { "f:project": {}, "f:syncPolicy": { "f:retry": {} } } }))
    }

    /// B61.
    #[test]
    fn what_people_added_to_spec_becomes_ours_and_the_rest_stays_theirs() {
        let engine = entry("argocd-application-controller", "Update", &json!({ "f:spec": { "f:x": {} } }));
        let patched = json!({ "f:spec": { "f:syncPolicy": { "f:allowEmpty": {} } }, "f:metadata": { "f:labels": { "f:a": {} } } });
        let person = entry("kubectl-patch", "Update", &patched);
        let old = entry("aicr-operator", "Update", &json!({ "f:spec": { "f:revisionHistoryLimit": {} } }));
        let mut status = entry("kubectl-edit", "Update", &json!({ "f:spec": { "f:y": {} } }));
        status["subresource"] = json!("status");
        let before = entries(json!([engine.clone(), person, old, status.clone(), ours()]));
        let spec = json!({ "f:project": {}, "f:revisionHistoryLimit": {}, "f:syncPolicy": { "f:retry": {}, "f:allowEmpty": {} } });
        let after = entries(json!([
            engine,
            entry("kubectl-patch", "Update", &json!({ "f:metadata": { "f:labels": { "f:a": {} } } })),
            status,
            entry("aicr-operator", "Apply", &json!({ "f:spec": spec })),
        ]));
        assert_eq!(taken_over(&before, "aicr-operator"), Some(after));
    }

    #[test]
    fn nothing_is_written_where_nobody_else_owns_any_of_spec() {
        let status = entry("kubectl-patch", "Update", &json!({ "f:metadata": {} }));
        assert_eq!(taken_over(&entries(json!([status, ours()])), "aicr-operator"), None);
    }

    /// B61, of what came by updates alone, as out of a backup.
    #[test]
    fn what_was_never_applied_becomes_ours_as_well() {
        let restored = json!({ "f:spec": { "f:z": {} }, "f:metadata": { "f:labels": { "f:a": {} } } });
        let before = entries(json!([entry("velero", "Update", &restored)]));
        let after = entries(json!([
            entry("velero", "Update", &json!({ "f:metadata": { "f:labels": { "f:a": {} } } })),
            entry("aicr-operator", "Apply", &json!({ "f:spec": { "f:z": {} } })),
        ]));
        assert_eq!(taken_over(&before, "aicr-operator"), Some(after));
    }
}
