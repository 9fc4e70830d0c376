//! Steps that Argo CD cannot carry out, and what a person does then.

use aicr_tests::Stage;
use aicr_tests::stage::OPERATOR;
use serde_json::{Value, json};

use super::{FIRST, SECOND, SECOND_NAMESPACE, application, argo_cd_goes_on, changed, in_its_first_step, retried};

/// The policy of the story.
const POLICY: &str = "nobody-changes-it";

/// A sync that the cluster refuses: the step fails with the cluster's words, and a retry to the same content goes on.
pub(crate) fn a_failed_step_is_retried_to_the_same_content(stage: &Stage) {
    stage.patch_runtime(&json!({"spec": {"rollout": {"actionTimeout": "1m"}}}));
    let name = changed(stage, 7);
    refuse_changes(stage, "false");
    stage.approve(&name);
    stage.until_phase(&name, "Failed", 6);
    let message = stage.until_reason("Stalled", "RolloutFailed", 1);
    for words in [format!("release {SECOND}: Sync"), format!("{SECOND}-seen"), "a story says no".to_owned()] {
        assert!(message.contains(&words), "{words} is missing in {message}");
    }
    let revision = application(stage, SECOND)["spec"]["source"].clone();
    allow_changes(stage);
    let again = retried(stage, "after-the-failure");
    stage.approve(&again);
    stage.until_phase(&again, "Succeeded", 6);
    assert_eq!(application(stage, SECOND)["spec"]["source"], revision, "the same content");
}

/// A36: a sync of the older content, which the cluster refuses and Argo CD tries again and again, is in the way of a step:
/// it is named, and terminated once half the action timeout has passed. Leaves what was asked for rolled out.
pub(crate) fn an_operation_for_older_content_is_named_and_ended_after_half_the_time(stage: &Stage) {
    stage.patch_runtime(&json!({"spec": {"rollout": {"actionTimeout": "2m"}}}));
    let name = changed(stage, 11);
    // Only the newer content may pass: an interval of 100 and the turn.
    refuse_changes(stage, r#"object.data.values.matches('"interval":"?111"?')"#);
    let again = json!({"limit": 100, "backoff": {"duration": "20s", "factor": 1, "maxDuration": "20s"}});
    let sync = json!({"syncOptions": ["ServerSideApply=true"]});
    let operation = json!({"operation": {"initiatedBy": {"username": "somebody"}, "retry": again, "sync": sync}});
    stage.administrator().patch(&["application", SECOND, "-n", "argocd"], &operation).passed();
    stage.until("an operation that is tried again", 2, || {
        let tried = application(stage, SECOND)["status"]["operationState"].clone();
        if tried["phase"] == "Running" && tried["retryCount"].is_number() { Ok(()) } else { Err(tried.to_string()) }
    });
    stage.approve(&name);
    let observed = stage.until("the operation to be named", 3, || {
        let status = stage.rollout(&name)["status"].clone();
        let observed = status["current"]["observed"].as_str().unwrap_or_default();
        if observed.starts_with("OtherOperation") { Ok(observed.to_owned()) } else { Err(status.to_string()) }
    });
    assert!(observed.contains("somebody") && observed.contains("a story says no"), "{observed}");
    stage.until_phase(&name, "Succeeded", 5);
    let terminates = |entry: &Value| {
        entry["objectRef"]["name"] == SECOND
            && entry["requestObject"]["status"]["operationState"]["phase"] == "Terminating"
    };
    // More than once where Argo CD wrote over it at the end of a try.
    assert!(stage.audit(OPERATOR).iter().any(terminates), "it did not end by itself");
    allow_changes(stage);
}

/// A42: somebody syncs manifests of their own in the middle of a step: Argo CD heals that by itself, or the operator starts a
/// sync of the step's source, once, and nothing of the laptop's is left in its state. Leaves what was asked for rolled out.
pub(crate) fn a_sync_of_local_manifests_is_synced_away(stage: &Stage) {
    stage.patch_runtime(&json!({"spec": {"rollout": {"actionTimeout": "5m"}}}));
    let name = in_its_first_step(stage, 12);
    let namespace = application(stage, FIRST)["spec"]["destination"]["namespace"].as_str().unwrap().to_owned();
    let local = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-a-laptop", "namespace": namespace},
    });
    let sync = json!({"manifests": [local.to_string()]});
    let operation = json!({"operation": {"initiatedBy": {"username": "mallory"}, "sync": sync}});
    stage.administrator().patch(&["application", FIRST, "-n", "argocd"], &operation).passed();
    argo_cd_goes_on(stage);
    stage.until_phase(&name, "Succeeded", 6);
    let syncs = |entry: &Value| {
        let of_this = entry["requestObject"]["operation"]["info"][0]["value"] == name;
        entry["objectRef"]["name"] == FIRST && of_this && entry["responseStatus"]["code"] == 200
    };
    assert!(stage.audit(OPERATOR).iter().filter(|entry| syncs(entry)).count() <= 1, "synced away once");
    let last = application(stage, FIRST)["status"]["operationState"]["operation"].clone();
    assert!(last["sync"]["source"].is_object() && last["sync"]["manifests"].is_null(), "{last}");
    // Argo CD marks nothing of a laptop as its own, and so prunes nothing of it either.
    stage.kubectl(&["delete", "configmap", "of-a-laptop", "-n", &namespace]);
}

