//! Where an override's path leads in a document of values.

use serde_json::Value;

/// What stands at a path: keys joined by dots, `[0]` or a number for an item of a list, `\.` for a dot inside a key.
/// A key that itself holds dots is found without the backslash too. `None` where nothing stands.
pub fn find<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    let parts = split(path);
    if parts.iter().any(String::is_empty) {
        return None;
    }
    walk(root, &parts)
}

fn split(path: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match c {
            '.' | '[' => parts.push(String::new()),
            // What follows a closed bracket begins a part of its own, so its `.` or `[` says nothing more.
            ']' if matches!(chars.clone().next(), Some('.' | '[')) => {
                chars.next();
                parts.push(String::new());
            }
            ']' => {}
            '\\' => push(&mut parts, chars.next().unwrap_or('\\')),
            other => push(&mut parts, other),
        }
    }
    parts
}

fn push(parts: &mut [String], c: char) {
    if let Some(last) = parts.last_mut() {
        last.push(c);
    }
}

/// Every node of a tree is reached by one path only, so none is looked at twice.
fn walk<'a>(at: &'a Value, parts: &[String]) -> Option<&'a Value> {
    let [first, rest @ ..] = parts else { return Some(at) };
    match at {
        Value::Object(map) => {
            let whole = |count: usize| parts[..count].join(".");
            (1..=parts.len()).find_map(|count| map.get(&whole(count)).and_then(|next| walk(next, parts.get(count..)?)))
        }
        Value::Array(items) => items.get(first.parse::<usize>().ok()?).and_then(|next| walk(next, rest)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case("driver.version", Some(json!("580.99")))]
    #[case("driver", Some(json!({"version": "580.99", "env": [{"name": "A"}, {"name": "B"}]})))]
    #[case("driver.env[1].name", Some(json!("B")))]
    #[case("driver.env.1.name", Some(json!("B")))]
    #[case("grid[1][0]", Some(json!(3)))]
    #[case("nodeSelector.nvidia\\.com/gpu", Some(json!("yes")))]
    #[case("nodeSelector.nvidia.com/gpu", Some(json!("yes")))]
    #[case("empty", Some(json!(null)))]
    #[case("driver.versions", None)]
    #[case("driver.version.minor", None)]
    #[case("driver.env[2]", None)]
    #[case("driver.env[x]", None)]
    #[case("", None)]
    #[case("driver.", None)]
    #[case(".driver", None)]
    #[case("driver..version", None)]
    fn a_path_leads_to_what_stands_there(#[case] path: &str, #[case] expected: Option<Value>) {
        let values = json!({
            "driver": {"version": "580.99", "env": [{"name": "A"}, {"name": "B"}]},
            "grid": [[1, 2], [3]],
            "nodeSelector": {"nvidia.com/gpu": "yes"},
            "empty": null,
        });
        assert_eq!(find(&values, path), expected.as_ref());
    }
}
