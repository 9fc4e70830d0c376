//! Objects as people and the operator write them.

use serde_json::{Value, json};

/// A digest made of one hex digit.
pub fn digest(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

/// The least that a runtime can be.
pub fn runtime() -> Value {
    json!({
        "apiVersion": "operator.aicr.run/v1alpha1",
        "kind": "ClusterRuntime",
        "metadata": {"name": "cluster"},
        "spec": {
            "intent": "training",
            "placement": {"accelerated": {"nodeSelector": {"nvidia.com/gpu.present": "true"}}},
        },
    })
}

/// A runtime with other fields in its spec.
pub fn runtime_with(fields: Value) -> Value {
    with(runtime(), fields)
}

/// A rollout of one step with nothing that is optional but its target.
pub fn rollout(name: &str) -> Value {
    json!({
        "apiVersion": "operator.aicr.run/v1alpha1",
        "kind": "RuntimeRollout",
        "metadata": {"name": name},
        "spec": {
            "schemaVersion": "1",
            "runtime": {"name": "cluster", "uid": "0b5c1f7e-5f2f-4c0e-9d5e-2a7c43c1d0aa"},
            "kind": "Change",
            "targetPlanDigest": digest('b'),
            "target": "b".repeat(16),
            "attempt": 1,
            "selection": "Automatic",
            "requestedBy": [{"user": "alice", "at": "2026-11-29T20:00:00Z"}],
            "steps": [step(0)],
            "inventory": [inventory_row(0)],
            "actionTimeout": "30m",
            "deadline": "2099-11-30T03:00:00Z",
            "validation": "Required",
        },
    })
}

/// A rollout with other fields in its spec.
pub fn rollout_with(name: &str, fields: Value) -> Value {
    with(rollout(name), fields)
}

/// A rollout with every field that the operator may write.
pub fn full_rollout(name: &str) -> Value {
    rollout_with(name, json!({"fromPlanDigest": digest('a'), "retryToken": "again", "assessment": assessment()}))
}

/// The largest rollout: 256 steps, 256 rows of inventory, 64 acknowledgements.
pub fn largest_rollout(name: &str) -> Value {
    let fields = json!({
        "steps": (0..256).map(step).collect::<Vec<_>>(),
        "inventory": (0..256).map(inventory_row).collect::<Vec<_>>(),
        "acknowledgements": (0..64).map(acknowledgement).collect::<Vec<_>>(),
    });
    with(full_rollout(name), fields)
}

/// The stored upgrade-check report.
pub fn assessment() -> Value {
    json!({"configMap": "aicr-assessment-1", "digest": digest('c')})
}

/// A step of a release that is numbered.
pub fn step(number: usize) -> Value {
    json!({
        "release": format!("release-{number}"),
        "operation": "Upgrade",
        "from": chart(number, 'a'),
        "to": chart(number, 'b'),
        "valuesChanged": true,
        "verdict": "manual",
        "crds": (0..8).map(|crd| json!({"name": format!("kind{crd}s.release-{number}.example.com"), "change": "Changed"})).collect::<Vec<_>>(),
        "approval": {"need": "Required", "reason": "AICR calls it manual"},
        "acknowledge": true,
        "warnings": ["x".repeat(512), "y".repeat(512)],
    })
}

fn chart(number: usize, digit: char) -> Value {
    json!({"chart": format!("charts/release-{number}"), "version": "1.0.0", "digest": digest(digit)})
}

/// An Application of the starting inventory.
pub fn inventory_row(number: usize) -> Value {
    json!({
        "application": format!("release-{number}"),
        "uid": format!("4f6f2c53-7ab7-45a7-a0ea-{number:012}"),
        "planDigest": digest('a'),
        "fingerprint": digest('f'),
    })
}

/// An approval.
pub fn approval() -> Value {
    json!({
        "reason": "maintenance window",
        "expiresAt": "2099-11-30T00:00:00Z",
        "bindingDigest": digest('d'),
        "approvedBy": {"username": "bob", "groups": ["approvers"]},
        "approvedAt": "2026-11-29T21:10:00Z",
    })
}

/// A revocation.
pub fn revocation() -> Value {
    json!({
        "reason": "a job has no checkpoint",
        "revokedBy": {"username": "carol", "groups": ["approvers"]},
        "revokedAt": "2026-11-29T21:20:00Z",
    })
}

/// An acknowledgement for a release that is numbered.
pub fn acknowledgement(number: usize) -> Value {
    json!({
        "release": format!("release-{number}"),
        "reason": "nodes drained",
        "acknowledgedBy": {"username": "bob", "groups": ["approvers"]},
        "acknowledgedAt": "2026-11-29T21:15:00Z",
    })
}

fn with(mut object: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { panic!("{fields} is no object") };
    for (name, value) in fields {
        object["spec"][name] = value;
    }
    object
}
