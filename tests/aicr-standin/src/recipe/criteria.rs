//! The six criteria: what was stated, what a snapshot says, which values exist.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::args::Parsed;
use crate::constraint::reading;
use crate::failure::{Code, Failure};
use crate::log;

/// The dimensions and their values, in AICR's order.
const DIMENSIONS: [(&str, &[&str]); 5] = [
    ("service", &["eks", "gke", "aks", "oke", "ocp", "kind", "lke", "bcm", "metal3", "rke2", "generic", "k0s"]),
    ("accelerator", &["h100", "h200", "gb200", "gb300", "b200", "a100", "l40", "l40s", "rtx-pro-6000", "vr200"]),
    ("intent", &["training", "inference"]),
    ("os", &["ubuntu", "rhel", "cos", "amazonlinux", "ol", "talos"]),
    ("platform", &["dynamo", "kubeflow", "nim", "runai", "slurm"]),
];

/// Criteria by dimension; a dimension that is `any` is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Criteria {
    values: BTreeMap<&'static str, String>,
    nodes: Option<u64>,
}

impl Criteria {
    /// The criteria of the flags.
    pub(crate) fn stated(parsed: &Parsed) -> Result<Self, Failure> {
        let mut criteria = Self::default();
        for (dimension, known) in DIMENSIONS {
            let Some(value) = parsed.get(dimension) else { continue };
            if value == "any" {
                continue;
            }
            if !known.contains(&value) {
                return Err(Failure::invalid(format!("invalid {dimension} type: {value}"))
                    .within(Code::InvalidRequest, "error parsing criteria"));
            }
            criteria.values.insert(dimension, value.to_owned());
        }
        criteria.nodes = parsed.get("nodes").and_then(|nodes| nodes.parse().ok());
        Ok(criteria)
    }

    /// Takes over from a recipe what was not stated.
    pub(crate) fn inherit(&mut self, recipe: &Value) {
        for (dimension, _) in DIMENSIONS {
            if let Some(value) = recipe["criteria"][dimension].as_str() {
                self.values.entry(dimension).or_insert_with(|| value.to_owned());
            }
        }
    }

    /// The stated criteria, completed by the readings of a snapshot.
    pub(crate) fn completed(&self, snapshot: Option<&Value>) -> Self {
        let mut all = self.clone();
        let Some(snapshot) = snapshot else { return all };
        let readings = [
            ("service", reading(snapshot, "K8s.node.provider").map(service)),
            ("accelerator", accelerator(snapshot)),
            ("os", reading(snapshot, "OS.release.ID")),
        ];
        for (dimension, detected) in readings {
            let Some(detected) = detected.filter(|value| !value.is_empty()) else { continue };
            match all.values.get(dimension) {
                Some(stated) if *stated != detected => log::warn(
                    "CLI flag overriding snapshot-detected value",
                    &[("field", json!(dimension)), ("detected", json!(detected)), ("override", json!(stated))],
                ),
                Some(_) => {}
                None => drop(all.values.insert(dimension, detected)),
            }
        }
        let nodes = reading(snapshot, "NodeTopology.summary.node-count").and_then(|nodes| nodes.parse().ok());
        all.nodes = all.nodes.or(nodes);
        all
    }

    pub(crate) fn get(&self, dimension: &str) -> Option<&str> {
        self.values.get(dimension).map(String::as_str)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty() && self.nodes.is_none()
    }

    pub(crate) fn dimensions(&self) -> impl Iterator<Item = (&'static str, &str)> {
        DIMENSIONS.iter().filter_map(|(dimension, _)| self.get(dimension).map(|value| (*dimension, value)))
    }

    /// Whether all of an overlay's criteria are asked for.
    pub(crate) fn meet(&self, wanted: &BTreeMap<String, String>) -> bool {
        wanted.iter().all(|(dimension, value)| self.get(dimension) == Some(value))
    }

    pub(crate) fn words(&self) -> String {
        let mut pairs: Vec<String> =
            self.dimensions().map(|(dimension, value)| format!("{dimension}={value}")).collect();
        pairs.extend(self.nodes.map(|nodes| format!("nodes={nodes}")));
        format!("criteria({})", pairs.join(", "))
    }

    pub(crate) fn document(&self) -> Value {
        let mut value = json!(self.values);
        if let Some(nodes) = self.nodes {
            value["nodes"] = json!(nodes);
        }
        value
    }

    #[cfg(test)]
    pub(crate) fn of(pairs: &[(&'static str, &str)]) -> Self {
        Self { values: pairs.iter().map(|(key, value)| (*key, (*value).to_owned())).collect(), nodes: None }
    }
}

fn service(provider: String) -> String {
    match provider.as_str() {
        "oci" => "oke".into(),
        "linode" => "lke".into(),
        _ => provider,
    }
}

/// The accelerator by label where all nodes agree, else by the PCI reading.
fn accelerator(snapshot: &Value) -> Option<String> {
    let label = reading(snapshot, "NodeTopology.label.nvidia.com/gpu.product");
    let product = label.as_deref().and_then(|text| text.split('|').next());
    product
        .and_then(accelerator_of)
        .map(ToOwned::to_owned)
        .or_else(|| reading(snapshot, "GPU.hardware.model").filter(|model| !model.is_empty()))
}

/// The accelerator that a GPU product name means.
pub(crate) fn accelerator_of(product: &str) -> Option<&'static str> {
    let product = product.to_lowercase();
    let known = ["gb300", "gb200", "h200", "h100", "b200", "a100", "l40s", "l40", "vr200"];
    known.into_iter().find(|sku| product.contains(sku))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    #[test]
    fn a_value_outside_the_lists_is_refused_in_aicrs_words() {
        let words = ["--service".to_owned(), "nope".to_owned()];
        let failure = Criteria::stated(&args::parse(super::super::FLAGS, &words).unwrap()).unwrap_err();
        assert_eq!(failure.exit(), 2);
        assert_eq!(
            failure.to_string(),
            "[INVALID_REQUEST] error parsing criteria: [INVALID_REQUEST] invalid service type: nope"
        );
    }

    #[test]
    fn a_flag_beats_the_snapshot_and_the_snapshot_fills_the_rest() {
        let snapshot = json!({"measurements": [
            {"type": "K8s", "subtypes": [{"subtype": "node", "data": {"provider": "oci"}}]},
            {"type": "NodeTopology", "subtypes": [
                {"subtype": "label", "data": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3|a,b"}},
                {"subtype": "summary", "data": {"node-count": 2}},
            ]},
        ]});
        let all = Criteria::of(&[("os", "rhel")]).completed(Some(&snapshot));
        assert_eq!(all.words(), "criteria(service=oke, accelerator=h100, os=rhel, nodes=2)");
    }
}
