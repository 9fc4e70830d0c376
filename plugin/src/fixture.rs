//! Rollouts for the tests of this crate, at every stage of one upgrade.

use aicr_crds::{Digest, RuntimeRollout, rollout::Person};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{change::Author, describe::Assessment};

const REPORT: &str = include_str!("fixture/report.json");

/// What the clock says in every test.
pub(crate) fn now() -> Timestamp {
    "2026-07-01T10:00:00Z".parse().unwrap()
}

pub(crate) fn author() -> Author {
    Author {
        person: Person { username: "bob@example.com".into(), groups: vec!["platform".into()] },
        reason: "Maintenance window".into(),
    }
}

/// The stored report of [`awaiting_approval`].
pub(crate) fn assessment() -> Assessment {
    let reference = awaiting_approval().spec.assessment.unwrap();
    Assessment::read(std::iter::once(("report.json".to_owned(), REPORT.to_owned())).collect(), &reference)
}

/// A first install that nobody has looked at.
pub(crate) fn pending() -> RuntimeRollout {
    let mut steps = json!([
        step("cert-manager", "Install", None, Some("v1.20.3"), "Required", "installs a component"),
        step("gpu-operator", "Install", None, Some("v26.7.0"), "Required", "installs a component"),
    ]);
    steps[0]["crds"] = json!([{ "name": "certificates.cert-manager.io", "change": "Added" }]);
    let mut rollout = rollout(&steps);
    rollout["spec"]["requestedBy"] = json!([]);
    read(rollout)
}

/// An upgrade with every sort of step.
pub(crate) fn awaiting_approval() -> RuntimeRollout {
    read(upgrade())
}

/// The same upgrade, approved, with its second step in flight.
pub(crate) fn in_flight() -> RuntimeRollout {
    let mut rollout = approved();
    rollout["status"] = json!({
        "phase": "Progressing", "approval": "Approved", "step": "2/5", "startedAt": "2026-07-01T09:30:00Z",
        "message": "release gpu-operator: HealthProgressing",
        "current": {
            "release": "gpu-operator", "index": 1, "operation": "Upgrade", "observed": "HealthProgressing", "halted": true,
            "startedAt": "2026-07-01T09:47:00Z", "timeoutFrom": "2026-07-01T09:47:00Z",
        },
        "releases": [ready("cert-manager", "09:30:00", "09:46:30"), {
            "release": "gpu-operator", "state": "Progressing", "startedAt": "2026-07-01T09:47:00Z",
            "message": "DaemonSet nvidia-driver-daemonset: 3 of 8 pods updated",
        }],
    });
    read(rollout)
}

/// The same upgrade with nvsentinel applied.
pub(crate) fn awaiting_acknowledgement() -> RuntimeRollout {
    let mut rollout = approved();
    rollout["status"] = json!({
        "phase": "AwaitingAcknowledgement", "approval": "Approved", "step": "3/5",
        "startedAt": "2026-07-01T09:30:00Z", "message": "release nvsentinel: recorded steps are owed",
        "releases": done(3),
    });
    read(rollout)
}

/// The same upgrade at its end.
pub(crate) fn succeeded() -> RuntimeRollout {
    let mut rollout = approved();
    rollout["metadata"]["labels"] = json!({ "operator.aicr.run/outcome": "Succeeded" });
    rollout["metadata"]["annotations"] = json!({ "operator.aicr.run/evidence": "registry.example.com/evidence:run-1" });
    rollout["spec"]["acknowledgements"] = json!([{
        "release": "nvsentinel", "reason": "Host port checked", "acknowledgedBy": { "username": "carol@example.com" },
        "acknowledgedAt": "2026-07-01T09:52:00Z",
    }]);
    rollout["status"] = json!({
        "phase": "Succeeded", "approval": "Approved", "step": "5/5", "message": "every release is ready",
        "startedAt": "2026-07-01T09:30:00Z", "finishedAt": "2026-07-01T09:58:20Z", "releases": done(5),
        "validation": { "job": "aicr-validate-1", "run": "run-1", "result": "12 checks passed" },
    });
    read(rollout)
}

fn approved() -> Value {
    let mut rollout = upgrade();
    let digest = read(rollout.clone()).spec.binding_digest().unwrap();
    rollout["spec"]["approval"] = json!({
        "reason": "Maintenance window", "expiresAt": "2026-07-01T12:00:00Z", "bindingDigest": digest,
        "approvedBy": { "username": "bob@example.com", "groups": ["platform"] },
        "approvedAt": "2026-07-01T08:50:00Z",
    });
    rollout
}

