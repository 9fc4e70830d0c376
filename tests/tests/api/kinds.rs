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

/// B70: the kinds of a release with one more field, an object of it, and this release's kinds again.
pub(crate) fn objects_outlive_an_upgrade_of_the_kinds_and_its_downgrade(world: &World) {
    let before = world.create(&samples::full_rollout("of-this-release")).accepted();
    let mut newer = json!(runtime_rollout());
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    newer.pointer_mut(properties).unwrap()["zone"] = json!({"type": "string", "maxLength": 63});
    world.establish(&serde_json::from_value(newer).unwrap());
    let later = samples::rollout_with("of-the-next-release", json!({"schemaVersion": "2", "zone": "a"}));
    assert_eq!(world.create(&later).accepted()["spec"]["zone"], "a");
    assert_eq!(world.stored(Kind::Rollout, "of-this-release")["spec"], before["spec"]);
    let stored = world.establish(&runtime_rollout());
    assert_eq!(stored.status.unwrap().stored_versions, Some(vec!["v1alpha1".to_owned()]));
    assert_eq!(world.stored(Kind::Rollout, "of-this-release")["spec"], before["spec"]);
    // What this release does not know is not shown; that it is another's is, and so this operator leaves it alone.
    let kept = world.stored(Kind::Rollout, "of-the-next-release");
    assert_eq!((&kept["spec"]["zone"], &kept["spec"]["schemaVersion"]), (&Value::Null, &json!("2")));
    let told = json!({"status": {"message": "written by a newer operator"}});
    world.write_status(Kind::Rollout, "of-the-next-release", &told).accepted();
}
