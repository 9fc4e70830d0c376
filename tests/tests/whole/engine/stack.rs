//! The stack as a whole: a release removed and installed again, taken over by another runtime, deleted with approval.

use std::collections::BTreeSet;

use aicr_lab::product::{Helm, NAMESPACE, Release, this_chart};
use aicr_tests::Stage;
use serde_json::{Value, json};

use super::{
    FIRST, SECOND, SECOND_NAMESPACE, application, argo_cd_goes_on, credentials, in_its_first_step, until_message,
};

/// What another platform leaves out.
const PLATFORM: &str = "kubeflow-trainer";

/// A release that the target lacks is removed with approval; its CRDs stay, and it is installed again beside them.
pub(crate) fn a_removed_release_leaves_its_definitions_and_can_come_again(stage: &Stage) {
    stage.patch_runtime(&json!({"spec": {"platform": null, "overrides": []}}));
    let name = stage.until_a_rollout(10);
    stage.until_phase(&name, "AwaitingApproval", 2);
    let removed = operations(&stage.rollout(&name), "Remove");
    let expected = removed.contains(PLATFORM) && removed.iter().all(|name| name.starts_with(PLATFORM));
    assert!(expected, "{}", stage.rollout(&name)["spec"]["steps"]);
    let definitions = definitions(stage);
    assert!(definitions.iter().any(|name| name.contains("trainer")), "{definitions:?}");
    stage.administrator().send(&["create"], &somebodys_job()).passed();
    let kept = kept(stage);
    assert_eq!(kept.len(), 2, "a ConfigMap that the chart keeps, and somebody's custom resource: {kept:?}");
    stage.approve(&name);
    stage.until_phase(&name, "Succeeded", 8);
    assert!(!names(stage).contains(PLATFORM));
    assert_eq!(self::definitions(stage), definitions, "no cascade takes definitions away");
    assert_eq!(self::kept(stage), kept, "nor what is of them, nor what is to be kept");
    let pods = stage.list(&["get", "pods", "-n", "kubeflow"]);
    let running = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(running.count(), 0, "its pods are gone: {pods:?}");
    stage.patch_runtime(&json!({"spec": {"platform": "kubeflow"}}));
    let again = stage.until_a_rollout(10);
    assert_eq!(operations(&stage.rollout(&again), "Install"), removed);
    stage.approve(&again);
    stage.until_phase(&again, "Succeeded", 8);
}

/// A custom resource of a definition that the release brought.
fn somebodys_job() -> Value {
    json!({
        "apiVersion": "kubeflow-trainer.standin.aicr.test/v1", "kind": "StandinTrainJob",
        "metadata": {"name": "somebodys", "namespace": "kubeflow"},
    })
}

/// What stays of that release, each with its UID.
fn kept(stage: &Stage) -> BTreeSet<String> {
    let all = stage.list(&["get", "configmaps,standintrainjobs", "-n", "kubeflow"]);
    let stays = |object: &&Value| {
        let name = object["metadata"]["name"].as_str().unwrap();
        name == "somebodys" || name.ends_with("-kept")
    };
    all.iter().filter(stays).map(|object| object["metadata"]["uid"].to_string()).collect()
}

/// What is renamed in v1.1.5.
const OLD_NAME: &str = "k8s-ephemeral-storage-metrics";
/// What it is called from then on.
const NEW_NAME: &str = "ephemeral-storage-metrics";

/// A release that is called otherwise and renders what it did before: Install of the new, Remove of the old, and nothing
/// that runs is touched; and back again.
pub(crate) fn a_renamed_release_keeps_what_runs(stage: &Stage) {
    let before = running(stage);
    assert!(before.len() >= 3, "{before:?}");
    for (aicr, from, to) in [("v1.1.5", OLD_NAME, NEW_NAME), ("v1.1.4", NEW_NAME, OLD_NAME)] {
        stage.product.upgrade(&stage.lab, &Release { pushed: &stage.pushed, aicr, sets: &[] }).unwrap();
        let name = stage.until_a_rollout(10);
        let rollout = stage.rollout(&name);
        assert_eq!(operations(&rollout, "Install"), [to.to_owned()].into());
        assert_eq!(operations(&rollout, "Remove"), [from.to_owned()].into());
        stage.approve(&name);
        stage.until_phase(&name, "Succeeded", 8);
        assert!(names(stage).contains(to) && !names(stage).contains(from), "{:?}", names(stage));
        assert_eq!(running(stage), before, "what runs under either name stays as it is");
    }
}

