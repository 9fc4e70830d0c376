//! Samples of both kinds go through the types and come back as they were; unknown words are refused.

use aicr_crds::crd::{cluster_runtime, runtime_rollout};
use aicr_crds::{ClusterRuntime, ClusterRuntimeSpec, RuntimeRollout};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use rstest::rstest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::schema::{self, at, fields};

const RUNTIME: &str = include_str!("runtime.yaml");
const ROLLOUT: &str = include_str!("rollout.yaml");

fn value(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

fn through<T: Serialize + DeserializeOwned>(yaml: &str) -> Value {
    let object: T = serde_saphyr::from_str(yaml).unwrap();
    value(&serde_saphyr::to_string(&object).unwrap())
}

#[test]
fn a_runtime_with_every_field_comes_back_as_it_was() {
    assert_eq!(through::<ClusterRuntime>(RUNTIME), value(RUNTIME));
}

#[test]
fn a_rollout_with_every_field_comes_back_as_it_was() {
    assert_eq!(through::<RuntimeRollout>(ROLLOUT), value(ROLLOUT));
}

/// Without this, a field that a sample leaves out would be left out of the round trip too.
#[test]
fn the_samples_have_every_field() {
    for (crd, sample) in [(cluster_runtime(), RUNTIME), (runtime_rollout(), ROLLOUT)] {
        let sample = value(sample);
        for part in ["spec", "status"] {
            for (path, _) in fields(at(schema::of(&crd), part), part) {
                assert!(is_there(&sample, &path), "the sample has no {path}");
            }
        }
    }
}

fn is_there(sample: &Value, path: &str) -> bool {
    let Some((head, rest)) = path.split_once('.') else { return !step(sample, path).is_empty() };
    step(sample, head).into_iter().any(|value| is_there(value, rest))
}

fn step<'value>(value: &'value Value, name: &str) -> Vec<&'value Value> {
    if let Some(name) = name.strip_suffix("[]") {
        return step(value, name).into_iter().filter_map(Value::as_array).flatten().collect();
    }
    if let Some(name) = name.strip_suffix("{}") {
        return step(value, name).into_iter().filter_map(Value::as_object).flat_map(|map| map.values()).collect();
    }
    value.get(name).into_iter().collect()
}

#[rstest]
#[case::intent("/spec/intent", "gaming")]
#[case::platform("/spec/platform", "Kubeflow")]
#[case::service("/spec/criteria/service", "any")]
#[case::effect("/spec/placement/accelerated/tolerations/0/effect", "NoStart")]
#[case::policy("/spec/selection/policy", "pinned")]
#[case::validation("/spec/validation/deployment", "Optional")]
#[case::deletion("/spec/deletionPolicy", "Retain")]
fn an_unknown_word_in_a_runtime_is_refused(#[case] pointer: &str, #[case] word: &str) {
    assert!(serde_json::from_value::<ClusterRuntime>(with(RUNTIME, pointer, word)).is_err(), "{pointer}");
}

#[rstest]
#[case::kind("/spec/kind", "Rollback")]
#[case::operation("/spec/steps/0/operation", "install")]
#[case::verdict("/spec/steps/0/verdict", "Safe")]
#[case::crd("/spec/steps/0/crds/0/change", "None")]
#[case::need("/spec/steps/0/approval/need", "Maybe")]
#[case::target("/spec/targetPlanDigest", "sha256:1")]
#[case::time("/spec/deadline", "tomorrow")]
#[case::phase("/status/phase", "Pending")]
#[case::state("/status/releases/0/state", "Pending")]
fn an_unknown_word_in_a_rollout_is_refused(#[case] pointer: &str, #[case] word: &str) {
    assert!(serde_json::from_value::<RuntimeRollout>(with(ROLLOUT, pointer, word)).is_err(), "{pointer}");
}

fn with(sample: &str, pointer: &str, word: &str) -> Value {
    let mut sample = value(sample);
    *sample.pointer_mut(pointer).unwrap() = word.into();
    sample
}

#[test]
fn the_types_fill_in_the_defaults_that_the_crd_fills_in() {
    let crd = cluster_runtime();
    let spec = at(schema::of(&crd), "spec");
    let minimal = json!({"intent": "training", "placement": {"accelerated": {"nodeSelector": {"gpu": "yes"}}}});
    for given in [
        json!({}),
        json!({"selection": {}, "rollout": {}, "validation": {}, "configuration": {}}),
        json!({"selection": {"policy": "Automatic"}, "rollout": {"deadline": "12h"}}),
    ] {
        let mut stored = minimal.clone();
        stored.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        let by_types: ClusterRuntimeSpec = serde_json::from_value(stored.clone()).unwrap();
        fill_in(&mut stored, spec);
        assert_eq!(serde_json::to_value(by_types).unwrap(), stored);
    }
}

#[test]
fn the_defaults_are_those_of_the_page() {
    let minimal = json!({"intent": "training", "placement": {"accelerated": {"nodeSelector": {"gpu": "yes"}}}});
    let spec: ClusterRuntimeSpec = serde_json::from_value(minimal).unwrap();
    let filled = json!({
        "intent": "training",
        "placement": {"accelerated": {"nodeSelector": {"gpu": "yes"}}},
        "configuration": {"readinessGates": true},
        "selection": {"policy": "Automatic", "pinnedPlanDigest": ""},
        "rollout": {"stabilizationWindow": "10m", "actionTimeout": "30m", "deadline": "6h"},
        "validation": {"deployment": "Required"},
        "paused": false,
        "suspendEngine": false,
        "deletionPolicy": "Orphan",
    });
    assert_eq!(serde_json::to_value(spec).unwrap(), filled);
}

/// As the API server fills in defaults: an absent field first, then what is inside it.
fn fill_in(value: &mut Value, schema: &JSONSchemaProps) {
    let Some(object) = value.as_object_mut() else { return };
    for (name, field) in schema.properties.iter().flatten() {
        if let Some(default) = &field.default {
            object.entry(name).or_insert_with(|| default.0.clone());
        }
        if let Some(inner) = object.get_mut(name) {
            fill_in(inner, field);
        }
    }
}
