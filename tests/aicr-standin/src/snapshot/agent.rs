//! Agent mode: reads this cluster and writes the snapshot document.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::{Map, Value, json};

use super::topology;
use crate::args::Parsed;
use crate::failure::{Failure, api_words};
use crate::place::{Format, Output};
use crate::recipe::accelerator_of;
use crate::{configmap, log, release};

/// What was read; a part that could not be read is empty, as it is with AICR.
#[derive(Debug, Default)]
struct Seen {
    server: Option<(String, String, String)>,
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    own: Option<Node>,
}

/// Collects and writes.
pub(crate) async fn collect(parsed: &Parsed) -> Result<(), Failure> {
    let format = Format::parse(parsed.get("format"), Format::Yaml)?;
    let kubeconfig = parsed.get("kubeconfig");
    let most = parsed.get("max-nodes-per-entry").and_then(|most| most.parse().ok()).unwrap_or(0);
    let seen = match configmap::client(kubeconfig).await {
        Ok(client) => see(&client).await,
        Err(failure) => {
            skipped("kubernetes", &failure.to_string());
            Seen::default()
        }
    };
    let document = document(&seen, most);
    log::info("snapshot collected", &[("nodes", json!(seen.nodes.len()))]);
    Output { to: parsed.get("output"), kind: "Snapshot", format, kubeconfig }.value(&document).await
}

fn skipped(collector: &str, cause: &str) {
    log::warn("collector failed, skipping", &[("collector", json!(collector)), ("error", json!(cause))]);
}

async fn see(client: &Client) -> Seen {
    let mut seen = Seen::default();
    match client.apiserver_version().await {
        Ok(info) => seen.server = Some((info.git_version, info.platform, info.go_version)),
        Err(error) => skipped("server", &api_words(&error)),
    }
    match all::<Node>(client).await {
        Ok(nodes) => seen.nodes = nodes,
        Err(error) => skipped("nodes", &api_words(&error)),
    }
    match all::<Pod>(client).await {
        Ok(pods) => seen.pods = pods,
        Err(error) => skipped("pods", &api_words(&error)),
    }
    if let Ok(name) = std::env::var("NODE_NAME") {
        match Api::<Node>::all(client.clone()).get(&name).await {
            Ok(node) => seen.own = Some(node),
            Err(error) => skipped("node", &api_words(&error)),
        }
    }
    seen
}

async fn all<K>(client: &Client) -> Result<Vec<K>, kube::Error>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let mut items = Vec::new();
    let mut page = ListParams::default().limit(500);
    loop {
        let list = api.list(&page).await?;
        items.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(items),
        }
    }
}

fn document(seen: &Seen, most: usize) -> Value {
    let measurements = json!([
        {"type": "SystemD"},
        {"type": "GPU", "subtypes": [{"subtype": "hardware", "data": gpu(seen.own.as_ref())}]},
        {"type": "K8s", "subtypes": kubernetes(seen)},
        {"type": "NodeTopology", "subtypes": topology::subtypes(&seen.nodes, most)},
        {"type": "OS", "subtypes": operating_system()},
    ]);
    json!({
        "apiVersion": "aicr.run/v1",
        "fingerprint": fingerprint(seen),
        "kind": "Snapshot",
        "measurements": measurements,
        "metadata": {
            "source-node": std::env::var("NODE_NAME").unwrap_or_default(),
            "timestamp": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "version": release::stamped(),
        },
    })
}

fn label<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn gpu(node: Option<&Node>) -> Value {
    let of = |key| node.and_then(|node| label(node, key));
    let mut data = json!({
        "detection-source": "nfd",
        "driver-loaded": false,
        "gpu-count": of("nvidia.com/gpu.count").and_then(|count| count.parse().ok()).unwrap_or(0u64),
        "gpu-present": of("nvidia.com/gpu.present") == Some("true"),
    });
    if let Some(model) = of("nvidia.com/gpu.product").and_then(accelerator_of) {
        data["model"] = json!(model);
    }
    data
}

fn kubernetes(seen: &Seen) -> Value {
    let server = seen.server.as_ref().map(|(version, platform, go)| {
        json!({"subtype": "server", "data": {"version": version, "platform": platform, "goVersion": go}})
    });
    let node = seen.own.as_ref().map(|node| json!({"subtype": "node", "data": node_data(node)}));
    let fixed = [json!({"subtype": "image", "data": images(&seen.pods)}), json!({"subtype": "policy"})];
    Value::Array(server.into_iter().chain(fixed).chain(node).collect())
}

