//! Rollouts in any state that a rule asks for, written as the operator while there is no runtime to act on.

use aicr_crds::RuntimeRolloutSpec;
use aicr_tests::caller::ROLLOUT;
use aicr_tests::people::Person;
use aicr_tests::samples;
use aicr_tests::stage::OPERATOR;
use aicr_tests::{Stage, samples::digest};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Group that a story binds to the editors' role.
pub(super) const EDITORS: &str = "aicr-editors";

/// An hour from now and the like, as Kubernetes writes times.
pub(super) fn hours(hours: i64) -> String {
    let time = Timestamp::now().checked_add(SignedDuration::from_hours(hours)).unwrap();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The operator's own account.
pub(super) fn operator(stage: &Stage) -> Person<'_> {
    stage.acting_as(OPERATOR)
}

/// An unfinished rollout of a runtime of its own (by number), requested by bob and carol, which upgrades a manual
/// release and removes another.
pub(super) fn rollout(number: u8) -> Value {
    let mut step = samples::step(0);
    step["warnings"] = json!([]);
    let removal = json!({
        "release": "forged", "operation": "Remove", "valuesChanged": false, "crds": [], "acknowledge": false,
        "warnings": [], "approval": {"need": "Required", "reason": "a removal"},
    });
    let mut rollout = samples::rollout_with(
        &name(number),
        json!({
            "runtime": {"name": "cluster", "uid": format!("0b5c1f7e-5f2f-4c0e-9d5e-0000000000{number:02}")},
            "requestedBy": [{"user": "bob", "at": hours(-2)}, {"user": "carol", "at": hours(-1)}],
            "deadline": hours(8),
            "steps": [step, removal],
        }),
    );
    rollout["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "aicr-operator"});
    rollout
}

/// The name of a forged rollout.
pub(super) fn name(number: u8) -> String {
    format!("forged-{number}")
}

/// Creates a forged rollout as the operator, and gives it a phase.
pub(super) fn create(stage: &Stage, number: u8, phase: &str) -> Value {
    let account = operator(stage);
    account.send(&["create"], &rollout(number)).passed();
    let name = name(number);
    let status = json!({"status": {"phase": phase, "step": "0/2", "message": "forged"}});
    put_status(stage, &name, &status);
    stage.rollout(&name)
}

/// Writes status as the operator, which may patch it and not read it apart, as kubectl would.
pub(super) fn put_status(stage: &Stage, name: &str, status: &Value) {
    let stored = stage.caller(Some(OPERATOR)).patch_status(ROLLOUT, name, status);
    assert!(stored.is_ok(), "{name}: {stored:?}");
}

/// Ends a forged rollout as the operator.
pub(super) fn end(stage: &Stage, number: u8, outcome: &str) {
    let ended = json!({"metadata": {
        "labels": {"operator.aicr.run/outcome": outcome},
        "annotations": {"operator.aicr.run/finished-at": hours(0)},
    }});
    operator(stage).patch(&["runtimerollout", &name(number)], &ended).passed();
}

/// What a person sends who approves this rollout.
pub(super) fn approval(rollout: &Value) -> Value {
    let spec: RuntimeRolloutSpec = serde_json::from_value(rollout["spec"].clone()).unwrap();
    json!({
        "reason": "a maintenance window", "expiresAt": hours(4), "bindingDigest": spec.binding_digest().unwrap(),
    })
}

/// An Application as the operator writes one, of a chart that is nowhere; nothing syncs it.
pub(super) fn application() -> Value {
    let mut annotations = json!({
        "operator.aicr.run/release": "forged",
        "operator.aicr.run/plan-digest": digest('a'),
        "operator.aicr.run/order": "0",
        "operator.aicr.run/readiness-gate": "false",
    });
    for key in ["runtime-uid", "rollout", "component", "depends-on", "chart-version", "chart-content", "fingerprint"] {
        annotations[format!("operator.aicr.run/{key}")] = json!("forged");
    }
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": "forged", "namespace": "argocd", "annotations": annotations,
            "labels": {"app.kubernetes.io/managed-by": "aicr-operator"},
        },
        "spec": {
            "project": "aicr",
            "source": {
                "repoURL": "oci://10.245.0.1:5000/aicr/charts/forged", "targetRevision": digest('b'), "path": ".",
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "gpu-operator"},
        },
    })
}
