//! Every value has a default, a sentence and a type; every other key is refused.

use std::collections::BTreeSet;

use serde_json::Value;

use super::read;

fn schema() -> Value {
    serde_json::from_str(&read("values.schema.json")).unwrap()
}

/// A node of the schema, followed where it refers to a definition.
fn resolved<'a>(schema: &'a Value, node: &'a Value) -> &'a Value {
    match node["$ref"].as_str() {
        Some(reference) => schema.pointer(reference.trim_start_matches('#')).unwrap(),
        None => node,
    }
}

/// Calls `see` with each node below this one, and its path.
fn walk<'a>(schema: &'a Value, node: &'a Value, path: &str, see: &mut impl FnMut(&str, &'a Value)) {
    let node = resolved(schema, node);
    see(path, node);
    let properties = node["properties"].as_object().into_iter().flatten();
    for (key, below) in properties {
        walk(schema, below, &format!("{path}.{key}"), see);
    }
    for (key, word) in [("items", "[]"), ("additionalProperties", "{}")] {
        if node[key].is_object() {
            walk(schema, &node[key], &format!("{path}{word}"), see);
        }
    }
}

#[test]
fn the_schema_gives_every_value_a_type_and_refuses_every_other_key() {
    let schema = schema();
    walk(&schema, &schema, "", &mut |path, node| {
        let has = |key: &str| node.get(key).is_some();
        assert!(has("type") || has("enum") || has("anyOf"), "{path} has no type");
        // `global` is Helm's own, and other charts' too.
        if node["type"] == "object" && path != ".global" {
            let refuses = node["additionalProperties"] == false || node["additionalProperties"].is_object();
            assert!(refuses, "{path} takes any key");
            let is_map = node["additionalProperties"].is_object();
            assert!(!is_map || has("maxProperties"), "{path} has no bound");
        }
        if node["type"] == "array" {
            assert!(has("items") && has("maxItems"), "{path} has no bound");
        }
        if node["type"] == "string" && !path.contains('{') && !path.contains('[') {
            assert!(has("pattern") || has("maxLength"), "{path} takes any text");
        }
    });
}

/// The paths of the values file, down to where the schema goes on with `known`.
fn defaults(value: &Value, path: &str, known: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    for (key, below) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        let goes_on = known.iter().any(|one| one.starts_with(&format!("{path}.")));
        found.insert(path.clone());
        if goes_on {
            defaults(below, &path, known, found);
        }
    }
}

#[test]
fn every_value_of_the_schema_has_a_default_and_the_other_way_round() {
    let schema = schema();
    let mut known = BTreeSet::new();
    walk(&schema, &schema, "", &mut |path, _| {
        // Amounts are a person's; tolerations are as in a pod.
        let inner = ["[]", "{}", ".resources.", ".snapshot.requests.", ".snapshot.limits."];
        if !path.is_empty() && path != ".global" && !inner.iter().any(|word| path.contains(word)) {
            known.insert(path.to_owned());
        }
    });
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).unwrap();
    let mut found = BTreeSet::new();
    defaults(&values, "", &known, &mut found);
    assert_eq!(found, known);
}

#[test]
fn every_value_has_a_sentence_that_ends() {
    let text = read("values.yaml");
    let lines: Vec<&str> = text.lines().collect();
    let key = |line: &str| line.trim_end().strip_suffix(':').is_some_and(|key| !key.trim().contains([' ', '#']));
    let mut count = 0;
    for pair in lines.windows(2) {
        let (before, line) = (pair[0].trim(), pair[1]);
        let is_comment = line.trim_start().starts_with('#');
        let is_value = !is_comment && line.contains(": ") && !line.trim_start().starts_with('-');
        // A group of values says nothing of its own; what a map or list holds by default belongs to the line above.
        let inside =
            line.starts_with("      grafana") || ["cpu:", "memory:"].iter().any(|key| line.trim().starts_with(key));
        if is_value && !inside && !key(line) {
            assert!(before.starts_with("# ") && before.ends_with(['.', ')']), "{line}");
            count += 1;
        }
    }
    assert!(count > 25, "{count}");
}
