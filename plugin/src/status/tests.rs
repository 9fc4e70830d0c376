//! Pages of a runtime at every stage, word for word, and who is to act.

use aicr_crds::{ClusterRuntime, Digest, RuntimeRollout, reason::Reason};
use anstream::adapter::strip_str;
use insta::assert_snapshot;
use kube::{
    Resource,
    api::{ApiResource, DynamicObject},
};
use rstest::rstest;
use serde_json::{Value, json};

use super::{advice::Advice, *};
use crate::fixture;

const NAMESPACE: &str = "aicr-system";

fn dynamic<K: Resource<DynamicType = ()> + serde::Serialize>(object: &K) -> DynamicObject {
    serde_json::from_value(serde_json::to_value(object).unwrap()).unwrap()
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 3,
        "lastTransitionTime": "2026-07-01T08:10:00Z",
    })
}

fn runtime(conditions: &[Value]) -> Value {
    let resource = ApiResource::erase::<ClusterRuntime>(&());
    json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": { "name": "cluster", "generation": 3 },
        "spec": { "intent": "training", "placement": {} },
        "status": {
            "observedGeneration": 3, "conditions": conditions,
            "activePlanDigest": Digest::of(b"from"), "candidatePlanDigest": Digest::of(b"target"),
            "discovery": {
                "snapshot": { "configMap": "aicr-snapshot-1", "takenAt": "2026-07-01T07:00:00Z", "cause": "first" },
                "criteria": { "service": "eks", "accelerator": "h100", "os": "ubuntu" },
                "acceleratedNodes": 8, "systemNodes": 3,
            },
            "aicr": { "version": "v1.1.2", "image": "registry.example.com/aicr:v1.1.2" },
        },
    })
}

fn stalled(reason: &str, message: &str) -> Value {
    let ready = "rollout rollout-34a04005bcaf206e-1 stalled";
    runtime(&[
        condition("Stalled", "True", reason, message),
        condition("Ready", "False", "RollingOut", ready),
        condition("Available", "True", "Healthy", "every release is ready"),
    ])
}

fn ready() -> Value {
    let message = "the target plan is rolled out and validated";
    let mut runtime = runtime(&[
        condition("EngineAvailable", "True", "EngineAvailable", "Argo CD's CRDs and the project are there"),
        condition("Resolved", "True", "Resolved", "the current inputs have a plan"),
        condition("Stalled", "False", "Progressing", "no person is needed"),
        condition("Reconciling", "False", "RolledOut", "nothing is in progress"),
        condition("Available", "True", "Healthy", "every release is ready"),
        condition("Ready", "True", "RolledOut", message),
    ]);
    runtime["status"]["activePlanDigest"] = json!(Digest::of(b"target"));
    runtime
}

fn in_flight() -> Value {
    runtime(&[
        condition(
            "Ready",
            "False",
            "RollingOut",
            "rollout rollout-34a04005bcaf206e-1: step 2/5 gpu-operator (Upgrade)",
        ),
        condition("Available", "False", "NotReady", "release nvsentinel: OutOfSync"),
        condition("Reconciling", "True", "RollingOut", "rollout rollout-34a04005bcaf206e-1: step 2/5"),
        condition("Stalled", "False", "Progressing", "no person is needed"),
        condition("Resolved", "True", "Resolved", "the current inputs have a plan"),
        condition("EngineAvailable", "True", "EngineAvailable", "Argo CD's CRDs and the project are there"),
    ])
}

fn seen(runtime: Option<Value>, rollouts: &[RuntimeRollout]) -> Seen {
    Seen::new(runtime.map(object), rollouts.iter().map(dynamic).collect()).unwrap()
}

fn page(seen: &Seen) -> String {
    strip_str(&render(seen, NAMESPACE, fixture::now())).to_string()
}

fn who(seen: &Seen) -> State {
    state(seen, NAMESPACE, fixture::now())
}

fn unhalted() -> RuntimeRollout {
    let mut rollout = fixture::in_flight();
    rollout.status.as_mut().unwrap().current.as_mut().unwrap().halted = false;
    rollout
}

#[test]
fn no_runtime() {
    let seen = seen(None, &[]);
    assert_snapshot!(page(&seen));
    assert_eq!(who(&seen), State::NeedsPerson);
}

#[test]
fn a_runtime_that_nobody_has_looked_at() {
    let mut runtime = runtime(&[]);
    runtime.as_object_mut().unwrap().remove("status");
    let seen = seen(Some(runtime), &[]);
    assert_snapshot!(page(&seen));
    assert_eq!(who(&seen), State::Working);
}

#[test]
fn a_runtime_that_is_ready() {
    let seen = seen(Some(ready()), &[fixture::succeeded()]);
    assert_snapshot!(page(&seen));
    assert_eq!(who(&seen), State::Ready);
}

#[test]
fn a_rollout_in_flight_needs_nobody() {
    let seen = seen(Some(in_flight()), &[unhalted()]);
    assert_snapshot!(page(&seen));
    assert_eq!(who(&seen), State::Working);
}

#[test]
fn a_paused_rollout_names_the_switch() {
    let mut runtime = in_flight();
    runtime["spec"]["paused"] = json!(true);
    runtime["metadata"]["generation"] = json!(4);
    let seen = seen(Some(runtime), &[fixture::in_flight()]);
    assert_snapshot!(page(&seen));
    assert_eq!(who(&seen), State::NeedsPerson);
}

