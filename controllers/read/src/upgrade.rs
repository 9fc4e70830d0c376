//! The report of `aicr upgrade-check`: what AICR says about each component that changes.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    error::{ReadError, quoted},
    names, yaml,
};

/// The most rows of one report.
pub const ROW_LIMIT: usize = 256;

/// The most steps of one row.
pub const STEP_LIMIT: usize = 64;

const WHAT: &str = "the upgrade-check report";

/// One report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// A row per component that differs, each component once; at most [`ROW_LIMIT`].
    pub rows: Vec<Row>,
}

/// What changes in one component, and how AICR judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The component's name.
    pub component: String,
    /// In what respect it differs.
    pub change: Change,
    /// The version before.
    pub from: Option<String>,
    /// The version after.
    pub to: Option<String>,
    /// The verdict; added and removed components have none.
    pub verdict: Option<Verdict>,
    /// AICR's machine-readable reason, such as `no-record`.
    pub reason: Option<String>,
    /// The reason in words.
    pub explanation: Option<String>,
    /// What the record says in a sentence.
    pub summary: Option<String>,
    /// What must hold before.
    pub precondition: Option<String>,
    /// What an operator has to do, at most [`STEP_LIMIT`].
    pub steps: Vec<Step>,
    /// The version range at which a blocked upgrade stops.
    pub stopped_at: Option<String>,
    /// Fields of the component's identity that moved.
    pub identity_changes: Vec<IdentityChange>,
    /// AICR's short note.
    pub notes: Option<String>,
}

/// In what respect a component differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Another version.
    Version,
    /// New.
    Added,
    /// Gone.
    Removed,
    /// One component in place of another.
    Replaced,
    /// Same version, other namespace, chart or source.
    Identity,
}

/// AICR's verdict on an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Recorded as safe.
    Safe,
    /// Recorded as needing a person.
    Manual,
    /// Recorded as not possible in one go.
    Blocked,
    /// Not recorded.
    Unknown,
    /// The versions cannot be compared.
    Unversioned,
}

/// One recorded step of an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Step {
    /// The step's id, such as `check-host-port`.
    pub id: String,
    /// What to do.
    #[serde(default)]
    pub description: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// A field of a component's identity that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityChange {
    /// The field, such as `namespace`.
    pub field: String,
    /// Its value before.
    pub from: Option<String>,
    /// Its value after.
    pub to: Option<String>,
}

impl Report {
    /// The row of this component.
    pub fn row(&self, component: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.component == component)
    }
}

#[derive(Deserialize)]
struct Document {
    components: Vec<RawRow>,
    #[serde(rename = "summary")]
    _summary: Summary,
}

