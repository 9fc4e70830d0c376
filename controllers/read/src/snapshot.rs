//! AICR's snapshot of a cluster: its readings, and what resolution derives from them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{error::ReadError, yaml};

/// The apiVersions of a snapshot that are read.
pub const API_VERSIONS: [&str; 1] = ["aicr.run/v1"];

/// Accelerators in AICR's vocabulary; a product label holds one of them as whole dash-separated words.
const ACCELERATORS: [&str; 11] =
    ["rtx-pro-6000", "h100", "h200", "gb200", "gb300", "b200", "a100", "l40s", "l40", "vr200", "b300"];

const PRODUCT_LABEL: &str = "nvidia.com/gpu.product";

/// A snapshot: readings by type, subtype and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The AICR version that took it, with or without a leading `v`.
    pub version: String,
    readings: BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>,
}

impl Snapshot {
    /// One reading, such as `get("K8s", "server", "version")`; absent when missing or empty.
    pub fn get(&self, kind: &str, subtype: &str, key: &str) -> Option<&str> {
        let reading = self.readings.get(kind)?.get(subtype)?.get(key)?;
        Some(reading.as_str()).filter(|text| !text.is_empty())
    }

    /// The Kubernetes service in AICR's vocabulary (`eks`, `oke`, ...), from the node's provider.
    pub fn service(&self) -> Option<&str> {
        match self.get("K8s", "node", "provider")? {
            "oci" => Some("oke"),
            "linode" => Some("lke"),
            other => Some(other),
        }
    }

    /// The accelerator in AICR's vocabulary: from the product label where all nodes that have it agree, else from the
    /// hardware reading. Absent where neither names one that AICR knows.
    pub fn accelerator(&self) -> Option<&'static str> {
        let label = self.get("NodeTopology", "label", PRODUCT_LABEL).and_then(|row| row.split('|').next());
        label.and_then(accelerator).or_else(|| self.get("GPU", "hardware", "model").and_then(accelerator))
    }

    /// The operating system's `ID` of os-release.
    pub fn os(&self) -> Option<&str> {
        self.get("OS", "release", "ID")
    }

    /// The operating system's `VERSION_ID` of os-release.
    pub fn os_version(&self) -> Option<&str> {
        self.get("OS", "release", "VERSION_ID")
    }

    /// The kernel release of the node that the snapshot was taken on.
    pub fn kernel(&self) -> Option<&str> {
        self.get("OS", "sysctl", "/proc/sys/kernel/osrelease")
    }

    /// The API server's version, with its leading `v`.
    pub fn kubernetes_version(&self) -> Option<&str> {
        self.get("K8s", "server", "version")
    }

    /// How many nodes the snapshot saw.
    pub fn node_count(&self) -> Option<u64> {
        self.get("NodeTopology", "summary", "node-count")?.parse().ok()
    }
}

fn accelerator(product: &str) -> Option<&'static str> {
    let words = format!("-{}-", product.to_ascii_lowercase().replace([' ', '_'], "-"));
    ACCELERATORS.into_iter().find(|known| words.contains(&format!("-{known}-")))
}

#[derive(Deserialize)]
struct Document {
    metadata: Metadata,
    measurements: Vec<Measurement>,
}

#[derive(Deserialize)]
struct Metadata {
    version: String,
}

#[derive(Deserialize)]
struct Measurement {
    #[serde(rename = "type")]
    kind: String,
    subtypes: Option<Vec<Subtype>>,
}

#[derive(Deserialize)]
struct Subtype {
    subtype: String,
    data: Option<BTreeMap<String, Value>>,
}

/// Reads a snapshot, YAML or JSON, of at most 1 MiB.
///
/// Readings that are no scalar are left out; a reading given twice keeps its first value.
///
/// # Errors
/// `Unsupported` for another kind or apiVersion, `TooLarge`, else `Damaged`.
pub fn read(bytes: &[u8]) -> Result<Snapshot, ReadError> {
    let document: Document = yaml::typed(bytes, "Snapshot", &API_VERSIONS)?;
    let mut readings: BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>> = BTreeMap::new();
    for measurement in document.measurements {
        let subtypes = readings.entry(measurement.kind).or_default();
        for subtype in measurement.subtypes.unwrap_or_default() {
            let keys = subtypes.entry(subtype.subtype).or_default();
            for (key, value) in subtype.data.unwrap_or_default() {
                if let Some(text) = yaml::loose(scalar(value)) {
                    keys.entry(key).or_insert(text);
                }
            }
        }
    }
    Ok(Snapshot { version: document.metadata.version, readings })
}