/// Deployment, ConfigMap and pods of the release that is renamed, each with its UID.
fn running(stage: &Stage) -> BTreeSet<String> {
    let all = stage.list(&["get", "deployments,configmaps,pods", "-n", "monitoring"]);
    let is_it = |object: &&Value| object["metadata"]["name"].as_str().unwrap().starts_with(OLD_NAME);
    let shown =
        |object: &Value| format!("{} {} {}", object["kind"], object["metadata"]["name"], object["metadata"]["uid"]);
    all.iter().filter(is_it).map(shown).collect()
}

/// B63 and on: finds the stack of a runtime that is gone, which another one found and left; leaves it taken over.
pub(crate) fn an_orphaned_stack_is_adopted_with_approval(stage: &Stage) {
    Helm::Four
        .put(&stage.lab, "install", &this_chart(), &Release { pushed: &stage.pushed, aicr: "v1.1.4", sets: &[] })
        .unwrap();
    stage.until_both_are_ready();
    let owner = application(stage, "nfd")["metadata"]["annotations"]["operator.aicr.run/runtime-uid"].clone();
    let specs = specs(stage);
    adopted(stage, owner.as_str().unwrap());
    assert_eq!(self::specs(stage), specs, "an adoption writes annotations and nothing else");
    let uid = stage.json(&["get", "clusterruntime", "cluster"])["metadata"]["uid"].clone();
    for name in names(stage) {
        let annotations = application(stage, &name)["metadata"]["annotations"].clone();
        assert_eq!(annotations["operator.aicr.run/runtime-uid"], uid, "{name}");
        assert!(annotations["operator.aicr.run/orphaned-from"].is_null(), "{name}");
    }
}

/// A new runtime beside the stack of another one stalls until it is told to take it over, and takes all of it over.
fn adopted(stage: &Stage, owner: &str) {
    stage
        .product
        .sample(&stage.lab, &json!({"spec": {"rollout": {"stabilizationWindow": "0s"}, "deletionPolicy": "Delete"}}))
        .unwrap();
    let message = stage.until_reason("Stalled", "OrphanedObjectsPresent", 3);
    assert!(message.contains(owner), "{message}");
    stage.patch_runtime(&json!({"spec": {"adoption": {"runtimeUID": owner}}}));
    let name = stage.until_a_rollout(3);
    assert!(name.starts_with("adopt-"), "{name}");
    assert_eq!(operations(&stage.rollout(&name), "Adopt"), names(stage));
    stage.approve(&name);
    stage.until_phase(&name, "Succeeded", 8);
}

/// A runtime whose finalizer somebody takes off in the middle of a step: nothing cascades, Argo CD goes on, and another
/// runtime takes over what was moved and what was not. Leaves a stack whose runtime says Delete.
pub(crate) fn a_half_moved_stack_outlives_its_runtime_and_is_adopted(stage: &Stage) {
    // The person's Secret for AICR's Jobs went with their namespace when the chart was taken away.
    credentials(stage, "aicr-jobs");
    let rollout = in_its_first_step(stage, 20);
    let owner = stage.json(&["get", "clusterruntime", "cluster"])["metadata"]["uid"].clone();
    let specs = specs(stage);
    scaled(stage, 0);
    stage.kubectl(&["delete", "clusterruntime", "cluster", "--wait=false"]);
    let bare = json!({"metadata": {"finalizers": null}});
    stage.administrator().patch(&["clusterruntime", "cluster"], &bare).passed();
    assert!(stage.list(&["get", "clusterruntimes"]).is_empty());
    argo_cd_goes_on(stage);
    stage.until("Argo CD to sync the step that was begun", 4, || {
        let first = application(stage, FIRST);
        let status = &first["status"];
        let compared = status["sync"]["comparedTo"]["source"]["helm"] == first["spec"]["source"]["helm"];
        let synced = status["sync"]["status"] == "Synced" && status["operationState"]["phase"] == "Succeeded";
        if compared && synced { Ok(()) } else { Err(status.to_string()) }
    });
    let deployment = ["deployment", SECOND, "-n", SECOND_NAMESPACE];
    stage.kubectl(&[&["scale", "--replicas=0"][..], &deployment].concat());
    stage.until("Argo CD to undo an edit", 4, || {
        let replicas = stage.json(&[&["get"][..], &deployment].concat())["spec"]["replicas"].clone();
        if replicas == 1 { Ok(()) } else { Err(replicas.to_string()) }
    });
    assert_eq!(self::specs(stage), specs, "nothing has an owner that takes it along");
    scaled(stage, 2);
    stage.until_both_are_ready();
    stage.until("the rollout to be orphaned", 2, || {
        let outcome = stage.rollout(&rollout)["metadata"]["labels"]["operator.aicr.run/outcome"].clone();
        if outcome == "Orphaned" { Ok(()) } else { Err(outcome.to_string()) }
    });
    adopted(stage, owner.as_str().unwrap());
    assert_eq!(self::specs(stage), specs, "what was moved stays where it is, and so does what was not");
    // The inputs have no such value any more: what was moved goes back, with approval, and nothing else.
    let back = stage.until_a_rollout(10);
    assert_eq!(operations(&stage.rollout(&back), "Upgrade"), [FIRST.to_owned()].into());
    stage.approve(&back);
    stage.until_phase(&back, "Succeeded", 8);
}

