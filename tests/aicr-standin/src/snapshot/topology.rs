//! Labels and taints of all nodes in AICR's encoding.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use serde_json::{Map, Value, json};

/// Nodes by the value they share.
type ByValue = BTreeMap<String, BTreeSet<String>>;

/// The subtypes of the topology measurement. `most` bounds the names in one entry; 0 is no bound.
pub(super) fn subtypes(nodes: &[Node], most: usize) -> Value {
    let (labels, taints) = (labels(nodes), taints(nodes));
    json!([
        {"subtype": "summary", "data": {
            "label-count": labels.values().map(BTreeMap::len).sum::<usize>(),
            "node-count": nodes.len(),
            "taint-count": taints.values().map(BTreeMap::len).sum::<usize>(),
        }},
        {"subtype": "taint", "data": encoded_taints(&taints, most)},
        {"subtype": "label", "data": encoded_labels(&labels, most)},
    ])
}

fn name(node: &Node) -> String {
    node.metadata.name.clone().unwrap_or_default()
}

fn labels(nodes: &[Node]) -> BTreeMap<String, ByValue> {
    let mut all: BTreeMap<String, ByValue> = BTreeMap::new();
    for node in nodes {
        for (key, value) in node.metadata.labels.iter().flatten() {
            all.entry(key.clone()).or_default().entry(value.clone()).or_default().insert(name(node));
        }
    }
    all
}

/// Key → `effect|value` → nodes.
fn taints(nodes: &[Node]) -> BTreeMap<String, ByValue> {
    let mut all: BTreeMap<String, ByValue> = BTreeMap::new();
    for node in nodes {
        for taint in node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()) {
            let value = format!("{}|{}", taint.effect, taint.value.clone().unwrap_or_default());
            all.entry(taint.key.clone()).or_default().entry(value).or_default().insert(name(node));
        }
    }
    all
}

fn listed(nodes: &BTreeSet<String>, most: usize) -> String {
    let bound = if most == 0 { nodes.len() } else { most };
    nodes.iter().take(bound).cloned().collect::<Vec<_>>().join(",")
}

fn encoded_labels(labels: &BTreeMap<String, ByValue>, most: usize) -> Value {
    let mut data = Map::new();
    for (key, values) in labels {
        for (value, nodes) in values {
            let entry = if values.len() == 1 { key.clone() } else { format!("{key}.{value}") };
            data.insert(entry, json!(format!("{value}|{}", listed(nodes, most))));
        }
    }
    Value::Object(data)
}

fn encoded_taints(taints: &BTreeMap<String, ByValue>, most: usize) -> Value {
    let mut data = Map::new();
    for (key, values) in taints {
        for (effect_and_value, nodes) in values {
            let (effect, value) = effect_and_value.split_once('|').unwrap_or((effect_and_value, ""));
            let nodes = listed(nodes, most);
            let (entry, text) = match values.len() {
                1 => (key.clone(), format!("{effect}|{value}|{nodes}")),
                _ => (format!("{key}.{effect}"), format!("{value}|{nodes}")),
            };
            data.insert(entry, json!(text));
        }
    }
    Value::Object(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, labels: &Value, taints: &Value) -> Node {
        serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}}))
            .unwrap()
    }

    #[test]
    fn labels_and_taints_are_encoded_as_aicr_encodes_them() {
        let present = json!([{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]);
        let nodes = [
            node("gpu-2", &json!({"arch": "amd64", "host": "gpu-2"}), &present),
            node("gpu-1", &json!({"arch": "amd64", "host": "gpu-1"}), &present),
            node("sys-1", &json!({"arch": "amd64", "host": "sys-1"}), &json!([])),
        ];
        let value = subtypes(&nodes, 0);
        assert_eq!(value[0]["data"], json!({"label-count": 4, "node-count": 3, "taint-count": 1}));
        assert_eq!(value[1]["data"], json!({"nvidia.com/gpu": "NoSchedule|present|gpu-1,gpu-2"}));
        assert_eq!(value[2]["data"]["arch"], "amd64|gpu-1,gpu-2,sys-1");
        assert_eq!(value[2]["data"]["host.gpu-1"], "gpu-1|gpu-1");
        assert_eq!(subtypes(&nodes, 1)[2]["data"]["arch"], "amd64|gpu-1");
    }
}
