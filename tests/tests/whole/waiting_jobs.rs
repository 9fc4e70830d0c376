//! Resolution that waits for what the cluster lacks: it names it, keeps its Job, and goes on by itself.

use aicr_lab::product::NAMESPACE;
use aicr_tests::Stage;
use aicr_tests::stage::OPERATOR;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::bad_input::{again, nothing_was_written};
use crate::resolution::{candidate, resnapshot, snapshot};

/// Repository and tag of an AICR that comes late.
const LATE: &str = "late:v1.0.0";
/// Where the same image is from the beginning.
const ELSEWHERE: &str = "elsewhere:v1.0.0";
/// The docker config Secret, as the lab's values have it.
const CREDENTIALS: &str = "aicr-registry";
/// Whom people are told of a Job that waits.
const TOLD_WITHIN: SignedDuration = SignedDuration::from_secs(30);
/// A person's own Jobs: one named as ours are, and one of AICR's own launcher, with its label.
const BY_HAND: [(&str, &str); 2] =
    [("aicr-jobs", "aicr-recipe-by-hand-1"), ("aicr-discovery", "aicr-20261130-080000-0123456789abcdef")];

/// B78. Finds validation required and a plan; leaves that plan again, an AICR of another name, and a person's own Jobs.
pub(crate) fn an_image_that_is_not_there_is_named_and_waited_for_by_the_same_job(stage: &Stage) {
    by_hand(stage);
    let late = stage.product.stand_in("v1.0.0").unwrap().env("AICR_STORY", "late");
    // The same image in another repository has the digest that it will have.
    let image = stage.lab.push_image(&late.clone().named(ELSEWHERE)).unwrap().replace(ELSEWHERE, LATE);
    let made = jobs_made(stage, "aicr-snapshot-");
    let causes = ["ErrImagePull: ", "ImagePullBackOff: "];
    again(stage, &[&format!("aicr.image={image}")]);
    let first = until_a_job(stage, "aicr-discovery", "snapshot", |job| image_of(job) == image);
    until_told(stage, &first, &causes);
    // Another run, now that nobody restarts: it is told in time.
    resnapshot(stage, "late");
    let job = until_a_job(stage, "aicr-discovery", "snapshot", |job| name(job) != name(&first));
    let (said, took) = until_told(stage, &job, &causes);
    assert!(said.contains(&image), "{said}");
    assert!(took <= TOLD_WITHIN, "{took:#}");
    assert_eq!(stage.condition("Resolved").1, "Resolving", "nothing has failed");
    assert_eq!(stage.lab.push_image(&late.named(LATE)).unwrap(), image);
    until_resolved_from(stage, &job);
    assert_eq!(jobs_made(stage, "aicr-snapshot-") - made, 2, "one for the image, one for the token");
    nothing_was_written(stage);
}

/// B79 with two tokens within a second. Finds and leaves a plan.
pub(crate) fn a_namespace_that_lets_no_pod_in_is_named_while_the_earlier_plan_stands(stage: &Stage) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "no-pods", "namespace": "aicr-jobs"}, "spec": {"hard": {"pods": "0"}},
    });
    stage.administrator().send(&["create"], &quota).passed();
    let (plan, made) = (candidate(stage), jobs_made(stage, "aicr-recipe-"));
    resnapshot(stage, "no-pods-1");
    resnapshot(stage, "no-pods-2");
    let job = until_a_job(stage, "aicr-jobs", "recipe", |_| true);
    let (said, took) = until_told(stage, &job, &[" has no pod"]);
    assert_eq!(said, format!("Job {} has no pod", name(&job)));
    assert!(took <= TOLD_WITHIN, "{took:#}");
    // The inputs are only looked at again: what they came to before stands.
    assert_eq!(stage.condition("Resolved"), ("True".into(), "Resolved".into(), said));
    assert_eq!(candidate(stage), plan);
    let newest = stage.json(&["get", "configmap", &snapshot(stage), "-n", NAMESPACE]);
    let record = newest["metadata"]["annotations"]["operator.aicr.run/snapshot-record"].as_str().unwrap_or_default();
    assert!(record.contains("no-pods-2"), "the later token: {record}");
    stage.kubectl(&["delete", "resourcequota", "no-pods", "-n", "aicr-jobs"]);
    until_at_rest(stage);
    assert_eq!(jobs_made(stage, "aicr-recipe-") - made, 1, "it is the same Job");
    assert_eq!(candidate(stage), plan);
    nothing_was_written(stage);
}

