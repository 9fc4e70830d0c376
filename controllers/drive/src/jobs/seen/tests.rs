//! Shapes of Jobs and pods as real clusters leave them, each with what is seen of it.

use std::sync::LazyLock;

use aicr_crds::reason::Reason;
use aicr_decide::resolve::{AicrInstall, Class, Failure, JobPhase, Stage};
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::Around;

const NAME: &str = "aicr-recipe-0123456789ab-1";

static AICR: LazyLock<AicrInstall> =
    LazyLock::new(|| AicrInstall { version: "v1.1.2".into(), image: "r/aicr:1".into() });

fn now() -> Timestamp {
    "2026-11-29T20:00:00Z".parse().unwrap()
}

fn job(stage: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "metadata": {"name": NAME, "namespace": "aicr-jobs", "uid": "job-uid", "labels": {
            "operator.aicr.run/stage": stage, "operator.aicr.run/input": "0123", "operator.aicr.run/attempt": "2",
            "operator.aicr.run/run": "20261129-195132-0393318d739f10f3",
        }},
        "spec": spec, "status": status,
    })
}

fn pod(status: &Value) -> Value {
    json!({
        "metadata": {"name": format!("{NAME}-x7k2p"), "uid": "pod-uid", "creationTimestamp": "2026-11-29T19:59:00Z",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": NAME, "uid": "job-uid"}]},
        "status": status,
    })
}

fn event(kind: &str, name: &str, reason: &str, message: &str) -> Value {
    json!({
        "metadata": {"name": "e"}, "reason": reason, "message": message, "lastTimestamp": "2026-11-29T19:59:10Z",
        "involvedObject": {"kind": kind, "name": name},
    })
}

fn of_pod(reason: &str, message: &str) -> Value {
    event("Pod", &format!("{NAME}-x7k2p"), reason, message)
}

fn seen(job: Value, pods: &[Value], events: &[Value], output: Option<Value>) -> JobPhase {
    let pods: Vec<_> = pods.iter().map(|pod| serde_json::from_value(pod.clone()).unwrap()).collect();
    let events: Vec<_> = events.iter().map(|event| serde_json::from_value(event.clone()).unwrap()).collect();
    let output = output.map(|map| serde_json::from_value(map).unwrap());
    let around = Around { pods: &pods, events: &events, output: output.as_ref(), aicr: &AICR, now: now() };
    super::job(&serde_json::from_value(job).unwrap(), around).unwrap().phase
}

fn active(pods: &[Value], events: &[Value]) -> Option<String> {
    let status = json!({"startTime": "2026-11-29T19:59:00Z", "active": 1,
        "conditions": [{"type": "Suspended", "status": "False"}]});
    let phase = seen(job("recipe", &json!({"suspend": false}), &status), pods, events, None);
    let JobPhase::Active(why) = phase else { panic!("{phase:?}") };
    why
}

fn failed(reason: &str, pods: &[Value], events: &[Value]) -> Failure {
    let phase = seen(ended("recipe", "Failed", reason), pods, events, None);
    let JobPhase::Failed { failure, at } = phase else { panic!("{phase:?}") };
    assert_eq!(at, "2026-11-29T19:59:50Z".parse().unwrap());
    failure
}

fn ended(stage: &str, kind: &str, reason: &str) -> Value {
    let condition = json!({"type": kind, "status": "True", "reason": reason, "message": "the Job's message",
        "lastTransitionTime": "2026-11-29T19:59:50Z"});
    let target = json!({"type": "FailureTarget", "status": "True", "lastTransitionTime": "2026-11-29T19:59:40Z"});
    job(stage, &json!({"suspend": false}), &json!({"conditions": [target, condition]}))
}

fn container(state: &Value) -> Value {
    json!([{"name": "aicr", "image": "r/aicr:1", "imageID": "", "ready": false, "restartCount": 0, "state": state}])
}

fn pending(waiting: &Value) -> Value {
    pod(&json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": container(&json!({"waiting": waiting}))}))
}

fn terminated(end: &Value) -> Value {
    let phase = if end["exitCode"] == 0 { "Succeeded" } else { "Failed" };
    pod(&json!({"phase": phase, "containerStatuses": container(&json!({"terminated": end}))}))
}

#[test]
fn labels_say_which_run_it_is_and_a_job_without_them_is_not_ours() {
    let of = |value: Value| {
        let around = Around { pods: &[], events: &[], output: None, aicr: &AICR, now: now() };
        super::job(&serde_json::from_value(value).unwrap(), around)
    };
    let mut ours = job("recipe", &json!({"suspend": true}), &json!({}));
    let seen = of(ours.clone()).unwrap();
    assert_eq!((seen.name.as_str(), seen.stage, seen.input.as_str(), seen.attempt), (NAME, Stage::Recipe, "0123", 2));
    assert_eq!((seen.run.as_str(), seen.phase), ("20261129-195132-0393318d739f10f3", JobPhase::Suspended));
    ours["metadata"]["labels"]["operator.aicr.run/stage"] = json!("dance");
    assert_eq!(of(ours.clone()), None);
    ours["metadata"]["labels"] = Value::Null;
    assert_eq!(of(ours), None);
}

/// B78.
#[rstest]
#[case::image(json!({"reason": "ImagePullBackOff", "message": "Back-off pulling image \"r/aicr:1\""}), "ImagePullBackOff: container aicr, image r/aicr:1: Back-off pulling image \"r/aicr:1\"")]
#[case::pull(json!({"reason": "ErrImagePull", "message": "rpc error:\n  denied"}), "ErrImagePull: container aicr, image r/aicr:1: rpc error: denied")]
#[case::name(json!({"reason": "InvalidImageName"}), "InvalidImageName: container aicr, image r/aicr:1")]
#[case::config(json!({"reason": "CreateContainerConfigError", "message": "secret \"x\" not found"}), "CreateContainerConfigError: container aicr, image r/aicr:1: secret \"x\" not found")]
fn a_container_that_cannot_start_is_named_with_its_cause(#[case] waiting: Value, #[case] cause: &str) {
    assert_eq!(active(&[pending(&waiting)], &[]), Some(format!("Job {NAME}: {cause}")));
    let mut of_init = pending(&json!({"reason": "PodInitializing"}));
    of_init["status"]["initContainerStatuses"] = container(&json!({"waiting": waiting}));
    assert_eq!(active(&[of_init], &[]), Some(format!("Job {NAME}: {cause}")));
}

/// B78: the same Job goes on by itself once its image can be pulled.
#[test]
fn a_run_that_waited_for_its_image_goes_on_by_itself() {
    let waiting = pending(&json!({"reason": "ImagePullBackOff", "message": "m"}));
    assert!(active(&[waiting], &[]).is_some());
    let running = pod(&json!({"phase": "Running", "containerStatuses": container(&json!({"running": {}}))}));
    assert_eq!(active(&[running], &[of_pod("Failed", "Failed to pull image")]), None);
}

const AGENT: &str = "agent-0123456789ab-1-20261129-195132-0393318d739f10f3";

/// B78: the launcher's pod runs, and what it waits for is the agent's.
#[test]
fn an_agent_that_cannot_start_is_named_behind_its_launcher() {
    let mut agent = job("snapshot", &json!({"suspend": false}), &json!({"startTime": "2026-11-29T19:59:00Z"}));
    agent["metadata"]["name"] = json!(AGENT);
    agent["metadata"]["labels"] = json!({"aicr.run/run-id": "20261129-195132-0393318d739f10f3"});
    let agent = serde_json::from_value(agent).unwrap();
    let said = |pods: &[Value]| {
        let pods: Vec<_> = pods.iter().map(|pod| serde_json::from_value(pod.clone()).unwrap()).collect();
        super::agent(&agent, Around { pods: &pods, events: &[], output: None, aicr: &AICR, now: now() })
    };
    assert_eq!(said(&[]), Some(format!("Job {AGENT} has no pod")));
    let unscheduled = pod(&json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "message": "0/9 nodes are available"}]}));
    assert_eq!(said(&[unscheduled]), Some(format!("Job {AGENT} is not scheduled: 0/9 nodes are available")));
    let running = pod(&json!({"phase": "Running", "containerStatuses": container(&json!({"running": {}}))}));
    assert_eq!(said(&[running]), None);
}

