//! A spec that cannot be resolved as it stands: what disagrees, leads nowhere, or arrives as something else.

use aicr_tests::Stage;
use serde_json::{Value, json};

use crate::bad_input::nothing_was_written;
use crate::resolution::candidate;

/// The component whose values the stories set.
const COMPONENT: &str = "nodewright-operator";
/// A text of it, by its chart's default.
const TEXT: &str = "controllerManager.manager.logLevel";

/// Finds and leaves a plan.
pub(crate) fn a_criterion_that_disagrees_is_named(stage: &Stage) {
    let plan = candidate(stage);
    stage.patch_runtime(&json!({"spec": {"criteria": {"os": "rhel"}}}));
    let message = stage.until_reason("Stalled", "CriteriaConflict", 2);
    assert!(message.contains("criteria.os declares rhel, the snapshot reads ubuntu"), "{message}");
    assert_eq!(stage.condition("Resolved").1, "CriteriaConflict");
    until_back(stage, &json!({"criteria": null}), &plan);
}

/// Finds and leaves a plan.
pub(crate) fn an_override_that_leads_nowhere_is_named(stage: &Stage) {
    let plan = candidate(stage);
    set(stage, "controllerManager.no.such", "1");
    let message = stage.until_reason("Resolved", "OverridePathUnknown", 5);
    assert!(message.contains(&format!("{COMPONENT}:controllerManager.no.such")), "{message}");
    assert!(message.contains("or set additive: true"), "{message}");
    assert_eq!(stage.condition("Stalled").1, "OverridePathUnknown");
    until_back(stage, &json!({"overrides": null}), &plan);
}

/// Finds and leaves a plan.
pub(crate) fn an_override_that_arrives_as_another_kind_is_named(stage: &Stage) {
    let plan = candidate(stage);
    set(stage, TEXT, "3");
    let message = stage.until_reason("Resolved", "InvalidOverride", 5);
    let words = format!("override {COMPONENT}:{TEXT}: it arrives as a number, but ");
    assert!(message.contains(&words) && message.contains("write the value within double quotes"), "{message}");
    assert_eq!(stage.condition("Stalled").1, "InvalidOverride");
    until_back(stage, &json!({"overrides": null}), &plan);
}

/// Finds a plan that is rolled out, with overrides; leaves another, of which one is a text that looks like a number.
pub(crate) fn what_was_written_as_text_arrives_as_text_in_the_chart(stage: &Stage) {
    let spec = stage.json(&["get", "clusterruntime", "cluster"])["spec"].clone();
    let mut overrides = spec["overrides"].as_array().cloned().unwrap_or_default();
    let text = overrides.iter_mut().find(|one| one["component"] == COMPONENT && one["path"] == TEXT).unwrap();
    text["value"] = json!("580.99");
    stage.patch_runtime(&json!({"spec": {"overrides": overrides}}));
    let name = stage.until_a_rollout(10);
    stage.until_phase(&name, "AwaitingApproval", 2);
    stage.approve(&name);
    stage.until_phase(&name, "Succeeded", 5);
    let application = stage.json(&["get", "application", COMPONENT, "-n", "argocd"]);
    let values = application["spec"]["source"]["helm"]["values"].as_str().unwrap_or_default();
    assert!(values.contains("logLevel: \"580.99\"") || values.contains("logLevel: '580.99'"), "{values}");
    let namespace = application["spec"]["destination"]["namespace"].as_str().unwrap();
    let seen = stage.json(&["get", "configmap", &format!("{COMPONENT}-seen"), "-n", namespace]);
    let landed: Value = serde_json::from_str(seen["data"]["values"].as_str().unwrap()).unwrap();
    assert_eq!(landed["controllerManager"]["manager"]["logLevel"], json!("580.99"), "{landed}");
}

fn set(stage: &Stage, path: &str, value: &str) {
    let one = json!({"component": COMPONENT, "path": path, "value": value});
    stage.patch_runtime(&json!({"spec": {"overrides": [one]}}));
}

/// Takes the change back, and waits for the plan that those inputs came to before.
fn until_back(stage: &Stage, spec: &Value, plan: &str) {
    nothing_was_written(stage);
    stage.patch_runtime(&json!({"spec": spec}));
    stage.until("the earlier plan", 2, || {
        let (status, reason, message) = stage.condition("Resolved");
        let now = candidate(stage);
        let back = status == "True" && reason == "Resolved" && now == plan;
        if back { Ok(()) } else { Err(format!("{now}: {status} {reason}: {message}")) }
    });
}