fn allow_changes(stage: &Stage) {
    stage.kubectl(&["delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", POLICY]);
}

/// What a person's policy refuses in the cluster: a ConfigMap of the second release, unless this is true of it.
fn refuse_changes(stage: &Stage, unless: &str) {
    let expression = format!("object.metadata.name != '{SECOND}-seen' || {unless}");
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SECOND_NAMESPACE}},
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["UPDATE"],
                }],
            },
            "validations": [{"expression": expression, "message": "a story says no"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
    });
    let admin = stage.administrator();
    admin.send(&["apply"], &policy).passed();
    admin.send(&["apply"], &binding).passed();
    // It takes the API server a moment to enforce it.
    let touched = json!({"metadata": {"annotations": {"touched": "by a story"}}});
    stage.until("the policy to be enforced", 2, || {
        let seen = format!("{SECOND}-seen");
        let said = admin.patch(&["configmap", &seen, "-n", SECOND_NAMESPACE, "--dry-run=server"], &touched);
        if said.err.contains("a story says no") { Ok(()) } else { Err(format!("{said:?}")) }
    });
}

/// A spec that Argo CD refuses: named at once, failed after a grace of a minute, well before the time-out.
pub(crate) fn a_spec_that_argo_cd_refuses_fails_after_its_grace(stage: &Stage) {
    stage.patch_runtime(&json!({"spec": {"rollout": {"actionTimeout": "30m"}}}));
    let name = changed(stage, 8);
    let destinations = destinations(stage);
    let without: Vec<Value> = destinations.iter().filter(|one| one["namespace"] != SECOND_NAMESPACE).cloned().collect();
    assert_eq!(without.len() + 1, destinations.len(), "{destinations:?}");
    let set = |to: &[Value]| {
        let to = json!({"spec": {"destinations": to}});
        stage.administrator().patch(&["appproject", "aicr", "-n", "argocd"], &to).passed();
    };
    set(&without);
    stage.approve(&name);
    stage.until_phase(&name, "Failed", 5);
    let message = stage.until_reason("Stalled", "RolloutFailed", 1);
    assert!(message.contains(&format!("release {SECOND}: SpecRefused")), "{message}");
    set(&destinations);
    let again = retried(stage, "after-the-refusal");
    stage.approve(&again);
    stage.until_phase(&again, "Succeeded", 6);
}

fn destinations(stage: &Stage) -> Vec<Value> {
    let project = stage.json(&["get", "appproject", "aicr", "-n", "argocd"]);
    project["spec"]["destinations"].as_array().cloned().unwrap_or_default()
}