#[test]
fn a_launcher_that_waited_for_an_agent_which_never_began_is_tried_again_and_says_why() {
    let late = terminated(&json!({"exitCode": 5, "message":
        "[cli] command failed: error=[TIMEOUT] job failed: [TIMEOUT] job completion timeout: context deadline exceeded exitCode=5"}));
    let of_launcher = |events: &[Value]| {
        let mut launcher = ended("snapshot", "Failed", "BackoffLimitExceeded");
        launcher["metadata"]["name"] = json!("aicr-snapshot-0123456789ab-1");
        let JobPhase::Failed { failure, .. } = seen(launcher, std::slice::from_ref(&late), events, None) else {
            panic!()
        };
        failure
    };
    let pod = format!("{AGENT}-x7k2p");
    let unscheduled = event("Pod", &pod, "FailedScheduling", "0/9 nodes are available");
    let found = of_launcher(std::slice::from_ref(&unscheduled));
    assert_eq!((found.class, found.exit), (Class::Transient, Some(5)));
    assert_eq!(found.text, format!("the agent {pod} did not start: FailedScheduling: 0/9 nodes are available"));
    let refused = event("Job", AGENT, "FailedCreate", "violates PodSecurity");
    assert_eq!(of_launcher(&[refused]).class, Class::Transient);
    // One that began, or another run's, leaves it a time-out.
    let began = event("Pod", &pod, "Started", "Started container agent");
    assert_eq!(of_launcher(&[unscheduled, began]).class, Class::Bounded);
    let foreign = event("Pod", "aicr-20261129-195132-0393318d739f10f3-x7k2p", "FailedScheduling", "m");
    assert_eq!(of_launcher(&[foreign]).reason, Reason::AICRTimeout);
    assert_eq!(of_launcher(&[]).class, Class::Bounded);
}

