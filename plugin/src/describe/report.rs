//! AICR's stored upgrade-check report, read leniently: what is missing is not printed, what is new is ignored.

use std::collections::BTreeMap;

use aicr_crds::{Digest, rollout::AssessmentRef};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{page::Page, text::Tone};

/// Key of the report in its ConfigMap.
pub(crate) const KEY: &str = "report.json";

/// What is known of AICR's assessment.
#[derive(Debug)]
pub(crate) enum Assessment {
    /// The rollout names none, as that of a first plan.
    None,
    /// It names one that cannot be shown, and why.
    Unavailable(String),
    /// It is there.
    Stored {
        /// Its ConfigMap.
        config_map: String,
        /// As stored.
        raw: Value,
        /// What of it is printed.
        report: Report,
        /// Whether it is the report that the rollout was made from.
        origin: Origin,
    },
}

/// Whether a stored report is the one whose digest the rollout names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is.
    Genuine,
    /// It was changed since.
    Altered,
}

/// The report, as far as it is printed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Report {
    deployer: Option<String>,
    components: Vec<Component>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Component {
    #[serde(rename = "component")]
    name: String,
    change: Option<String>,
    from: Option<String>,
    to: Option<String>,
    verdict: Option<String>,
    notes: Option<String>,
    explanation: Option<String>,
    stopped_at: Option<String>,
    summary: Option<String>,
    precondition: Option<String>,
    steps: Vec<RecordedStep>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RecordedStep {
    description: String,
    reason: Option<String>,
}

impl Assessment {
    /// The report in a ConfigMap's data, compared with the rollout's reference to it.
    pub(crate) fn read(mut data: BTreeMap<String, String>, reference: &AssessmentRef) -> Self {
        let config_map = reference.config_map.clone();
        let Some(text) = data.remove(KEY) else {
            return Self::Unavailable(format!("ConfigMap {config_map} has no {KEY}"));
        };
        let same = Digest::of(text.as_bytes()) == reference.digest;
        let origin = if same { Origin::Genuine } else { Origin::Altered };
        let parsed = serde_json::from_str::<Value>(&text).and_then(|raw| Ok((Report::deserialize(&raw)?, raw)));
        match parsed {
            Ok((report, raw)) => Self::Stored { config_map, raw, report, origin },
            Err(error) => Self::Unavailable(format!("ConfigMap {config_map}: {KEY} cannot be read: {error}")),
        }
    }

    /// For `-o json`.
    pub(crate) fn document(&self) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Unavailable(why) => json!({ "unavailable": why }),
            Self::Stored { config_map, raw, origin, .. } => {
                json!({ "configMap": config_map, "altered": *origin == Origin::Altered, "report": raw })
            }
        }
    }
}

/// The section of the page.
pub(crate) fn write(page: &mut Page, assessment: &Assessment) {
    page.heading("AICR's assessment");
    match assessment {
        Assessment::None => page.text(2, "", Tone::Plain, "none: AICR assesses upgrades from one recipe to another"),
        Assessment::Unavailable(why) => page.text(2, "", Tone::Bad, why),
        Assessment::Stored { config_map, report, origin, .. } => {
            if *origin == Origin::Altered {
                let text = format!("ConfigMap {config_map} is not the report that this rollout was made from");
                page.text(2, "", Tone::Bad, &text);
            }
            if report.components.is_empty() {
                page.text(2, "", Tone::Plain, "no component changes");
            }
            for row in &report.components {
                component(page, row, report.deployer.as_deref());
            }
        }
    }
}

fn component(page: &mut Page, row: &Component, deployer: Option<&str>) {
    let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let judged = row.verdict.as_ref().or(row.change.as_ref());
    let verdict = judged.map(|verdict| format!(": {verdict}")).unwrap_or_default();
    let title = format!("{} {} → {}{verdict}", row.name, word(&row.from), word(&row.to));
    page.text(2, "", Tone::Heading, &title);
    for text in [&row.notes, &row.summary, &row.explanation].into_iter().flatten() {
        page.text(4, "", Tone::Plain, text);
    }
    if let Some(range) = &row.stopped_at {
        page.text(4, "Stops at: ", Tone::Plain, range);
    }
    if let Some(condition) = &row.precondition {
        page.text(4, "Precondition: ", Tone::Plain, condition);
    }
    if row.steps.is_empty() {
        return;
    }
    let deployer = deployer.map(|deployer| format!(" (deployer {deployer})")).unwrap_or_default();
    page.text(4, "", Tone::Heading, &format!("Recorded steps{deployer}"));
    for (index, step) in row.steps.iter().enumerate() {
        page.text(6, &format!("{}. ", index + 1), Tone::Plain, &step.description);
        if let Some(reason) = &step.reason {
            page.text(9, "Why: ", Tone::Plain, reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn read(text: &str, digest: Digest) -> Assessment {
        let reference = AssessmentRef { config_map: "aicr-assessment-1".into(), digest };
        Assessment::read(BTreeMap::from([(KEY.to_owned(), text.to_owned())]), &reference)
    }

    fn text(assessment: &Assessment) -> String {
        let mut page = Page::default();
        write(&mut page, assessment);
        strip_str(&page.finish()).to_string()
    }

    #[test]
    fn what_is_missing_or_new_does_not_matter() {
        let report = r#"{"components":[{"component":"gpu-operator","verdict":"safe","novelty":[1]}],"atRisk":{}}"#;
        let assessment = read(report, Digest::of(report.as_bytes()));
        assert_eq!(text(&assessment), "\nAICR's assessment\n  gpu-operator - → -: safe\n");
    }

    #[test]
    fn an_altered_report_is_said_to_be_one() {
        let assessment = read("{}", Digest::of(b"another"));
        assert!(text(&assessment).contains("is not the report that this rollout was made from"));
        assert_eq!(assessment.document()["altered"], true);
    }

    #[test]
    fn a_report_that_cannot_be_read_is_said_to_be_one() {
        assert!(text(&read("[", Digest::of(b"["))).contains("report.json cannot be read"));
        let reference = AssessmentRef { config_map: "aicr-assessment-1".into(), digest: Digest::of(b"") };
        assert!(text(&Assessment::read(BTreeMap::new(), &reference)).contains("has no report.json"));
    }
}
