//! AICR upgrades: what needs whom, and what needs nobody.

use std::collections::BTreeMap;

use aicr_lab::product::{FORCE_CONFLICTS, Helm, Release, this_chart};
use aicr_tests::Stage;
use serde_json::{Value, json};

fn upgrade(stage: &Stage, aicr: &str) {
    stage.product.upgrade(&stage.lab, &Release { pushed: &stage.pushed, aicr, sets: &[] }).unwrap();
}

fn step<'a>(rollout: &'a Value, release: &str) -> &'a Value {
    let steps = rollout["spec"]["steps"].as_array().unwrap();
    steps.iter().find(|step| step["release"] == release).unwrap_or_else(|| panic!("no step for {release}: {steps:?}"))
}

/// v1.0.0's launcher has relabelled its namespace, and Helm says so. Leaves a release of Helm's that failed.
pub(crate) fn a_namespace_that_the_launcher_relabelled_is_taken_back_by_force_alone(stage: &Stage) {
    let labels = stage.json(&["get", "namespace", "aicr-discovery", "--show-managed-fields"])["metadata"].clone();
    assert_eq!(labels["labels"]["app.kubernetes.io/managed-by"], "aicr", "{labels}");
    let release = Release { pushed: &stage.pushed, aicr: "v1.1.2", sets: &[] };
    let refusal = Helm::Four.put_with(&stage.lab, "upgrade", &this_chart(), &release, &[]).unwrap_err();
    let refusal = format!("{refusal:?}");
    for words in ["conflict", "aicr-discovery", r#"\"aicr\""#, "app.kubernetes.io/managed-by"] {
        assert!(refusal.contains(words), "{words} is missing in {refusal}");
    }
}

