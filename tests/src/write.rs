//! The ways to write an object: each makes the same change out of what is stored and what is wanted.

use serde_json::{Map, Value, json};

/// A way to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// JSON merge patch.
    Merge,
    /// JSON patch.
    JsonPatch,
    /// Server-side apply of the whole, by the manager that created the object.
    Apply,
    /// Replacement of the whole.
    Replace,
}

impl Way {
    /// Each way.
    pub const ALL: [Self; 4] = [Self::Merge, Self::JsonPatch, Self::Apply, Self::Replace];
}

/// The merge patch from one value to another.
pub(crate) fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let mut patch: Map<String, Value> =
        before.keys().filter(|&key| !after.contains_key(key)).map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in after {
        match before.get(key) {
            Some(old) if old == value => {}
            Some(old) => drop(patch.insert(key.clone(), merge_patch(old, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

/// The JSON patch from one object to another, a field of `spec` at a time.
pub(crate) fn json_patch(before: &Value, after: &Value) -> Value {
    let none = Map::new();
    let (before, after) = (before["spec"].as_object().unwrap_or(&none), after["spec"].as_object().unwrap_or(&none));
    let path = |key: &str| format!("/spec/{key}");
    let gone = before.keys().filter(|&key| !after.contains_key(key));
    let mut operations: Vec<Value> = gone.map(|key| json!({"op": "remove", "path": path(key)})).collect();
    for (key, value) in after.iter().filter(|&(key, value)| before.get(key) != Some(value)) {
        operations.push(json!({"op": "add", "path": path(key), "value": value}));
    }
    operations.into()
}

/// The object as somebody applies it: nothing that the server fills in.
pub(crate) fn applied(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": {"name": object["metadata"]["name"]},
        "spec": object["spec"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_removes_changes_and_adds() {
        let before = json!({"spec": {"gone": 1, "same": [1], "deep": {"a": 1, "b": 2}}});
        let after = json!({"spec": {"same": [1], "deep": {"a": 2}, "new": {"x": 1}}});
        let patch = json!({"spec": {"gone": null, "deep": {"a": 2, "b": null}, "new": {"x": 1}}});
        assert_eq!(merge_patch(&before, &after), patch);
    }

    #[test]
    fn a_json_patch_removes_changes_and_adds() {
        let before = json!({"spec": {"gone": 1, "same": [1], "other": 1}});
        let after = json!({"spec": {"same": [1], "other": 2}});
        let patch = json!([{"op": "remove", "path": "/spec/gone"}, {"op": "add", "path": "/spec/other", "value": 2}]);
        assert_eq!(json_patch(&before, &after), patch);
    }
}
