//! One row for each component that changes: what changed, the verdict and why.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;
use serde_json::{Value, json};

use super::jump;
use crate::catalog::{Catalog, Transition};

/// Fields whose change is a move of the component.
const IDENTITY: [&str; 7] = ["namespace", "chart", "source", "path", "type", "manifestFiles", "preManifestFiles"];

/// A verdict, before it is laid into the row.
struct Judged<'a> {
    verdict: &'static str,
    reason: &'static str,
    notes: String,
    record: Option<&'a Transition>,
    stopped_at: Option<String>,
}

/// All rows, by component name.
pub(super) fn rows(catalog: &Catalog, old: &Value, new: &Value, deployer: Option<&str>) -> Vec<Value> {
    let (old, new) = (components(old), components(new));
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let row = |name| match (old.get(name), new.get(name)) {
        (Some(old), Some(new)) => changed(catalog, name, (old, new), deployer),
        (None, Some(new)) => Some(one_sided(name, "added", ("to", new), "new component, nothing to do")),
        (Some(old), None) => {
            Some(one_sided(name, "removed", ("from", old), "stays installed; AICR does not uninstall it"))
        }
        (None, None) => None,
    };
    names.into_iter().filter_map(row).collect()
}

/// Whether a row carries steps for people.
pub(super) fn has_steps(row: &Value) -> bool {
    row["steps"].as_array().is_some_and(|steps| !steps.is_empty())
}

fn components(recipe: &Value) -> BTreeMap<&str, &Value> {
    let all = recipe["componentRefs"].as_array().into_iter().flatten();
    all.filter(|entry| entry["overrides"]["enabled"] != json!(false))
        .filter_map(|entry| entry["name"].as_str().map(|name| (name, entry)))
        .collect()
}

fn one_sided(name: &str, change: &str, (side, entry): (&str, &Value), notes: &str) -> Value {
    let mut row = json!({"component": name, "change": change, "notes": notes, "failsRun": false});
    if let Some(version) = entry["version"].as_str() {
        row[side] = json!(version);
    }
    row
}

fn changed(catalog: &Catalog, name: &str, (old, new): (&Value, &Value), deployer: Option<&str>) -> Option<Value> {
    let identity: Vec<Value> = IDENTITY
        .iter()
        .filter(|field| old.get(field) != new.get(field))
        .map(|field| json!({"field": field, "from": old[field], "to": new[field]}))
        .collect();
    let (from, to) = (old["version"].as_str().unwrap_or_default(), new["version"].as_str().unwrap_or_default());
    if from == to && identity.is_empty() {
        return None;
    }
    let mut judged = judge(catalog, name, from, to);
    if !identity.is_empty() && judged.verdict == "safe" {
        judged = unknown("identity-changed", format!("{}, moved", judged.notes));
    }
    let mut row = json!({
        "component": name,
        "change": if from == to { "identity" } else { "version" },
        "from": from,
        "to": to,
        "verdict": judged.verdict,
        "reason": judged.reason,
        "explanation": explanation(judged.reason),
        "notes": judged.notes,
        "failsRun": judged.verdict != "safe",
    });
    if !identity.is_empty() {
        row["identityChanges"] = Value::Array(identity);
    }
    if let (Some(from), Some(to)) = (jump::parse(from), jump::parse(to)) {
        row["jump"] = json!(jump::words(&from, &to));
        row["breaking"] = json!(jump::breaking(&from, &to));
        row["downgrade"] = json!(to < from);
    }
    if let Some(range) = judged.stopped_at {
        row["stoppedAt"] = json!(range);
    }
    if let Some(record) = judged.record {
        recorded(&mut row, record, deployer);
    }
    Some(row)
}

fn recorded(row: &mut Value, record: &Transition, deployer: Option<&str>) {
    row["covers"] = json!(format!("{} to {}", record.from, record.to));
    row["summary"] = json!(record.summary);
    if let Some(precondition) = &record.precondition {
        row["precondition"] = json!(precondition);
    }
    let steps = steps(record, deployer);
    if !steps.is_empty() {
        row["steps"] = json!(steps);
    }
}

/// The steps for a deployer: its own group, else the group without names.
fn steps<'a>(record: &'a Transition, deployer: Option<&str>) -> &'a [Value] {
    let groups = &record.steps_by_deployer;
    let own = groups.iter().find(|group| deployer.is_some_and(|name| group.deployers.iter().any(|d| d == name)));
    let common = groups.iter().find(|group| group.deployers.is_empty());
    own.or(common).or(groups.first()).map_or(&[], |group| &group.steps)
}