/// Finds and leaves a plan.
pub(crate) fn credentials_that_are_gone_stall_and_their_return_is_enough(stage: &Stage) {
    let secret = stage.json(&["get", "secret", CREDENTIALS, "-n", NAMESPACE]);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": secret["type"], "data": secret["data"],
        "metadata": {"name": CREDENTIALS, "namespace": NAMESPACE},
    });
    stage.kubectl(&["delete", "secret", CREDENTIALS, "-n", NAMESPACE]);
    resnapshot(stage, "without-credentials");
    let message = stage.until_reason("Resolved", "RegistryCredentialsUnavailable", 3);
    let words = format!("docker config Secret {CREDENTIALS} is missing in namespace {NAMESPACE}; create it there");
    assert!(message.contains(&words), "{message}");
    let (status, reason, _) = stage.condition("Stalled");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "RegistryCredentialsUnavailable"));
    stage.administrator().send(&["create"], &secret).passed();
    stage.until_reason("Resolved", "Resolved", 5);
    until_at_rest(stage);
    nothing_was_written(stage);
}

/// Finds and leaves a plan.
pub(crate) fn a_namespace_that_the_project_lacks_is_named(stage: &Stage) {
    let project = stage.json(&["get", "appproject", "aicr", "-n", "argocd"]);
    let destinations = project["spec"]["destinations"].as_array().cloned().unwrap_or_default();
    let without: Vec<&Value> = destinations.iter().filter(|one| one["namespace"] != "monitoring").collect();
    assert_eq!(without.len() + 1, destinations.len(), "{destinations:?}");
    let set = |to: Value| {
        let to = json!({"spec": {"destinations": to}});
        stage.administrator().patch(&["appproject", "aicr", "-n", "argocd"], &to).passed();
    };
    set(json!(without));
    resnapshot(stage, "without-a-destination");
    let message = stage.until_reason("Resolved", "NamespaceNotAllowed", 3);
    for words in ["release ", "namespace monitoring, which is not allowed", "the AppProject's destinations"] {
        assert!(message.contains(words), "{words} is missing in {message}");
    }
    assert_eq!(stage.condition("Stalled").1, "NamespaceNotAllowed");
    set(json!(destinations));
    // What was refused is asked again upon a snapshot.
    resnapshot(stage, "with-the-destination");
    stage.until_reason("Resolved", "Resolved", 5);
    until_at_rest(stage);
    nothing_was_written(stage);
}

/// B79, and the newest five. Finds a person's Jobs as the first story made them; takes them away.
pub(crate) fn a_persons_own_jobs_were_left_alone_and_five_snapshots_are_kept(stage: &Stage) {
    for (namespace, name) in BY_HAND {
        let job = stage.json(&["get", "job", name, "-n", namespace]);
        let wrote = stage.audit(OPERATOR).into_iter().filter(|entry| {
            let (verb, on) = (entry["verb"].as_str().unwrap_or_default(), &entry["objectRef"]);
            on["name"] == name && on["namespace"] == namespace && !matches!(verb, "get" | "list" | "watch")
        });
        assert_eq!(wrote.count(), 0, "{job}");
        assert_eq!((&job["spec"]["suspend"], &job["metadata"]["deletionTimestamp"]), (&json!(true), &Value::Null));
        stage.kubectl(&["delete", "job", name, "-n", namespace]);
    }
    let taken = jobs_made(stage, "aicr-snapshot-");
    let kept = stage.list(&["get", "configmaps", "-n", NAMESPACE, "-l", "operator.aicr.run/role=snapshot"]);
    println!("figure: snapshots taken {taken}, kept {}", kept.len());
    assert!(taken > 5, "{taken} snapshots");
    assert_eq!(kept.len(), 5);
}