fn scaled(stage: &Stage, replicas: u8) {
    let replicas = format!("--replicas={replicas}");
    stage.kubectl(&["scale", "deployment/aicr-operator", "-n", NAMESPACE, &replicas]);
    stage.kubectl(&["rollout", "status", "deployment/aicr-operator", "-n", NAMESPACE, "--timeout=120s"]);
}

/// Finds a stack whose runtime says Delete; leaves nothing of it but its definitions.
pub(crate) fn deletion_with_delete_takes_the_stack_with_approval(stage: &Stage) {
    let definitions = definitions(stage);
    let before = names(stage);
    // A rollout that is unfinished, should the candidate differ, ends first.
    stage.kubectl(&["delete", "clusterruntime", "cluster", "--wait=false"]);
    let name = stage.until("a removal", 5, || {
        let name = stage.until_a_rollout(3);
        if name.starts_with("remove-") { Ok(name) } else { Err(name) }
    });
    let steps = stage.rollout(&name)["spec"]["steps"].clone();
    let order: Vec<&str> = steps.as_array().unwrap().iter().filter_map(|step| step["release"].as_str()).collect();
    assert_eq!(order.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), before);
    let place = |release: &str| order.iter().position(|one| *one == release).unwrap();
    assert!(place("gpu-operator") < place("cert-manager"), "what guards others goes after them: {order:?}");
    until_message(stage, &name, "awaiting approval");
    assert_eq!(names(stage), before, "nothing goes without approval");
    stage.approve(&name);
    stage.until("the runtime to be gone", 15, || {
        let runtimes = stage.list(&["get", "clusterruntimes"]);
        let left = names(stage);
        if runtimes.is_empty() { Ok(()) } else { Err(format!("{} Applications are left: {left:?}", left.len())) }
    });
    assert!(names(stage).is_empty());
    assert_eq!(stage.rollout(&name)["metadata"]["labels"]["operator.aicr.run/outcome"], "Succeeded");
    assert_eq!(self::definitions(stage), definitions, "no cascade takes definitions away");
}

fn operations(rollout: &Value, operation: &str) -> BTreeSet<String> {
    let steps = rollout["spec"]["steps"].as_array().unwrap().iter().filter(|step| step["operation"] == operation);
    steps.filter_map(|step| step["release"].as_str().map(str::to_owned)).collect()
}

fn names(stage: &Stage) -> BTreeSet<String> {
    let ours = stage.list(&["get", "applications", "-n", "argocd", "-l", "app.kubernetes.io/managed-by=aicr-operator"]);
    ours.iter().filter_map(|one| one["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

fn specs(stage: &Stage) -> BTreeSet<String> {
    let all = stage.list(&["get", "applications", "-n", "argocd"]);
    all.iter().map(|one| json!([one["metadata"]["uid"], one["spec"]]).to_string()).collect()
}

/// The stack's definitions.
fn definitions(stage: &Stage) -> BTreeSet<String> {
    let all = stage.kubectl(&["get", "customresourcedefinitions", "-o", "name"]);
    all.lines().filter(|name| name.contains(".standin.")).map(str::to_owned).collect()
}