/// v1.0.0 → v1.1.2, by force. Leaves a rollout that awaits approval.
pub(crate) fn the_upgrade_says_which_step_needs_whom(stage: &Stage) {
    let before = stage.desired_writes();
    let release = Release { pushed: &stage.pushed, aicr: "v1.1.2", sets: &[] };
    Helm::Four.put_with(&stage.lab, "upgrade", &this_chart(), &release, &[FORCE_CONFLICTS]).unwrap();
    stage.product.wait(&stage.lab).unwrap();
    let namespace = stage.json(&["get", "namespace", "aicr-discovery"]);
    assert_eq!(namespace["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
    let name = stage.until_a_rollout(10);
    let rollout = stage.rollout(&name);
    let (gpu, nodewright, nvsentinel) =
        (step(&rollout, "gpu-operator"), step(&rollout, "nodewright-operator"), step(&rollout, "nvsentinel"));
    assert_eq!((&gpu["verdict"], &gpu["approval"]["need"]), (&json!("safe"), &json!("NotRequired")), "{gpu}");
    assert_eq!(
        (&nodewright["verdict"], &nodewright["approval"]["need"]),
        (&json!("safe"), &json!("Required")),
        "owns CRDs: {nodewright}"
    );
    assert_eq!((&nvsentinel["verdict"], &nvsentinel["acknowledge"]), (&json!("manual"), &json!(true)), "{nvsentinel}");
    let said = stage.approver(&["describe", &name]);
    for words in ["NotRequired", "safe", "manual", "CRDs", "Recorded steps", "Remove preflight.rateLimits"] {
        assert!(said.out.contains(words), "{words} is missing in\n{}", said.out);
    }
    let row = |release: &str| {
        let found = said.out.lines().find(|line| line.split_whitespace().nth(1) == Some(release));
        found.unwrap_or_else(|| panic!("no row for {release} in\n{}", said.out))
    };
    assert!(row("gpu-operator").contains("NotRequired: AICR assesses it safe"));
    assert!(row("nodewright-operator").contains("Required: changes CRDs"));
    assert!(row("nvsentinel").contains(" manual "));
    stage.until_phase(&name, "AwaitingApproval", 2);
    assert_eq!(stage.desired_writes(), before, "the whole waits");
}

/// Leaves v1.1.2 rolled out.
pub(crate) fn a_manual_release_waits_for_its_acknowledgement(stage: &Stage) {
    let name = stage.until_a_rollout(1);
    let before = stage.desired_writes();
    stage.approve(&name);
    stage.until_phase(&name, "AwaitingAcknowledgement", 10);
    let message = stage.until_reason("Stalled", "AwaitingAcknowledgement", 1);
    assert!(message.contains("nvsentinel"), "{message}");
    let said = stage.approver(&["acknowledge", &name, "--reason", "the recorded steps are done"]);
    assert_eq!(said.code, 0, "{said:?}");
    stage.until_phase(&name, "Succeeded", 10);
    let rollout = stage.rollout(&name);
    for step in rollout["spec"]["steps"].as_array().unwrap() {
        let release = step["release"].as_str().unwrap();
        let count = |writes: &BTreeMap<String, usize>| writes.get(release).copied().unwrap_or_default();
        assert_eq!(count(&stage.desired_writes()), count(&before) + 1, "{release} was written once");
    }
}

/// v1.1.2 → v1.1.3: only gpu-operator moves. Leaves it rolled out.
pub(crate) fn one_safe_release_without_crds_needs_nobody(stage: &Stage) {
    let before = stage.list(&["get", "runtimerollouts"]).len();
    // B61: what a person added goes with the step's apply.
    let moved = ["application", "gpu-operator", "-n", "argocd"];
    stage
        .administrator()
        .patch(&moved, &json!({"spec": {"info": [{"name": "somebody", "value": "was here"}]}}))
        .passed();
    upgrade(stage, "v1.1.3");
    stage.until("one more rollout, succeeded", 10, || {
        let rollouts = stage.list(&["get", "runtimerollouts"]);
        let ended = |rollout: &&Value| rollout["metadata"]["labels"]["operator.aicr.run/outcome"] == "Succeeded";
        let done = rollouts.iter().filter(ended).count();
        if done == before + 1 { Ok(()) } else { Err(format!("{done} of {} have succeeded", rollouts.len())) }
    });
    let newest = stage.list(&["get", "runtimerollouts", "--sort-by", ".metadata.creationTimestamp"]).pop().unwrap();
    let steps = newest["spec"]["steps"].as_array().unwrap();
    let done: Vec<_> =
        steps.iter().map(|step| (step["release"].as_str().unwrap(), step["operation"].as_str().unwrap())).collect();
    assert_eq!(done, [("gpu-operator", "Upgrade"), ("gpu-operator-readiness", "Verify")]);
    assert!(steps.iter().all(|step| step["approval"]["need"] == "NotRequired"), "{steps:?}");
    assert!(newest["spec"]["approval"].is_null());
    let spec = stage.json(&["get", "application", "gpu-operator", "-n", "argocd"])["spec"].clone();
    assert!(spec["info"].is_null(), "{spec}");
}

/// v1.1.3 → v1.1.4: only AICR's own version differs.
pub(crate) fn the_same_output_makes_no_rollout(stage: &Stage) {
    let before = stage.list(&["get", "runtimerollouts"]).len();
    let candidate = || stage.json(&["get", "clusterruntime", "cluster"])["status"].clone();
    let digest = candidate()["candidatePlanDigest"].clone();
    upgrade(stage, "v1.1.4");
    stage.until("v1.1.4 resolved", 10, || {
        let status = candidate();
        let (_, resolved, _) = stage.condition("Resolved");
        if status["aicr"]["version"] == "1.1.4" && resolved == "Resolved" { Ok(()) } else { Err(status.to_string()) }
    });
    assert_eq!(candidate()["candidatePlanDigest"], digest);
    assert_eq!(stage.list(&["get", "runtimerollouts"]).len(), before);
    assert_eq!(stage.condition("Ready").0, "True");
}

/// An image that reports another version than the chart says.
pub(crate) fn a_wrong_version_stalls_and_is_named(stage: &Stage) {
    let image = stage.pushed.aicr.get("v1.1.2").unwrap();
    let sets = [format!("aicr.image={image}")];
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    stage.product.upgrade(&stage.lab, &Release { pushed: &stage.pushed, aicr: "v1.1.4", sets: &sets }).unwrap();
    let before = stage.desired_writes();
    let message = stage.until_reason("Stalled", "AICRVersionMismatch", 10);
    assert_eq!(stage.desired_writes(), before, "nothing is written");
    assert!(message.contains("1.1.2") && message.contains("1.1.4"), "{message}");
    assert_eq!(stage.condition("Available").1, "Healthy", "the running stack is left as it is");
}
