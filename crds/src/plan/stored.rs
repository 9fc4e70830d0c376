//! A plan as an immutable ConfigMap, and back: label, annotation, name and payload verified against each other.

use std::{collections::BTreeMap, io::Read};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::{Deserialize, Serialize};

use super::{Archive, Plan, PlanContent, PlanError, SCHEMA_VERSION};
use crate::{
    digest::{CanonicalError, Digest, canonical},
    keys::{annotation, label, role},
    runtime::Criteria,
};

/// Bytes that may stand uncompressed in a ConfigMap, of its limit of 1 MiB with all the rest.
const PLAIN_LIMIT: usize = 768 * 1024;
/// Bytes that may stand in a ConfigMap after compression.
const STORED_LIMIT: usize = 960 * 1024;
/// Bytes that a payload may expand to.
const EXPANDED_LIMIT: u64 = 16 * 1024 * 1024;

const PLAN: &str = "plan.json";
const ARCHIVES: &str = "archives.json";
const RECIPE: &str = "recipe.yaml";
const CONTEXT: &str = "context.json";

/// A plan with what is known beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPlan {
    /// The plan.
    pub plan: Plan,
    /// The recipe it was rendered from; absent when it was rebuilt from Applications.
    pub recipe: Option<String>,
    /// Where it comes from.
    pub context: PlanContext,
}

/// Where a plan comes from; not part of its digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanContext {
    /// UID of the runtime it was resolved for.
    pub runtime_uid: String,
    /// AICR version that rendered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aicr_version: Option<String>,
    /// AICR image that rendered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aicr_image: Option<String>,
    /// Snapshot it was resolved from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Hash of the inputs it was resolved from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Digest>,
    /// Criteria as resolved.
    #[serde(default)]
    pub criteria: Criteria,
    /// When it was stored.
    pub created: Timestamp,
}

/// Why a ConfigMap is no plan.
#[derive(Debug, thiserror::Error)]
pub enum StoredPlanError {
    /// A schema of another operator version.
    #[error("unsupported plan schema version label {0:?}")]
    Schema(String),
    /// A key or field is absent.
    #[error("plan {name}: {what} is absent")]
    Absent {
        /// The ConfigMap.
        name: String,
        /// What is absent.
        what: &'static str,
    },
    /// Two things that must agree do not.
    #[error("plan {name}: {what} does not match the payload, whose digest is {found}")]
    Disagree {
        /// The ConfigMap.
        name: String,
        /// What disagrees.
        what: &'static str,
        /// Digest of the payload.
        found: Digest,
    },
    /// A payload cannot be read.
    #[error("plan {name}: {what} cannot be read")]
    Unreadable {
        /// The ConfigMap.
        name: String,
        /// Which payload.
        what: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A payload is not text, or expands beyond 16 MiB.
    #[error("plan {name}: {what} is not gzip-compressed text of at most 16 MiB")]
    Expand {
        /// The ConfigMap.
        name: String,
        /// Which payload.
        what: &'static str,
    },
    /// The payload is read, and is no plan.
    #[error("plan {name}")]
    Invalid {
        /// The ConfigMap.
        name: String,
        /// Why.
        #[source]
        source: PlanError,
    },
}

/// Why a plan cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It does not fit, even compressed.
    #[error("the plan takes {size} bytes compressed, over the limit of {limit}; its largest releases are {largest}")]
    TooLarge {
        /// Bytes after compression.
        size: usize,
        /// Limit.
        limit: usize,
        /// The three largest releases with their sizes.
        largest: String,
    },
    /// It has no JSON form.
    #[error("write the plan")]
    Canonical(#[from] CanonicalError),
}

impl StoredPlan {
    /// The ConfigMap that stores it; compressed where it would not fit otherwise.
    pub fn to_config_map(&self, namespace: &str) -> Result<ConfigMap, StoreError> {
        let texts = self.texts()?;
        let size: usize = texts.iter().map(|(_, text)| text.len()).sum();
        let mut map = ConfigMap { metadata: self.metadata(namespace), immutable: Some(true), ..ConfigMap::default() };
        if size <= PLAIN_LIMIT {
            map.data = Some(texts.into_iter().map(|(key, text)| (key.to_owned(), text)).collect());
            return Ok(map);
        }
        let packed: BTreeMap<String, ByteString> =
            texts.into_iter().map(|(key, text)| (key.to_owned(), ByteString(gzip(text.as_bytes())))).collect();
        let size: usize = packed.values().map(|bytes| bytes.0.len()).sum();
        if size > STORED_LIMIT {
            return Err(StoreError::TooLarge { size, limit: STORED_LIMIT, largest: largest(&self.plan) });
        }
        map.binary_data = Some(packed);
        Ok(map)
    }

