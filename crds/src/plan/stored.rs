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
