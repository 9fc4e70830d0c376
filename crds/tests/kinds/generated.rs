//! The generated YAML says what the types say.

use std::path::Path;

use aicr_crds::crd::{cluster_runtime, runtime_rollout};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rstest::rstest;
use serde_json::Value;

#[rstest]
#[case("clusterruntimes.yaml", cluster_runtime())]
#[case("runtimerollouts.yaml", runtime_rollout())]
fn generated_yaml_is_what_the_types_say(#[case] file: &str, #[case] crd: CustomResourceDefinition) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let generated: Value = serde_saphyr::from_str(&text).unwrap();
    let types = serde_json::to_value(crd).unwrap();
    assert!(same(&generated, &types), "{file} differs from the types: run cargo run --bin crdgen");
}

/// Equal but for how a number is written: YAML does not tell 1 from 1.0.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        (one, other) => one == other,
    }
}