#[test]
fn a_pod_that_fits_no_node_says_why() {
    let refused = pod(&json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/9 nodes are available: 9 had untolerated taint(s)."}]}));
    let said = format!("Job {NAME} is not scheduled: 0/9 nodes are available: 9 had untolerated taint(s).");
    assert_eq!(active(&[refused], &[]), Some(said));
}

#[test]
fn a_missing_secret_is_named_while_the_pod_waits_for_it_and_not_after() {
    let mount = of_pod("FailedMount", "MountVolume.SetUp failed for volume \"docker\" : secret \"x\" not found");
    let said =
        format!("Job {NAME}: FailedMount: MountVolume.SetUp failed for volume \"docker\" : secret \"x\" not found");
    let creating = pending(&json!({"reason": "ContainerCreating"}));
    let (creating, mount) = ([creating], [mount]);
    assert_eq!(active(&creating, &mount), Some(said.clone()));
    assert_eq!(active(&[pod(&json!({"phase": "Pending"}))], &mount), Some(said));
    assert_eq!(active(&creating, &[event("Pod", "aicr-other-x7k2p", "FailedMount", "m")]), None);
    let running = pod(&json!({"phase": "Running", "containerStatuses": container(&json!({"running": {}}))}));
    assert_eq!(active(&[running], &mount), None);
}

#[test]
fn a_job_without_a_pod_says_so_within_thirty_seconds() {
    assert_eq!(active(&[], &[]), Some(format!("Job {NAME} has no pod")));
    let mut other = pending(&json!({"reason": "ErrImagePull"}));
    other["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    assert_eq!(active(&[other], &[]), Some(format!("Job {NAME} has no pod")));
    let young = json!({"startTime": "2026-11-29T19:59:45Z"});
    assert_eq!(seen(job("recipe", &json!({}), &young), &[], &[], None), JobPhase::Active(None));
    let due = json!({"startTime": "2026-11-29T19:59:44Z"});
    assert_ne!(seen(job("recipe", &json!({}), &due), &[], &[], None), JobPhase::Active(None));
}

#[test]
fn the_newest_pod_counts() {
    let mut old = terminated(&json!({"exitCode": 3}));
    old["metadata"]["creationTimestamp"] = json!("2026-11-29T19:00:00Z");
    let new = terminated(&json!({"exitCode": 2}));
    for pods in [[old.clone(), new.clone()], [new, old]] {
        assert_eq!(failed("BackoffLimitExceeded", &pods, &[]).exit, Some(2));
    }
}

#[rstest]
#[case::invalid(json!({"exitCode": 2, "message": "[cli] command failed: error=[INVALID_REQUEST] bad exitCode=2"}),
    Some(2), "[INVALID_REQUEST] bad", Class::Never, Reason::AICRInvalidRequest)]
