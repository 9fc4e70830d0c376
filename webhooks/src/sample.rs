//! Reviews for tests, in the shape that a real API server sends (`facts/kubernetes.md` K16).

use std::collections::BTreeSet;

use aicr_crds::{Digest, RuntimeRolloutSpec, application::Engine};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{Approvers, Code, Known, Policy, Rule, Separation, Verdict, Webhook, judge, service_account};

pub(crate) const OPERATOR: &str = "system:serviceaccount:aicr-system:aicr-operator";
/// The runtime's UID.
pub(crate) const UID: &str = "7c1d6f0e-5a41-4f0b-9a3e-0d2c8c1f7a11";
pub(crate) const ROLLOUT: &str = "rollout-0123456789abcdef-1";

pub(crate) fn now() -> Timestamp {
    "2026-11-29T22:00:00Z".parse().unwrap()
}

/// A time so many minutes from now, as Kubernetes writes it.
pub(crate) fn minutes(minutes: i64) -> String {
    now().checked_add(SignedDuration::from_mins(minutes)).unwrap().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(crate) fn policy() -> Policy {
    let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    Policy {
        operator: service_account("aicr-system", "aicr-operator"),
        namespace: "aicr-system".into(),
        approvers: Approvers { users: texts(&["alice", "ann", OPERATOR]), groups: texts(&["aicr-approvers"]) },
        separation: Separation::FourEyes,
        engine: Engine {
            namespace: "argocd".into(),
            project: "aicr".into(),
            repository: "registry.example:5000/aicr/lab".into(),
        },
    }
}

/// An unfinished rollout: an upgrade that waits for approval and later for an acknowledgement, and a removal.
pub(crate) fn rollout() -> Value {
    let digest = Digest::of(b"plan");
    let step = |release: &str, operation: &str, acknowledge: bool| {
        json!({ "release": release, "operation": operation, "valuesChanged": false, "crds": [],
            "approval": { "need": "Required", "reason": "manual" }, "acknowledge": acknowledge, "warnings": [] })
    };
    json!({
        "apiVersion": "operator.aicr.run/v1alpha1",
        "kind": "RuntimeRollout",
        "metadata": { "name": ROLLOUT, "uid": "5f1c0000-0000-4000-8000-000000000001", "resourceVersion": "7",
            "labels": { "app.kubernetes.io/managed-by": "aicr-operator" },
            "annotations": { "operator.aicr.run/written": "{\"nvsentinel\":{\"uid\":\"u1\",\"ready\":true},\"nfd\":{\"uid\":\"u2\",\"ready\":true},\"late\":{\"uid\":\"u3\",\"ready\":false}}" } },
        "spec": {
            "schemaVersion": "1", "runtime": { "name": "cluster", "uid": UID }, "kind": "Change",
            "targetPlanDigest": digest, "target": digest.short(), "attempt": 1, "selection": "Automatic",
            "requestedBy": [{ "user": "ann", "at": minutes(-60) }, { "user": "ben", "at": minutes(-50) }],
            "steps": [step("nvsentinel", "Upgrade", true), step("nfd", "Upgrade", false), step("late", "Upgrade", true), step("old", "Remove", false)],
            "inventory": [], "actionTimeout": "30m", "deadline": minutes(360), "validation": "Disabled"
        }
    })
}

pub(crate) fn binding(rollout: &Value) -> Digest {
    serde_json::from_value::<RuntimeRolloutSpec>(rollout["spec"].clone()).unwrap().binding_digest().unwrap()
}

pub(crate) fn person(user: &str) -> Value {
    json!({ "username": user, "groups": ["system:authenticated"] })
}

/// An approval as it stands after the stamp.
pub(crate) fn approval(rollout: &Value, user: &str) -> Value {
    json!({ "reason": "window agreed", "expiresAt": minutes(120), "bindingDigest": binding(rollout),
        "approvedBy": person(user), "approvedAt": minutes(0) })
}

pub(crate) fn revocation(user: &str) -> Value {
    json!({ "reason": "incident", "revokedBy": person(user), "revokedAt": minutes(0) })
}

pub(crate) fn acknowledgement(release: &str, user: &str) -> Value {
    json!({ "release": release, "reason": "done", "acknowledgedBy": person(user), "acknowledgedAt": minutes(0) })
}

/// The rollout with something changed.
pub(crate) fn with(object: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut changed = object.clone();
    change(&mut changed);
    changed
}

pub(crate) fn approved() -> Value {
    with(&rollout(), |r| r["spec"]["approval"] = approval(&rollout(), "alice"))
}

pub(crate) fn ended(outcome: &str) -> Value {
    with(&approved(), |r| {
        r["metadata"]["labels"]["operator.aicr.run/outcome"] = json!(outcome);
        r["metadata"]["annotations"]["operator.aicr.run/finished-at"] = json!(minutes(-1));
    })
}

pub(crate) fn runtime() -> Value {
    json!({
        "apiVersion": "operator.aicr.run/v1alpha1", "kind": "ClusterRuntime",
        "metadata": { "name": "cluster", "uid": UID, "resourceVersion": "3", "generation": 1,
            "annotations": { "operator.aicr.run/spec-changed-by": authors(&[("ann", -60)]) },
            "finalizers": ["operator.aicr.run/cleanup"] },
        "spec": { "intent": "training", "placement": {
            "accelerated": { "nodeSelector": { "role": "gpu" } }, "system": { "nodeSelector": { "role": "system" } } },
            "paused": false, "suspendEngine": false }
    })
}

pub(crate) fn authors(list: &[(&str, i64)]) -> String {
    let list: Vec<Value> = list.iter().map(|(user, at)| json!({ "user": user, "at": minutes(*at) })).collect();
    json!(list).to_string()
}

pub(crate) fn application() -> Value {
    let digest = Digest::of(b"chart").to_string();
    let source = json!({ "repoURL": "oci://registry.example:5000/aicr/lab/charts/old", "targetRevision": digest,
        "path": ".", "helm": { "releaseName": "old", "values": "a: 1\n" } });
    let mut annotations = json!({});
    for key in ["runtime-uid", "rollout", "component", "depends-on", "chart-version", "chart-content", "fingerprint"] {
        annotations[format!("operator.aicr.run/{key}")] = json!("x");
    }
    annotations["operator.aicr.run/release"] = json!("old");
    annotations["operator.aicr.run/plan-digest"] = json!(Digest::of(b"plan"));
    annotations["operator.aicr.run/order"] = json!("3");
    annotations["operator.aicr.run/readiness-gate"] = json!("false");
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": { "name": "old", "namespace": "argocd", "uid": "a1", "resourceVersion": "9",
            "labels": { "app.kubernetes.io/managed-by": "aicr-operator" }, "annotations": annotations },
        "spec": { "project": "aicr", "source": source,
            "destination": { "server": "https://kubernetes.default.svc", "namespace": "old" },
            "syncPolicy": { "automated": { "enabled": true, "prune": true, "selfHeal": true } } }
    })
}