    fn texts(&self) -> Result<Vec<(&'static str, String)>, CanonicalError> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let mut texts = vec![
            (PLAN, text(canonical(self.plan.content())?)),
            (ARCHIVES, text(canonical(&self.plan.archives())?)),
            (CONTEXT, text(canonical(&self.context)?)),
        ];
        texts.extend(self.recipe.clone().map(|recipe| (RECIPE, recipe)));
        Ok(texts)
    }

    fn metadata(&self, namespace: &str) -> ObjectMeta {
        let labels = [
            (label::ROLE, role::PLAN),
            (label::SCHEMA_VERSION, SCHEMA_VERSION),
            (label::MANAGED_BY, label::MANAGED_BY_VALUE),
        ];
        ObjectMeta {
            name: Some(Plan::config_map_name(self.plan.digest())),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            annotations: Some([(annotation::PLAN_DIGEST.to_owned(), self.plan.digest().to_string())].into()),
            ..ObjectMeta::default()
        }
    }

    /// Reads a plan ConfigMap; schema label, digest annotation, name and payload must agree.
    pub fn from_config_map(map: &ConfigMap) -> Result<Self, StoredPlanError> {
        let name = map.metadata.name.clone().unwrap_or_default();
        let schema = map
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(label::SCHEMA_VERSION))
            .cloned()
            .unwrap_or_default();
        if schema != SCHEMA_VERSION {
            return Err(StoredPlanError::Schema(schema));
        }
        let content: PlanContent = parse(map, &name, PLAN)?;
        let archives: Vec<Archive> = parse(map, &name, ARCHIVES)?;
        let origin = parse(map, &name, CONTEXT)?;
        let plan = Plan::from_parts(content, archives)
            .map_err(|source| StoredPlanError::Invalid { name: name.clone(), source })?;
        let stated = map.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation::PLAN_DIGEST));
        let disagree = |what| StoredPlanError::Disagree { name: name.clone(), what, found: plan.digest() };
        if stated.map(String::as_str) != Some(plan.digest().to_string().as_str()) {
            return Err(disagree("the plan-digest annotation"));
        }
        if name != Plan::config_map_name(plan.digest()) {
            return Err(disagree("its name"));
        }
        let recipe = payload(map, &name, RECIPE)?;
        Ok(Self { plan, recipe, context: origin })
    }
}

fn parse<T: for<'de> Deserialize<'de>>(map: &ConfigMap, name: &str, what: &'static str) -> Result<T, StoredPlanError> {
    let text = payload(map, name, what)?.ok_or_else(|| StoredPlanError::Absent { name: name.to_owned(), what })?;
    serde_json::from_str(&text).map_err(|source| StoredPlanError::Unreadable { name: name.to_owned(), what, source })
}