fn unknown<'a>(reason: &'static str, notes: String) -> Judged<'a> {
    Judged { verdict: "unknown", reason, notes, record: None, stopped_at: None }
}

fn judge<'a>(catalog: &'a Catalog, name: &str, from: &str, to: &str) -> Judged<'a> {
    let (Some(old), Some(new)) = (jump::parse(from), jump::parse(to)) else {
        let notes = "versions are not comparable".to_owned();
        return Judged { verdict: "unversioned", ..unknown("not-comparable", notes) };
    };
    if new < old {
        return unknown("downgrade", "downgrade, unassessable".into());
    }
    let far = jump::words(&old, &new);
    let broken = if jump::breaking(&old, &new) { ", breaking boundary" } else { "" };
    let Some(record) = catalog.records.iter().find(|record| record.component == name) else {
        return unknown("no-record", format!("{far}, no record{broken}"));
    };
    let crossed: Vec<&Transition> = record.transitions.iter().filter(|t| crosses(t, &old, &new)).collect();
    let fitting = record.transitions.iter().find(|t| t.from.matches(&old) && t.to.matches(&new));
    match (fitting, crossed.as_slice()) {
        (Some(fitting), _) => by_record(fitting, &far),
        (None, []) => unknown("no-boundary-crossed", format!("{far}, record exists, no boundary here")),
        (None, [one]) if !one.from.matches(&old) => {
            unknown("undefined-origin", format!("{far}, origin not recorded{broken}"))
        }
        (None, [_]) => unknown("beyond-record-ceiling", format!("{far}, beyond the record{broken}")),
        (None, [first, ..]) => Judged {
            verdict: "blocked",
            stopped_at: Some(first.to.to_string()),
            ..unknown("multiple-boundaries", format!("{far}, stops at {}", first.to))
        },
    }
}

fn by_record<'a>(record: &'a Transition, far: &str) -> Judged<'a> {
    let count = record.steps_by_deployer.first().map_or(0, |group| group.steps.len());
    let plural = if count == 1 { "step" } else { "steps" };
    let (verdict, reason, notes) = match record.verdict.as_str() {
        "safe" => ("safe", "recorded", format!("{far}, verified, safe across {far}")),
        "manual" => ("manual", "recorded", format!("{far}, {count} {plural}, manual across {far}")),
        _ => ("blocked", "record-blocks", format!("{far}, stops at {}", record.to)),
    };
    let stopped_at = (verdict == "blocked").then(|| record.to.to_string());
    Judged { verdict, reason, notes, record: Some(record), stopped_at }
}

/// Whether the step from one version to another passes the lower bound of what a record leads to.
fn crosses(transition: &Transition, old: &Version, new: &Version) -> bool {
    let bound = transition
        .to
        .comparators
        .first()
        .map(|lowest| Version::new(lowest.major, lowest.minor.unwrap_or(0), lowest.patch.unwrap_or(0)));
    bound.is_some_and(|bound| *old < bound && bound <= *new)
}

