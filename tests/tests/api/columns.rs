//! What `kubectl get` prints.

use aicr_tests::{Kind, World, samples};
use serde_json::{Value, json};

/// The words of a table, a row at a time; cells of one word only.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split_whitespace().collect()).collect()
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "",
        "lastTransitionTime": "2026-11-29T21:00:00Z",
    })
}

pub(crate) fn a_runtime_shows_its_conditions(world: &World) {
    world.create(&samples::runtime()).accepted();
    let status = json!({"status": {
        "conditions": [condition("Ready", "False", "RollingOut"), condition("Stalled", "True", "InventoryDrift")],
        "activePlan": "e3b0c44298fc1c14",
        "aicr": {"version": "1.1.2", "image": "registry.example.com/aicr:v1.1.2"},
    }});
    world.write_status(Kind::Runtime, "cluster", &status).accepted();
    let narrow = world.kubectl(&["get", "clusterruntime", "cluster"]);
    let wide = world.kubectl(&["get", "aicrrt", "cluster", "-o", "wide"]);
    world.delete(Kind::Runtime, "cluster");
    assert_eq!(rows(&narrow)[0], ["NAME", "READY", "REASON", "STALLED", "AGE"]);
    assert_eq!(rows(&narrow)[1][..4], ["cluster", "False", "RollingOut", "True"]);
    assert_eq!(rows(&wide)[0], ["NAME", "READY", "REASON", "STALLED", "AGE", "PLAN", "AICR"]);
    assert_eq!(rows(&wide)[1][5..], ["e3b0c44298fc1c14", "1.1.2"]);
}

pub(crate) fn a_rollout_shows_where_it_is(world: &World) {
    let name = "shown";
    world.create(&samples::full_rollout(name)).accepted();
    let status = json!({"status": {"phase": "AwaitingAcknowledgement", "approval": "Approved", "step": "9/18"}});
    world.write_status(Kind::Rollout, name, &status).accepted();
    let table = world.kubectl(&["get", "runtimerollouts", name]);
    assert_eq!(rows(&table)[0], ["NAME", "PHASE", "APPROVAL", "TARGET", "STEP", "DEADLINE", "AGE"]);
    let cells = [name, "AwaitingAcknowledgement", "Approved", "bbbbbbbbbbbbbbbb", "9/18", "2099-11-30T03:00:00Z"];
    assert_eq!(rows(&table)[1][..6], cells);
    let short = world.kubectl(&["get", "aicrro", name, "--no-headers"]);
    assert_eq!(rows(&short)[0][..6], cells, "all but the age, which goes on between two calls");
}
