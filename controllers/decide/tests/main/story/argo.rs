//! Argo CD, played on an Application's JSON: it compares, syncs and assesses as `facts/argocd.md` says.

use jiff::Timestamp;
use serde_json::{Value, json};

/// A whole good round: compared, synced, healthy, at `now`.
pub(crate) fn settles(application: &mut Value, now: Timestamp) {
    let (source, destination) = (application["spec"]["source"].clone(), application["spec"]["destination"].clone());
    let requested = application.as_object_mut().unwrap().remove("operation");
    let mut operation =
        requested.unwrap_or_else(|| json!({"sync": {"source": source}, "initiatedBy": {"automated": true}}));
    operation["sync"]["source"] = source.clone();
    application["status"] = json!({
        "sync": {"status": "Synced", "comparedTo": {"source": source, "destination": destination}},
        "health": {"status": "Healthy"},
        "reconciledAt": now,
        "operationState": {
            "phase": "Succeeded", "startedAt": now, "finishedAt": now, "operation": operation, "syncResult": {"source": source},
        },
    });
    compared(application);
}

/// Takes the refresh annotation off, as every stored comparison does.
pub(crate) fn compared(application: &mut Value) {
    if let Some(annotations) = application["metadata"]["annotations"].as_object_mut() {
        annotations.remove(aicr_crds::keys::annotation::ARGO_REFRESH);
    }
}

/// Sets health and keeps the rest.
pub(crate) fn health(application: &mut Value, word: &str) {
    application["status"]["health"] = json!({"status": word});
}

/// A sync of the present source that ended without success.
pub(crate) fn fails(application: &mut Value, now: Timestamp, message: &str) {
    settles(application, now);
    application["status"]["sync"]["status"] = json!("OutOfSync");
    application["status"]["health"]["status"] = json!("Degraded");
    application["status"]["operationState"]["phase"] = json!("Failed");
    application["status"]["operationState"]["message"] = json!(message);
    application["status"]["conditions"] =
        json!([{"type": "SyncError", "message": format!("failed last sync attempt: {message}")}]);
}

/// An operation for other content is in flight.
pub(crate) fn runs_older(application: &mut Value, now: Timestamp, message: &str) {
    settles(application, now);
    let state = &mut application["status"]["operationState"];
    state["phase"] = json!("Running");
    state["message"] = json!(message);
    state["retryCount"] = json!(2);
    state["operation"]["sync"]["source"]["targetRevision"] = json!("sha256:older");
    state.as_object_mut().unwrap().remove("finishedAt");
}

/// An operation for the present content that is in flight and says this.
pub(crate) fn waits(application: &mut Value, now: Timestamp, message: &str) {
    settles(application, now);
    let state = &mut application["status"]["operationState"];
    state["phase"] = json!("Running");
    state["message"] = json!(message);
    state.as_object_mut().unwrap().remove("finishedAt");
}
