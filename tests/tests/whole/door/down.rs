//! The operator is away: nobody is kept from what is theirs, and what the door guards stays shut.

use aicr_lab::product::APPROVERS;
use aicr_tests::people::{Person, Said};
use aicr_tests::stage::OPERATOR;
use aicr_tests::{Stage, caller::Caller};
use kube::api::PatchParams;
use serde_json::{Value, json};

use super::forged;

/// Argo CD's application controller.
const ENGINE: &str = "system:serviceaccount:argocd:argocd-application-controller";
const APPLICATION: (&str, &str, Option<&str>) = ("argoproj.io/v1alpha1", "Application", Some("argocd"));
/// How often the engine writes in one go (B15).
const WRITES: usize = 500;
const DRY: &str = "--dry-run=server";

/// Finds a rollout that waits for approval; leaves it so.
pub(crate) fn nobody_is_kept_from_what_is_theirs(stage: &Stage) {
    let admin = stage.administrator();
    let ended = forged_ended(stage);
    let engine = stage.caller(Some(ENGINE));
    admin.send(&["create"], &bystander()).passed();
    engine_writes(&engine, "up");
    stage.kubectl(&["scale", "deployment/aicr-operator", "-n", "aicr-system", "--replicas", "0"]);
    stage.until("no pod of the operator", 2, || {
        let pods = stage.kubectl(&["get", "pods", "-n", "aicr-system", "-o", "name"]);
        if pods.is_empty() { Ok(()) } else { Err(pods) }
    });
    engine_writes(&engine, "down");
    for (did, said) in theirs(stage, &admin, &ended) {
        assert_eq!(said.code, 0, "{did}: {said:?}");
    }
    for (did, said) in guarded(stage, &admin) {
        let is_shut = said.err.contains("failed calling webhook") && said.err.contains("operator.aicr.run");
        assert!(said.code != 0 && is_shut, "{did}: {said:?}");
    }
    stage.kubectl(&["delete", "application", "bystander", "-n", "argocd"]);
    stage.kubectl(&["scale", "deployment/aicr-operator", "-n", "aicr-system", "--replicas", "2"]);
    stage.until_both_are_ready();
}

/// An ended rollout of another runtime, which anybody may delete.
fn forged_ended(stage: &Stage) -> String {
    forged::operator(stage).send(&["create"], &forged::rollout(8)).passed();
    let name = forged::name(8);
    stage.until("the operator to end the rollout of a runtime that is gone", 1, || {
        let outcome = stage.rollout(&name)["metadata"]["labels"]["operator.aicr.run/outcome"].clone();
        if outcome.is_string() { Ok(()) } else { Err(outcome.to_string()) }
    });
    name
}

/// An Application that is nobody's of ours.
fn bystander() -> Value {
    let mut application = forged::application();
    application["metadata"] = json!({"name": "bystander", "namespace": "argocd"});
    application
}

/// Status, operation, refresh and spec, in turn.
fn engine_writes(engine: &Caller, word: &str) {
    for number in 0..WRITES {
        let patch = match number % 4 {
            0 => {
                json!({"status": {"reconciledAt": "2026-11-30T00:00:00Z", "summary": {"images": [format!("{word}{number}")]}}})
            }
            1 => json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}),
            2 => json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": null}}}),
            _ => json!({"operation": {"info": [{"name": word, "value": number.to_string()}]}}),
        };
        let stored = engine.patch(APPLICATION, "bystander", &PatchParams::default(), &patch);
        let stored = stored.unwrap_or_else(|error| panic!("{word}, write {number}: {error}"));
        let says = |key: &str| stored["metadata"]["annotations"][key].as_str();
        assert!(says("operator.aicr.run/runtime-uid").is_none(), "nothing is stamped: {stored}");
    }
}

