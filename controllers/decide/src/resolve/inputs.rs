//! The inputs of a render: everything that shapes it, and their hash.

use aicr_crds::{ClusterRuntimeSpec, Digest};
use serde::Serialize;

/// The AICR that is installed with the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AicrInstall {
    /// `aicr.version`, with or without a leading `v`.
    pub version: String,
    /// `aicr.image`.
    pub image: String,
}

impl AicrInstall {
    /// Whether what an output records is this version (a leading `v` does not count).
    pub fn is(&self, recorded: &str) -> bool {
        recorded.trim_start_matches('v') == self.version.trim_start_matches('v')
    }

    /// Says which version was reported and which is installed.
    pub fn mismatch(&self, reported: &str) -> String {
        let Self { version, image } = self;
        format!(
            "the image {image} reports version {reported}, but aicr.version is {version}; set both to the same release"
        )
    }
}

/// What the arguments of AICR's commands need to know of the installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The AICR.
    pub aicr: AicrInstall,
    /// Registry and prefix.
    pub repository: String,
    /// Registries spoken to over plain HTTP, as `host:port`.
    pub plain_http: Vec<String>,
    /// Namespace of recipe, render and assessment Jobs.
    pub jobs_namespace: String,
    /// Namespace of snapshot Jobs.
    pub discovery_namespace: String,
    /// `ServiceAccount` of the snapshot's agent.
    pub agent_service_account: String,
    /// Whether the snapshot's agent is privileged.
    pub agent_privileged: bool,
    /// `--requests` of the snapshot's agent, as AICR takes them.
    pub agent_requests: Option<String>,
    /// `--limits` of the snapshot's agent.
    pub agent_limits: Option<String>,
}

impl Installation {
    /// Whether the registry that holds our repository is spoken to over plain HTTP.
    pub fn is_plain_http(&self) -> bool {
        let host = self.repository.split('/').next().unwrap_or_default();
        self.plain_http.iter().any(|plain| plain == host)
    }
}

/// The fields of the spec that shape the render, with AICR's version and image.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpecInputs<'a> {
    intent: &'a aicr_crds::vocabulary::Intent,
    platform: &'a Option<aicr_crds::vocabulary::Platform>,
    profile: &'a Option<String>,
    criteria: &'a aicr_crds::runtime::Criteria,
    placement: &'a aicr_crds::runtime::Placement,
    configuration: &'a aicr_crds::runtime::Configuration,
    overrides: &'a [aicr_crds::runtime::Override],
    aicr: &'a AicrInstall,
}

/// Hash of what the person and the installation say of the render, whatever the snapshot.
pub fn of_spec(spec: &ClusterRuntimeSpec, aicr: &AicrInstall) -> Digest {
    hash(&SpecInputs {
        intent: &spec.intent,
        platform: &spec.platform,
        profile: &spec.profile,
        criteria: &spec.criteria,
        placement: &spec.placement,
        configuration: &spec.configuration,
        overrides: &spec.overrides,
        aicr,
    })
}

/// Hash of all inputs: the spec's, and the snapshot by name, whatever it holds.
pub(crate) fn of_render(spec: Digest, snapshot: &str) -> Digest {
    hash(&(spec, snapshot))
}

/// Hash of any serialisable value; what we hash has no NaN and only string keys.
pub(crate) fn hash<T: Serialize>(value: &T) -> Digest {
    Digest::of_canonical(value).unwrap_or_else(|_| Digest::of(b"no canonical form"))
}

/// The `input` label of Jobs: the first 32 hex digits, since a label ends at 63.
pub fn input_label(inputs: Digest) -> String {
    inputs.prefix(32)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// Inputs of a spec that is like the others but for this.
    fn with(patch: &Value) -> Digest {
        let mut spec = json!({
            "intent": "training",
            "placement": { "accelerated": { "nodeSelector": { "pool": "gpu" } } },
        });
        for (key, value) in patch.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        of_spec(&serde_json::from_value(spec).unwrap(), &install("v1.1.2", "registry/aicr@sha256:0"))
    }

    fn install(version: &str, image: &str) -> AicrInstall {
        AicrInstall { version: version.to_owned(), image: image.to_owned() }
    }

    /// "The runtime's spec (intent, platform, profile, criteria, placement, configuration, overrides), the AICR image (a chart
    /// upgrade), or the discovery snapshot."
    #[test]
    fn what_the_page_names_is_an_input_each_by_itself() {
        let spec = serde_json::from_value(json!({
            "intent": "training", "placement": { "accelerated": { "nodeSelector": { "pool": "gpu" } } },
        }));
        let (spec, base) = (spec.unwrap(), with(&json!({})));
        let changed = [
            base,
            with(&json!({ "intent": "inference" })),
            with(&json!({ "platform": "kubeflow" })),
            with(&json!({ "profile": "gpu-driver=preinstalled" })),
            with(&json!({ "criteria": { "os": "ubuntu" } })),
            with(&json!({ "placement": { "accelerated": { "nodeSelector": { "pool": "other" } } } })),
            with(&json!({ "configuration": { "storageClass": "fast" } })),
            with(&json!({ "overrides": [{ "component": "nfd", "path": "a", "value": "1" }] })),
            of_spec(&spec, &install("v1.1.3", "registry/aicr@sha256:0")),
            of_spec(&spec, &install("v1.1.2", "registry/aicr@sha256:1")),
        ];
        assert_eq!(changed.iter().collect::<BTreeSet<_>>().len(), changed.len(), "{changed:?}");
        assert_ne!(of_render(base, "snapshot-1"), of_render(base, "snapshot-2"));
    }

    #[test]
    fn what_only_says_how_to_roll_out_is_none() {
        for other in [
            json!({ "paused": true }),
            json!({ "suspendEngine": true }),
            json!({ "deletionPolicy": "Delete" }),
            json!({ "rollout": { "actionTimeout": "1h", "deadline": "2h" } }),
            json!({ "selection": { "policy": "Pinned", "pinnedPlanDigest": base().to_string() } }),
            json!({ "validation": { "deployment": "Disabled" } }),
            json!({ "adoption": { "runtimeUID": "another" } }),
        ] {
            assert_eq!(with(&other), base(), "{other}");
        }
    }

    fn base() -> Digest {
        with(&json!({}))
    }
}
