//! The kinds themselves: served, named, filled in.

use aicr_crds::crd::{cluster_runtime, runtime_rollout};
use aicr_tests::{Kind, World, samples};
use serde_json::{Value, json};

pub(crate) fn both_kinds_are_served_without_a_complaint(world: &World) {
    for crd in [cluster_runtime(), runtime_rollout()] {
        let stored = world.establish(&crd);
        let conditions = stored.status.unwrap().conditions.unwrap();
        let said = |kind: &str| conditions.iter().find(|one| one.type_ == kind).map(|one| one.status.clone());
        assert_eq!(said("NamesAccepted").as_deref(), Some("True"));
        assert_eq!(said("Established").as_deref(), Some("True"));
        assert_eq!(said("NonStructuralSchema"), None);
    }
    assert_eq!(world.kubectl(&["get", "aicrrt,aicrro"]), "");
}

pub(crate) fn a_runtime_is_named_cluster(world: &World) {
    let mut other = samples::runtime();
    other["metadata"]["name"] = json!("other");
    let text = "metadata.name: Invalid value: \"object\": a ClusterRuntime must be named cluster";
    world.create(&other).rejected_only_for(422, text);
    world.create(&samples::runtime()).accepted();
    world.delete(Kind::Runtime, "cluster");
}

pub(crate) fn defaults_are_filled_in(world: &World) {
    let stored = world.create(&samples::runtime()).accepted();
    world.delete(Kind::Runtime, "cluster");
    let spec = json!({
        "intent": "training",
        "placement": {"accelerated": {"nodeSelector": {"nvidia.com/gpu.present": "true"}}},
        "configuration": {"readinessGates": true},
        "selection": {"policy": "Automatic", "pinnedPlanDigest": ""},
        "rollout": {"stabilizationWindow": "10m", "actionTimeout": "30m", "deadline": "6h"},
        "validation": {"deployment": "Required"},
        "paused": false,
        "suspendEngine": false,
        "deletionPolicy": "Orphan",
    });
    assert_eq!(stored["spec"], spec);
    // The same where only the inside is left out.
    let empty = json!({"configuration": {}, "selection": {}, "rollout": {}, "validation": {}});
    let stored = world.create(&samples::runtime_with(empty)).accepted();
    world.delete(Kind::Runtime, "cluster");
    assert_eq!(stored["spec"], spec);
}

pub(crate) fn a_rollout_is_stored_as_it_was_written(world: &World) {
    for rollout in [samples::rollout("as-written"), samples::full_rollout("as-written-in-full")] {
        let stored = world.create(&rollout).accepted();
        assert_eq!(stored["spec"], rollout["spec"]);
    }
}

pub(crate) fn a_null_is_refused(world: &World) {
    for (name, kind) in [("approval", "object"), ("retryToken", "string"), ("acknowledgements", "array")] {
        let text = format!("spec.{name}: Invalid value: \"null\": spec.{name} in body must be of type {kind}");
        world.create(&samples::rollout_with("with-null", json!({name: Value::Null}))).rejected(422, &text);
    }
    world.create(&samples::runtime_with(json!({"profile": null}))).rejected(422, "must be of type string");
}
