//! Spec and status are written apart.

use aicr_tests::{Kind, Way, World, samples, world};
use serde_json::{Value, json};

pub(crate) fn a_status_write_changes_only_the_status(world: &World) {
    let name = "status-only";
    world.create(&samples::full_rollout(name)).accepted();
    let body = json!({
        "metadata": {"labels": {"operator.aicr.run/outcome": "Succeeded"}, "annotations": {"a": "b"}},
        "spec": {"attempt": 9, "approval": samples::approval()},
        "status": {"phase": "Progressing", "step": "1/1"},
    });
    let stored = world.write_status(Kind::Rollout, name, &body).accepted();
    assert_eq!(stored["status"], json!({"phase": "Progressing", "step": "1/1"}));
    assert_eq!(stored["spec"], samples::full_rollout(name)["spec"]);
    assert_eq!(stored["metadata"].get("labels"), None);
    assert_eq!(stored["metadata"].get("annotations"), None);
    let answer = world.write_status(Kind::Rollout, name, &world::status("phase", "Pending"));
    answer.rejected(422, "status.phase: Unsupported value: \"Pending\"");
}

pub(crate) fn a_spec_write_leaves_the_status(world: &World) {
    let name = "spec-only";
    let mut rollout = samples::full_rollout(name);
    rollout["status"] = json!({"phase": "Succeeded"});
    assert_eq!(world.create(&rollout).accepted().get("status"), None);
    world.write_status(Kind::Rollout, name, &world::status("phase", "Stalled")).accepted();
    for way in [Way::Merge, Way::Replace] {
        world.delete(Kind::Rollout, name);
        world.create(&samples::full_rollout(name)).accepted();
        world.write_status(Kind::Rollout, name, &world::status("phase", "Stalled")).accepted();
        let stored = world.change(Kind::Rollout, name, way, |spec| spec["approval"] = samples::approval()).accepted();
        assert_eq!(stored["status"], json!({"phase": "Stalled"}), "{way:?}");
    }
}

pub(crate) fn the_whole_status_can_be_lost(world: &World) {
    let name = "forgetful";
    world.create(&samples::full_rollout(name)).accepted();
    world.write_status(Kind::Rollout, name, &world::status("message", "x".repeat(32_768))).accepted();
    let stored = world.write_status(Kind::Rollout, name, &json!({"status": null})).accepted();
    assert_eq!(stored.get("status").filter(|status| !Value::is_null(status)), None);
    let answer = world.write_status(Kind::Rollout, name, &world::status("message", "x".repeat(32_769)));
    answer.rejected(422, "status.message: Too long: may not be more than 32768 bytes");
}
