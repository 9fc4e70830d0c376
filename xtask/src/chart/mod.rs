//! The chart: linted, rendered beside its golden files, its alerts checked and tried.

mod golden;
mod refused;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use aicr_lab::parts::Parts;
use aicr_lab::{command, workspace};

use crate::error::XtaskError;

/// The Helms that people have, by the names of their parts.
const HELMS: [&str; 2] = ["helm3", "helm4"];
/// How the name of a set of values ends.
const VALUES: &str = "-values.yaml";

/// Lints with both Helms and each set of values (the defaults alone lack what is required), compares what is rendered,
/// sees that what is wrong is refused, and has promtool check the alerts and run their tests.
pub(crate) fn check(parts: &Parts) -> Result<(), XtaskError> {
    let sets = sets()?;
    for helm in HELMS {
        let helm = parts.built(helm)?.binary();
        for set in &sets {
            lint(&helm, set)?;
            golden::check(&helm, set)?;
        }
        refused::check(&helm)?;
    }
    alerts()?;
    eprintln!("chart: Helm 3 and 4, {} sets of values, alerts", sets.len());
    Ok(())
}

/// The folder of the chart.
fn folder() -> PathBuf {
    workspace().join("charts/aicr-operator")
}

/// The sets of values that the chart is tried with, by name; at least one.
fn sets() -> Result<Vec<PathBuf>, XtaskError> {
    let folder = folder().join("ci");
    let Ok(entries) = fs::read_dir(&folder) else { return Err(XtaskError::Missing { path: folder }) };
    let is_set = |path: &PathBuf| path.to_string_lossy().ends_with(VALUES);
    let mut sets: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_set).collect();
    sets.sort();
    if sets.is_empty() { Err(XtaskError::Missing { path: folder }) } else { Ok(sets) }
}

fn lint(helm: &Path, set: &Path) -> Result<(), XtaskError> {
    let mut lint = Command::new(helm);
    lint.args(["lint", "--strict", "--values"]).arg(set).arg(folder());
    command::output(&mut lint).map(drop).map_err(XtaskError::command("helm lint --strict"))
}

fn alerts() -> Result<(), XtaskError> {
    let mut check = Command::new("promtool");
    check.args(["check", "rules"]).arg(folder().join("files/alerts.yaml"));
    command::output(&mut check).map_err(XtaskError::command("promtool check rules"))?;
    let mut test = Command::new("promtool");
    test.args(["test", "rules"]).arg(folder().join("ci/rules/alerts-test.yaml"));
    command::output(&mut test).map(drop).map_err(XtaskError::command("promtool test rules"))
}