fn upgrade() -> Value {
    let new_values = "the values change; AICR assesses versions, not values";
    let mut steps = json!([
        step("cert-manager", "Upgrade", Some("v1.20.3"), Some("v1.20.3"), "Required", new_values),
        step(
            "gpu-operator",
            "Upgrade",
            Some("v26.7.0"),
            Some("v26.7.1"),
            "NotRequired",
            "assessed safe, no CRD change"
        ),
        step("nvsentinel", "Upgrade", Some("v1.22.0"), Some("v1.25.0"), "Required", "assessed manual"),
        step("prometheus-adapter", "Remove", Some("5.1.0"), None, "Required", "removes a release"),
        step("nvsentinel-post", "Verify", Some("1.0.0"), Some("1.0.0"), "NotRequired", "runs a readiness gate again"),
    ]);
    steps[0]["crds"] = json!([
        { "name": "certificates.cert-manager.io", "change": "Changed" },
        { "name": "orders.acme.cert-manager.io", "change": "Dropped" },
    ]);
    steps[0]["valuesChanged"] = json!(true);
    steps[0]["warnings"] = json!(["dropping orders.acme.cert-manager.io deletes its 3 custom resources"]);
    steps[1]["verdict"] = json!("safe");
    steps[2]["verdict"] = json!("manual");
    steps[2]["acknowledge"] = json!(true);
    let mut rollout = rollout(&steps);
    rollout["spec"]["fromPlanDigest"] = json!(Digest::of(b"from"));
    rollout["spec"]["assessment"] =
        json!({ "configMap": "aicr-assessment-1", "digest": Digest::of(REPORT.as_bytes()) });
    rollout["status"] = json!({
        "phase": "AwaitingApproval", "approval": "Required", "step": "1/5", "message": "an approver is waited for",
    });
    rollout
}

fn rollout(steps: &Value) -> Value {
    let target = Digest::of(b"target");
    json!({
        "apiVersion": "operator.aicr.run/v1alpha1", "kind": "RuntimeRollout",
        "metadata": {
            "name": format!("rollout-{}-1", target.short()), "resourceVersion": "4711",
            "uid": "7c1e6b1e-58f5-4d43-9a57-0d6c4b8a2f10", "creationTimestamp": "2026-07-01T08:10:00Z",
        },
        "spec": {
            "schemaVersion": "1", "runtime": { "name": "cluster", "uid": "2f1d3c6e-0000-4000-8000-000000000001" },
            "kind": "Change", "targetPlanDigest": target, "target": target.short(), "attempt": 1,
            "selection": "Automatic", "requestedBy": [{ "user": "alice@example.com", "at": "2026-07-01T08:00:00Z" }],
            "steps": steps, "inventory": [], "actionTimeout": "30m", "deadline": "2026-07-01T14:10:00Z",
            "validation": "Required",
        },
    })
}

fn step(release: &str, operation: &str, from: Option<&str>, to: Option<&str>, need: &str, reason: &str) -> Value {
    let chart = |version: &str| {
        let content = format!("{release} {version}");
        json!({ "chart": format!("charts/{release}"), "version": version, "digest": Digest::of(content.as_bytes()) })
    };
    let mut step = json!({
        "release": release, "operation": operation, "valuesChanged": false, "crds": [],
        "approval": { "need": need, "reason": reason }, "acknowledge": false, "warnings": [],
    });
    for (key, version) in [("from", from), ("to", to)] {
        if let Some(version) = version {
            step[key] = chart(version);
        }
    }
    step
}

fn done(count: usize) -> Value {
    let mut all = vec![
        ready("cert-manager", "09:30:00", "09:46:30"),
        ready("gpu-operator", "09:47:00", "09:49:05"),
        ready("nvsentinel", "09:49:10", "09:50:00"),
        ready("prometheus-adapter", "09:52:00", "09:52:45"),
        ready("nvsentinel-post", "09:53:00", "09:53:30"),
    ];
    all[3]["state"] = json!("Removed");
    all.truncate(count);
    json!(all)
}

fn ready(release: &str, started: &str, finished: &str) -> Value {
    let at = |time: &str| format!("2026-07-01T{time}Z");
    json!({ "release": release, "state": "Ready", "startedAt": at(started), "finishedAt": at(finished) })
}

fn read(rollout: Value) -> RuntimeRollout {
    serde_json::from_value(rollout).unwrap()
}