/// What must pass. What would spoil the story is a dry run, which asks the webhooks too.
fn theirs(stage: &Stage, admin: &Person<'_>, ended: &str) -> Vec<(&'static str, Said)> {
    let runtime = |patch: Value, more: &[&str]| {
        let what: Vec<&str> = ["clusterruntime", "cluster"].into_iter().chain(more.iter().copied()).collect();
        admin.patch(&what, &patch)
    };
    let annotate = |key: &str| json!({"metadata": {"annotations": {format!("operator.aicr.run/{key}"): "again"}}});
    let app = |patch: Value| admin.patch(&["application", "bystander", "-n", "argocd"], &patch);
    let plan = plan(stage);
    let rollout = stage.until_a_rollout(1);
    vec![
        ("pause", runtime(json!({"spec": {"paused": true}}), &[])),
        ("resume", runtime(json!({"spec": {"paused": false}}), &[])),
        ("suspend the engine", runtime(json!({"spec": {"suspendEngine": true}}), &[DRY])),
        ("retry", runtime(annotate("retry"), &[DRY])),
        ("resnapshot", runtime(annotate("resnapshot"), &[DRY])),
        ("take finalizers off the runtime", runtime(json!({"metadata": {"finalizers": null}}), &[DRY])),
        ("delete the runtime", admin.kubectl(&["delete", "clusterruntime", "cluster", DRY])),
        ("delete a plan", admin.kubectl(&["delete", "configmap", &plan, "-n", "aicr-system", DRY])),
        ("delete an ended rollout", admin.kubectl(&["delete", "runtimerollout", ended])),
        (
            "label a rollout",
            admin.patch(&["runtimerollout", &rollout], &json!({"metadata": {"labels": {"team": "a"}}})),
        ),
        (
            "finalizers of an Application",
            app(json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}})),
        ),
        ("take them off", app(json!({"metadata": {"finalizers": null}}))),
        ("spec of an Application", app(json!({"spec": {"project": "default"}}))),
        ("delete an Application", admin.kubectl(&["delete", "application", "bystander", "-n", "argocd", DRY])),
        ("create an Application", admin.send(&["create", DRY], &renamed(bystander()))),
        ("a ConfigMap that is no plan", admin.kubectl(&["create", "configmap", "mine", "-n", "aicr-system"])),
        ("its data", admin.patch(&["configmap", "mine", "-n", "aicr-system"], &json!({"data": {"a": "b"}}))),
        ("its end", admin.kubectl(&["delete", "configmap", "mine", "-n", "aicr-system"])),
        ("a plan label elsewhere", admin.send(&["create", DRY], &labelled("default"))),
        ("a namespace", admin.kubectl(&["create", "namespace", "mine", DRY])),
        ("a node's label", admin.kubectl(&["label", "node", "lab", "a.example/b=c", DRY])),
        ("a Secret", admin.kubectl(&["create", "secret", "generic", "mine", "-n", "aicr-system", DRY])),
        (
            "a lease",
            admin.patch(&["lease", "aicr-operator", "-n", "aicr-system"], &json!({"metadata": {"labels": {"a": "b"}}})),
        ),
        (
            "the operator's Deployment",
            admin.kubectl(&["annotate", "deployment/aicr-operator", "-n", "aicr-system", "a=b"]),
        ),
        ("a pod", admin.kubectl(&["run", "mine", "--image", "none", DRY])),
        ("a CRD", admin.kubectl(&["delete", "crd", "runtimerollouts.operator.aicr.run", DRY])),
    ]
}

/// What must be refused.
fn guarded(stage: &Stage, admin: &Person<'_>) -> Vec<(&'static str, Said)> {
    let rollout = stage.until_a_rollout(1);
    let (runtime, waiting) = (["clusterruntime", "cluster"], ["runtimerollout", rollout.as_str()]);
    let approval = json!({"spec": {"approval": forged::approval(&stage.rollout(&rollout))}});
    let changed = json!({"metadata": {"annotations": {"operator.aicr.run/spec-changed-by": "[]"}}});
    let account = stage.acting_as(OPERATOR);
    let mut runtime_again = aicr_tests::samples::runtime();
    runtime_again["metadata"]["name"] = json!("cluster");
    let plan = plan(stage);
    let alice = stage.person("alice", &[APPROVERS]);
    vec![
        ("an approval", alice.patch(&waiting, &approval)),
        ("a revocation", alice.patch(&waiting, &json!({"spec": {"revocation": {"reason": "r"}}}))),
        (
            "an acknowledgement",
            alice.patch(&waiting, &json!({"spec": {"acknowledgements": [{"release": "nvsentinel", "reason": "r"}]}})),
        ),
        ("spec of the runtime", admin.patch(&runtime, &json!({"spec": {"intent": "inference"}}))),
        ("who changed it", admin.patch(&runtime, &changed)),
        (
            "status of the runtime",
            admin.patch(
                &[runtime[0], runtime[1], "--subresource", "status"],
                &json!({"status": {"activePlanDigest": aicr_tests::samples::digest('a')}}),
            ),
        ),
        (
            "status of a rollout",
            admin.patch(&[waiting[0], waiting[1], "--subresource", "status"], &json!({"status": {"step": "1/1"}})),
        ),
        (
            "the end of a rollout",
            admin.patch(&waiting, &json!({"metadata": {"labels": {"operator.aicr.run/outcome": "Failed"}}})),
        ),
        ("an unfinished rollout's deletion", admin.kubectl(&["delete", waiting[0], waiting[1]])),
        ("a new rollout", admin.send(&["create"], &forged::rollout(9))),
        ("a runtime created", admin.send(&["create", DRY], &runtime_again)),
        (
            "the operator's write to an Application",
            account.patch(&["application", "bystander", "-n", "argocd"], &json!({"metadata": {"labels": {"a": "b"}}})),
        ),
        (
            "a plan annotated",
            admin.patch(&["configmap", &plan, "-n", "aicr-system"], &json!({"metadata": {"annotations": {"a": "b"}}})),
        ),
        ("another plan", admin.send(&["create"], &labelled("aicr-system"))),
    ]
}

fn renamed(mut application: Value) -> Value {
    application["metadata"]["name"] = json!("another");
    application
}

/// A ConfigMap with the label of a plan.
pub(super) fn labelled(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "pretends", "namespace": namespace, "labels": {"operator.aicr.run/role": "plan"}},
    })
}

/// The name of a stored plan.
pub(super) fn plan(stage: &Stage) -> String {
    let plans = stage.list(&["get", "configmaps", "-n", "aicr-system", "-l", "operator.aicr.run/role=plan"]);
    let first = plans.first().unwrap_or_else(|| panic!("a plan is stored"));
    first["metadata"]["name"].as_str().unwrap().to_owned()
}
