//! Resolution through an outage, restarts and other leaders: it goes on by itself, and never further than it may.

use std::collections::BTreeMap;

use aicr_lab::product::NAMESPACE;
use aicr_tests::Stage;
use aicr_tests::stage::OPERATOR;
use serde_json::{Value, json};

use crate::bad_input::{again, nothing_was_written, with_fault};

/// The prefix that nothing was pushed below before.
const PREFIX: &str = "aicr/outage";
/// What the stand-in says where it always fails.
const FAULT: &str = "[INTERNAL] asked for by a story about three runs";
/// How long a failed Job of a stalled stage stays.
const SEVEN_DAYS: i64 = 7 * 24 * 3600;

/// Must show 2. Finds no plan; leaves validation required, so that no rollout comes of any plan, and a plan with its
/// charts below a prefix of its own.
pub(crate) fn a_registry_that_goes_and_comes_back_is_waited_for_and_given_nothing_twice(stage: &Stage) {
    stage.patch_runtime(&json!({"spec": {"validation": {"deployment": "Required"}}}));
    let log = AccessLog::from_now(stage, PREFIX);
    let slow = [("AICR_STANDIN_FAULT_COMMAND", "bundle"), ("AICR_STANDIN_FAULT_SLEEP", "15")];
    let image = with_fault(stage, &slow, &[&format!("registry.repository=10.245.0.1:5000/{PREFIX}")]);
    until_it_runs(stage, "render", &image);
    stage.lab.stop_part("registry").unwrap();
    until_waiting(stage, "retrying after a transient failure: aicr render exited 6: ");
    stage.lab.start_part("registry").unwrap();
    // The next render goes well by itself, and the first of its charts is on its way.
    let first = stage.until("a push below the prefix", 5, || log.pushes().map(|pushes| pushes.len()));
    stage.lab.kill_part("registry").unwrap();
    until_waiting(stage, "[SERVICE_UNAVAILABLE] ");
    let before = log.pushes().unwrap();
    stage.lab.start_part("registry").unwrap();
    stage.until_reason("Resolved", "Resolved", 5);
    let after = log.pushes().unwrap();
    println!("figure: pushes seen {first}, until the outage {}, in all {}", before.len(), after.len());
    assert!(before.len() < after.len(), "the outage came in the middle");
    let twice: Vec<_> = after.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    nothing_was_written(stage);
}

/// Must show 4. Finds validation required and any plan; leaves AICR failing.
pub(crate) fn a_stage_that_always_fails_has_three_runs_whatever_is_lost(stage: &Stage) {
    let earlier = recipes(stage);
    let fault = [
        ("AICR_STANDIN_FAULT_COMMAND", "recipe"),
        ("AICR_STANDIN_FAULT_EXIT", "8"),
        ("AICR_STANDIN_FAULT_MESSAGE", FAULT),
    ];
    with_fault(stage, &fault, &[]);
    let runs = || recipes(stage) - earlier;
    until_stalled(stage, &runs, 3);
    let jobs = recipe_jobs(stage);
    assert_eq!(jobs.len(), 3, "failed Jobs stay: {jobs:?}");
    stage.until("the failed Jobs to be kept for seven days", 1, || {
        let kept = recipe_jobs(stage).into_iter().map(|job| job["spec"]["ttlSecondsAfterFinished"].clone());
        let kept: Vec<Value> = kept.collect();
        if kept.iter().all(|ttl| *ttl == SEVEN_DAYS) { Ok(()) } else { Err(format!("{kept:?}")) }
    });
    // As their TTL would.
    stage.kubectl(&["delete", "jobs", "-n", "aicr-jobs", "-l", "operator.aicr.run/stage=recipe"]);
    until_looked(stage);
    until_stalled(stage, &runs, 3);
    let pods = stage.pods();
    stage.kubectl(&["rollout", "restart", "deployment/aicr-operator", "-n", NAMESPACE]);
    stage.until_both_are_ready();
    stage.until("the old pods to be gone", 2, || {
        let now = stage.pods();
        if now.iter().any(|pod| pods.contains(pod)) { Err(format!("{now:?}")) } else { Ok(()) }
    });
    until_looked(stage);
    until_stalled(stage, &runs, 3);
    another_leads(stage);
    until_stalled(stage, &runs, 3);
    let told =
        stage.events("cluster").into_iter().filter(|(reason, note)| reason == "AICRRunFailed" && note.contains(FAULT));
    assert_eq!(told.count(), 3, "each run is told once: {:?}", stage.events("cluster"));
    nothing_was_written(stage);
}

