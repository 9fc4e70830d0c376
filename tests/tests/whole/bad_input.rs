//! Bad input: a clear message at the place a person looks, and nothing written to Argo CD.

use aicr_tests::Stage;
use serde_json::json;

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
        "placement": {"system": {"nodeSelector": {"nvidia.com/gpu.present": "true"}}},
    }});
    stage.product.sample(&stage.lab, &overlap).unwrap();
    let message = stage.until_reason("Stalled", "PlacementOverlap", 2);
    assert!(message.contains("lab"), "names the node: {message}");
    assert_eq!(stage.condition("Resolved").1, "PlacementOverlap");
    nothing_was_written(stage);
}

/// Leaves the sample runtime without a system group.
pub(crate) fn a_selector_without_nodes_is_named(stage: &Stage) {
    stage.patch_runtime(&json!({"spec": {"placement": {"system": {"nodeSelector": {"nvidia.com/gpu.present": null, "role": "system"}}}}}));
    let message = stage.until_reason("Stalled", "NodeGroupEmpty", 2);
    assert!(message.contains("placement.system.nodeSelector role=system"), "{message}");
    nothing_was_written(stage);
    stage.patch_runtime(&json!({"spec": {"placement": {"system": null}}}));
}

/// Finds no plan; leaves a plan, and validation disabled again.
pub(crate) fn validation_that_is_required_and_not_installed_stalls(stage: &Stage) {
    stage.patch_runtime(&json!({"spec": {"validation": {"deployment": "Required"}}}));
    let message = stage.until_reason("Stalled", "ValidationUnavailable", 10);
    assert!(message.contains("validation.enabled"), "says what to do: {message}");
    assert_eq!(stage.condition("Resolved").1, "Resolved");
    assert!(stage.list(&["get", "runtimerollouts"]).is_empty());
    nothing_was_written(stage);
    stage.patch_runtime(&json!({"spec": {"validation": {"deployment": "Disabled"}}}));
}

fn nothing_was_written(stage: &Stage) {
    assert!(stage.list(&["get", "applications", "-n", "argocd"]).is_empty());
    assert!(stage.desired_writes().is_empty(), "{:?}", stage.desired_writes());
}
