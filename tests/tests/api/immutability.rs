//! A rollout's spec stays as it was created, whatever way somebody writes.

use aicr_crds::crd::runtime_rollout;
use aicr_tests::{Kind, Way, World, samples};
use serde_json::{Value, json};

/// Another value for every field but the three of people.
fn other_values() -> Value {
    json!({
        "schemaVersion": "2",
        "runtime": {"name": "cluster", "uid": "another"},
        "kind": "Adopt",
        "fromPlanDigest": samples::digest('e'),
        "targetPlanDigest": samples::digest('e'),
        "target": "e".repeat(16),
        "attempt": 2,
        "retryToken": "once more",
        "selection": "Pinned",
        "requestedBy": [],
        "steps": [samples::step(1)],
        "inventory": [],
        "actionTimeout": "31m",
        "deadline": "2099-12-31T00:00:00Z",
        "validation": "Disabled",
        "assessment": {"configMap": "another", "digest": samples::digest('c')},
    })
}

/// A change of a spec.
type Edit = fn(&mut Value);

/// What people add.
const ADDED_LATER: [&str; 3] = ["acknowledgements", "approval", "revocation"];

fn fields_of_the_crd() -> Vec<String> {
    let crd = runtime_rollout();
    let schema = crd.spec.versions[0].schema.clone().unwrap().open_api_v3_schema.unwrap();
    let spec = schema.properties.unwrap()["spec"].clone();
    spec.properties.unwrap().into_keys().filter(|name| !ADDED_LATER.contains(&name.as_str())).collect()
}

fn is_immutable(name: &str) -> String {
    format!("{name} is immutable")
}

pub(crate) fn no_field_of_a_rollout_can_be_changed(world: &World) {
    let name = "unchanging";
    world.create(&samples::full_rollout(name)).accepted();
    for field in fields_of_the_crd() {
        let other = other_values().get(&field).cloned().unwrap_or_else(|| panic!("no other value for {field}"));
        for way in Way::ALL {
            let answer = world.change(Kind::Rollout, name, way, |spec| spec[&field] = other.clone());
            let message = answer.rejected(422, &is_immutable(&field));
            assert!(message.contains(&format!("spec.{field}: Invalid value")), "{message}");
        }
    }
    assert_eq!(world.stored(Kind::Rollout, name)["spec"], samples::full_rollout(name)["spec"]);
}

pub(crate) fn no_optional_field_of_a_rollout_can_be_added_later(world: &World) {
    let mut removal = samples::rollout_with("remove-2", json!({"kind": "Remove"}));
    removal["spec"].as_object_mut().unwrap().retain(|name, _| !name.starts_with("target"));
    world.create(&removal).accepted();
    for field in ["fromPlanDigest", "targetPlanDigest", "target", "retryToken", "assessment"] {
        let value = other_values()[field].clone();
        for way in Way::ALL {
            let answer = world.change(Kind::Rollout, "remove-2", way, |spec| spec[field] = value.clone());
            let message = answer.rejected(422, &is_immutable(field));
            assert!(message.contains(&format!("spec.{field}: Invalid value")), "{message}");
        }
    }
}

pub(crate) fn no_optional_field_of_a_rollout_can_be_removed_later(world: &World) {
    let name = "unshrinking";
    world.create(&samples::full_rollout(name)).accepted();
    for field in ["fromPlanDigest", "targetPlanDigest", "target", "retryToken", "assessment"] {
        for way in Way::ALL {
            let answer = world.change(Kind::Rollout, name, way, |spec| {
                spec.as_object_mut().unwrap().remove(field);
            });
            answer.rejected(422, &is_immutable(field));
        }
    }
    let gone = |spec: &mut Value| *spec = Value::Null;
    for way in [Way::Merge, Way::Replace] {
        world.change(Kind::Rollout, name, way, gone).rejected(422, "spec: Required value");
    }
    world.change(Kind::Rollout, name, Way::Apply, gone).rejected(422, "spec in body must be of type object");
}

pub(crate) fn nothing_can_be_changed_in_the_largest_rollout(world: &World) {
    let name = "largest";
    let stored = world.create(&samples::largest_rollout(name)).accepted();
    assert!(stored["spec"].to_string().len() > 500_000, "{} bytes only", stored["spec"].to_string().len());
    let acknowledgement = "an acknowledgement can be neither changed nor removed, only added";
    let edits: [(&str, Edit); 6] = [
        ("steps is immutable", |spec| spec["steps"][255]["acknowledge"] = json!(false)),
        ("steps is immutable", |spec| drop(spec["steps"].as_array_mut().unwrap().pop())),
        ("inventory is immutable", |spec| spec["inventory"][255]["fingerprint"] = json!(samples::digest('e'))),
        ("inventory is immutable", |spec| spec["inventory"].as_array_mut().unwrap().swap(0, 255)),
        (acknowledgement, |spec| spec["acknowledgements"][63]["reason"] = json!("nothing")),
        (acknowledgement, |spec| drop(spec["acknowledgements"].as_array_mut().unwrap().pop())),
    ];
    for (text, edit) in edits {
        for way in Way::ALL {
            world.change(Kind::Rollout, name, way, edit).rejected(422, text);
        }
    }
    world.delete(Kind::Rollout, name);
}

pub(crate) fn a_runtime_can_be_changed(world: &World) {
    for way in Way::ALL {
        world.create(&samples::runtime()).accepted();
        let stored = world.change(Kind::Runtime, "cluster", way, |spec| spec["intent"] = json!("inference")).accepted();
        assert_eq!(stored["spec"]["intent"], "inference", "{way:?}");
        world.delete(Kind::Runtime, "cluster");
    }
}
