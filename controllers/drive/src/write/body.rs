//! The bodies of narrow patches: only what changes, with the identity and version that were decided on.

use std::collections::BTreeMap;

use aicr_crds::{
    application::{Application, Ownership, ROLLOUT_INFO},
    keys::{annotation, finalizer, label},
};
use aicr_decide::rollout::ObjectRef;
use serde_json::{Map, Value, json};

/// Who starts a sync, as Argo CD shows it.
const INITIATOR: &str = "aicr-operator";

/// UID and version of what was decided on, as a patch's metadata.
pub(super) fn guard(on: &ObjectRef) -> Value {
    json!({ "uid": on.uid, "resourceVersion": on.resource_version })
}

/// One or more annotations; `None` takes one off.
pub(super) fn annotations(on: &ObjectRef, annotations: &[(&str, Option<String>)]) -> Value {
    let mut metadata = guard(on);
    metadata["annotations"] =
        annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect::<Map<_, _>>().into();
    json!({ "metadata": metadata })
}

/// The ownership annotations alone.
pub(super) fn ownership(on: &ObjectRef, ownership: &Ownership) -> Value {
    let mut metadata = guard(on);
    metadata["annotations"] = json!(ownership.annotations());
    json!({ "metadata": metadata })
}

/// Automated sync on or off, and no other field of the spec.
pub(super) fn automate(on: &ObjectRef, enabled: bool) -> Value {
    json!({ "metadata": guard(on), "spec": { "syncPolicy": { "automated": { "enabled": enabled } } } })
}

/// A request for a comparison.
pub(super) fn refresh(on: &ObjectRef, hard: bool) -> Value {
    let how = if hard { "hard" } else { "normal" };
    annotations(on, &[(annotation::ARGO_REFRESH, Some(how.to_owned()))])
}

/// A sync of the Application's own source, with the options and the retry of its spec, marked as this rollout's.
///
/// The state of the last operation goes with it, as where Argo CD starts one itself (A21): it patches that state by merges
/// (A22), so that somebody's local manifests or selection of resources would stand in the new one's state for ever.
pub(super) fn sync(on: &ObjectRef, source: &Value, rollout: &str) -> Value {
    json!({
        "metadata": guard(on),
        "operation": {
            "initiatedBy": { "username": INITIATOR },
            "info": [{ "name": ROLLOUT_INFO, "value": rollout }],
            "retry": { "limit": 5, "backoff": { "duration": "5s", "factor": 2, "maxDuration": "3m" } },
            "sync": {
                "source": source,
                "prune": true,
                "syncOptions": ["CreateNamespace=true", "ServerSideApply=true", "PruneLast=true"],
            },
        },
        "status": { "operationState": null },
    })
}

/// Tells the operation in flight to stop.
pub(super) fn terminate(on: &ObjectRef) -> Value {
    json!({ "metadata": guard(on), "status": { "operationState": { "phase": "Terminating" } } })
}

/// Argo CD's cascade finalizer and the rollout that deletes, no sync of its own any more, and a comparison, together; other
/// finalizers stay.
pub(super) fn prepare_remove(application: &Application, on: &ObjectRef, rollout: &str) -> Value {
    let mut kept = finalizers(application);
    if !kept.iter().any(|name| name == finalizer::ARGO_CASCADE[0]) {
        kept.push(finalizer::ARGO_CASCADE[0].to_owned());
    }
    let mut patch = marks(on, &kept, Some(rollout), false);
    patch["metadata"]["annotations"][annotation::ARGO_REFRESH] = json!("normal");
    patch
}

/// The marks taken off again; other finalizers stay.
pub(super) fn withdraw_remove(application: &Application, on: &ObjectRef, enabled: bool) -> Value {
    let mut kept = finalizers(application);
    kept.retain(|name| !finalizer::ARGO_CASCADE.contains(&name.as_str()));
    marks(on, &kept, None, enabled)
}

fn finalizers(application: &Application) -> Vec<String> {
    application.metadata.finalizers.clone().unwrap_or_default()
}

fn marks(on: &ObjectRef, finalizers: &[String], rollout: Option<&str>, enabled: bool) -> Value {
    let mut patch = annotations(on, &[(annotation::DELETE_ROLLOUT, rollout.map(str::to_owned))]);
    patch["metadata"]["finalizers"] = json!(finalizers);
    patch["spec"] = json!({ "syncPolicy": { "automated": { "enabled": enabled } } });
    patch
}