/// Jobs that a person made and has not let run.
fn by_hand(stage: &Stage) {
    for (namespace, name) in BY_HAND {
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": namespace, "labels": {
                "aicr.run/run-id": "20261130-080000-0123456789abcdef", "operator.aicr.run/stage": "recipe",
            }},
            "spec": {"suspend": true, "template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "aicr", "image": "by-hand"}],
            }}},
        });
        stage.administrator().send(&["create"], &job).passed();
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn image_of(job: &Value) -> &str {
    job["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
}

/// Waits for an open Job of a stage that is the one meant.
fn until_a_job(stage: &Stage, namespace: &str, which: &str, meant: impl Fn(&Value) -> bool) -> Value {
    let label = format!("app.kubernetes.io/managed-by=aicr-operator,operator.aicr.run/stage={which}");
    stage.until(&format!("an open {which} Job"), 3, || {
        let jobs = stage.list(&["get", "jobs", "-n", namespace, "-l", &label]);
        let is_open = |job: &Value| {
            let ended = job["status"]["conditions"].as_array().is_some_and(|conditions| {
                conditions
                    .iter()
                    .any(|one| (one["type"] == "Complete" || one["type"] == "Failed") && one["status"] == "True")
            });
            job["spec"]["suspend"] != true && job["metadata"]["deletionTimestamp"].is_null() && !ended
        };
        let found = jobs.iter().find(|job| is_open(job) && meant(job)).cloned();
        found.ok_or_else(|| format!("{} Jobs; {:?}", jobs.len(), stage.condition("Resolved")))
    })
}

/// Waits until Resolved names that Job with one of these causes; its message, and how long after the Job was made.
fn until_told(stage: &Stage, job: &Value, causes: &[&str]) -> (String, SignedDuration) {
    let begun: Timestamp = job["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    let message = stage.until(&format!("Resolved to name Job {}", name(job)), 2, || {
        let (status, reason, message) = stage.condition("Resolved");
        let named = message.starts_with(&format!("Job {}", name(job)));
        let said = named && causes.iter().any(|cause| message.contains(cause));
        if said { Ok(message) } else { Err(format!("{status} {reason}: {message}")) }
    });
    let took = Timestamp::now().duration_since(begun);
    println!("figure: {} s until it was told: {message}", took.as_secs());
    (message, took)
}

/// Waits until the inputs are resolved from the snapshot that this very Job took.
fn until_resolved_from(stage: &Stage, job: &Value) {
    let run = job["metadata"]["labels"]["operator.aicr.run/run"].as_str().unwrap();
    stage.until(&format!("a plan from run {run}"), 5, || {
        let (status, reason, message) = stage.condition("Resolved");
        let now = snapshot(stage);
        if now == format!("aicr-snapshot-{run}") && reason == "Resolved" && status == "True" {
            Ok(())
        } else {
            Err(format!("{now}: {status} {reason}: {message}"))
        }
    });
    until_at_rest(stage);
}

/// Waits until nothing resolves any more.
fn until_at_rest(stage: &Stage) {
    stage.until("resolution to be at rest", 5, || {
        let (status, reason, message) = stage.condition("Reconciling");
        let resolved = stage.condition("Resolved");
        let rests = reason != "Resolving" && resolved.0 == "True" && resolved.2 == "the current inputs have a plan";
        if rests { Ok(()) } else { Err(format!("{status} {reason}: {message}; {resolved:?}")) }
    });
}

/// How many Jobs of such a name the operator has made, by the API server's audit log.
fn jobs_made(stage: &Stage, prefix: &str) -> usize {
    let made = |entry: &&Value| {
        entry["verb"] == "create"
            && entry["objectRef"]["resource"] == "jobs"
            && entry["objectRef"]["name"].as_str().is_some_and(|name| name.starts_with(prefix))
            && entry["responseStatus"]["code"] == 201
    };
    stage.audit(OPERATOR).iter().filter(made).count()
}
