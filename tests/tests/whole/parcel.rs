//! The chart as a parcel: upgraded, rolled back and taken away with either Helm, without a conflict, the stack untouched.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use aicr_lab::product::{FORCE_CONFLICTS, Helm, NAMESPACE, Release, this_chart};
use aicr_tests::Stage;
use aicr_tests::people::Transcript;
use serde_json::{Value, json};

/// The version that the earlier stories leave.
const AICR: &str = "v1.1.4";

/// What the end of a runtime leaves on its Applications.
const ORPHANED_FROM: &str = "operator.aicr.run/orphaned-from";

const CLUSTER_WIDE: [&str; 8] = [
    "customresourcedefinitions",
    "clusterroles",
    "clusterrolebindings",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "namespaces",
    "clusterruntimes",
    "runtimerollouts",
];
const NAMESPACED: [&str; 11] = [
    "appprojects",
    "configmaps",
    "deployments",
    "leases",
    "networkpolicies",
    "poddisruptionbudgets",
    "rolebindings",
    "roles",
    "secrets",
    "serviceaccounts",
    "services",
];

fn release<'a>(stage: &'a Stage, sets: &'a [&'a str]) -> Release<'a> {
    Release { pushed: &stage.pushed, aicr: AICR, sets }
}

/// Finds an installation; changes nothing.
pub(crate) fn a_second_installation_is_refused(stage: &Stage) {
    let chart = this_chart().to_string_lossy().into_owned();
    let values = this_chart().join("ci/lab-values.yaml").to_string_lossy().into_owned();
    let args = ["install", "second", &chart, "--namespace", "second", "--create-namespace", "--values", &values];
    for helm in [Helm::Three, Helm::Four] {
        let refusal = format!("{:?}", helm.run(&stage.lab, &args).unwrap_err());
        assert!(refusal.contains("there is an AICR operator in this cluster already"), "{helm:?}: {refusal}");
    }
    stage.kubectl(&["delete", "namespace", "second", "--wait=false", "--ignore-not-found"]);
}

/// B62: an upgrade after days of reconciles conflicts with nothing. Finds Helm 4's installation; leaves none.
pub(crate) fn helm_4_upgrades_rolls_back_and_takes_all_away(stage: &Stage) {
    Helm::Four.put(&stage.lab, "upgrade", &this_chart(), &release(stage, &[])).unwrap();
    stage.until_both_are_ready();
    round(stage, Helm::Four);
}

/// The label that AICR v1.0.x's launcher gives its namespace, on one that is kept: nothing is installed until Helm has it
/// back. Finds what Helm 4 left, and leaves it.
pub(crate) fn a_kept_namespace_with_another_label_is_given_back_before_an_install(stage: &Stage) {
    let label = |value: &str| {
        let label = format!("app.kubernetes.io/managed-by={value}");
        stage.kubectl(&["label", "namespace", "aicr-discovery", "aicr-validation", &label, "--overwrite"]);
    };
    label("aicr");
    for (helm, words) in [(Helm::Three, &[][..]), (Helm::Four, &[]), (Helm::Four, &[FORCE_CONFLICTS])] {
        let refusal = helm.put_with(&stage.lab, "install", &this_chart(), &release(stage, &[]), words).unwrap_err();
        let refusal = format!("{refusal:?}").replace('\\', "");
        for words in [
            r#"Namespace "aicr-discovery""#,
            "exists and cannot be imported into the current release",
            r#"key "app.kubernetes.io/managed-by" must equal "Helm": current value is "aicr""#,
        ] {
            assert!(refusal.contains(words), "{helm:?}: {words} is missing in {refusal}");
        }
    }
    label("Helm");
}

/// Finds what Helm 4 left; leaves an installation.
pub(crate) fn helm_3_installs_beside_a_stack(stage: &Stage) {
    let stack = stack(stage);
    Helm::Three.put(&stage.lab, "install", &this_chart(), &release(stage, &[])).unwrap();
    stage.until_both_are_ready();
    assert_eq!(stack, self::stack(stage), "an installation beside a stack changes nothing of it");
}