/// The outcome of a rollout and when it ended, in one.
pub(super) fn end(on: &ObjectRef, outcome: &str, finished_at: &str) -> Value {
    let mut patch = annotations(on, &[(annotation::FINISHED_AT, Some(finished_at.to_owned()))]);
    patch["metadata"]["labels"] = json!(BTreeMap::from([(label::OUTCOME, outcome)]));
    patch
}

/// The merge patch that makes `new` of `old`: changed keys whole, vanished keys null; `None` where they are the same.
pub(super) fn difference(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = after.iter().filter_map(|(key, value)| match before.get(key) {
        Some(known) => Some((key.clone(), difference(known, value)?)),
        None => Some((key.clone(), value.clone())),
    });
    let patch: Map<String, Value> = gone.chain(changed).collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on() -> ObjectRef {
        ObjectRef { name: "gpu".to_owned(), uid: "u".to_owned(), resource_version: "7".to_owned() }
    }

    fn application(finalizers: &[&str]) -> Application {
        serde_json::from_value(json!({ "metadata": { "name": "gpu", "finalizers": finalizers } })).unwrap()
    }

    #[test]
    fn every_patch_carries_the_uid_and_version_that_were_decided_on() {
        let app = application(&[]);
        let patches = [
            refresh(&on(), true),
            sync(&on(), &json!({}), "r"),
            terminate(&on()),
            prepare_remove(&app, &on(), "r"),
            withdraw_remove(&app, &on(), true),
            end(&on(), "Failed", "2026-11-29T00:00:00Z"),
            automate(&on(), false),
        ];
        for patch in patches {
            assert_eq!(patch["metadata"]["uid"], "u", "{patch}");
            assert_eq!(patch["metadata"]["resourceVersion"], "7", "{patch}");
        }
    }

    #[test]
    fn a_remove_is_prepared_and_withdrawn_without_touching_other_finalizers() {
        let cascade = finalizer::ARGO_CASCADE[0];
        let hook = "post-delete-finalizer.argocd.argoproj.io";
        let prepared = prepare_remove(&application(&[hook]), &on(), "r-1");
        assert_eq!(prepared["metadata"]["finalizers"], json!([hook, cascade]));
        assert_eq!(prepared["metadata"]["annotations"][annotation::DELETE_ROLLOUT], "r-1");
        let again = prepare_remove(&application(&[hook, cascade]), &on(), "r-1");
        assert_eq!(again["metadata"]["finalizers"], json!([hook, cascade]));
        let withdrawn = withdraw_remove(&application(&[hook, cascade]), &on(), true);
        assert_eq!(withdrawn["metadata"]["finalizers"], json!([hook]));
        let enabled = |patch: &Value| patch["spec"]["syncPolicy"]["automated"]["enabled"].clone();
        assert_eq!((enabled(&prepared), enabled(&withdrawn)), (json!(false), json!(true)));
        assert_eq!(prepared["metadata"]["annotations"][annotation::ARGO_REFRESH], "normal");
        assert_eq!(withdrawn["metadata"]["annotations"][annotation::DELETE_ROLLOUT], Value::Null);
        assert!(withdrawn["metadata"]["annotations"].as_object().unwrap().contains_key(annotation::DELETE_ROLLOUT));
    }

    #[test]
    fn a_sync_names_its_rollout_and_its_own_source() {
        let patch = sync(&on(), &json!({ "repoURL": "oci://r" }), "rollout-1");
        assert_eq!(patch["operation"]["sync"]["source"]["repoURL"], "oci://r");
        assert_eq!(patch["operation"]["info"], json!([{ "name": ROLLOUT_INFO, "value": "rollout-1" }]));
        assert_eq!(patch["operation"]["initiatedBy"]["username"], INITIATOR);
        assert_eq!(
            patch["status"],
            json!({ "operationState": null }),
            "nothing of the last one is merged into its state"
        );
    }

    #[test]
    fn the_difference_of_two_statuses_holds_what_changed_and_takes_away_what_vanished() {
        let old = json!({ "a": 1, "b": { "x": 1, "y": 2 }, "c": [1], "gone": { "z": 1 } });
        let new = json!({ "a": 1, "b": { "x": 1, "y": 3 }, "c": [1, 2], "new": true });
        let patch = difference(&old, &new).unwrap();
        assert_eq!(patch, json!({ "b": { "y": 3 }, "c": [1, 2], "gone": null, "new": true }));
        assert_eq!(difference(&new, &new), None);
        let mut merged = old.clone();
        json_patch::merge(&mut merged, &patch);
        assert_eq!(merged, new);
    }
}