fn scalar(value: Value) -> Option<Value> {
    Some(value).filter(|value| !value.is_array() && !value.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const GOOD: &str = r#"apiVersion: aicr.run/v1
kind: Snapshot
fingerprint: {accelerator: {value: a100}}
measurements:
  - type: SystemD
  - type: GPU
    subtypes:
      - subtype: hardware
        data: {gpu-count: 8, gpu-present: false, model: h200}
  - type: K8s
    subtypes:
      - subtype: policy
      - subtype: server
        data: {version: v1.34.1-eks-113cf36}
      - subtype: node
        data: {provider: eks, odd: [1, 2], nothing: null}
  - type: NodeTopology
    subtypes:
      - subtype: summary
        data: {node-count: 3}
      - subtype: label
        data:
          nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3|gpu-1,gpu-2
  - type: OS
    subtypes:
      - subtype: release
        data: {ID: ubuntu, VERSION_ID: "24.04"}
      - subtype: sysctl
        data: {/proc/sys/kernel/osrelease: 6.8.0-1015-aws}
metadata: {source-node: gpu-1, version: 1.0.0}
"#;

    #[test]
    fn everything_resolution_needs_is_derived() {
        let snapshot = read(GOOD.as_bytes()).unwrap();
        assert_eq!(snapshot.version, "1.0.0");
        assert_eq!(snapshot.service(), Some("eks"));
        assert_eq!(snapshot.accelerator(), Some("h100"));
        assert_eq!(snapshot.os(), Some("ubuntu"));
        assert_eq!(snapshot.os_version(), Some("24.04"));
        assert_eq!(snapshot.kernel(), Some("6.8.0-1015-aws"));
        assert_eq!(snapshot.kubernetes_version(), Some("v1.34.1-eks-113cf36"));
        assert_eq!(snapshot.node_count(), Some(3));
        assert_eq!(snapshot.get("GPU", "hardware", "gpu-present"), Some("false"));
        assert_eq!(snapshot.get("K8s", "node", "odd"), None);
        assert_eq!(snapshot.get("K8s", "node", "nothing"), None);
    }

    #[test]
    fn the_same_snapshot_as_json_reads_alike() {
        let value: Value = yaml::parse(GOOD).unwrap();
        assert_eq!(read(value.to_string().as_bytes()).unwrap(), read(GOOD.as_bytes()).unwrap());
    }

    #[rstest]
    #[case::nothing("nvidia.com/gpu.product: ''", "model: ''", None)]
    #[case::model_only("other: a|n", "model: h200", Some("h200"))]
    #[case::two_products("nvidia.com/gpu.product.NVIDIA-H100: NVIDIA-H100|a", "model: l40s", Some("l40s"))]
    #[case::superchip_is_not_its_part("nvidia.com/gpu.product: NVIDIA-GH200-480GB|a", "x: y", None)]
    #[case::blackwell("nvidia.com/gpu.product: NVIDIA-GB200|a", "x: y", Some("gb200"))]
    #[case::workstation("nvidia.com/gpu.product: NVIDIA-RTX-PRO-6000-Blackwell|a", "x: y", Some("rtx-pro-6000"))]
    #[case::l40_is_not_l40s("nvidia.com/gpu.product: NVIDIA-L40|a", "x: y", Some("l40"))]
    fn the_accelerator_follows_the_label_then_the_model(
        #[case] label: &str,
        #[case] model: &str,
        #[case] expected: Option<&str>,
    ) {
        let text = GOOD
            .replace("nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3|gpu-1,gpu-2", label)
            .replace("model: h200", model);
        assert_eq!(read(text.as_bytes()).unwrap().accelerator(), expected);
    }

    #[rstest]
    #[case("oci", "oke")]
    #[case("linode", "lke")]
    #[case("kind", "kind")]
    fn a_provider_has_the_name_of_its_service(#[case] provider: &str, #[case] service: &str) {
        let text = GOOD.replace("provider: eks", &format!("provider: {provider}"));
        assert_eq!(read(text.as_bytes()).unwrap().service(), Some(service));
    }

    #[rstest]
    #[case::other_kind(&GOOD.replace("kind: Snapshot", "kind: RecipeResult"))]
    #[case::older_api_version(&GOOD.replace("aicr.run/v1", "aicr.run/v1alpha2"))]
    #[case::newer_api_version(&GOOD.replace("aicr.run/v1", "aicr.run/v2"))]
    fn another_kind_or_version_is_unsupported(#[case] text: &str) {
        assert!(matches!(read(text.as_bytes()), Err(ReadError::Unsupported { .. })));
    }

    #[rstest]
    #[case::empty("")]
    #[case::truncated(&GOOD[..GOOD.len() / 2])]
    #[case::not_aicr("hello: world")]
    #[case::no_kind(&GOOD.replace("kind: Snapshot\n", ""))]
    #[case::scalar("exit status 3")]
    #[case::two_documents(&format!("{GOOD}---\n{GOOD}"))]
    #[case::no_version(&GOOD.replace(", version: 1.0.0", ""))]
    #[case::no_measurements("apiVersion: aicr.run/v1\nkind: Snapshot\nmetadata: {version: 1.0.0}\n")]
    fn a_damaged_snapshot_is_refused(#[case] text: &str) {
        assert!(matches!(read(text.as_bytes()), Err(ReadError::Damaged { .. })));
    }

    #[test]
    fn a_snapshot_beyond_the_limit_is_too_large() {
        let text = format!("{GOOD}# {}", "x".repeat(yaml::DOCUMENT_LIMIT));
        assert!(matches!(read(text.as_bytes()), Err(ReadError::TooLarge { .. })));
    }
}
