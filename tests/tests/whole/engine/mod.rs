//! The rules on a real Argo CD: what disturbs a rollout in its middle, how it says so, and how it goes on or ends.
//!
//! Each story changes values of the same two releases: a short rollout in which the first step can be held up by stopping
//! Argo CD's controller, so that what happens in its middle happens there and not by luck.

pub(crate) mod end;
pub(crate) mod failure;
pub(crate) mod fetch;
pub(crate) mod hold;
pub(crate) mod stack;
pub(crate) mod validation;

use aicr_tests::Stage;
use serde_json::{Value, json};

/// The release of the first step.
const FIRST: &str = "nodewright-operator";
/// The release of the second step.
const SECOND: &str = "k8s-ephemeral-storage-metrics";
/// Namespace of the second release.
const SECOND_NAMESPACE: &str = "monitoring";
/// The part of the lab that compares and syncs.
const CONTROLLER: &str = "argocd-application-controller";

/// Gives both releases values that they never had; the rollout that comes of it, which awaits approval.
fn changed(stage: &Stage, turn: u32) -> String {
    stage.patch_runtime(&json!({"spec": {"overrides": [
        {"component": FIRST, "path": "controllerManager.manager.logLevel", "value": format!("turn-{turn}")},
        {"component": SECOND, "path": "interval", "value": (100 + turn).to_string()},
    ]}}));
    let name = stage.until_a_rollout(10);
    stage.until_phase(&name, "AwaitingApproval", 2);
    let rollout = stage.rollout(&name);
    let steps = rollout["spec"]["steps"].as_array().unwrap();
    let steps: Vec<_> = steps.iter().map(|step| (&step["release"], &step["operation"])).collect();
    assert_eq!(steps, [(&json!(FIRST), &json!("Upgrade")), (&json!(SECOND), &json!("Upgrade"))]);
    name
}

/// Such a rollout, approved, with its first step in flight and nobody there to sync it.
fn in_its_first_step(stage: &Stage, turn: u32) -> String {
    let name = changed(stage, turn);
    stage.lab.stop_part(CONTROLLER).unwrap();
    stage.approve(&name);
    until_in_flight(stage, &name, FIRST);
    name
}

/// Lets Argo CD go on.
fn argo_cd_goes_on(stage: &Stage) {
    stage.lab.start_part(CONTROLLER).unwrap();
}

fn until_in_flight(stage: &Stage, rollout: &str, release: &str) {
    stage.until(&format!("{release} in flight"), 3, || {
        let written = application(stage, release)["metadata"]["annotations"]["operator.aicr.run/rollout"].clone();
        let status = stage.rollout(rollout)["status"].clone();
        let in_flight = written == rollout && status["current"]["release"] == release;
        if in_flight { Ok(()) } else { Err(status.to_string()) }
    });
}

/// Waits until a rollout's message holds these words.
fn until_message(stage: &Stage, rollout: &str, words: &str) -> String {
    stage.until(&format!("{rollout} to say {words:?}"), 4, || {
        let status = stage.rollout(rollout)["status"].clone();
        let message = status["message"].as_str().unwrap_or_default();
        if message.contains(words) { Ok(message.to_owned()) } else { Err(status.to_string()) }
    })
}

/// Asks for another attempt; the rollout that it makes.
fn retried(stage: &Stage, token: &str) -> String {
    let retry = format!("operator.aicr.run/retry={token}");
    stage.kubectl(&["annotate", "clusterruntime", "cluster", &retry, "--overwrite"]);
    let name = stage.until_a_rollout(3);
    let steps = stage.rollout(&name)["spec"]["steps"].clone();
    let required = steps.as_array().unwrap().iter().all(|step| step["approval"]["need"] == "Required");
    assert!(required, "a retry needs a fresh approval of everything: {steps}");
    name
}

/// The registry's credentials in one more namespace of AICR's Jobs, as the chart's notes ask a person for.
fn credentials(stage: &Stage, namespace: &str) {
    let mut secret = stage.json(&["get", "secret", "aicr-registry", "-n", aicr_lab::product::NAMESPACE]);
    secret["metadata"] = json!({"name": "aicr-registry", "namespace": namespace});
    stage.administrator().send(&["apply"], &secret).passed();
}

fn application(stage: &Stage, name: &str) -> Value {
    stage.json(&["get", "application", name, "-n", "argocd"])
}

/// Gives an Application values by hand, which go before ours; `null` takes them away again.
fn edited(stage: &Stage, name: &str, values: &Value) {
    let edit = json!({"spec": {"source": {"helm": {"valuesObject": values}}}});
    stage.administrator().patch(&["application", name, "-n", "argocd"], &edit).passed();
}

/// How often the operator wrote one release whole.
fn writes(stage: &Stage, release: &str) -> usize {
    stage.desired_writes().get(release).copied().unwrap_or_default()
}