#[case::refused_connection(json!({"exitCode": 3, "message": "[cli] command failed: error=[NOT_FOUND] x: connect: connection refused exitCode=3"}),
    Some(3), "[NOT_FOUND] x: connect: connection refused", Class::Transient, Reason::AICRInternal)]
#[case::unauthorized(json!({"exitCode": 6, "message": "[cli] command failed: error=[SERVICE_UNAVAILABLE] push: 401: Unauthorized exitCode=6"}),
    Some(6), "[SERVICE_UNAVAILABLE] push: 401: Unauthorized", Class::Authorization, Reason::AICRUnauthorized)]
#[case::silent(json!({"exitCode": 8}), Some(8), "no message (exit 8)", Class::Bounded, Reason::AICRInternal)]
#[case::interrupted(json!({"exitCode": 9}), Some(9), "no message (exit 9)", Class::Transient, Reason::AICRInternal)]
#[case::out_of_memory(json!({"exitCode": 137, "reason": "OOMKilled"}), Some(137),
    "OOMKilled: the container took more than its memory limit of 256Mi", Class::Bounded, Reason::AICRInternal)]
#[case::no_such_command(json!({"exitCode": 128, "reason": "StartError", "message": "exec: \"aicr\": not found"}),
    Some(128), "exec: \"aicr\": not found", Class::Bounded, Reason::AICRInternal)]
#[case::node_lost(json!({"exitCode": 137, "reason": "ContainerStatusUnknown"}), None,
    "the node was lost while the container ran", Class::Transient, Reason::AICRInternal)]
fn an_exit_is_judged_by_what_it_said(
    #[case] end: Value,
    #[case] exit: Option<i32>,
    #[case] text: &str,
    #[case] class: Class,
    #[case] reason: Reason,
) {
    let found = failed("BackoffLimitExceeded", &[terminated(&end)], &[]);
    assert_eq!(found, Failure { exit, text: text.into(), class, reason });
}

#[rstest]
#[case::evicted(json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}), "Evicted: low on memory")]
#[case::drained(json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "drained"}],
    "containerStatuses": container(&json!({"terminated": {"exitCode": 137}}))}), "EvictionByEvictionAPI: drained")]
#[case::never_began(json!({"phase": "Failed"}), "the pod failed before its container started")]
fn a_pod_that_was_taken_away_is_tried_again(#[case] status: Value, #[case] text: &str) {
    let found = failed("BackoffLimitExceeded", &[pod(&status)], &[]);
    assert_eq!((found.exit, found.text.as_str(), found.class), (None, text, Class::Transient));
}

#[test]
fn a_pod_that_is_gone_is_tried_again() {
    let found = failed("BackoffLimitExceeded", &[], &[]);
    assert_eq!((found.exit, found.class), (None, Class::Transient));
    assert_eq!(found.text, "the pod is gone: the Job's message");
}

