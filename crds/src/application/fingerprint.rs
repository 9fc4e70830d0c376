//! The fingerprint of an Application: what a hand edit of source, values or destination changes, and nothing else.

use serde_json::{Map, Value, json};

use crate::digest::{CanonicalError, Digest};

/// sha256 over canonical `source` (all of `helm` included), `sources`, `sourceHydrator` and `destination`.
///
/// Nulls and empty stanzas are left out on both sides: Argo CD removes them when it stores a spec or `comparedTo`. An empty
/// `valuesObject` is none of them: beside it Argo CD reads no `values` at all (A87).
pub fn fingerprint(
    source: Option<&Value>,
    sources: Option<&Value>,
    hydrator: Option<&Value>,
    destination: Option<&Value>,
) -> Result<Digest, CanonicalError> {
    let all = json!({ "source": source, "sources": sources, "sourceHydrator": hydrator, "destination": destination });
    Digest::of_canonical(&pruned(&all).unwrap_or(Value::Null))
}

/// Digest of a sync policy but for `automated.enabled`, which suspension changes.
pub(super) fn policy(policy: Option<&Value>) -> Option<Digest> {
    let mut policy = policy.cloned()?;
    if let Some(automated) = policy.get_mut("automated").and_then(Value::as_object_mut) {
        automated.remove("enabled");
    }
    Digest::of_canonical(&pruned(&policy)?).ok()
}

/// The value without nulls and empty objects or lists; `None` where nothing is left.
pub(super) fn pruned(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| {
                let kept = pruned(value).or_else(|| hides_values(key, value).then(|| json!({})))?;
                Some((key.clone(), kept))
            };
            let kept: Map<String, Value> = map.iter().filter_map(entry).collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(list) => (!list.is_empty()).then(|| Value::Array(list.clone())),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}

/// Whether this stanza, empty as it is, makes Argo CD read no `values`.
fn hides_values(key: &str, value: &Value) -> bool {
    key == "valuesObject" && value.is_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &Value) -> Digest {
        fingerprint(Some(source), None, None, Some(&json!({"namespace": "gpu", "server": "https://x"}))).unwrap()
    }

    #[test]
    fn nulls_and_empty_stanzas_lost_on_the_way_change_nothing() {
        let written = json!({"repoURL": "oci://r/p", "helm": {"values": "a: null\nb: [null]\n", "parameters": null}, "kustomize": {}});
        let stored = json!({"helm": {"values": "a: null\nb: [null]\n"}, "repoURL": "oci://r/p"});
        assert_eq!(of(&written), of(&stored));
    }

    #[test]
    fn every_edit_of_source_values_or_destination_shows() {
        let base = json!({"repoURL": "oci://r/p", "helm": {"values": "a: 1\n"}});
        let edits = [
            json!({"repoURL": "oci://r/q", "helm": {"values": "a: 1\n"}}),
            json!({"repoURL": "oci://r/p", "helm": {"values": "a: 2\n"}}),
            json!({"repoURL": "oci://r/p", "helm": {"values": "a: 1\n", "parameters": [{"name": "x", "value": "y"}]}}),
            json!({"repoURL": "oci://r/p", "helm": {"values": "a: 1\n", "skipCrds": true}}),
            json!({"repoURL": "oci://r/p", "helm": {"values": "a: 1\n", "valuesObject": {"a": 2}}}),
            json!({"repoURL": "oci://r/p", "helm": {"values": "a: 1\n", "valuesObject": {}}}),
            json!({"repoURL": "oci://r/p", "helm": {"values": "a: 1\n", "valuesObject": {"a": null}}}),
        ];
        for edit in edits {
            assert_ne!(of(&base), of(&edit), "{edit}");
        }
        let moved =
            fingerprint(Some(&base), None, None, Some(&json!({"namespace": "other", "server": "https://x"}))).unwrap();
        assert_ne!(of(&base), moved);
        let with_sources = fingerprint(
            Some(&base),
            Some(&json!([base])),
            None,
            Some(&json!({"namespace": "gpu", "server": "https://x"})),
        )
        .unwrap();
        assert_ne!(of(&base), with_sources);
    }
}
