//! Plans that follow each other, as they lie in the operator's namespace once AICR's part is done.

use aicr_crds::keys::{annotation, label, role};
use aicr_crds::plan::{Archive, ChartContent, Plan, PlanContext, ReleaseContent, StoredPlan};
use aicr_crds::runtime::Criteria;
use aicr_crds::{ClusterRuntime, Digest};
use aicr_decide::resolve::{AicrInstall, input_label, of_spec};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::operator::{AICR_IMAGE, AICR_VERSION, NAMESPACE};

/// The snapshot that every plan was resolved from.
const SNAPSHOT: &str = "aicr-snapshot-played";
/// A day that no clock reaches: a test that runs over midnight takes no second snapshot.
const NEVER_AGAIN: &str = "9999-12-31";

/// One of the two plans between which rollouts go to and fro: of either, the other upgrades one release, verifies a gate,
/// installs one and removes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// With `kai-scheduler`.
    A,
    /// With `nodewright`.
    B,
}

impl Which {
    /// The one that it is not.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// The plan.
    pub fn plan(self) -> Plan {
        let (version, own) = match self {
            Self::A => ("1.0.0", "kai-scheduler"),
            Self::B => ("1.1.0", "nodewright"),
        };
        let releases = vec![
            release("cert-manager", "cert-manager", "1.0.0", &[], Gate::No),
            release("nfd", "nfd", "1.0.0", &["cert-manager"], Gate::No),
            release("network-operator", "network-operator", version, &["nfd"], Gate::No),
            release("network-operator-readiness", "network-operator", "1.0.0", &["network-operator"], Gate::Yes),
            release("prometheus", "prometheus", "1.0.0", &[], Gate::No),
            release(own, own, "1.0.0", &["nfd"], Gate::No),
        ];
        plan_of(releases)
    }

    /// Its digest.
    pub fn digest(self) -> Digest {
        self.plan().digest()
    }
}

/// A plan of this many releases in a row, each version one of its own.
pub fn row(count: usize, version: &str) -> Plan {
    let name = |place: usize| format!("release-{place:02}");
    let before = |place: usize| place.checked_sub(1).map(name);
    let made = (0..count).map(|place| {
        let needs: Vec<String> = before(place).into_iter().collect();
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        release(&name(place), &name(place), version, &needs, Gate::No)
    });
    plan_of(made.collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    Yes,
    No,
}

type Release = (ReleaseContent, Archive);

fn release(id: &str, component: &str, version: &str, needs: &[&str], gate: Gate) -> Release {
    let digest = Digest::of(format!("{id}/{version}").as_bytes());
    let content = ReleaseContent {
        id: id.to_owned(),
        component: component.to_owned(),
        namespace: component.to_owned(),
        chart: ChartContent { repository: format!("charts/{id}"), content: digest },
        values: format!("replicas: 1\nof: {id}\n"),
        depends_on: needs.iter().map(|&needs| needs.to_owned()).collect(),
        readiness_gate: gate == Gate::Yes,
    };
    (content, Archive { id: id.to_owned(), version: version.to_owned(), digest, crds: Vec::new() })
}

fn plan_of(releases: Vec<Release>) -> Plan {
    let (contents, archives) = releases.into_iter().unzip();
    Plan::new(contents, archives).unwrap_or_else(|error| panic!("a plan: {error}"))
}

/// A plan as it is stored for this runtime, without a recipe: nothing is to be assessed then.
pub fn stored(plan: Plan, runtime_uid: &str) -> ConfigMap {
    let context = PlanContext {
        runtime_uid: runtime_uid.to_owned(),
        aicr_version: Some(AICR_VERSION.to_owned()),
        aicr_image: Some(AICR_IMAGE.to_owned()),
        snapshot: Some(SNAPSHOT.to_owned()),
        inputs: None,
        criteria: Criteria::default(),
        created: Timestamp::now(),
    };
    let stored = StoredPlan { plan, recipe: None, context };
    stored.to_config_map(NAMESPACE).unwrap_or_else(|error| panic!("a plan as ConfigMap: {error}"))
}

/// The snapshot, which says that the present inputs came to this plan: resolution has nothing to do.
pub fn snapshot(runtime: &ClusterRuntime, candidate: Digest) -> Value {
    let aicr = AicrInstall { version: AICR_VERSION.to_owned(), image: AICR_IMAGE.to_owned() };
    let spec = of_spec(&runtime.spec, &aicr);
    let hash =
        |value: Result<Digest, _>| value.unwrap_or_else(|error: aicr_crds::digest::CanonicalError| panic!("{error}"));
    let inputs = hash(Digest::of_canonical(&(spec, SNAPSHOT)));
    let placement = hash(Digest::of_canonical(&runtime.spec.placement.accelerated)).prefix(16);
    let record = json!({
        "day": NEVER_AGAIN, "placement": placement, "image": AICR_IMAGE, "nodeTypes": [], "gpuOperator": null,
        "token": null, "cause": "played",
    });
    let resolved = json!([{ "input": input_label(inputs), "spec": spec.short(), "plan": candidate }]);
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": SNAPSHOT, "namespace": NAMESPACE,
            "labels": { label::ROLE: role::SNAPSHOT, label::MANAGED_BY: label::MANAGED_BY_VALUE },
            "annotations": {
                annotation::SNAPSHOT_RECORD: record.to_string(), annotation::RESOLVED: resolved.to_string(),
            },
        },
        "data": { "snapshot.yaml": READING },
    })
}

const READING: &str = r#"apiVersion: aicr.run/v1
kind: Snapshot
measurements:
  - type: K8s
    subtypes:
      - subtype: server
        data: {version: v1.34.1-eks-113cf36}
      - subtype: node
        data: {provider: eks}
  - type: NodeTopology
    subtypes:
      - subtype: summary
        data: {node-count: 1}
      - subtype: label
        data: {nvidia.com/gpu.product: "NVIDIA-H100-80GB-HBM3|gpu-1"}
  - type: OS
    subtypes:
      - subtype: release
        data: {ID: ubuntu, VERSION_ID: "24.04"}
metadata: {source-node: gpu-1, version: v1.1.2}
"#;
