//! Ten thousand nodes, and the labels that nobody asked for.

use std::{fs, time::Instant};

use aicr_decide::resolve::{Groups, NodeSeen};
use kube::{Api, Client, runtime::watcher::Config, runtime::watcher::Event};
use serde_json::{Value, json};

use super::*;
use crate::watch::{Changes, Feed, shelf};

fn client() -> Client {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("no server"))
    });
    Client::new(service, "default")
}

fn node(version: usize, labels: &Value) -> Node {
    let info = json!({ "osImage": "Ubuntu", "architecture": "amd64", "kernelVersion": "6" });
    let metadata = json!({
        "name": "n", "uid": "u", "resourceVersion": version.to_string(), "labels": labels,
        "annotations": { "volumes": "many" },
    });
    let whole = json!({ "metadata": metadata, "spec": { "podCIDR": "10.0.0.0/24" }, "status": { "nodeInfo": info } });
    serde_json::from_str(&whole.to_string()).unwrap()
}

fn runtime(selector: &Value) -> DeserializeGuard<ClusterRuntime> {
    serde_json::from_value(json!({
        "apiVersion": "operator.aicr.run/v1alpha1", "kind": "ClusterRuntime", "metadata": { "name": NAME, "uid": "u" },
        "spec": { "intent": "training", "placement": { "accelerated": { "nodeSelector": selector } } },
    }))
    .unwrap()
}

/// The watch on nodes beside that of a runtime with this selector; and who is told of changes.
fn watched(selector: &Value) -> (Shelf<Node>, Feed<Node>, Changes) {
    let changes = Changes::new();
    let (runtimes, mut runtimes_feed) = shelf("ClusterRuntime", Api::all(client()), Config::default(), &changes);
    runtimes_feed.take(Ok(Event::Apply(runtime(selector))));
    let (nodes, feed) = shelf("Node", Api::all(client()), Config::default(), &changes);
    (nodes, feed.same_when(unless_it_concerns(&runtimes)), changes)
}

#[test]
fn a_node_keeps_what_is_looked_at_and_nothing_else() {
    let node = node(1, &json!({ "b": "2", "a": "1", "empty": "" }));
    assert_eq!((node.os_image(), node.architecture()), ("Ubuntu", "amd64"));
    let labels = ["a", "b", "empty", "c", ""].map(|key| node.labels().value(key));
    assert_eq!(labels, [Some("1"), Some("2"), Some(""), None, None]);
    assert_eq!(node.metadata.annotations, None);
    assert_eq!(node.metadata.resource_version.as_deref(), Some("1"));
    let bare: Node = serde_json::from_str(r#"{"metadata":{"name":"n","labels":null}}"#).unwrap();
    assert_eq!((bare.labels().value("a"), bare.os_image()), (None, ""));
}

#[test]
fn a_text_that_many_nodes_share_is_held_once_and_one_that_none_has_any_more_is_let_go() {
    let mut pool = Pool::default();
    let shared = pool.one("a=b");
    assert!(Arc::ptr_eq(&shared, &pool.one("a=b")));
    for place in 0..10 * Pool::FLOOR {
        pool.one(&format!("only={place}"));
    }
    assert!(pool.texts.len() <= 2 * Pool::FLOOR, "{}", pool.texts.len());
    assert!(Arc::ptr_eq(&shared, &pool.one("a=b")));
}

#[tokio::test]
async fn a_label_that_concerns_nothing_wakes_nobody() {
    let (_nodes, mut feed, changes) = watched(&json!({ "pool": "gpu" }));
    feed.take(Ok(Event::Apply(node(1, &json!({ "pool": "gpu", "x": "1" })))));
    let mut listener = changes.listen();
    let mut woken = |labels: Value| {
        listener.mark_unchanged();
        feed.take(Ok(Event::Apply(node(2, &labels))));
        listener.has_changed().unwrap()
    };
    assert!(!woken(json!({ "pool": "gpu", "x": "2" })));
    assert!(!woken(json!({ "pool": "gpu" })));
    assert!(woken(json!({ "pool": "cpu" })));
    assert!(woken(json!({})));
    assert!(woken(json!({ "node.kubernetes.io/instance-type": "p5" })));
    assert!(woken(json!({ "node.kubernetes.io/instance-type": "p5", "nvidia.com/gpu.product": "H100" })));
    assert!(!woken(json!({ "node.kubernetes.io/instance-type": "p5", "nvidia.com/gpu.product": "H100", "x": "3" })));
}

/// A runtime that comes later, or can be read later, may select by whatever a node has got meanwhile.
#[tokio::test]
async fn without_a_runtime_every_label_concerns() {
    let changes = Changes::new();
    let (runtimes, _feed) = shelf("ClusterRuntime", Api::all(client()), Config::default(), &changes);
    let (_nodes, feed) = shelf("Node", Api::all(client()), Config::default(), &changes);
    let mut feed = feed.same_when(unless_it_concerns(&runtimes));
    feed.take(Ok(Event::Apply(node(1, &json!({ "pool": "gpu" })))));
    let mut listener = changes.listen();
    let mut woken = |version: usize, labels: Value| {
        listener.mark_unchanged();
        feed.take(Ok(Event::Apply(node(version, &labels))));
        listener.has_changed().unwrap()
    };
    assert!(!woken(2, json!({ "pool": "gpu" })));
    assert!(woken(3, json!({ "pool": "cpu" })));
}

/// Labels of an accelerated node on EKS with node and GPU feature discovery: 112, of which six are its own.
fn realistic(place: usize) -> serde_json::Map<String, Value> {
    let zone = ["us-east-1a", "us-east-1b", "us-east-1c"][place % 3];
    let mut labels: Vec<(String, String)> = [
        (
            "kubernetes.io/hostname",
            format!("ip-10-{}-{}-{}.ec2.internal", place / 65_536, place / 256 % 256, place % 256),
        ),
        ("alpha.eksctl.io/instance-id", format!("i-{place:017x}")),
        ("topology.k8s.aws/network-node-layer-3", format!("nn-{:017x}", place / 8)),
        ("nvidia.com/gfd.timestamp", format!("{}", 1_764_000_000 + place)),
        ("topology.ebs.csi.aws.com/volume-node", format!("vn-{place:017x}")),
        ("karpenter.sh/nodeclaim", format!("gpu-{place:05x}")),
        ("topology.kubernetes.io/zone", zone.to_owned()),
        ("topology.kubernetes.io/region", "us-east-1".to_owned()),
        ("node.kubernetes.io/instance-type", "p5.48xlarge".to_owned()),
        ("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3".to_owned()),
        ("pool", "gpu".to_owned()),
        ("role", "worker".to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    labels.extend(
        (0..64).map(|flag| (format!("feature.node.kubernetes.io/cpu-cpuid.AVX512FEATURE{flag}"), "true".to_owned())),
    );
    labels.extend((0..36).map(|key| (format!("nvidia.com/gpu.some-property-{key}"), format!("value-{}", key % 7))));
    labels.into_iter().map(|(key, value)| (key, value.into())).collect()
}

fn sent(place: usize, extra: &str) -> String {
    let mut labels = realistic(place);
    labels.insert("example.com/changes-all-the-time".to_owned(), extra.into());
    let name = labels["kubernetes.io/hostname"].clone();
    let annotation = "x".repeat(2000);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": format!("6b9f4f7c-0000-4000-8000-{place:012x}"), "resourceVersion": (9_000_000 + place).to_string(),
            "labels": labels, "annotations": { "csi.volume.kubernetes.io/nodeid": annotation },
        },
        "spec": { "providerID": format!("aws:///us-east-1a/i-{place:017x}") },
        "status": { "nodeInfo": {
            "osImage": "Ubuntu 24.04.2 LTS", "architecture": "amd64", "kernelVersion": "6.8.0-1029-aws",
            "containerRuntimeVersion": "containerd://1.7.27", "kubeletVersion": "v1.34.1-eks-113cf36",
        } },
    })
    .to_string()
}

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