#[test]
fn a_run_that_began_and_met_its_deadline_counts_as_timed_out() {
    let running = pod(&json!({"phase": "Running", "containerStatuses": container(&json!({"running": {}}))}));
    let began = [of_pod("FailedMount", "m"), of_pod("Started", "Started container aicr")];
    for (pods, events) in [(vec![], vec![]), (vec![running], vec![]), (vec![], began.to_vec())] {
        let found = failed("DeadlineExceeded", &pods, &events);
        assert_eq!((found.class, found.reason, found.exit), (Class::Bounded, Reason::AICRTimeout, None));
        assert_eq!(found.text, "the deadline of 300 seconds passed");
    }
}

/// B87.
#[test]
fn a_run_that_never_began_is_tried_again_and_says_what_it_waited_for() {
    let backoff = pending(&json!({"reason": "ImagePullBackOff", "message": "Back-off"}));
    let found = failed("DeadlineExceeded", &[backoff], &[]);
    assert_eq!((found.class, found.exit), (Class::Transient, None));
    assert_eq!(
        found.text,
        format!(
            "the pod did not start within 300 seconds: Job {NAME}: ImagePullBackOff: container aicr, image r/aicr:1: Back-off"
        )
    );
    // The controller deletes the pod; its Events stay.
    let found = failed("DeadlineExceeded", &[], &[of_pod("Failed", "Failed to pull image \"r/aicr:1\"")]);
    assert_eq!(found.class, Class::Transient);
    assert!(found.text.ends_with("300 seconds: Failed: Failed to pull image \"r/aicr:1\""), "{}", found.text);
    let found = failed("DeadlineExceeded", &[], &[event("Job", NAME, "FailedCreate", "violates PodSecurity")]);
    assert_eq!(found.class, Class::Transient);
    let other = event("Pod", &format!("{NAME}2-x7k2p"), "Failed", "m");
    assert_eq!(failed("DeadlineExceeded", &[], &[other]).class, Class::Bounded);
}

#[test]
fn an_end_that_has_not_arrived_in_full_is_waited_for() {
    let running = [pod(&json!({"phase": "Running", "containerStatuses": container(&json!({"running": {}}))}))];
    for kind in ["Complete", "Failed"] {
        assert_eq!(seen(ended("render", kind, "x"), &running, &[], None), JobPhase::Active(None), "{kind}");
    }
}

fn succeeded(stage: &str, message: &str, output: Option<Value>) -> (String, Option<String>, Option<Reason>) {
    let pods = [terminated(&json!({"exitCode": 0, "message": message}))];
    let phase = seen(ended(stage, "Complete", ""), &pods, &[], output);
    let JobPhase::Succeeded { message, output, refused, .. } = phase else { panic!("{phase:?}") };
    (message, output, refused.map(|(reason, _)| reason))
}

#[test]
fn a_render_is_its_digest() {
    let digest = aicr_crds::Digest::of(b"bundle").to_string();
    assert_eq!(succeeded("render", &format!("{digest}\n"), None), (format!("{digest}\n"), None, None));
    assert_eq!(succeeded("render", "", None).2, Some(Reason::AICRInternal));
    let gone = seen(ended("render", "Complete", ""), &[], &[], None);
    assert!(matches!(gone, JobPhase::Succeeded { refused: Some((Reason::AICRInternal, _)), .. }), "{gone:?}");
}

const RECIPE: &str = "apiVersion: aicr.run/v1\nkind: RecipeResult\nmetadata: {version: 1.1.2}\ncomponentRefs: [{name: a}]\ndeploymentOrder: [a]\n";
const OLDER: &str = "apiVersion: aicr.run/v1\nkind: RecipeResult\nmetadata: {version: v1.0.0}\ncomponentRefs: [{name: a}]\ndeploymentOrder: [a]\n";
const SMALLER: &str = "apiVersion: aicr.run/v1\nkind: RecipeResult\nmetadata: {version: 1.1.2, excludedOverlays: [{name: h100-eks, reason: mixin-constraint-failed}], constraintWarnings: [{overlay: h100-eks, constraint: OS.release.ID, expected: ubuntu, actual: rhel, reason: r}]}\ncomponentRefs: [{name: a}]\ndeploymentOrder: [a]\n";
const AS_JSON: &str = r#"{"apiVersion":"aicr.run/v1","kind":"RecipeResult","metadata":{"version":"1.1.2"},"componentRefs":[],"deploymentOrder":[]}"#;

