//! The certificates against an API server in memory: its lists, its watches and its patches.

use std::sync::Mutex;

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// The three objects, and what was patched in which order.
struct Cluster {
    secret: Value,
    mutating: Value,
    validating: Value,
    version: u64,
    patched: Vec<&'static str>,
}

type Shared = Arc<Mutex<Cluster>>;

fn configuration(webhooks: &[&str]) -> Value {
    let entry = |name: &&str| json!({ "name": name, "admissionReviewVersions": ["v1"], "clientConfig": {}, "sideEffects": "None" });
    let webhooks: Vec<Value> = webhooks.iter().map(entry).collect();
    json!({ "metadata": { "name": "aicr-operator", "uid": "c" }, "webhooks": webhooks })
}

fn cluster() -> Shared {
    Arc::new(Mutex::new(Cluster {
        secret: json!({ "metadata": { "name": "ca", "namespace": "ns", "uid": "s", "resourceVersion": "1" } }),
        mutating: configuration(&["approvals"]),
        validating: configuration(&["rollouts", "plans"]),
        version: 1,
        patched: Vec::new(),
    }))
}

impl Cluster {
    fn object(&mut self, path: &str) -> (&'static str, &mut Value) {
        if path.contains("/secrets") {
            ("secret", &mut self.secret)
        } else if path.contains("/mutatingwebhookconfigurations") {
            ("mutating", &mut self.mutating)
        } else {
            ("validating", &mut self.validating)
        }
    }

    /// The object as it is then; nothing where the version is an old one.
    fn take(&mut self, path: &str, change: &Value) -> Option<Value> {
        self.version += 1;
        let version = self.version.to_string();
        let (name, object) = self.object(path);
        if name == "secret" {
            if change["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                return None;
            }
            json_patch::merge(object, change);
        } else {
            for one in change["webhooks"].as_array().unwrap() {
                let entries = object["webhooks"].as_array_mut().unwrap();
                let entry = entries.iter_mut().find(|entry| entry["name"] == one["name"]).unwrap();
                json_patch::merge(entry, one);
            }
        }
        object["metadata"]["resourceVersion"] = json!(version);
        let answer = object.clone();
        self.patched.push(name);
        Some(answer)
    }

    /// Every bundle, as base64.
    fn bundles(&self) -> Vec<&str> {
        let all = [&self.mutating, &self.validating].into_iter().flat_map(|one| one["webhooks"].as_array().unwrap());
        all.map(|entry| entry["clientConfig"]["caBundle"].as_str().unwrap_or_default()).collect()
    }
}

fn answer(cluster: &Shared, method: &Method, path: &str, query: &str, body: &[u8]) -> (StatusCode, Value) {
    let mut cluster = cluster.lock().unwrap();
    if *method == Method::PATCH {
        let conflict =
            json!({ "kind": "Status", "code": 409, "reason": "Conflict", "status": "Failure", "message": "" });
        let taken = cluster.take(path, &serde_json::from_slice(body).unwrap());
        return taken.map_or((StatusCode::CONFLICT, conflict), |object| (StatusCode::OK, object));
    }
    if query.contains("watch=true") {
        // Whoever watches is told to list again: a watch that is seconds late.
        let status = json!({ "kind": "Status", "code": 410, "reason": "Expired", "status": "Failure", "message": "" });
        return (StatusCode::OK, json!({ "type": "ERROR", "object": status }));
    }
    let items = vec![cluster.object(path).1.clone()];
    (StatusCode::OK, json!({ "metadata": { "resourceVersion": "1" }, "items": items }))
}

fn client(cluster: &Shared) -> Client {
    let cluster = Arc::clone(cluster);
    let service = tower::service_fn(move |request: Request<Body>| {
        let cluster = Arc::clone(&cluster);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let query = head.uri.query().unwrap_or_default();
            let (status, answer) = answer(&cluster, &head.method, head.uri.path(), query, &body);
            let response = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()));
            response.map_err(std::io::Error::other)
        }
    });
    Client::new(service, "ns")
}

struct Replica {
    resolver: Arc<CertificateResolver>,
    standing: Standing,
    running: tokio::task::JoinHandle<Result<(), DriveError>>,
    _leads: watch::Sender<bool>,
}

fn replica(cluster: &Shared, leads: bool) -> Replica {
    let settings = CertificateSettings {
        namespace: "ns".to_owned(),
        secret: "ca".to_owned(),
        configuration: "aicr-operator".to_owned(),
        names: ServiceNames::new("webhook", "ns").unwrap(),
        life: LeafLife::default(),
    };
    let resolver = Arc::new(CertificateResolver::default());
    let (sender, leading) = watch::channel(leads);
    let certificates = Certificates::new(&client(cluster), settings, Arc::clone(&resolver), leading);
    let standing = certificates.standing();
    Replica { resolver, standing, running: tokio::spawn(certificates.run()), _leads: sender }
}

/// Waits, in a time that runs by itself, until it is so.
async fn until(what: &str, so: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never {what}");
}

#[tokio::test(start_paused = true)]
async fn the_leader_publishes_before_it_stores_and_the_other_replica_signs_with_the_same_authority() {
    let cluster = cluster();
    let follower = replica(&cluster, false);
    let leader = replica(&cluster, true);
    until("standing", || leader.standing.stands()).await;
    until("served", || leader.resolver.served().is_some() && follower.resolver.served().is_some()).await;
    assert!(!follower.standing.stands());
    // A bundle may be published again before its own event is seen; it is stored once, and last.
    let seen = cluster.lock().unwrap().patched.clone();
    let (last, published) = seen.split_last().unwrap();
    assert_eq!(*last, "secret");
    assert!(["mutating", "validating"].iter().all(|one| published.contains(one)), "{seen:?}");
    assert!(!published.contains(last), "{seen:?}");
    let cluster = cluster.lock().unwrap();
    let bundles = cluster.bundles();
    assert!(!bundles[0].is_empty() && bundles.iter().all(|bundle| *bundle == bundles[0]));
    assert_eq!(bundles[0], cluster.secret["data"]["ca.crt"]);
}

#[tokio::test(start_paused = true)]
async fn a_bundle_that_was_wiped_comes_back_into_that_entry_alone() {
    let cluster = cluster();
    let leader = replica(&cluster, true);
    until("standing", || leader.standing.stands()).await;
    {
        let mut cluster = cluster.lock().unwrap();
        cluster.patched.clear();
        cluster.validating["webhooks"][1]["clientConfig"] = json!({});
        cluster.validating["metadata"]["resourceVersion"] = json!("wiped");
    }
    until("written again", || !cluster.lock().unwrap().bundles().contains(&"")).await;
    let seen = cluster.lock().unwrap().patched.clone();
    assert!(seen.iter().all(|name| *name == "validating") && !seen.is_empty(), "{seen:?}");
    leader.running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_lead_writes_nothing() {
    let cluster = cluster();
    let follower = replica(&cluster, false);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(cluster.lock().unwrap().patched.is_empty());
    assert!(follower.resolver.served().is_none());
}