const NODES: usize = 10_000;
const CHANGES: u32 = 10_000;

/// Figures: run it alone, with `--ignored --nocapture ten_thousand_nodes`.
#[tokio::test]
#[ignore = "prints figures; run it alone"]
async fn ten_thousand_nodes_take_little_memory_and_a_label_of_no_concern_costs_little() {
    let (nodes, mut feed, changes) = watched(&json!({ "pool": "gpu" }));
    let before = resident();
    feed.take(Ok(Event::Init));
    for place in 0..NODES {
        feed.take(Ok(Event::InitApply(serde_json::from_str(&sent(place, "0")).unwrap())));
    }
    feed.take(Ok(Event::InitDone));
    let a_node = (resident() - before) / NODES;
    let mut listener = changes.listen();
    let texts: Vec<String> = (0..1000).map(|place| sent(place, "1")).collect();
    let begun = Instant::now();
    for place in 0..CHANGES {
        feed.take(Ok(Event::Apply(serde_json::from_str(&texts[place as usize % texts.len()]).unwrap())));
    }
    let a_change = begun.elapsed() / CHANGES;
    assert!(!listener.has_changed().unwrap(), "such a change wakes nobody");
    listener.mark_unchanged();
    let all = nodes.all();
    let placement = &runtime(&json!({ "pool": "gpu" })).0.unwrap().spec.placement;
    let begun = Instant::now();
    let groups = Groups::count(
        placement,
        all.iter().map(|node| NodeSeen {
            name: node.metadata.name.as_deref().unwrap_or_default(),
            labels: node.labels(),
            os_image: node.os_image(),
            architecture: node.architecture(),
        }),
    );
    let a_count = begun.elapsed();
    eprintln!(
        "{NODES} nodes with {} labels: {a_node} bytes a node, {} MiB resident in all; a label change of no concern {a_change:?}, read and stored; counting both groups {a_count:?}",
        realistic(0).len() + 1,
        resident() / 1024 / 1024,
    );
    assert_eq!(groups.accelerated, NODES);
    assert!(a_node <= 4096, "{a_node} bytes a node");
    assert!(resident() <= 60 * 1024 * 1024, "{} bytes resident", resident());
}
