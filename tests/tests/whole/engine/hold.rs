//! What holds a rollout, and how it goes on: drift, a pause, a project that vanished, an API server that is away.

use std::time::Duration;

use aicr_lab::product::Release;
use aicr_tests::Stage;
use serde_json::{Value, json};

use super::{
    CONTROLLER, FIRST, SECOND, application, argo_cd_goes_on, changed, edited, in_its_first_step, until_message, writes,
};

/// How long the API server is away: longer than the lease, and than any call's limit.
const AWAY: Duration = Duration::from_mins(1);

/// Finds the wrong image of the story before; leaves the right one, and its plan rolled out.
pub(crate) fn the_right_image_again_ends_the_stall(stage: &Stage) {
    let right = Release { pushed: &stage.pushed, aicr: "v1.1.4", sets: &[] };
    stage.product.upgrade(&stage.lab, &right).unwrap();
    stage.until("nothing to stall", 10, || {
        let (status, reason, message) = stage.condition("Stalled");
        if status == "False" { Ok(()) } else { Err(format!("{reason}: {message}")) }
    });
}

/// Drift and its undo.
pub(crate) fn an_edit_stalls_the_rollout_and_its_undo_resumes_it(stage: &Stage) {
    let name = changed(stage, 1);
    let before = writes(stage, FIRST);
    edited(stage, "nfd", &json!({"byHand": "yes"}));
    until_message(stage, &name, "it would stall: nfd was edited");
    stage.approve(&name);
    let message = stage.until_reason("Stalled", "InventoryDrift", 2);
    assert!(message.contains("nfd was edited; undo the change, or set a new operator.aicr.run/retry"), "{message}");
    assert_eq!(writes(stage, FIRST), before, "nothing is written while it stalls");
    edited(stage, "nfd", &json!(null));
    stage.until_phase(&name, "Succeeded", 5);
}

/// A pause in the middle of a step.
pub(crate) fn a_paused_step_is_seen_to_its_end_and_no_other_starts(stage: &Stage) {
    let name = in_its_first_step(stage, 2);
    stage.patch_runtime(&json!({"spec": {"paused": true}}));
    stage.until_reason("Ready", "Paused", 1);
    let release = stage.rollout(&name)["status"]["releases"].as_array().unwrap()[0].clone();
    assert_eq!((&release["release"], &release["state"]), (&json!(FIRST), &json!("Suspended")), "{release}");
    let before = writes(stage, SECOND);
    argo_cd_goes_on(stage);
    until_message(stage, &name, "no step starts: Paused");
    assert_eq!(writes(stage, SECOND), before);
    stage.patch_runtime(&json!({"spec": {"paused": false}}));
    stage.until_phase(&name, "Succeeded", 5);
    assert_eq!(writes(stage, SECOND), before + 1);
}

/// The AppProject taken away in the middle of a step, and put back.
pub(crate) fn a_project_that_vanishes_holds_the_step_and_ends_nothing(stage: &Stage) {
    let name = in_its_first_step(stage, 3);
    let mut project = stage.json(&["get", "appproject", "aicr", "-n", "argocd"]);
    stage.kubectl(&["delete", "appproject", "aicr", "-n", "argocd"]);
    let message = stage.until_reason("Stalled", "ProjectMissing", 2);
    assert!(message.contains("AppProject aicr is missing; restore it, or run helm upgrade"), "{message}");
    assert_eq!(stage.condition("EngineAvailable").1, "ProjectMissing");
    until_message(stage, &name, "(ProjectMissing)");
    for field in ["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"] {
        project["metadata"].as_object_mut().unwrap().remove(field);
    }
    stage.administrator().send(&["create"], &project).passed();
    stage.until_reason("EngineAvailable", "EngineAvailable", 2);
    argo_cd_goes_on(stage);
    stage.until_phase(&name, "Succeeded", 5);
}

/// The API server away for a minute in the middle of a step.
pub(crate) fn an_api_server_that_is_away_for_a_minute_costs_nothing_but_the_minute(stage: &Stage) {
    let name = in_its_first_step(stage, 4);
    let before = (writes(stage, FIRST), writes(stage, SECOND));
    stage.lab.stop_part("kube-apiserver").unwrap();
    // The minute is what happens here; nothing can be asked meanwhile.
    std::thread::sleep(AWAY);
    stage.lab.start_part("kube-apiserver").unwrap();
    stage.lab.wait_for_api().unwrap();
    argo_cd_goes_on(stage);
    stage.until_phase(&name, "Succeeded", 8);
    assert_eq!((writes(stage, FIRST), writes(stage, SECOND)), (before.0, before.1 + 1), "no step is written twice");
    stage.until_both_are_ready();
}

