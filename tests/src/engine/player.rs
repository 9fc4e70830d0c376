//! Argo CD, played: it answers every change of an Application at once with what a sync that went well leaves behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use aicr_crds::keys::{annotation, finalizer};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::operator::{ENGINE_NAMESPACE, PROJECT};
use super::sight::application_kind;

/// A version older than any of the plans'.
const OLDER: &str = "0.9.0";

/// How an Application is treated.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Manner {
    /// Synced and healthy at once.
    #[default]
    Prompt,
    /// Left alone.
    Idle,
    /// As [`Manner::Prompt`], then this is laid over its status, as a merge patch.
    But(Value),
    /// What is new finds an operation for older content in flight; as [`Manner::Prompt`] once that is terminated.
    Busy,
}

/// One write that made a release ready, or went on the way there.
#[derive(Clone, Debug)]
pub struct Played {
    /// When the API server had answered.
    pub at: Instant,
    /// The Application.
    pub name: String,
}

/// What the player is told, and what it did.
#[derive(Default)]
pub struct Player {
    manners: Mutex<BTreeMap<String, Manner>>,
    played: Mutex<Vec<Played>>,
}

impl Player {
    /// From now on this Application is treated so.
    pub fn treat(&self, name: &str, manner: Manner) {
        self.manners.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), manner);
    }

    /// All are treated well again.
    pub fn treat_all_well(&self) {
        self.manners.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What it wrote since it was asked last.
    pub fn take(&self) -> Vec<Played> {
        std::mem::take(&mut *self.played.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn manner(&self, name: &str) -> Manner {
        let manners = self.manners.lock().unwrap_or_else(PoisonError::into_inner);
        manners.get(name).cloned().unwrap_or_default()
    }

    /// Plays, for as long as it is polled.
    pub(super) async fn play(self: Arc<Self>, client: Client) {
        let api: Api<DynamicObject> = Api::namespaced_with(client, ENGINE_NAMESPACE, &application_kind());
        let stream = watcher(api.clone(), watcher::Config::default()).default_backoff().applied_objects();
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            let Ok(application) = event else { continue };
            let name = application.name_any();
            let manner = self.manner(&name);
            if let Some(patch) = answer(&application, &manner, Timestamp::now())
                && api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.is_ok()
            {
                let played = Played { at: Instant::now(), name };
                self.played.lock().unwrap_or_else(PoisonError::into_inner).push(played);
            }
        }
    }
}

/// The patch with which Argo CD answers what it sees; `None` where there is nothing to do.
fn answer(application: &DynamicObject, manner: &Manner, now: Timestamp) -> Option<Value> {
    let data = &application.data;
    if *manner == Manner::Idle || data["spec"]["project"] != PROJECT {
        return None;
    }
    if application.metadata.deletion_timestamp.is_some() {
        return gone(application);
    }
    let compared = json!({ "source": data["spec"]["source"], "destination": data["spec"]["destination"] });
    let asked = application.annotations().contains_key(annotation::ARGO_REFRESH);
    let requested = data.get("operation").filter(|operation| !operation.is_null());
    let is_terminated = data["status"]["operationState"]["phase"] == "Terminating";
    let is_new = is_terminated || data["status"]["sync"]["comparedTo"] != compared;
    if !asked && requested.is_none() && !is_new {
        return None;
    }
    let mut status = status(data, &compared, requested, is_new, now);
    match manner {
        Manner::But(laid_over) => merge(&mut status, laid_over),
        Manner::Busy if !is_terminated => merge(&mut status, &older(data)),
        Manner::Busy | Manner::Prompt | Manner::Idle => {}
    }
    Some(json!({
        "metadata": { "annotations": { annotation::ARGO_REFRESH: null } }, "operation": null, "status": status,
    }))
}

/// What an operation in flight for older content looks like.
fn older(data: &Value) -> Value {
    let mut source = data["spec"]["source"].clone();
    source["targetRevision"] = OLDER.into();
    json!({
        "sync": { "status": "OutOfSync" },
        "operationState": {
            "phase": "Running", "message": "waiting for completion of hook", "finishedAt": null, "syncResult": null,
            "operation": { "sync": { "source": source, "revision": OLDER } },
        },
    })
}

/// Its resources are gone, so its cascade finalizer goes.
fn gone(application: &DynamicObject) -> Option<Value> {
    let mut left = application.finalizers().to_vec();
    left.retain(|name| !finalizer::ARGO_CASCADE.contains(&name.as_str()));
    (left.len() < application.finalizers().len()).then(|| json!({ "metadata": { "finalizers": left } }))
}

fn status(data: &Value, compared: &Value, requested: Option<&Value>, is_new: bool, now: Timestamp) -> Value {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let revision = &data["spec"]["source"]["targetRevision"];
    let mut status = json!({
        "sync": { "status": "Synced", "comparedTo": compared, "revision": revision },
        "health": { "status": "Healthy" },
        "reconciledAt": now,
        "conditions": null,
    });
    if data["status"]["health"]["status"] != "Healthy" {
        status["health"]["lastTransitionTime"] = json!(now);
    }
    if requested.is_some() || is_new {
        // What the operation before left would stay in a merge patch.
        let automated = json!({
            "sync": { "source": data["spec"]["source"], "revision": revision },
            "initiatedBy": { "automated": true, "username": null }, "info": null,
        });
        status["operationState"] = json!({
            "phase": "Succeeded", "message": "successfully synced (all tasks run)", "startedAt": now,
            "finishedAt": now, "operation": requested.unwrap_or(&automated),
            "syncResult": { "revision": revision, "source": data["spec"]["source"] },
        });
    }
    status
}

/// Lays one value over another, as a merge patch does, keeping nulls: the result is a patch itself.
fn merge(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(more: &Value) -> DynamicObject {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": { "name": "a" },
            "spec": { "project": PROJECT, "source": { "targetRevision": "1" }, "destination": { "server": "s" } },
        });
        merge(&mut object, more);
        serde_json::from_value(object).unwrap_or_else(|error| panic!("{error}"))
    }

    fn answered(more: &Value) -> Option<Value> {
        answer(&application(more), &Manner::Prompt, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn what_is_new_is_synced_and_what_was_answered_is_left_alone() {
        let new = answered(&json!({})).unwrap();
        assert_eq!(new["status"]["operationState"]["phase"], "Succeeded");
        let compared = new["status"]["sync"]["comparedTo"].clone();
        assert_eq!(answered(&json!({ "status": { "sync": { "comparedTo": compared } } })), None);
    }

    #[test]
    fn a_request_for_a_comparison_is_taken_off_and_starts_no_operation() {
        let compared = json!({ "source": { "targetRevision": "1" }, "destination": { "server": "s" } });
        let annotations = json!({ annotation::ARGO_REFRESH: "normal" });
        let asked = json!({
            "metadata": { "annotations": annotations }, "status": { "sync": { "comparedTo": compared } },
        });
        let patch = answered(&asked).unwrap();
        assert_eq!(patch["metadata"]["annotations"][annotation::ARGO_REFRESH], Value::Null);
        assert!(patch["status"].get("operationState").is_none());
    }

    #[test]
    fn a_busy_engine_goes_on_once_its_operation_is_terminated() {
        let busy = |more: &Value| answer(&application(more), &Manner::Busy, Timestamp::UNIX_EPOCH);
        let running = busy(&json!({})).unwrap()["status"].clone();
        assert_eq!(running["operationState"]["phase"], "Running");
        assert_eq!(busy(&json!({ "status": running })), None);
        let ended = busy(&json!({ "status": { "operationState": { "phase": "Terminating" } } })).unwrap();
        assert_eq!(ended["status"]["operationState"]["phase"], "Succeeded");
    }

    #[test]
    fn somebody_elses_application_and_an_idle_one_are_left_alone() {
        assert_eq!(answered(&json!({ "spec": { "project": "theirs" } })), None);
        assert_eq!(answer(&application(&json!({})), &Manner::Idle, Timestamp::UNIX_EPOCH), None);
    }
}
