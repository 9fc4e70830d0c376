use std::sync::{Arc, Mutex};

use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// An API server that answers these paths and says 404 to the rest, or 403 where it is told so; what it was asked.
fn server(objects: &[(&str, Value)], forbidden: &'static str) -> (Client, Arc<Mutex<Vec<String>>>) {
    let objects: Vec<(String, Value)> =
        objects.iter().map(|(path, value)| ((*path).to_owned(), value.clone())).collect();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let asked = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let found = objects.iter().find(|(path, _)| asked.starts_with(path.as_str())).map(|(_, value)| value.clone());
        let (code, body) = match found {
            _ if !forbidden.is_empty() && asked.contains(forbidden) => (403, failure(403, "Forbidden")),
            Some(value) => (200, value),
            None => (404, failure(404, "NotFound")),
        };
        noted.lock().unwrap().push(asked);
        let body = serde_json::to_vec(&body).unwrap();
        async move {
            Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(Body::from(body)).unwrap())
        }
    });
    (Client::new(service, "default"), asked)
}

fn failure(code: u16, reason: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason, "code": code })
}

fn list(items: &Value) -> Value {
    json!({ "kind": "List", "apiVersion": "v1", "metadata": {}, "items": items })
}

fn subject(question: Question) -> Subject {
    let application = json!({
        "metadata": { "name": "gpu-operator", "namespace": "argocd", "uid": "u" },
        "spec": { "destination": { "namespace": "gpu" }, "project": "aicr" },
    });
    Subject {
        application: serde_json::from_value(application).unwrap(),
        question,
        label_before: Some("gpu-operator-v25.3.0".to_owned()),
        rollout: "r".to_owned(),
    }
}

const APPLICATION: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/gpu-operator";
const POLICY: &str = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const SETS: &str = "/apis/apps/v1/namespaces/gpu/daemonsets?";