/// Argo CD's controller stopped: its last word stays green, so that nothing but its age tells.
pub(crate) fn a_controller_that_compares_nothing_for_long_is_named(stage: &Stage) {
    const WORDS: &str = "but it has compared no Application since";
    let said = || {
        let (status, reason, message) = stage.condition("EngineAvailable");
        assert_eq!((status.as_str(), reason.as_str()), ("True", "EngineAvailable"), "{message}");
        message
    };
    assert!(!said().contains(WORDS), "{}", said());
    stage.lab.stop_part(CONTROLLER).unwrap();
    let eleven_minutes_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(11);
    let old = json!({ "status": { "reconciledAt": eleven_minutes_ago.strftime("%Y-%m-%dT%H:%M:%SZ").to_string() } });
    for name in owned(stage) {
        stage.administrator().patch(&["application", &name, "-n", "argocd"], &old).passed();
    }
    stage.until("its silence to be named", 2, || if said().contains(WORDS) { Ok(()) } else { Err(said()) });
    argo_cd_goes_on(stage);
    stage.until("its comparisons to be seen", 3, || if said().contains(WORDS) { Err(said()) } else { Ok(()) });
}

/// Names of the Applications that are the operator's.
fn owned(stage: &Stage) -> Vec<String> {
    let all = stage.list(&["get", "applications", "-n", "argocd", "-l", "app.kubernetes.io/managed-by=aicr-operator"]);
    all.iter().filter_map(|one| one["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// Argo CD switched off for an incident, an edit by hand in it, and switched on again.
pub(crate) fn a_suspended_engine_keeps_what_is_edited_until_it_resumes(stage: &Stage) {
    let automated = |name: &str| application(stage, name)["spec"]["syncPolicy"]["automated"]["enabled"].clone();
    let names = owned(stage);
    stage.patch_runtime(&json!({"spec": {"suspendEngine": true}}));
    stage.until("automated sync off everywhere", 3, || {
        let on: Vec<_> = names.iter().filter(|name| automated(name) != false).collect();
        if on.is_empty() { Ok(()) } else { Err(format!("on: {on:?}")) }
    });
    stage.until_reason("Ready", "EngineSuspended", 2);
    let before = writes(stage, "nfd");
    edited(stage, "nfd", &json!({"byHand": "for the incident"}));
    // What the operator does upon the edit it has done when it has answered the next change.
    stage.patch_runtime(&json!({"spec": {"paused": true}}));
    stage.until("another look at the runtime", 2, || {
        let runtime = stage.json(&["get", "clusterruntime", "cluster"]);
        let (seen, wanted) = (&runtime["status"]["observedGeneration"], &runtime["metadata"]["generation"]);
        if seen == wanted { Ok(()) } else { Err(format!("{seen} of {wanted}")) }
    });
    assert_eq!(application(stage, "nfd")["spec"]["source"]["helm"]["valuesObject"]["byHand"], "for the incident");
    assert_eq!(writes(stage, "nfd"), before, "hand edits of the incident stay");
    stage.patch_runtime(&json!({"spec": {"suspendEngine": false, "paused": false}}));
    stage.until("the edit forced back, automated sync on", 3, || {
        let nfd = application(stage, "nfd");
        let by_hand = nfd["spec"]["source"]["helm"]["valuesObject"]["byHand"].clone();
        let off: Vec<_> = names.iter().filter(|name| automated(name) == false).collect();
        if by_hand.is_null() && off.is_empty() { Ok(()) } else { Err(format!("{by_hand}; off: {off:?}")) }
    });
    let told = stage.events("cluster");
    for reason in ["EngineSuspended", "EngineResumed"] {
        assert_eq!(told.iter().filter(|(found, _)| found == reason).count(), 1, "{reason}: {told:?}");
    }
    stage.until("the edit to be told", 1, || {
        let told = stage.events_in("argocd", "nfd");
        let found = told.iter().find(|(reason, _)| reason == "FieldOwnershipOverridden");
        found.map(|_| ()).ok_or_else(|| format!("{told:?}"))
    });
    stage.until_reason("Available", "Healthy", 3);
}

/// A release that somebody deletes is written again.
pub(crate) fn a_deleted_application_is_written_again(stage: &Stage) {
    let nfd = application(stage, "nfd");
    let before = (nfd["metadata"]["uid"].clone(), writes(stage, "nfd"));
    let running = || workloads(stage, nfd["spec"]["destination"]["namespace"].as_str().unwrap());
    let workloads = running();
    assert!(!workloads.is_empty());
    stage.kubectl(&["delete", "application", "nfd", "-n", "argocd"]);
    stage.until("another Application nfd, healthy", 5, || {
        let found = stage.list(&["get", "applications", "-n", "argocd"]).into_iter();
        let nfd = found.into_iter().find(|one| one["metadata"]["name"] == "nfd").unwrap_or_default();
        let healthy = nfd["status"]["health"]["status"] == "Healthy" && nfd["status"]["sync"]["status"] == "Synced";
        let other = nfd["metadata"]["uid"].is_string() && nfd["metadata"]["uid"] != before.0;
        if healthy && other { Ok(()) } else { Err(nfd["status"].to_string()) }
    });
    assert_eq!(writes(stage, "nfd"), before.1 + 1);
    assert_eq!(running(), workloads, "what the Application had made ran on");
    stage.until_reason("Available", "Healthy", 3);
    assert!(stage.json(&["get", "clusterruntime", "cluster"])["status"]["rollout"].is_null());
}

/// UIDs of a namespace's Deployments and pods.
fn workloads(stage: &Stage, namespace: &str) -> Vec<Value> {
    let found = stage.list(&["get", "deployments,pods", "-n", namespace]).into_iter();
    found.map(|one| one["metadata"]["uid"].clone()).collect()
}