#[test]
fn an_approver_is_waited_for() {
    let runtime = stalled("AwaitingApproval", "rollout rollout-34a04005bcaf206e-1: awaiting approval");
    assert_snapshot!(page(&seen(Some(runtime), &[fixture::awaiting_approval()])));
}

#[test]
fn an_acknowledgement_is_owed() {
    let runtime = stalled("AwaitingAcknowledgement", "rollout rollout-34a04005bcaf206e-1: recorded steps are owed");
    assert_snapshot!(page(&seen(Some(runtime), &[fixture::awaiting_acknowledgement()])));
}

#[test]
fn words_of_a_newer_operator_are_shown_as_they_are() {
    let mut runtime = stalled("QuotaExceeded", "the quota of \x1b[2Jnamespace x is used up; raise it");
    let conditions = runtime["status"]["conditions"].as_array_mut().unwrap();
    conditions.insert(0, condition("Audited", "False", "NobodyAsked", ""));
    runtime["status"]["rollout"] = json!({ "name": "rollout-34a04005bcaf206e-1", "phase": "Rehearsing" });
    let mut newer = dynamic(&fixture::in_flight());
    newer.data["status"]["phase"] = json!("Rehearsing");
    let seen = Seen::new(Some(object(runtime)), vec![newer]).unwrap();
    assert_snapshot!(page(&seen));
    assert_eq!(who(&seen), State::NeedsPerson);
}

#[test]
fn a_stall_without_a_rollout_to_read_still_needs_a_person() {
    let seen = seen(Some(stalled("AwaitingApproval", "rollout r: the approval does not bind it")), &[]);
    assert!(page(&seen).contains("1. Stalled with AwaitingApproval: do as its message says"), "{}", page(&seen));
    assert_eq!(who(&seen), State::NeedsPerson);
}

#[rstest]
#[case("RolloutFailed", "operator.aicr.run/retry=\"$(date +%s)\" --overwrite")]
#[case("NodeGroupEmpty", "operator.aicr.run/resnapshot=\"$(date +%s)\" --overwrite")]
#[case("PlanOfAnotherRuntime", "-p '{\"spec\":{\"selection\":{\"policy\":\"Automatic\",\"pinnedPlanDigest\":\"\"}}}'")]
#[case("RegistryCredentialsStale", "kubectl -n aicr-system rollout restart deployment/aicr-operator")]
#[case("OverridePathUnknown", "kubectl edit clusterruntime cluster")]
fn a_stall_has_the_command_of_its_runbook(#[case] reason: &str, #[case] command: &str) {
    let text = page(&seen(Some(stalled(reason, "m")), &[]));
    assert!(text.contains(command), "{text}");
}

#[test]
fn every_reason_that_can_stall_has_advice_or_a_line_of_its_rollout() {
    // `design/status.md`: the reasons of Stalled are the first of the list that are no success and no progress.
    let silent: Vec<_> =
        Reason::ALL.iter().filter(|reason| Advice::of(**reason).is_none()).map(|r| r.as_str()).collect();
    assert_eq!(
        silent.join(" "),
        "RolledOut ValidationDisabled RollingOut NotReady NoActivePlan Paused EngineSuspended Deleting Healthy \
         Resolving Stabilizing Assessing Validating Progressing Resolved EngineAvailable AwaitingApproval \
         AwaitingAcknowledgement"
    );
}

#[test]
fn a_suspended_engine_is_said_even_where_nothing_rolls_out() {
    let mut runtime = ready();
    runtime["spec"] = json!({ "suspendEngine": true, "paused": true });
    let text = page(&seen(Some(runtime), &[]));
    assert!(text.contains("{\"spec\":{\"suspendEngine\":false}}"), "{text}");
    assert!(!text.contains("{\"spec\":{\"paused\":false}}"), "nothing is held: {text}");
}

#[test]
fn a_rollout_past_its_deadline_asks_nobody() {
    let mut rollout = fixture::awaiting_approval();
    rollout.spec.deadline.0 = fixture::now();
    let text = page(&seen(Some(in_flight()), &[rollout]));
    assert!(text.contains("Waits for:      the operator to end it"), "{text}");
    assert!(text.contains("To do: nothing"), "{text}");
}

#[test]
fn the_document_has_what_the_page_says_beyond_the_objects() {
    let seen = seen(Some(in_flight()), &[unhalted(), fixture::succeeded()]);
    let document = document(&seen, NAMESPACE, fixture::now());
    assert_eq!(document["state"], "Working");
    assert_eq!(document["runtime"]["metadata"]["name"], "cluster");
    assert_eq!(document["rollouts"].as_array().unwrap().len(), 1);
    assert_eq!(
        document["waits"][0]["until"][0],
        json!({ "at": "2026-07-01T10:17:00Z", "then": "the step's time, when it fails" })
    );
    assert_eq!(document["toDo"], json!([]));
}

#[test]
fn a_runtime_of_another_shape_is_an_error() {
    let mut runtime = ready();
    runtime["spec"] = json!("all of it");
    assert!(Seen::new(Some(object(runtime)), Vec::new()).is_err());
}