/// Short image name → tag.
fn images(pods: &[Pod]) -> Value {
    let mut data = BTreeMap::new();
    for image in pods.iter().flat_map(|pod| &pod.spec).flat_map(|spec| &spec.containers).flat_map(|c| &c.image) {
        let short = image.rsplit('/').next().unwrap_or(image);
        let (name, tag) = short.split_once(':').unwrap_or((short, "latest"));
        data.insert(name.to_owned(), tag.to_owned());
    }
    json!(data)
}

fn node_data(node: &Node) -> Value {
    let mut data = Map::new();
    let id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone()).unwrap_or_default();
    data.insert("source-node".into(), json!(node.metadata.name));
    data.insert("provider".into(), json!(provider(&id)));
    data.insert("provider-id".into(), json!(id));
    if let Some(info) = node.status.as_ref().and_then(|status| status.node_info.as_ref()) {
        let runtime = info.container_runtime_version.as_str();
        let (name, version) = runtime.split_once("://").unwrap_or((runtime, ""));
        data.insert("kubelet-version".into(), json!(info.kubelet_version));
        data.insert("kernel-version".into(), json!(info.kernel_version));
        data.insert("os-image".into(), json!(info.os_image));
        data.insert("operating-system".into(), json!(info.operating_system));
        data.insert("container-runtime-id".into(), json!(runtime));
        data.insert("container-runtime-name".into(), json!(name));
        data.insert("container-runtime-version".into(), json!(version));
    }
    Value::Object(data)
}

fn provider(id: &str) -> &str {
    match id.split(':').next().unwrap_or_default() {
        "aws" => "eks",
        "gce" => "gke",
        "azure" => "aks",
        other => other,
    }
}

/// OS readings, settable: the stand-in does not look at the host. `none` leaves them out.
fn operating_system() -> Value {
    let of = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let id = of("AICR_STANDIN_OS", "ubuntu");
    if id == "none" {
        return json!([]);
    }
    json!([
        {"subtype": "release", "data": {"ID": id, "VERSION_ID": of("AICR_STANDIN_OS_VERSION", "24.04")}},
        {"subtype": "sysctl", "data": {"/proc/sys/kernel/osrelease": of("AICR_STANDIN_KERNEL", "6.8.0")}},
    ])
}

fn fingerprint(seen: &Seen) -> Value {
    let own = |key| seen.own.as_ref().and_then(|node| label(node, key)).unwrap_or_default();
    let id = seen.own.as_ref().and_then(|node| node.spec.as_ref()).and_then(|spec| spec.provider_id.clone());
    let gpus = seen.nodes.iter().filter(|node| label(node, "nvidia.com/gpu.present") == Some("true")).count();
    json!({
        "accelerator": {"value": accelerator_of(own("nvidia.com/gpu.product")).unwrap_or_default()},
        "gpuNodeCount": {"value": gpus},
        "k8sVersion": {"value": seen.server.as_ref().map(|(version, ..)| version.trim_start_matches('v'))},
        "nodeCount": {"value": seen.nodes.len()},
        "region": {"value": own("topology.kubernetes.io/region")},
        "service": {"value": provider(&id.unwrap_or_default())},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::reading;

    fn seen() -> Seen {
        let labels = json!({
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": "8",
            "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        });
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "gpu-1", "labels": labels},
            "spec": {"providerID": "aws:///us-east-1a/i-0"},
        }))
        .unwrap();
        let server = Some(("v1.34.4".into(), "linux/amd64".into(), "go1.24".into()));
        Seen { server, nodes: vec![node.clone()], pods: Vec::new(), own: Some(node) }
    }

    #[test]
    fn the_readings_resolution_needs_are_there() {
        let document = document(&seen(), 0);
        let table = [
            ("K8s.server.version", "v1.34.4"),
            ("K8s.node.provider", "eks"),
            ("GPU.hardware.model", "h100"),
            ("GPU.hardware.gpu-count", "8"),
            ("OS.release.ID", "ubuntu"),
            ("OS.release.VERSION_ID", "24.04"),
            ("OS.sysctl./proc/sys/kernel/osrelease", "6.8.0"),
            ("NodeTopology.summary.node-count", "1"),
            ("NodeTopology.label.nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3|gpu-1"),
        ];
        for (path, value) in table {
            assert_eq!(reading(&document, path).as_deref(), Some(value), "{path}");
        }
    }

    #[test]
    fn a_cluster_that_was_not_read_leaves_its_readings_out() {
        let document = document(&Seen::default(), 0);
        assert_eq!(reading(&document, "K8s.server.version"), None);
        assert_eq!(reading(&document, "NodeTopology.summary.node-count").as_deref(), Some("0"));
    }
}