/// Finds AICR failing, and its three runs used up; leaves the installation as the first story found it, and a plan.
pub(crate) fn a_new_snapshot_gives_three_more_and_another_image_goes_on(stage: &Stage) {
    let earlier = recipes(stage);
    let runs = || recipes(stage) - earlier;
    let snapshot = snapshot(stage);
    resnapshot(stage, "three-more");
    stage.until("another snapshot", 5, || {
        let now = self::snapshot(stage);
        if now == snapshot { Err(now) } else { Ok(()) }
    });
    stage.until("three more runs", 5, || if runs() == 3 { Ok(()) } else { Err(format!("{} runs", runs())) });
    until_stalled(stage, &runs, 3);
    again(stage, &[]);
    stage.until_reason("Resolved", "Resolved", 5);
}

/// Must show 6. Finds a plan; leaves the same one, resolved anew by another replica.
pub(crate) fn the_same_inputs_on_the_other_replica_are_the_same_plan(stage: &Stage) {
    let (leader, digest, plans) = (stage.leader().0, candidate(stage), plans(stage));
    assert!(digest.starts_with("sha256:"), "{digest}");
    let log = AccessLog::from_now(stage, "aicr");
    let other = another_leads(stage);
    assert_ne!(leader, other);
    let snapshot = snapshot(stage);
    resnapshot(stage, "the-other-replica");
    stage.until("another snapshot, resolved", 5, || {
        let now = self::snapshot(stage);
        let (status, reason, message) = stage.condition("Resolved");
        let idle = stage.condition("Reconciling").1 != "Resolving";
        let done = now != snapshot && status == "True" && idle;
        if done { Ok(()) } else { Err(format!("{now}: {status} {reason}: {message}")) }
    });
    assert_eq!(stage.leader().0, other, "one replica did it all");
    assert_eq!((candidate(stage), self::plans(stage)), (digest, plans));
    assert_eq!(log.pushes().unwrap_or_default(), BTreeMap::new(), "what is there is not pushed again");
    stage.kubectl(&["annotate", "clusterruntime", "cluster", "operator.aicr.run/resnapshot-"]);
}

/// The registry's access log from some moment on, of pushes below a prefix: an earlier resolution may still be pushing.
struct AccessLog<'a> {
    stage: &'a Stage,
    below: String,
    from: usize,
}

impl<'a> AccessLog<'a> {
    fn from_now(stage: &'a Stage, prefix: &str) -> Self {
        let mut log = Self { stage, below: format!("{prefix}/"), from: 0 };
        log.from = log.text().len();
        log
    }

    fn text(&self) -> String {
        let path = self.stage.lab.layout().log("registry");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.get(self.from..).unwrap_or_default().to_owned()
    }

    /// How often each manifest and each blob of a mirrored chart was taken; none yet is what was seen.
    fn pushes(&self) -> Result<BTreeMap<String, usize>, String> {
        let mut pushes = BTreeMap::new();
        for pushed in self.text().lines().filter_map(pushed).filter(|pushed| pushed.starts_with(&self.below)) {
            *pushes.entry(pushed).or_default() += 1;
        }
        if pushes.is_empty() { Err("no push".to_owned()) } else { Ok(pushes) }
    }
}

/// The manifest or blob of a chart that a line of the access log says was taken.
fn pushed(line: &str) -> Option<String> {
    let mut parts = line.split('"');
    let request = parts.nth(1)?.strip_prefix("PUT /v2/")?;
    if !parts.next()?.starts_with(" 201 ") || !["/charts/", "/wrappers/"].iter().any(|room| request.contains(room)) {
        return None;
    }
    let (path, query) = request.split_once(' ')?.0.split_once('?').unwrap_or((request.split_once(' ')?.0, ""));
    match path.split_once("/blobs/uploads/") {
        Some((repository, _)) => {
            let digest = query.split('&').find_map(|word| word.strip_prefix("digest="))?;
            Some(format!("{repository} {digest}"))
        }
        None => Some(path.to_owned()),
    }
}

/// Waits until a pod of that stage runs that image.
fn until_it_runs(stage: &Stage, which: &str, image: &str) {
    let label = format!("operator.aicr.run/stage={which}");
    stage.until(&format!("a running {which} Job of {image}"), 5, || {
        let pods = stage.list(&["get", "pods", "-n", "aicr-jobs", "-l", &label]);
        let runs = |pod: &Value| {
            pod["spec"]["containers"][0]["image"] == image
                && pod["status"]["containerStatuses"][0]["state"]["running"].is_object()
        };
        if pods.iter().any(runs) {
            Ok(())
        } else {
            Err(format!("{} pods; {:?}", pods.len(), stage.condition("Resolved")))
        }
    });
}