/// B63: the earlier runtime is gone without a trace; leaves another, which waits for a person.
pub(crate) fn a_new_runtime_beside_a_stack_takes_nothing_over(stage: &Stage) {
    let stack = stack(stage);
    stage.product.sample(&stage.lab, &json!({})).unwrap();
    let message = stage.until_reason("Stalled", "OrphanedObjectsPresent", 2);
    assert!(message.contains("gpu-operator"), "{message}");
    assert!(stage.list(&["get", "runtimerollouts", "-l", "!operator.aicr.run/outcome"]).is_empty());
    assert_eq!(stack, self::stack(stage));
}

/// Leaves the same as Helm 4.
pub(crate) fn helm_3_upgrades_rolls_back_and_takes_all_away(stage: &Stage) {
    round(stage, Helm::Three);
}

/// Two upgrades, of which the second renames an entry of the webhooks; a rollback; the documented end.
fn round(stage: &Stage, helm: Helm) {
    let stack = stack(stage);
    helm.put(&stage.lab, "upgrade", &this_chart(), &release(stage, &["logLevel=info"])).unwrap();
    stage.until_both_are_ready();
    let before = revision(stage, helm);
    let renamed = renamed(stage);
    helm.put(&stage.lab, "upgrade", &renamed, &release(stage, &["logLevel=info"])).unwrap();
    until_trusted(stage, "stored-plans.operator.aicr.run");
    stage.until_both_are_ready();
    helm.run(&stage.lab, &["rollback", "aicr-operator", &before, "--namespace", NAMESPACE]).unwrap();
    until_trusted(stage, "plans.operator.aicr.run");
    stage.until_both_are_ready();
    assert_eq!(stack, self::stack(stage), "upgrades and a rollback change nothing of the stack");
    let uid = stage.json(&["get", "clusterruntime", "cluster"])["metadata"]["uid"].clone();
    stage.kubectl(&["delete", "clusterruntime", "--all", "--timeout", "60s"]);
    for application in stage.list(&["get", "applications", "-n", "argocd"]) {
        let annotations = &application["metadata"]["annotations"];
        let is_owned = annotations["operator.aicr.run/runtime-uid"] == uid;
        assert!(!is_owned || annotations[ORPHANED_FROM] == uid, "what was owned was let go of: {annotations}");
    }
    if helm == Helm::Three {
        // B42: nobody is left to take anything back.
        stage.kubectl(&["scale", "deployment/aicr-operator", "-n", NAMESPACE, "--replicas", "0"]);
        stage.until("no operator", 2, || match stage.pods() {
            none if none.is_empty() => Ok(()),
            some => Err(some.join(", ")),
        });
    }
    helm.run(&stage.lab, &["uninstall", "aicr-operator", "--namespace", NAMESPACE, "--wait"]).unwrap();
    assert_eq!(stack, self::stack(stage), "the end of the operator changes nothing of the stack");
    what_is_left(stage);
    nobody_is_kept_from_anything(stage);
}

fn revision(stage: &Stage, helm: Helm) -> String {
    let status =
        helm.run(&stage.lab, &["status", "aicr-operator", "--namespace", NAMESPACE, "--output", "json"]).unwrap();
    let status: Value = serde_json::from_str(&status).unwrap();
    status["version"].to_string()
}