fn payload(map: &ConfigMap, name: &str, what: &'static str) -> Result<Option<String>, StoredPlanError> {
    if let Some(text) = map.data.as_ref().and_then(|data| data.get(what)) {
        return Ok(Some(text.clone()));
    }
    let Some(packed) = map.binary_data.as_ref().and_then(|data| data.get(what)) else { return Ok(None) };
    let mut text = String::new();
    let read = GzDecoder::new(packed.0.as_slice()).take(EXPANDED_LIMIT + 1).read_to_string(&mut text);
    match read {
        Ok(size) if size as u64 <= EXPANDED_LIMIT => Ok(Some(text)),
        Ok(_) | Err(_) => Err(StoredPlanError::Expand { name: name.to_owned(), what }),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing into a Vec cannot fail; a short result would be refused by the reader.
    let _ = std::io::Write::write_all(&mut encoder, bytes);
    encoder.finish().unwrap_or_default()
}

fn largest(plan: &Plan) -> String {
    let mut sizes: Vec<_> =
        plan.content().releases.iter().map(|release| (release.values.len(), release.id.as_str())).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    sizes.iter().take(3).map(|(size, id)| format!("{id} ({size} bytes)")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ChartContent, ReleaseContent};

    const NAMESPACE: &str = "aicr-system";

    fn stored(values: &str) -> StoredPlan {
        let release = ReleaseContent {
            id: "gpu-operator".into(),
            component: "gpu-operator".into(),
            namespace: "gpu".into(),
            chart: ChartContent { repository: "charts/gpu-operator".into(), content: Digest::of(b"chart") },
            values: values.into(),
            depends_on: vec![],
            readiness_gate: false,
        };
        let archive = Archive {
            id: "gpu-operator".into(),
            version: "v25.3.0".into(),
            digest: Digest::of(b"archive"),
            crds: vec!["clusterpolicies.nvidia.com".into()],
        };
        let context = PlanContext {
            runtime_uid: "uid".into(),
            aicr_version: Some("1.1.2".into()),
            aicr_image: None,
            snapshot: Some("aicr-snapshot-1".into()),
            inputs: Some(Digest::of(b"inputs")),
            criteria: Criteria::default(),
            created: "2026-11-29T21:00:00Z".parse().unwrap(),
        };
        let plan = Plan::new(vec![release], vec![archive]).unwrap();
        StoredPlan { plan, recipe: Some("kind: recipe\n".into()), context }
    }

    /// Text that gzip cannot make much smaller than half.
    fn noise(bytes: usize) -> String {
        (0..bytes / 64).map(|number| Digest::of(&number.to_be_bytes()).hex()).collect()
    }

    #[test]
    fn a_plan_comes_back_as_it_was_stored() {
        let rebuilt = StoredPlan { recipe: None, ..stored("a: 1\n") };
        for plan in [stored("a: 1\n"), stored(""), rebuilt] {
            let map = plan.to_config_map(NAMESPACE).unwrap();
            assert_eq!(map.immutable, Some(true));
            assert_eq!(map.binary_data, None);
            assert_eq!(StoredPlan::from_config_map(&map).unwrap(), plan);
        }
    }

    #[test]
    fn the_stored_bytes_are_those_of_the_digest() {
        let map = stored("a: 1\n").to_config_map(NAMESPACE).unwrap();
        let digest = Digest::of(map.data.unwrap()[PLAN].as_bytes());
        assert_eq!(digest, stored("a: 1\n").plan.digest());
        assert_eq!(map.metadata.name, Some(format!("aicr-plan-{}", digest.prefix(32))));
        assert_eq!(map.metadata.annotations.unwrap()[annotation::PLAN_DIGEST], digest.to_string());
    }

    #[test]
    fn a_large_plan_is_compressed_and_comes_back() {
        let plan = stored(&noise(PLAIN_LIMIT + 1024));
        let map = plan.to_config_map(NAMESPACE).unwrap();
        assert_eq!(map.data, None);
        assert_eq!(StoredPlan::from_config_map(&map).unwrap(), plan);
    }

    #[test]
    fn a_plan_that_does_not_fit_names_its_largest_releases() {
        let refused = stored(&noise(3 * 1024 * 1024)).to_config_map(NAMESPACE).unwrap_err();
        let StoreError::TooLarge { size, limit, largest } = refused else { panic!("{refused}") };
        assert!(size > limit, "{size} {limit}");
        assert_eq!(largest, "gpu-operator (3145728 bytes)");
    }

    /// B84: what fits is one object of less than a ConfigMap's MiB, what does not is refused with its size; the digest is
    /// over the content, not over what is stored.
    #[test]
    fn b84_a_plan_of_any_size_is_one_object_or_a_refusal_with_its_size() {
        for tenths in [9, 10, 11, 50] {
            let plan = stored(&noise(tenths * 1024 * 1024 / 10));
            match plan.to_config_map(NAMESPACE) {
                Ok(map) => {
                    let stored = serde_json::to_vec(&map).unwrap().len();
                    // In JSON the compressed bytes are base64; etcd and the limit count the bytes.
                    assert!(stored * 3 / 4 < 1024 * 1024, "{tenths}: {stored}");
                    let back = StoredPlan::from_config_map(&map).unwrap();
                    assert_eq!(back.plan.digest(), plan.plan.digest());
                }
                Err(error) => {
                    assert!(tenths > 11, "{tenths}: {error}");
                    assert!(matches!(error, StoreError::TooLarge { size, .. } if size > STORED_LIMIT), "{error}");
                }
            }
        }
    }

    #[test]
    fn label_annotation_name_and_payload_are_held_against_each_other() {
        let read = |change: fn(&mut ConfigMap)| {
            let mut map = stored("a: 1\n").to_config_map(NAMESPACE).unwrap();
            change(&mut map);
            StoredPlan::from_config_map(&map).unwrap_err().to_string()
        };
        let name = stored("a: 1\n").to_config_map(NAMESPACE).unwrap().metadata.name.unwrap();
        let digest = stored("a: 1\n").plan.digest();
        let label = |map: &mut ConfigMap| {
            map.metadata.labels.as_mut().unwrap().insert(label::SCHEMA_VERSION.into(), "2".into());
        };
        assert_eq!(read(label), "unsupported plan schema version label \"2\"");
        let annotation = |map: &mut ConfigMap| {
            map.metadata.annotations.as_mut().unwrap().insert(annotation::PLAN_DIGEST.into(), "sha256:0".into());
        };
        let says =
            format!("plan {name}: the plan-digest annotation does not match the payload, whose digest is {digest}");
        assert_eq!(read(annotation), says);
        let says = format!("plan aicr-plan-0: its name does not match the payload, whose digest is {digest}");
        assert_eq!(read(|map| map.metadata.name = Some("aicr-plan-0".into())), says);
        let payload = |map: &mut ConfigMap| {
            let data = map.data.as_mut().unwrap();
            let edited = data[PLAN].replace("a: 1", "a: 2");
            data.insert(PLAN.into(), edited);
        };
        assert!(read(payload).contains("does not match the payload"), "{}", read(payload));
    }

    #[test]
    fn a_payload_that_is_absent_or_no_json_is_named() {
        for key in [PLAN, ARCHIVES, CONTEXT] {
            let mut map = stored("a: 1\n").to_config_map(NAMESPACE).unwrap();
            map.data.as_mut().unwrap().remove(key);
            let absent = StoredPlan::from_config_map(&map).unwrap_err().to_string();
            assert!(absent.ends_with(&format!("{key} is absent")), "{absent}");
            map.data.as_mut().unwrap().insert(key.into(), "{".into());
            let unreadable = StoredPlan::from_config_map(&map).unwrap_err().to_string();
            assert!(unreadable.ends_with(&format!("{key} cannot be read")), "{unreadable}");
        }
    }

    #[test]
    fn what_expands_without_end_or_is_no_gzip_is_refused() {
        let bomb = gzip(&vec![b' '; 17 * 1024 * 1024]);
        assert!(bomb.len() < STORED_LIMIT);
        for bytes in [bomb, b"no gzip".to_vec()] {
            let mut map = stored("a: 1\n").to_config_map(NAMESPACE).unwrap();
            map.data.as_mut().unwrap().remove(PLAN);
            map.binary_data = Some([(PLAN.to_owned(), ByteString(bytes))].into());
            let refused = StoredPlan::from_config_map(&map).unwrap_err();
            assert!(matches!(refused, StoredPlanError::Expand { what: PLAN, .. }), "{refused}");
        }
    }
}
