//! Deployment validation: what it needs, what its checks find, and the evidence that it leaves.

use aicr_lab::product::Release;
use aicr_tests::Stage;
use serde_json::{Value, json};

use super::{SECOND_NAMESPACE, changed, credentials, retried};

/// The release that is installed while these stories run.
const AICR: &str = "v1.1.4";
/// Where the checks run.
const NAMESPACE: &str = "aicr-validation";
/// Whose absence is noticed before anything runs.
const ACCOUNT: &str = "aicr-validation-launcher";

/// Finds a healthy stack; leaves validation installed and required.
pub(crate) fn what_validation_needs_is_named_and_its_return_is_enough(stage: &Stage) {
    credentials(stage, NAMESPACE);
    installed(stage, pin(stage, AICR));
    stage.patch_runtime(&json!({"spec": {"validation": {"deployment": "Required"}}}));
    let name = changed(stage, 9);
    stage.kubectl(&["delete", "serviceaccount", ACCOUNT, "-n", NAMESPACE]);
    stage.approve(&name);
    stage.until_phase(&name, "Validating", 5);
    let message = stage.until_reason("Stalled", "ValidationUnavailable", 2);
    assert!(message.contains(&format!("ServiceAccount {ACCOUNT} is missing in namespace {NAMESPACE}")), "{message}");
    assert!(message.contains("run helm upgrade"), "{message}");
    installed(stage, pin(stage, AICR));
    stage.until_phase(&name, "Succeeded", 6);
    let rollout = stage.rollout(&name);
    let validation = &rollout["status"]["validation"];
    assert_eq!(validation["result"], "passed", "{rollout}");
    let evidence = validation["evidence"].as_str().unwrap();
    assert_eq!(rollout["metadata"]["annotations"]["operator.aicr.run/evidence"], evidence);
    let manifest = stage.lab.crane(&["manifest", evidence]).unwrap();
    assert!(manifest.contains("application/vnd.nvidia.aicr.artifact"), "{manifest}");
    stage.until_reason("Ready", "RolledOut", 1);
    let passed = stage.metric("aicr_operator_validation_runs_total{result=\"success\"}");
    assert!((passed - 1.0).abs() < f64::EPSILON, "{passed}");
    let left = stage.list(&["get", "jobs,configmaps", "-n", NAMESPACE, "-l", "aicr.run/run-id"]);
    assert!(left.is_empty(), "{left:?}");
}

/// What an override switches off.
const OFF: &str = "kai-scheduler";

/// The checks run on the recipe of the bundle: what an override turns off is not looked at. Leaves validation as it was
/// found.
pub(crate) fn a_component_that_is_switched_off_is_not_required(stage: &Stage) {
    stage.patch_runtime(&json!({"spec": {"overrides": [{"component": OFF, "path": "enabled", "value": "false"}]}}));
    let name = removes(stage, OFF);
    // The whole recipe's checks would look into this namespace, and fail.
    stage.administrator().send(&["create"], &never_ready(OFF)).passed();
    stage.approve(&name);
    stage.until_phase(&name, "Succeeded", 8);
    assert_eq!(stage.rollout(&name)["status"]["validation"]["result"], "passed");
    stage.kubectl(&["delete", "deployment", "never-ready", "-n", OFF]);
    stage.patch_runtime(&json!({"spec": {"overrides": []}}));
    let back = stage.until_a_rollout(10);
    stage.approve(&back);
    stage.until_phase(&back, "Succeeded", 8);
}

/// The rollout that removes this release and nothing else.
fn removes(stage: &Stage, release: &str) -> String {
    stage.until(&format!("a rollout that removes {release}"), 10, || {
        let name = stage.until_a_rollout(10);
        let steps = stage.rollout(&name)["spec"]["steps"].clone();
        let removed = steps.as_array().unwrap().iter().filter(|step| step["operation"] == "Remove");
        let removed: Vec<_> = removed.map(|step| step["release"].clone()).collect();
        if removed == [json!(release)] { Ok(name) } else { Err(steps.to_string()) }
    })
}

/// A check that fails, and images that are others than those that were pinned. Leaves validation as it was found.
pub(crate) fn failed_checks_and_other_images_fail_the_rollout_and_are_named(stage: &Stage) {
    let name = changed(stage, 10);
    installed(stage, pin(stage, "v1.1.2"));
    stage.administrator().send(&["create"], &never_ready(SECOND_NAMESPACE)).passed();
    stage.approve(&name);
    stage.until_phase(&name, "Failed", 6);
    let message = stage.until_reason("Stalled", "RolloutFailed", 1);
    let check = format!("operator-health: not available: {SECOND_NAMESPACE}/never-ready");
    for words in [check.as_str(), "validator image", "not pinned", "evidence", "aicr-validation-"] {
        assert!(message.contains(words), "{words} is missing in {message}");
    }
    assert_eq!(stage.condition("Available").1, "Healthy", "what was rolled out stays");
    stage.kubectl(&["delete", "deployment", "never-ready", "-n", SECOND_NAMESPACE]);
    installed(stage, pin(stage, AICR));
    let again = retried(stage, "after-the-validation");
    stage.approve(&again);
    stage.until_phase(&again, "Succeeded", 6);
    assert_eq!(stage.rollout(&again)["status"]["validation"]["result"], "passed");
    stage.patch_runtime(&json!({"spec": {"validation": {"deployment": "Disabled"}}}));
    stage.product.upgrade(&stage.lab, &Release { pushed: &stage.pushed, aicr: AICR, sets: &[] }).unwrap();
    // The rollout was validated, whatever is asked of the next.
    stage.until_reason("Ready", "RolledOut", 2);
}

/// Installs validation with this one image pinned.
fn installed(stage: &Stage, pin: String) {
    let sets = ["validation.enabled=true".to_owned(), pin];
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    stage.product.upgrade(&stage.lab, &Release { pushed: &stage.pushed, aicr: AICR, sets: &sets }).unwrap();
}

/// The checks' image, at the installed release's tag, with the digest of `of`'s.
fn pin(stage: &Stage, of: &str) -> String {
    let (image, _) = stage.pushed.aicr[AICR].split_once('@').unwrap();
    let (_, digest) = stage.pushed.aicr[of].split_once('@').unwrap();
    format!("aicr.validatorImages[0]={image}@{digest}")
}

/// A person's own Deployment beside a release.
fn never_ready(namespace: &str) -> Value {
    let labels = json!({"app": "never-ready"});
    let container = json!({"name": "none", "image": "10.245.0.1:5000/there-is-no-such-image:v1"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "never-ready", "namespace": namespace},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    })
}
