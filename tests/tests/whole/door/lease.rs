//! Who leads: taken away for the stories at the door, given back, handed over by release and lost by a crash.

use std::process::Command;

use aicr_lab::command;
use aicr_tests::Stage;
use aicr_tests::stage::OPERATOR;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Leaves a cluster in which every replica answers and none writes, so that stories may forge what they need.
pub(crate) fn whoever_loses_the_lease_leads_no_more(stage: &Stage) {
    let before = stage.leader().0;
    stage.take_the_lease();
    assert!(stage.pods().contains(&before), "the pod stays, its process begins anew");
}

/// Leaves one that leads.
pub(crate) fn a_lease_that_is_gone_is_taken_up(stage: &Stage) {
    stage.give_the_lease_back();
    stage.until_both_are_ready();
}

/// Finds an idle runtime; leaves it, with another leader.
pub(crate) fn a_leader_that_is_told_to_stop_hands_over(stage: &Stage) {
    let leader = stage.leader().0;
    let (address, from) = (address(stage, &leader), Timestamp::now());
    stage.kubectl(&["delete", "pod", &leader, "-n", "aicr-system", "--wait=false"]);
    pause(stage, true);
    let (at, other) = stage.until("a write of another replica", 2, || first_write(stage, from, &address));
    println!("figure: failover by release: {:.1} s until {other} wrote", seconds(from, at));
    assert!(after(stage, at, &address).is_empty(), "{:?}", after(stage, at, &address));
    pause(stage, false);
    stage.until_both_are_ready();
}

/// B88: the leader's process is frozen beyond its lease and thaws; leaves another leader.
pub(crate) fn a_leader_that_was_frozen_writes_nothing_more(stage: &Stage) {
    let leader = stage.leader().0;
    let (pid, address, from) = (stage.leader_pid().to_string(), address(stage, &leader), Timestamp::now());
    signal("-STOP", &pid);
    pause(stage, true);
    let (at, other) = stage.until("a write of another replica", 2, || first_write(stage, from, &address));
    signal("-CONT", &pid);
    println!("figure: failover by crash: {:.1} s until {other} wrote", seconds(from, at));
    stage.until("the frozen one to have begun anew", 2, || {
        let now = stage.until_leader_and_pids();
        if now.contains(&pid) { Err(format!("process {pid} is still there")) } else { Ok(()) }
    });
    let late = after(stage, from, &address);
    assert!(late.is_empty(), "the frozen one wrote: {late:?}");
    pause(stage, false);
    stage.until_both_are_ready();
}

/// A change that whoever leads answers with a write.
fn pause(stage: &Stage, paused: bool) {
    stage.patch_runtime(&json!({"spec": {"paused": paused}}));
}

fn signal(signal: &str, pid: &str) {
    command::output(Command::new("kill").args([signal, pid])).unwrap_or_else(|error| panic!("{error}"));
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

fn address(stage: &Stage, pod: &str) -> String {
    let pod = stage.json(&["get", "pod", pod, "-n", "aicr-system"]);
    pod["status"]["podIP"].as_str().unwrap_or_default().to_owned()
}

/// What the operator wrote since then, lease and dry runs apart: when, from which address, and what.
fn writes(stage: &Stage, since: Timestamp) -> Vec<(Timestamp, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = stage.audit(OPERATOR).into_iter().filter(|entry| {
        let verb = entry["verb"].as_str().unwrap_or_default();
        let fine = entry["responseStatus"]["code"].as_i64().is_some_and(|code| code < 300);
        fine && ["create", "update", "patch", "delete"].contains(&verb) && entry["objectRef"]["resource"] != "leases"
    });
    let write = |entry: Value| {
        let at: Timestamp = entry["requestReceivedTimestamp"].as_str()?.parse().ok()?;
        let what = format!("{} {}", text(&entry["verb"]), text(&entry["requestURI"]));
        (at >= since).then(|| (at, text(&entry["sourceIPs"][0]), what))
    };
    entries.filter_map(write).collect()
}

/// The first write by an address other than that one.
fn first_write(stage: &Stage, since: Timestamp, other_than: &str) -> Result<(Timestamp, String), String> {
    let all = writes(stage, since);
    let found = all.iter().find(|(_, address, _)| address.as_str() != other_than);
    found.map(|(at, address, _)| (*at, address.clone())).ok_or_else(|| format!("{} writes", all.len()))
}

fn after(stage: &Stage, since: Timestamp, address: &str) -> Vec<(Timestamp, String, String)> {
    writes(stage, since).into_iter().filter(|(at, from, _)| *at > since && from == address).collect()
}
