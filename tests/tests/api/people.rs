//! What people add to a rollout: once each, and it stays.

use aicr_tests::{Kind, Way, World, samples};
use serde_json::{Value, json};

/// Adds a field in one way, then tries to change and to remove it in every way.
fn is_given_once(world: &World, field: &str, value: &Value, changed: &str, removed: &str) {
    for added in Way::ALL {
        let name = format!("{field}-by-{added:?}").to_lowercase();
        world.create(&samples::full_rollout(&name)).accepted();
        let stored = world.change(Kind::Rollout, &name, added, |spec| spec[field] = value.clone()).accepted();
        assert_eq!(&stored["spec"][field], value);
        for way in Way::ALL {
            let other = |spec: &mut Value| spec[field]["reason"] = json!("second thoughts");
            let message = world.change(Kind::Rollout, &name, way, other).rejected(422, changed);
            assert!(message.contains(&format!("spec.{field}: Invalid value")), "{message}");
            if way == Way::Apply && added != Way::Apply {
                // Whoever does not own the field cannot drop it by leaving it out.
                continue;
            }
            let gone = |spec: &mut Value| drop(spec.as_object_mut().unwrap().remove(field));
            let message = world.change(Kind::Rollout, &name, way, gone).rejected(422, removed);
            assert!(message.contains(&format!("spec.{field}: Invalid value")), "{message}");
        }
        assert_eq!(&world.stored(Kind::Rollout, &name)["spec"][field], value);
    }
}

pub(crate) fn an_approval_is_given_once(world: &World) {
    let changed = "an approval can be neither changed nor extended; revoke it and ask for a new rollout";
    is_given_once(world, "approval", &samples::approval(), changed, "an approval cannot be removed; revoke it");
}

pub(crate) fn a_revocation_is_given_once(world: &World) {
    let (changed, removed) = ("a revocation cannot be changed", "a revocation cannot be removed");
    is_given_once(world, "revocation", &samples::revocation(), changed, removed);
}

pub(crate) fn acknowledgements_are_added_and_stay(world: &World) {
    let name = "acknowledged";
    let refusal = "an acknowledgement can be neither changed nor removed, only added";
    world.create(&samples::full_rollout(name)).accepted();
    for (number, way) in Way::ALL.into_iter().enumerate() {
        let added = world.change(Kind::Rollout, name, way, |spec| match spec["acknowledgements"].as_array_mut() {
            Some(list) => list.push(samples::acknowledgement(number)),
            None => spec["acknowledgements"] = json!([samples::acknowledgement(number)]),
        });
        assert_eq!(added.accepted()["spec"]["acknowledgements"].as_array().unwrap().len(), number + 1);
    }
    for way in Way::ALL {
        let edit = |spec: &mut Value| spec["acknowledgements"][0]["acknowledgedBy"]["username"] = json!("mallory");
        world.change(Kind::Rollout, name, way, edit).rejected(422, refusal);
    }
    // An apply leaves what it does not own; the other ways drop.
    for way in [Way::Merge, Way::JsonPatch, Way::Replace] {
        let gone = |spec: &mut Value| drop(spec["acknowledgements"].as_array_mut().unwrap().remove(0));
        world.change(Kind::Rollout, name, way, gone).rejected(422, refusal);
        let all_gone = |spec: &mut Value| drop(spec.as_object_mut().unwrap().remove("acknowledgements"));
        world.change(Kind::Rollout, name, way, all_gone).rejected(422, refusal);
        let twice = |spec: &mut Value| {
            let again = spec["acknowledgements"][0].clone();
            spec["acknowledgements"].as_array_mut().unwrap().push(again);
        };
        let text = "spec.acknowledgements[4]: Duplicate value: {\"release\":\"release-0\"}";
        world.change(Kind::Rollout, name, way, twice).rejected(422, text);
    }
}

pub(crate) fn the_largest_rollout_takes_its_last_acknowledgement(world: &World) {
    let name = "nearly-largest";
    let mut rollout = samples::largest_rollout(name);
    let last = rollout["spec"]["acknowledgements"].as_array_mut().unwrap().pop().unwrap();
    world.create(&rollout).accepted();
    let add = |spec: &mut Value| spec["acknowledgements"].as_array_mut().unwrap().push(last.clone());
    let stored = world.change(Kind::Rollout, name, Way::JsonPatch, add).accepted();
    assert_eq!(stored["spec"]["acknowledgements"].as_array().unwrap().len(), 64);
    let approved = world.change(Kind::Rollout, name, Way::Merge, |spec| spec["approval"] = samples::approval());
    approved.accepted();
    world.delete(Kind::Rollout, name);
}