fn explanation(reason: &str) -> &'static str {
    match reason {
        "recorded" => "a record covers this change",
        "record-blocks" => "a record says that this change does not work",
        "multiple-boundaries" => "the change passes more than one recorded boundary; go in smaller steps",
        "undefined-origin" => "no record starts at the present version",
        "beyond-record-ceiling" => "the record ends below the new version",
        "no-record" => "nothing is recorded about this component",
        "no-boundary-crossed" => "the component has records, none of them about this change",
        "downgrade" => "a downgrade is never assessed",
        "identity-changed" => "the component moves, which no record covers",
        _ => "the versions cannot be compared",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::sample;

    fn recipe(name: &str, version: &str) -> Value {
        json!({"componentRefs": [{"name": name, "version": version, "namespace": "ns"}]})
    }

    fn row(name: &str, from: &str, to: &str) -> Value {
        rows(&Catalog::load().unwrap(), &recipe(name, from), &recipe(name, to), Some("argocd")).remove(0)
    }

    #[test]
    fn verdicts_and_reasons_are_those_of_the_table() {
        let table = [
            ("gpu-operator", "v26.7.0", "v26.7.1", "safe", "recorded", "1 patch, verified, safe across 1 patch"),
            ("gpu-operator", "v26.7.1", "v26.7.2", "safe", "recorded", "1 patch, verified, safe across 1 patch"),
            ("gpu-operator", "v26.7.1", "v26.7.0", "unknown", "downgrade", "downgrade, unassessable"),
            (
                "gpu-operator",
                "v26.7.2",
                "v26.8.0",
                "unknown",
                "no-boundary-crossed",
                "1 minor, record exists, no boundary here",
            ),
            ("gpu-operator", "v26.7.0", "v26.7.2", "blocked", "multiple-boundaries", "2 patches, stops at =26.7.1"),
            ("nodewright-operator", "v0.19.0", "v0.19.1", "safe", "recorded", "1 patch, verified, safe across 1 patch"),
            (
                "nodewright-operator",
                "v0.17.1",
                "v0.19.1",
                "manual",
                "recorded",
                "2 minors, 4 steps, manual across 2 minors",
            ),
            ("nvsentinel", "v1.22.0", "v1.25.0", "manual", "recorded", "3 minors, 4 steps, manual across 3 minors"),
            ("nvsentinel", "v1.20.0", "v1.25.0", "unknown", "undefined-origin", "5 minors, origin not recorded"),
            ("nvsentinel", "v1.22.0", "v1.26.0", "unknown", "beyond-record-ceiling", "4 minors, beyond the record"),
            ("kai-scheduler", "v0.16.9", "v0.17.2", "manual", "recorded", "1 minor, 2 steps, manual across 1 minor"),
            ("prometheus-adapter", "5.3.0", "6.0.1", "blocked", "record-blocks", "1 major, stops at >=6.0.0, <7.0.0"),
            ("aws-efa", "v0.5.29", "v0.6.0", "unknown", "no-record", "1 minor, no record, breaking boundary"),
            ("aws-efa", "main", "v0.6.0", "unversioned", "not-comparable", "versions are not comparable"),
        ];
        for (name, from, to, verdict, reason, notes) in table {
            let row = row(name, from, to);
            assert_eq!(
                (row["verdict"].as_str(), row["reason"].as_str(), row["notes"].as_str()),
                (Some(verdict), Some(reason), Some(notes)),
                "{name} {from} {to}"
            );
            assert_eq!(row["failsRun"], json!(verdict != "safe"));
        }
    }

    #[test]
    fn nvsentinel_has_its_precondition_and_the_four_argocd_steps() {
        let row = row("nvsentinel", "v1.22.0", "v1.25.0");
        let ids: Vec<&str> = row["steps"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["check-host-port", "drop-preflight-rate-limits", "apply", "verify"]);
        assert!(row["precondition"].is_string());
    }

    #[test]
    fn a_move_turns_safe_into_unknown_and_is_listed() {
        let mut new = recipe("gpu-operator", "v26.7.1");
        new["componentRefs"][0]["namespace"] = json!("elsewhere");
        let row = rows(&Catalog::load().unwrap(), &recipe("gpu-operator", "v26.7.0"), &new, None).remove(0);
        assert_eq!((&row["verdict"], &row["reason"]), (&json!("unknown"), &json!("identity-changed")));
        assert_eq!(row["identityChanges"], json!([{"field": "namespace", "from": "ns", "to": "elsewhere"}]));
    }

    #[test]
    fn equal_components_give_no_row_and_one_sided_ones_no_verdict() {
        let catalog = Catalog::load().unwrap();
        assert!(rows(&catalog, &recipe("a", "1.0.0"), &recipe("a", "1.0.0"), None).is_empty());
        let rows = rows(&catalog, &recipe("a", "1.0.0"), &recipe("b", "1.0.0"), None);
        assert_eq!((&rows[0]["change"], &rows[1]["change"]), (&json!("removed"), &json!("added")));
        assert!(rows.iter().all(|row| row["verdict"].is_null() && row["failsRun"] == json!(false)));
    }

    #[test]
    fn the_releases_of_the_data_differ_as_the_tests_of_the_operator_need() {
        let verdicts = |from: &str, to: &str| -> Vec<(String, String)> {
            let rows = rows(&Catalog::load().unwrap(), &sample(from), &sample(to), Some("argocd"));
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            rows.iter().map(|row| (text(&row["component"]), text(&row["verdict"]))).collect()
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            verdicts("v1.0.0", "v1.1.2"),
            [pair("gpu-operator", "safe"), pair("nodewright-operator", "safe"), pair("nvsentinel", "manual")]
        );
        assert_eq!(verdicts("v1.1.2", "v1.1.3"), [pair("gpu-operator", "safe")]);
        assert!(verdicts("v1.1.3", "v1.1.4").is_empty());
    }
}
