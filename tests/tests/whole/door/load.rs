//! The door is always answered: through a rolling restart, through another authority, and after somebody wiped the bundle.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use aicr_tests::Stage;
use aicr_tests::caller::{Caller, RUNTIME};
use kube::api::{PatchParams, PostParams};
use serde_json::{Value, json};

use super::down::labelled;

/// How many reviews each story sees at least.
const REVIEWS: usize = 1000;
/// How many ask at once.
const CALLERS: usize = 4;
/// When a replica's certificate ends.
const ENDS: &str = "aicr_operator_webhook_certificate_expiry_timestamp_seconds ";

/// What the callers saw.
#[derive(Default)]
struct Seen {
    stop: AtomicBool,
    reviews: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Seen {
    /// Asks until it is told to stop and has seen enough.
    fn ask(&self, caller: &Caller) {
        while !self.stop.load(Ordering::Relaxed) || self.reviews.load(Ordering::Relaxed) < REVIEWS {
            for outcome in [denied(caller), passed(caller)] {
                match outcome {
                    Ok(reviews) => drop(self.reviews.fetch_add(reviews, Ordering::Relaxed)),
                    Err(words) => self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(words),
                }
            }
        }
    }
}

/// One review, whose answer is a denial.
fn denied(caller: &Caller) -> Result<usize, String> {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    match caller.create(("v1", "ConfigMap", Some("aicr-system")), &dry, &labelled("aicr-system")) {
        Err(kube::Error::Api(status)) if status.code == 403 && status.message.contains("denied the request") => Ok(1),
        Err(error) => Err(error.to_string()),
        Ok(stored) => Err(format!("admitted: {stored}")),
    }
}

/// Two reviews, of the stamp and of the runtime's rules.
fn passed(caller: &Caller) -> Result<usize, String> {
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let patch = json!({"spec": {"rollout": {"deadline": "7h"}}});
    caller.patch(RUNTIME, "cluster", &dry, &patch).map(|_| 2).map_err(|error| error.to_string())
}

/// Asks while `during` happens; prints how many, and fails with the first failures.
fn under_load(stage: &Stage, what: &str, during: impl FnOnce()) {
    let seen = Seen::default();
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            let caller = stage.caller(None);
            let seen = &seen;
            scope.spawn(move || seen.ask(&caller));
        }
        // Also when it panics: the callers are told.
        let _stop = Stop(&seen.stop);
        during();
    });
    let failures = seen.failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("figure: {what}: {} reviews, {} failures", seen.reviews.into_inner(), failures.len());
    assert!(failures.is_empty(), "{:#?}", &failures[..failures.len().min(5)]);
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Finds a runtime; leaves other pods.
pub(crate) fn no_review_fails_through_a_rolling_restart(stage: &Stage) {
    let before = stage.pods();
    under_load(stage, "rolling restart", || {
        stage.kubectl(&["rollout", "restart", "deployment/aicr-operator", "-n", "aicr-system"]);
        stage.until_both_are_ready();
        stage.until("the old pods to be gone", 2, || {
            let now = stage.pods();
            if now.iter().any(|pod| before.contains(pod)) { Err(format!("{now:?}")) } else { Ok(()) }
        });
    });
}

/// Leaves another authority, which all replicas serve.
pub(crate) fn no_review_fails_through_another_authority(stage: &Stage) {
    let (before, served) = (bundles(stage), ends(stage));
    under_load(stage, "another authority and other leaves", || {
        let secret = ["secret", "aicr-operator-webhook-ca", "-n", "aicr-system"];
        stage.administrator().patch(&secret, &json!({"data": null})).passed();
        stage.until("another bundle, and another leaf in each replica", 3, || {
            let (bundle, leaves) = (bundles(stage), ends(stage));
            let other = bundle != before && bundle.len() == 1;
            let renewed = leaves.len() == served.len() && leaves.iter().all(|leaf| !served.contains(leaf));
            if other && renewed { Ok(()) } else { Err(format!("another bundle: {other}; {leaves:?}")) }
        });
    });
}

/// B41: after a foreign hand wiped the bundle, or put a stale one there, it is back within seconds.
pub(crate) fn a_wiped_bundle_is_put_back(stage: &Stage) {
    let before = bundles(stage);
    let paths = ["/webhooks/0/clientConfig/caBundle", "/webhooks/1/clientConfig/caBundle"];
    let wipes = [
        json!([{"op": "remove", "path": paths[0]}]),
        json!([{"op": "replace", "path": paths[1], "value": stale(stage)}]),
    ];
    for wipe in wipes {
        let wipe = wipe.to_string();
        let what = ["patch", "validatingwebhookconfiguration", "aicr-operator", "--type", "json", "--patch", &wipe];
        stage.kubectl(&what);
        stage.until("the bundle in every entry again", 1, || {
            let now = bundles(stage);
            if now == before { Ok(()) } else { Err(format!("{} bundles", now.len())) }
        });
    }
}

/// Some other authority's certificate.
fn stale(stage: &Stage) -> Value {
    let path = "jsonpath={.clusters[0].cluster.certificate-authority-data}";
    json!(stage.kubectl(&["config", "view", "--raw", "-o", path]))
}

/// The different bundles that stand in the entries of both configurations; an absent one counts.
fn bundles(stage: &Stage) -> Vec<Value> {
    let mut all = Vec::new();
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        let configuration = stage.json(&["get", kind, "aicr-operator"]);
        let entries = configuration["webhooks"].as_array().cloned().unwrap_or_default();
        all.extend(entries.into_iter().map(|entry| entry["clientConfig"]["caBundle"].clone()));
    }
    all.sort_by_key(Value::to_string);
    all.dedup();
    all
}

/// When the replicas' certificates end, as each says.
fn ends(stage: &Stage) -> Vec<String> {
    let scraped = stage.pods().into_iter().filter_map(|pod| stage.scrape(&pod));
    let line = |text: String| text.lines().find(|line| line.starts_with(ENDS)).map(str::to_owned);
    scraped.filter_map(line).collect()
}