pub(crate) fn live() -> Value {
    with(&application(), |app| {
        app["status"] =
            json!({ "sync": { "status": "Synced" }, "operationState": { "phase": "Running", "message": "m" } });
    })
}

/// A review of this write; an absent old object is a CREATE, an absent new one a DELETE.
pub(crate) fn review(user: &str, old: Option<&Value>, new: Option<&Value>) -> Value {
    let object = new.or(old).unwrap();
    let kind = object["kind"].as_str().unwrap();
    let (group, version) = object["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", "v1"));
    let resource = format!("{}s", kind.to_lowercase());
    let operation = match (old, new) {
        (None, _) => "CREATE",
        (Some(_), Some(_)) => "UPDATE",
        (Some(_), None) => "DELETE",
    };
    let mut request = json!({
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": { "group": group, "version": version, "kind": kind },
        "resource": { "group": group, "version": version, "resource": resource },
        "requestKind": { "group": group, "version": version, "kind": kind },
        "requestResource": { "group": group, "version": version, "resource": resource },
        "name": object["metadata"]["name"], "operation": operation,
        "userInfo": { "username": user, "groups": ["system:authenticated"] },
        "object": new, "oldObject": old, "dryRun": false,
        "options": { "kind": "PatchOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl-patch" }
    });
    if let Some(namespace) = object["metadata"]["namespace"].as_str() {
        request["namespace"] = json!(namespace);
    }
    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request })
}

/// The verdict of one webhook.
pub(crate) fn ask(webhook: Webhook, review: &Value, known: &Known) -> Verdict {
    ask_with(webhook, review, &policy(), known)
}

pub(crate) fn ask_with(webhook: Webhook, review: &Value, policy: &Policy, known: &Known) -> Verdict {
    judge(webhook, &serde_json::to_vec(review).unwrap(), policy, known, now()).unwrap().verdict
}

/// In a word: `allow`, `patch`, or the rule with its code.
pub(crate) fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Allow(_) => "allow".to_owned(),
        Verdict::Patch(_) => "patch".to_owned(),
        Verdict::Deny(denial) => format!("{} {}", denial.rule.name(), denial.code.number()),
    }
}

/// Asserts a refusal by this rule, with status 403.
#[track_caller]
pub(crate) fn assert_forbidden(verdict: &Verdict, rule: Rule) {
    assert!(
        matches!(verdict, Verdict::Deny(denial) if denial.rule == rule && denial.code == Code::Forbidden),
        "{verdict:?}"
    );
}
