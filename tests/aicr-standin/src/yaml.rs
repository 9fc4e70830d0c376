//! YAML and JSON texts from values and back, keys always sorted.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::failure::{Failure, one_line};

/// The value as YAML with sorted keys, ending in a line break.
pub(crate) fn text(value: &Value) -> Result<String, Failure> {
    let text = serde_saphyr::to_string(&sorted(value.clone()))
        .map_err(|error| Failure::internal(format!("failed to encode YAML: {error}")))?;
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

/// The value as indented JSON with sorted keys, ending in a line break.
pub(crate) fn json(value: &Value) -> Result<String, Failure> {
    serde_json::to_string_pretty(&sorted(value.clone()))
        .map(|text| text + "\n")
        .map_err(|error| Failure::internal(format!("failed to encode JSON: {error}")))
}

/// Reads one YAML or JSON document.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let failed = |error: serde_saphyr::Error| {
        Failure::invalid(format!("failed to decode YAML: {}", one_line(&error.to_string())))
    };
    serde_saphyr::from_str(text).map_err(failed)
}

/// The same value with the keys of every map in order, whatever the map type keeps.
pub(crate) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<(String, Value)> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(pairs.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