/// The chart with another name for one entry.
fn renamed(stage: &Stage) -> PathBuf {
    let copy = stage.lab.layout().root().join("renamed-chart");
    let _ = fs::remove_dir_all(&copy);
    copy_folder(&this_chart(), &copy);
    let path = copy.join("templates/operator/webhooks-validating.yaml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("name: plans.operator.aicr.run"));
    fs::write(&path, text.replace("name: plans.operator.aicr.run", "name: stored-plans.operator.aicr.run")).unwrap();
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// Waits until an entry of that name has a bundle.
fn until_trusted(stage: &Stage, name: &str) {
    stage.until(&format!("a bundle in {name}"), 2, || {
        let configuration = stage.json(&["get", "validatingwebhookconfiguration", "aicr-operator"]);
        let entries = configuration["webhooks"].as_array().cloned().unwrap_or_default();
        let found = entries.iter().find(|entry| entry["name"] == name);
        let has_one = found.is_some_and(|entry| entry["clientConfig"]["caBundle"].is_string());
        let names: Vec<_> = entries.iter().map(|entry| entry["name"].to_string()).collect();
        if has_one { Ok(()) } else { Err(names.join(", ")) }
    });
}

/// Applications as they are wanted, and the pods that run for them; not that a runtime let go of them.
pub(crate) fn stack(stage: &Stage) -> BTreeSet<String> {
    let applications = stage.list(&["get", "applications", "-n", "argocd"]).into_iter();
    let wanted = applications.map(|application| {
        let mut annotations = application["metadata"]["annotations"].clone();
        annotations.as_object_mut().map(|all| all.remove(ORPHANED_FROM));
        json!([application["metadata"]["uid"], annotations, application["spec"]]).to_string()
    });
    let pods = stage.list(&["get", "pods", "-A"]).into_iter().filter(|pod| {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        !namespace.starts_with("aicr-") && namespace != "argocd"
    });
    let running =
        pods.map(|pod| json!([pod["metadata"]["namespace"], pod["metadata"]["name"], pod["metadata"]["uid"]]));
    let stack: BTreeSet<String> = wanted.chain(running.map(|pod| pod.to_string())).collect();
    assert!(stack.len() > 20, "{stack:?}");
    stack
}

/// Object by object, beside a golden list; Jobs and pods go by themselves.
fn what_is_left(stage: &Stage) {
    let told = Transcript::new("left");
    for kind in CLUSTER_WIDE {
        told.note(kind, &left(stage, kind, None));
    }
    for namespace in [NAMESPACE, "aicr-jobs", "aicr-discovery", "aicr-validation", "argocd", "default"] {
        // A launcher's ConfigMap goes once it is read, whenever that is.
        let kinds = NAMESPACED.into_iter().filter(|kind| (namespace, *kind) != ("aicr-discovery", "configmaps"));
        for kind in kinds {
            let left = left(stage, kind, Some(namespace));
            if !left.is_empty() {
                told.note(&format!("{kind} in {namespace}"), &left);
            }
        }
    }
    told.check();
}

/// Names with aicr in them, without digests and numbers.
fn left(stage: &Stage, kind: &str, namespace: Option<&str>) -> String {
    let mut args = vec!["get", kind, "-o", "name", "--ignore-not-found"];
    args.extend(namespace.iter().flat_map(|namespace| ["-n", namespace]));
    let names = stage.kubectl(&args);
    let mut names: Vec<String> = names.lines().filter(ours).map(plain).collect();
    names.sort();
    names.dedup();
    names.join("\n")
}

/// The stand-in's charts have CRDs with the name in them; they are the stack's.
fn ours(name: &&str) -> bool {
    (name.contains("aicr") || name.contains("rollout-")) && !name.contains(".standin.")
}

/// A name with every part that is a digest or a count as `*`.
fn plain(name: &str) -> String {
    let is_number = |part: &&str| part.len() >= 5 && part.chars().all(|letter| letter.is_ascii_hexdigit());
    let part =
        |part: &str| if is_number(&part) || part.parse::<u32>().is_ok() { "*".to_owned() } else { part.to_owned() };
    name.split('-').map(part).collect::<Vec<_>>().join("-")
}

/// B42: nothing of ours is left that holds anybody up.
fn nobody_is_kept_from_anything(stage: &Stage) {
    let admin = stage.administrator();
    let pretends = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "pretends", "namespace": NAMESPACE, "labels": {"operator.aicr.run/role": "plan"}},
    });
    admin.send(&["create"], &pretends).passed();
    admin.patch(&["configmap", "pretends", "-n", NAMESPACE], &json!({"data": {"a": "b"}})).passed();
    admin.kubectl(&["delete", "configmap", "pretends", "-n", NAMESPACE]).passed();
    admin.kubectl(&["create", "secret", "generic", "pretends", "-n", NAMESPACE]).passed();
    admin.kubectl(&["delete", "secret", "pretends", "-n", NAMESPACE]).passed();
    let applications = stage.list(&["get", "applications", "-n", "argocd"]);
    let name = applications[0]["metadata"]["name"].as_str().unwrap();
    let labels = |value: Value| json!({"metadata": {"labels": {"somebody": value}}});
    admin.patch(&["application", name, "-n", "argocd"], &labels(json!("else"))).passed();
    admin.patch(&["application", name, "-n", "argocd"], &labels(Value::Null)).passed();
}