/// Only there so that a document without a summary is no report.
#[derive(Deserialize)]
struct Summary {
    #[serde(rename = "components")]
    _components: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRow {
    component: String,
    change: String,
    from: Option<Value>,
    to: Option<Value>,
    verdict: Option<String>,
    reason: Option<Value>,
    explanation: Option<Value>,
    summary: Option<Value>,
    precondition: Option<Value>,
    steps: Option<Vec<Step>>,
    stopped_at: Option<Value>,
    identity_changes: Option<Vec<RawIdentityChange>>,
    notes: Option<Value>,
}

#[derive(Deserialize)]
struct RawIdentityChange {
    field: String,
    from: Option<Value>,
    to: Option<Value>,
}

/// Reads an upgrade-check report, JSON or YAML, of at most 1 MiB.
///
/// # Errors
/// `TooLarge`, else `Damaged`: also for a verdict or change that this operator does not know, so that none is ever
/// taken for a safe one.
pub fn read(bytes: &[u8]) -> Result<Report, ReadError> {
    let document: Document = yaml::read(WHAT, bytes, yaml::DOCUMENT_LIMIT)?;
    names::count(WHAT, "rows", document.components.len(), ROW_LIMIT)?;
    let rows = document.components.into_iter().map(row).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = rows.iter().find(|row| !seen.insert(row.component.as_str())) {
        return Err(ReadError::damaged(WHAT, format!("the component {} stands in it twice", twice.component)));
    }
    Ok(Report { rows })
}

fn row(from: RawRow) -> Result<Row, ReadError> {
    names::label(WHAT, "component name", &from.component, names::LABEL)?;
    let steps = from.steps.unwrap_or_default();
    names::count(WHAT, "steps in one row", steps.len(), STEP_LIMIT)?;
    Ok(Row {
        change: change(&from.component, &from.change)?,
        verdict: verdict(&from.component, from.verdict.as_deref())?,
        component: from.component,
        from: yaml::loose(from.from),
        to: yaml::loose(from.to),
        reason: yaml::loose(from.reason),
        explanation: yaml::loose(from.explanation),
        summary: yaml::loose(from.summary),
        precondition: yaml::loose(from.precondition),
        steps,
        stopped_at: yaml::loose(from.stopped_at),
        identity_changes: from.identity_changes.unwrap_or_default().into_iter().map(identity).collect(),
        notes: yaml::loose(from.notes),
    })
}

fn identity(from: RawIdentityChange) -> IdentityChange {
    IdentityChange { field: from.field, from: yaml::loose(from.from), to: yaml::loose(from.to) }
}

fn change(component: &str, text: &str) -> Result<Change, ReadError> {
    match text {
        "version" => Ok(Change::Version),
        "added" => Ok(Change::Added),
        "removed" => Ok(Change::Removed),
        "replaced" => Ok(Change::Replaced),
        "identity" => Ok(Change::Identity),
        other => Err(unknown(component, "change", other)),
    }
}

fn verdict(component: &str, text: Option<&str>) -> Result<Option<Verdict>, ReadError> {
    match text {
        None | Some("") => Ok(None),
        Some("safe") => Ok(Some(Verdict::Safe)),
        Some("manual") => Ok(Some(Verdict::Manual)),
        Some("blocked") => Ok(Some(Verdict::Blocked)),
        Some("unknown") => Ok(Some(Verdict::Unknown)),
        Some("unversioned") => Ok(Some(Verdict::Unversioned)),
        Some(other) => Err(unknown(component, "verdict", other)),
    }
}

fn unknown(component: &str, what: &str, found: &str) -> ReadError {
    let problem =
        format!("the component {component} has the {what} {}, which this operator does not know", quoted(found));
    ReadError::damaged(WHAT, problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn good() -> Value {
        json!({
            "from": "/in/from.yaml", "to": "/in/to.yaml", "deployer": "argocd",
            "components": [
                {"component": "cert-manager", "change": "added", "to": "v1.20.2", "notes": "new component, nothing to do", "failsRun": false},
                {"component": "gpu-operator", "change": "version", "from": "v26.7.0", "to": "v26.7.1", "verdict": "safe",
                 "reason": "recorded", "jump": "1 patch", "failsRun": false},
                {"component": "nvsentinel", "change": "version", "from": "v1.22.0", "to": "v1.25.0", "verdict": "manual",
                 "reason": "recorded", "explanation": "e", "summary": "s", "precondition": "p", "stoppedAt": ">=2.0.0 <3.0.0",
                 "identityChanges": [{"field": "manifestFiles", "from": ["a"], "to": null}],
                 "steps": [{"id": "apply", "description": "d", "reason": "r"}, {"id": "verify"}], "failsRun": true},
            ],
            "summary": {"components": 3, "failing": 1},
            "atRisk": {"scanned": false, "reason": "no cluster access requested"},
        })
    }

    fn text(value: &Value) -> Vec<u8> {
        serde_json::to_vec_pretty(value).unwrap()
    }

    #[test]
    fn rows_verdicts_and_steps_are_read() {
        let report = read(&text(&good())).unwrap();
        assert_eq!(report.row("cert-manager").unwrap().verdict, None);
        assert_eq!(report.row("cert-manager").unwrap().change, Change::Added);
        assert_eq!(report.row("gpu-operator").unwrap().verdict, Some(Verdict::Safe));
        let row = report.row("nvsentinel").unwrap();
        assert_eq!(row.verdict, Some(Verdict::Manual));
        assert_eq!(row.steps.iter().map(|step| step.id.as_str()).collect::<Vec<_>>(), ["apply", "verify"]);
        assert_eq!(row.stopped_at.as_deref(), Some(">=2.0.0 <3.0.0"));
        assert_eq!(row.identity_changes[0].from.as_deref(), Some("[\"a\"]"));
        assert_eq!(row.identity_changes[0].to, None);
        assert_eq!(report.row("nobody"), None);
    }

    #[test]
    fn identical_sides_give_no_row() {
        assert!(read(br#"{"components": [], "summary": {"components": 0, "failing": 0}}"#).unwrap().rows.is_empty());
    }

    #[rstest]
    #[case::new_verdict("/components/1/verdict", json!("probably"))]
    #[case::verdict_in_capitals("/components/1/verdict", json!("Safe"))]
    #[case::new_change("/components/1/change", json!("renamed"))]
    #[case::duplicate_component("/components/1/component", json!("nvsentinel"))]
    #[case::bad_name("/components/1/component", json!("GPU"))]
    #[case::no_rows("/components", json!(null))]
    #[case::no_summary("/summary", json!(null))]
    #[case::too_many_steps("/components/2/steps", json!(vec![json!({"id": "x"}); STEP_LIMIT + 1]))]
    #[case::too_many_rows("/components", json!((0..=ROW_LIMIT).map(|n| json!({"component": format!("c{n}"), "change": "added"})).collect::<Vec<_>>()))]
    fn a_report_that_is_not_understood_is_refused(#[case] place: &str, #[case] value: Value) {
        let mut report = good();
        *report.pointer_mut(place).unwrap() = value;
        assert!(matches!(read(&text(&report)), Err(ReadError::Damaged { .. })), "{report}");
    }

    #[test]
    fn what_is_no_report_is_refused() {
        let whole = text(&good());
        let doubled = [whole.clone(), whole.clone()].concat();
        for bad in [b"".as_slice(), b"{}", b"[]", b"UPGRADE CHECK\n", &whole[..whole.len() / 2], &doubled] {
            assert!(matches!(read(bad), Err(ReadError::Damaged { .. })), "{}", String::from_utf8_lossy(bad));
        }
        let large = [whole, vec![b' '; yaml::DOCUMENT_LIMIT]].concat();
        assert!(matches!(read(&large), Err(ReadError::TooLarge { .. })));
    }
}