/// Waits for a message that people may leave alone.
fn until_waiting(stage: &Stage, words: &str) {
    stage.until(&format!("Resolved with {words:?}"), 3, || {
        let (status, reason, message) = stage.condition("Resolved");
        let says = status == "False" && reason == "Resolving" && message.starts_with(words);
        if says { Ok(()) } else { Err(format!("{status} {reason}: {message}")) }
    });
}

/// How many recipe Jobs the operator has made, by the API server's audit log.
fn recipes(stage: &Stage) -> usize {
    let made = |entry: &&Value| {
        entry["verb"] == "create"
            && entry["objectRef"]["resource"] == "jobs"
            && entry["objectRef"]["name"].as_str().is_some_and(|name| name.starts_with("aicr-recipe-"))
            && entry["responseStatus"]["code"] == 201
    };
    stage.audit(OPERATOR).iter().filter(made).count()
}

fn recipe_jobs(stage: &Stage) -> Vec<Value> {
    stage.list(&["get", "jobs", "-n", "aicr-jobs", "-l", "operator.aicr.run/stage=recipe"])
}

/// Waits until it stalls, and holds it to that many runs.
fn until_stalled(stage: &Stage, runs: &dyn Fn() -> usize, bound: usize) {
    let message = stage.until_reason("Resolved", "AICRInternal", 5);
    assert!(message.starts_with("aicr recipe exited 8: "), "{message}");
    assert!(message.contains(FAULT) && message.contains("(3 runs); read the Job's log and fix the cause"), "{message}");
    let stalled = stage.condition("Stalled");
    assert_eq!((stalled.0.as_str(), stalled.1.as_str()), ("True", "AICRInternal"), "{}", stalled.2);
    assert_eq!(runs(), bound);
}

/// How often the replica that leads has looked at the inputs.
fn looks(stage: &Stage) -> u64 {
    let series = "aicr_operator_reconcile_duration_seconds_count{controller=\"resolver\"} ";
    let text = stage.metrics();
    let value = text.lines().find_map(|line| line.strip_prefix(series));
    value.and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// Waits until whoever leads now has looked at the inputs, and once more after a change that means nothing: what is due
/// has been done then.
fn until_looked(stage: &Stage) {
    let more_than = |before: u64| {
        stage.until(&format!("more than {before} looks of the one that leads"), 2, || {
            let now = looks(stage);
            if now > before { Ok(now) } else { Err(format!("{now} looks")) }
        })
    };
    let before = more_than(0);
    for change in ["aicr.test/look=again", "aicr.test/look-"] {
        stage.kubectl(&["annotate", "clusterruntime", "cluster", change]);
    }
    more_than(before);
}

/// Takes the pod that leads away, and returns the other one once it leads and has looked.
fn another_leads(stage: &Stage) -> String {
    let before = stage.leader().0;
    stage.kubectl(&["delete", "pod", &before, "-n", NAMESPACE, "--wait=false"]);
    let other = stage.until("another pod that leads", 3, || {
        let now = stage.leader().0;
        if now == before { Err(format!("{now} leads still")) } else { Ok(now) }
    });
    until_looked(stage);
    stage.until_both_are_ready();
    other
}

pub(crate) fn resnapshot(stage: &Stage, token: &str) {
    let token = format!("operator.aicr.run/resnapshot={token}");
    stage.kubectl(&["annotate", "clusterruntime", "cluster", &token, "--overwrite"]);
}

fn status(stage: &Stage) -> Value {
    stage.json(&["get", "clusterruntime", "cluster"])["status"].clone()
}

/// The newest snapshot, by the name of its ConfigMap.
pub(crate) fn snapshot(stage: &Stage) -> String {
    status(stage)["discovery"]["snapshot"]["configMap"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn candidate(stage: &Stage) -> String {
    status(stage)["candidatePlanDigest"].as_str().unwrap_or_default().to_owned()
}

/// Names of the stored plans.
fn plans(stage: &Stage) -> Vec<String> {
    let maps = stage.list(&["get", "configmaps", "-n", NAMESPACE, "-l", "operator.aicr.run/role=plan"]);
    maps.iter().filter_map(|map| map["metadata"]["name"].as_str().map(str::to_owned)).collect()
}
