//! Readings of a snapshot and constraints on them.

use std::cmp::Ordering;

use serde_json::Value;

use crate::catalog::Constraint;

/// The reading at `Type.subtype.key`; keys may hold dots.
pub(crate) fn reading(snapshot: &Value, path: &str) -> Option<String> {
    let mut parts = path.splitn(3, '.');
    let (kind, subtype, key) = (parts.next()?, parts.next()?, parts.next()?);
    let measurement = list(snapshot, "measurements").find(|m| m["type"] == kind)?;
    let found = list(measurement, "subtypes").find(|s| s["subtype"] == subtype)?.get("data")?.get(key)?;
    Some(found.as_str().map_or_else(|| found.to_string(), ToOwned::to_owned))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// What an operator asks of the order of two versions.
type Test = fn(Ordering) -> bool;

/// Whether a reading satisfies a constraint.
pub(crate) fn holds(constraint: &Constraint, actual: &str) -> bool {
    let expected = constraint.value.trim();
    let operators: [(&str, Test); 6] = [
        (">=", |o| o != Ordering::Less),
        ("<=", |o| o != Ordering::Greater),
        ("==", |o| o == Ordering::Equal),
        ("!=", |o| o != Ordering::Equal),
        (">", |o| o == Ordering::Greater),
        ("<", |o| o == Ordering::Less),
    ];
    match operators.iter().find_map(|(sign, test)| expected.strip_prefix(sign).map(|rest| (rest.trim(), test))) {
        Some((version, test)) => test(numbers(actual).cmp(&numbers(version))),
        None => actual == expected,
    }
}

/// The leading dotted numbers of a version, four at most: `v1.34.1-eks-113cf36` is 1, 34, 1, 0.
fn numbers(version: &str) -> [u64; 4] {
    let mut numbers = [0; 4];
    let head = version.trim_start_matches('v').split(|c: char| !c.is_ascii_digit() && c != '.').next();
    for (slot, part) in numbers.iter_mut().zip(head.unwrap_or_default().split('.')) {
        *slot = part.parse().unwrap_or(0);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_are_compared_by_number_and_words_as_they_are() {
        let table = [
            (">= 1.32.4", "v1.34.1-eks-113cf36", true),
            (">= 1.32.4", "v1.30.0", false),
            (">= 6.8", "6.8.0-1015-aws", true),
            (">= 6.8", "5.15.0", false),
            ("< 2", "1.99", true),
            ("!= 1.2", "1.2.0", false),
            ("ubuntu", "ubuntu", true),
            ("ubuntu", "rhel", false),
            ("24.04", "24.04", true),
        ];
        for (value, actual, holds_expected) in table {
            let constraint = Constraint { name: "x".into(), value: value.into() };
            assert_eq!(holds(&constraint, actual), holds_expected, "{actual} {value}");
        }
    }

    #[test]
    fn a_reading_is_found_by_type_subtype_and_key() {
        let data = json!({"/proc/sys/kernel/osrelease": "6.8.0"});
        let snapshot = json!({"measurements": [{"type": "OS", "subtypes": [{"subtype": "sysctl", "data": data}]}]});
        assert_eq!(reading(&snapshot, "OS.sysctl./proc/sys/kernel/osrelease").as_deref(), Some("6.8.0"));
        assert_eq!(reading(&snapshot, "OS.release.ID"), None);
    }
}
