//! What is agreed to in the golden files, held against the law: match constraints, rights, values, metrics.

mod metrics;
mod rights;
mod values;
mod webhooks;

use std::fs;

use serde_json::Value;

use super::{folder, golden, sets};

/// The text of a file of the chart.
fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

/// The objects of every golden file, with the name of the file.
fn golden_objects() -> Vec<(String, Vec<Value>)> {
    sets()
        .unwrap()
        .iter()
        .map(|set| golden::path(set))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let documents = text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap());
            (path.display().to_string(), documents.collect())
        })
        .collect()
}

/// A list of strings in an object.
fn words(object: &Value, key: &str) -> Vec<String> {
    let list = object[key].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}