#[rstest]
#[case::yaml(json!({"format": "yaml", "snapshot.yaml": RECIPE, "timestamp": "t"}), Some(RECIPE), None)]
#[case::json(json!({"format": "json", "snapshot.json": AS_JSON}), Some(AS_JSON), None)]
#[case::own_name(json!({"format": "yaml", "recipe.yaml": RECIPE}), Some(RECIPE), None)]
#[case::other_format(json!({"format": "json", "snapshot.yaml": RECIPE}), None, Some(Reason::AICRInternal))]
#[case::nothing(json!({}), None, Some(Reason::AICRInternal))]
#[case::other_kind(json!({"snapshot.yaml": "apiVersion: aicr.run/v1\nkind: Snapshot\n"}), Some("apiVersion: aicr.run/v1\nkind: Snapshot\n"), Some(Reason::AICRArtifactUnsupported))]
#[case::other_version(json!({"snapshot.yaml": "apiVersion: aicr.run/v9\nkind: RecipeResult\n"}), Some("apiVersion: aicr.run/v9\nkind: RecipeResult\n"), Some(Reason::AICRArtifactUnsupported))]
#[case::another_aicr(json!({"snapshot.yaml": OLDER}), Some(OLDER), Some(Reason::AICRVersionMismatch))]
#[case::smaller(json!({"snapshot.yaml": SMALLER}), Some(SMALLER), Some(Reason::CriteriaConflict))]
#[case::truncated(json!({"snapshot.yaml": &RECIPE[..80]}), Some(&RECIPE[..80]), Some(Reason::AICRInternal))]
#[case::two_documents(json!({"snapshot.yaml": "a: 1\n---\nb: 1\n"}), Some("a: 1\n---\nb: 1\n"), Some(Reason::AICRInternal))]
fn a_document_is_found_by_its_format_and_judged_by_its_kind(
    #[case] data: Value,
    #[case] output: Option<&str>,
    #[case] refused: Option<Reason>,
) {
    let found = succeeded("recipe", "", Some(json!({"metadata": {"name": NAME}, "data": data})));
    assert_eq!((found.1.as_deref(), found.2), (output, refused));
}

#[test]
fn every_stage_expects_its_own_document() {
    let recipe = || Some(json!({"data": {"snapshot.yaml": RECIPE}}));
    assert_eq!(succeeded("recipe", "", recipe()).2, None);
    assert_eq!(succeeded("snapshot", "", recipe()).2, Some(Reason::AICRArtifactUnsupported));
    assert!(succeeded("assessment", "", recipe()).2.is_some());
    for stage in ["snapshot", "recipe", "assessment"] {
        assert_eq!(succeeded(stage, "", None).2, Some(Reason::AICRInternal), "{stage}");
    }
    // The exit of a validation is its verdict.
    assert_eq!(succeeded("validation", "", None).2, None);
}

#[test]
fn a_smaller_recipe_names_overlay_constraint_and_reading_once() {
    let around = [terminated(&json!({"exitCode": 0}))];
    let output = Some(json!({"data": {"snapshot.yaml": SMALLER}}));
    let phase = seen(ended("recipe", "Complete", ""), &around, &[], output);
    let JobPhase::Succeeded { refused: Some((_, message)), .. } = phase else { panic!("{phase:?}") };
    assert!(message.contains("h100-eks (OS.release.ID expects ubuntu, the snapshot reads rhel);"), "{message}");
}
