//! Values as trees: deep merge, dotted paths, and the type AICR gives to a word after `--set`.

use serde_json::{Map, Number, Value};

use crate::failure::Failure;

/// Lays `over` onto `base`: maps are merged, everything else replaces.
pub(crate) fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// The value at a dotted path.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// Sets the value at a dotted path, making maps on the way; a scalar in the way is refused.
pub(crate) fn put(root: &mut Value, path: &str, value: Value) -> Result<(), Failure> {
    let mut slot = root;
    for key in path.split('.') {
        if key.is_empty() {
            return Err(Failure::invalid(format!("invalid path \"{path}\": empty segment")));
        }
        if slot.is_null() {
            *slot = Value::Object(Map::new());
        }
        let Value::Object(map) = slot else {
            return Err(Failure::invalid(format!(
                "invalid path \"{path}\": \"{key}\" is below a value that is no map"
            )));
        };
        slot = map.entry(key.to_owned()).or_insert(Value::Null);
    }
    *slot = value;
    Ok(())
}

/// The type AICR infers: booleans, whole numbers, decimal numbers, else a string.
pub(crate) fn inferred(word: &str) -> Value {
    match word {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(number) = word.parse::<i64>() {
        return Value::Number(number.into());
    }
    let numeric = word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
    match word.parse::<f64>().ok().filter(|_| numeric).and_then(Number::from_f64) {
        Some(number) => Value::Number(number),
        None => Value::String(word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_after_set_get_the_type_aicr_infers() {
        let table = [
            ("true", json!(true)),
            ("false", json!(false)),
            ("580", json!(580)),
            ("580.99", json!(580.99)),
            ("570.133.20", json!("570.133.20")),
            ("v1.2", json!("v1.2")),
            ("inf", json!("inf")),
            ("", json!("")),
        ];
        for (word, value) in table {
            assert_eq!(inferred(word), value, "{word}");
        }
    }

    #[test]
    fn maps_are_merged_and_everything_else_is_replaced() {
        let mut base = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1});
        merge(&mut base, &json!({"a": {"c": [3], "e": null}, "d": {"f": 1}}));
        assert_eq!(base, json!({"a": {"b": 1, "c": [3], "e": null}, "d": {"f": 1}}));
    }

    #[test]
    fn a_path_makes_the_maps_it_needs_and_stops_at_a_scalar() {
        let mut value = json!({"a": 1});
        put(&mut value, "b.c", json!(2)).unwrap();
        assert_eq!(value, json!({"a": 1, "b": {"c": 2}}));
        assert_eq!(put(&mut value, "a.x", json!(1)).unwrap_err().exit(), 2);
    }
}
