//! Bad input: a clear message at the place a person looks, and nothing written to Argo CD.

use aicr_lab::product::Release;
use aicr_tests::Stage;
use serde_json::json;

use crate::door::waiting::editor;

pub(crate) fn a_runtime_of_another_name_is_refused(stage: &Stage) {
    let runtime = json!({
        "apiVersion": "operator.aicr.run/v1alpha1",
        "kind": "ClusterRuntime",
        "metadata": {"name": "other"},
        "spec": {"intent": "training", "placement": {"accelerated": {"nodeSelector": {"a": "b"}}}},
    });
    let refusal = stage.lab.apply(&runtime.to_string()).unwrap_err();
    let words = format!("{refusal:?}");
    assert!(words.contains("metadata.name") && words.contains("cluster"), "{words}");
}

/// Leaves the sample runtime, with its system group overlapping the accelerated one.
pub(crate) fn overlapping_placements_stall_and_are_named(stage: &Stage) {
    let overlap = json!({"spec": {
        "rollout": {"stabilizationWindow": "0s"},
        "placement": {"system": {"nodeSelector": {"aicr.test/pool": "accelerated"}}},
    }});
    stage.product.sample(&stage.lab, &overlap).unwrap();
    let message = stage.until_reason("Stalled", "PlacementOverlap", 2);
    assert!(message.contains(": lab;"), "names the node: {message}");
    assert_eq!(stage.condition("Resolved").1, "PlacementOverlap");
    nothing_was_written(stage);
}

/// Leaves the sample runtime without a system group.
pub(crate) fn a_selector_without_nodes_is_named(stage: &Stage) {
    let edit = |who: &str, patch: serde_json::Value| {
        editor(stage, who).patch(&["clusterruntime", "cluster"], &patch).passed();
    };
    edit(
        "bob",
        json!({"spec": {"placement": {"system": {"nodeSelector": {"aicr.test/pool": null, "role": "system"}}}}}),
    );
    let message = stage.until_reason("Stalled", "NodeGroupEmpty", 2);
    assert!(message.contains("placement.system.nodeSelector role=system"), "{message}");
    nothing_was_written(stage);
    edit("carol", json!({"spec": {"placement": {"system": null}}}));
}

pub(crate) fn a_second_lab_is_refused_and_named(_: &Stage) {
    let refusal = aicr_lab::Lab::up(&aicr_lab::Options::control_plane_only()).unwrap_err().to_string();
    assert!(refusal.contains("another lab is up (of process"), "{refusal}");
}

/// An AICR whose recipe has an apiVersion that nobody knows.
pub(crate) fn output_that_is_no_recipe_is_named(stage: &Stage) {
    with_fault(stage, &[("AICR_STANDIN_FAULT_COMMAND", "recipe"), ("AICR_STANDIN_FAULT_OUTPUT", "apiversion")], &[]);
    let message = stage.until_reason("Stalled", "AICRArtifactUnsupported", 5);
    assert!(message.contains("aicr.run/v9"), "{message}");
    nothing_was_written(stage);
}

pub(crate) fn a_chart_source_that_does_not_answer_is_named(stage: &Stage) {
    with_fault(stage, &[("AICR_STANDIN_CHARTS", "10.245.0.1:5999/upstream")], &[]);
    until_resolved_says(stage, &["[SERVICE_UNAVAILABLE]", "10.245.0.1:5999"]);
    nothing_was_written(stage);
}

/// Leaves the installation as it was found.
pub(crate) fn a_registry_that_is_not_there_is_named(stage: &Stage) {
    again(stage, &["registry.repository=10.245.0.1:5999/aicr", "registry.plainHTTP[0]=10.245.0.1:5999"]);
    until_resolved_says(stage, &["retrying after a transient failure: aicr render exited 6"]);
    nothing_was_written(stage);
    again(stage, &[]);
}

/// Installs an AICR with these variables, beside more `--set` words; returns its image.
pub(crate) fn with_fault(stage: &Stage, variables: &[(&str, &str)], sets: &[&str]) -> String {
    let image = stage.product.stand_in("v1.0.0").unwrap();
    let image = variables.iter().fold(image, |image, (name, value)| image.env(name, value));
    let image = stage.lab.push_image(&image).unwrap();
    let set = format!("aicr.image={image}");
    let sets: Vec<&str> = sets.iter().copied().chain([set.as_str()]).collect();
    again(stage, &sets);
    image
}

/// Installs AICR v1.0.0 as it is, but for these `--set` words.
pub(crate) fn again(stage: &Stage, sets: &[&str]) {
    stage.product.upgrade(&stage.lab, &Release { pushed: &stage.pushed, aicr: "v1.0.0", sets }).unwrap();
}

fn until_resolved_says(stage: &Stage, words: &[&str]) {
    stage.until(&format!("Resolved with {words:?}"), 5, || {
        let (status, reason, message) = stage.condition("Resolved");
        let says = reason == "Resolving" && words.iter().all(|word| message.contains(word));
        if says { Ok(()) } else { Err(format!("{status} {reason}: {message}")) }
    });
}

/// Finds a runtime without a rollout; leaves a plan, and validation disabled again.
pub(crate) fn validation_that_is_required_and_not_installed_stalls(stage: &Stage) {
    stage.patch_runtime(&json!({"spec": {"validation": {"deployment": "Required"}}}));
    let message = stage.until_reason("Stalled", "ValidationUnavailable", 10);
    assert!(message.contains("spec.validation.deployment: Disabled"), "says what to do: {message}");
    assert_eq!(stage.condition("Resolved").1, "Resolved");
    assert!(stage.list(&["get", "runtimerollouts"]).is_empty());
    nothing_was_written(stage);
    stage.patch_runtime(&json!({"spec": {"validation": {"deployment": "Disabled"}}}));
}

pub(crate) fn nothing_was_written(stage: &Stage) {
    assert!(stage.list(&["get", "applications", "-n", "argocd"]).is_empty());
    assert!(stage.desired_writes().is_empty(), "{:?}", stage.desired_writes());
}