fn application() -> (&'static str, Value) {
    let resources = json!([
        { "group": "nvidia.com", "version": "v1", "kind": "ClusterPolicy", "name": "cluster-policy", "status": "Synced" },
        { "group": "secret.example.com", "version": "v1", "kind": "Hidden", "name": "h", "status": "Synced" },
        { "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "gpu", "name": "gpu-operator" },
    ]);
    (
        APPLICATION,
        json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": { "name": "gpu-operator" }, "status": { "resources": resources } }),
    )
}

fn policy(deleted: Option<&str>) -> (&'static str, Value) {
    (
        POLICY,
        json!({ "apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy",
        "metadata": { "name": "cluster-policy", "generation": 1, "deletionTimestamp": deleted, "finalizers": ["nvidia.com/f"] },
        "status": { "state": "ready" } }),
    )
}

fn deployments(chart: &str) -> (&'static str, Value) {
    (
        "/apis/apps/v1/namespaces/gpu/deployments?",
        list(&json!([{
            "metadata": { "namespace": "gpu", "name": "gpu-operator", "generation": 1, "labels": { "helm.sh/chart": chart } },
            "spec": { "replicas": 1, "selector": {}, "template": {} },
            "status": { "observedGeneration": 1 },
        }])),
    )
}

/// As the GPU operator makes it: owned by the policy, and no object of the Application.
fn driver() -> [(&'static str, Value); 3] {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "driver", "uid": "u-set" });
    let pod = |name: &str, hash: &str| {
        json!({ "metadata": { "name": name, "labels": { "controller-revision-hash": hash }, "ownerReferences": [owner] },
            "spec": { "nodeName": name, "containers": [] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] } })
    };
    let set = json!({
        "metadata": { "namespace": "gpu", "name": "driver", "uid": "u-set", "generation": 1, "ownerReferences": [
            { "apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cluster-policy", "uid": "u-p" }] },
        "spec": { "selector": { "matchLabels": { "app": "driver" } }, "updateStrategy": { "type": "OnDelete" }, "template": {} },
        "status": { "observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
            "numberMisscheduled": 0, "numberReady": 3, "updatedNumberScheduled": 3 },
    });
    let stranger = json!({ "metadata": { "namespace": "gpu", "name": "stranger", "uid": "u-2" },
        "spec": { "selector": {}, "template": {} } });
    let revisions = json!([
        { "revision": 1, "metadata": { "labels": { "controller-revision-hash": "old" }, "ownerReferences": [owner] } },
        { "revision": 2, "metadata": { "labels": { "controller-revision-hash": "new" }, "ownerReferences": [owner] } },
    ]);
    [
        (SETS, list(&json!([set, stranger]))),
        ("/api/v1/namespaces/gpu/pods?", list(&json!([pod("a", "new"), pod("b", "old"), pod("c", "old")]))),
        ("/apis/apps/v1/namespaces/gpu/controllerrevisions?", list(&revisions)),
    ]
}

fn reader(client: &Client) -> LiveReader {
    LiveReader::new(client, &["clusterpolicies.nvidia.com".to_owned()].into())
}

fn green() -> Vec<(&'static str, Value)> {
    [application(), policy(None), deployments("gpu-operator-v25.3.1")].into_iter().chain(driver()).collect()
}

/// B72, A53, A54: what Argo CD counts as healthy without looking is looked at, and nothing beside the gate table.
#[tokio::test]
async fn a_gate_reads_the_releases_sets_and_the_custom_resources_of_its_table() {
    let (client, asked) = server(&green(), "");
    let live = reader(&client).ask(&subject(Question::Gate)).await.unwrap();
    assert_eq!(live.daemon_sets.len(), 1, "{live:?}");
    let set = &live.daemon_sets[0];
    assert_eq!((set.name.as_str(), set.desired, set.updated, set.ready), ("gpu/driver", 3, 1, 3));
    let said: Vec<_> = live.customs.iter().map(|one| (one.name.as_str(), one.state.as_deref())).collect();
    assert_eq!(said, [("ClusterPolicy cluster-policy", Some("ready"))]);
    assert_eq!(live.outdated, Vec::<String>::new());
    assert!(!asked.lock().unwrap().iter().any(|path| path.contains("secret.example.com")), "{asked:?}");
}

/// B05.
#[tokio::test]
async fn an_object_of_the_chart_before_is_outdated() {
    let objects = [application(), policy(None), deployments("gpu-operator-v25.3.0"), (SETS, list(&json!([])))];
    let (client, _) = server(&objects, "");
    let live = reader(&client).ask(&subject(Question::Gate)).await.unwrap();
    assert_eq!(live.outdated, ["Deployment gpu/gpu-operator: label helm.sh/chart is still gpu-operator-v25.3.0"]);
}

#[tokio::test]
async fn what_may_not_be_read_is_trouble_and_never_ready_and_is_asked_for_once_in_a_while() {
    let (client, asked) = server(&green(), "clusterpolicies");
    let (mut reader, mut troubles) = (reader(&client), Troubles::default());
    let live = reader.look_at(Some(subject(Question::Gate)), &mut troubles).await;
    assert_eq!(live, Live::default());
    let said = troubles.reads().unwrap();
    assert!(said.starts_with("get ClusterPolicy cluster-policy: 403 Forbidden"), "{said}");
    let count = asked.lock().unwrap().len();
    reader.look_at(Some(subject(Question::Gate)), &mut troubles).await;
    assert_eq!(asked.lock().unwrap().len(), count, "an answer is good for a moment");
    assert!(troubles.reads().is_some(), "and so is the trouble");
    reader.look_at(None, &mut troubles).await;
    assert_eq!(troubles.reads(), None, "no step is in flight any more");
}

#[tokio::test]
async fn words_that_cannot_be_read_hide_nothing_of_what_argo_cd_says() {
    let (client, _) = server(&green(), "deployments");
    let mut troubles = Troubles::default();
    let live = reader(&client).look_at(Some(subject(Question::Health)), &mut troubles).await;
    assert_eq!(troubles.reads(), None);
    assert!(live.unhealthy[0].starts_with("more cannot be read: list deployments of gpu: 403"), "{live:?}");
}

#[tokio::test]
async fn bad_health_names_the_workloads_behind_it() {
    let (client, _) = server(&green(), "");
    let live = reader(&client).ask(&subject(Question::Health)).await.unwrap();
    assert_eq!(live.unhealthy, ["Deployment gpu/gpu-operator: 0 of 1 replicas updated, 0 available"]);
}

/// B24, B53: object, finalizer, and the webhook whose Service is gone.
#[tokio::test]
async fn what_hangs_in_deletion_is_named_with_what_holds_it() {
    let webhook = json!({ "metadata": { "name": "gpu" }, "webhooks": [{ "name": "a.b.c", "admissionReviewVersions": ["v1"],
        "sideEffects": "None", "clientConfig": { "service": { "namespace": "gpu", "name": "gone" } },
        "rules": [{ "apiGroups": ["nvidia.com"] }] }] });
    let mut objects = green();
    objects.retain(|(path, _)| *path != POLICY);
    objects.push(policy(Some("2026-11-29T12:00:00Z")));
    objects.push((VALIDATING, list(&json!([webhook]))));
    objects.push((MUTATING, list(&json!([]))));
    let (client, _) = server(&objects, "");
    let live = reader(&client).ask(&subject(Question::Deletion)).await.unwrap();
    assert_eq!(
        live.stuck,
        [
            "ClusterPolicy cluster-policy is held by finalizer nvidia.com/f",
            "ValidatingWebhookConfiguration gpu refuses every write of it: its Service gpu/gone is missing",
        ]
    );
}
