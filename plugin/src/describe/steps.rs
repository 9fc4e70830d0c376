//! The steps as a table, with what a person should know of each below it.

use aicr_crds::{
    RuntimeRollout,
    rollout::{ChartRef, CrdChange, CrdEffect, Operation, Step},
};
use comfy_table::{ColumnConstraint, Table, Width, presets};
use jiff::Timestamp;

use crate::{
    page::Page,
    text::{Tone, clean},
    time::took,
    view,
};

const HEADER: [&str; 9] = ["#", "RELEASE", "OPERATION", "FROM → TO", "VERDICT", "CRDS", "APPROVAL", "STATE", "TOOK"];

/// Where the reasons of the approval column are wrapped.
const APPROVAL_WIDTH: u16 = 40;

/// The whole section: table, warnings, and what the operator says of single releases.
pub(crate) fn write(page: &mut Page, rollout: &RuntimeRollout, now: Timestamp) {
    let all: Vec<_> = rollout.spec.steps.iter().enumerate().map(|(index, step)| (index + 1, step)).collect();
    page.heading("Steps");
    table(page, rollout, &all, now);
    warnings(page, &all);
    messages(page, rollout);
}

/// These steps, each with its place from 1.
pub(crate) fn table(page: &mut Page, rollout: &RuntimeRollout, steps: &[(usize, &Step)], now: Timestamp) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(HEADER);
    for (place, step) in steps {
        table.add_row(row(rollout, *place, step, now));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if HEADER[index] == "APPROVAL" {
            column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(APPROVAL_WIDTH)));
        }
    }
    page.text(2, "", Tone::Plain, &table.to_string());
}

fn row(rollout: &RuntimeRollout, place: usize, step: &Step, now: Timestamp) -> [String; 9] {
    let approval = if step.approval.reason.is_empty() {
        step.approval.need.to_string()
    } else {
        format!("{}: {}", step.approval.need, step.approval.reason)
    };
    [
        place.to_string(),
        step.release.clone(),
        step.operation.to_string(),
        versions(step),
        verdict(step),
        crds(&step.crds),
        approval,
        view::state(rollout, step).map_or_else(|| "-".into(), |state| state.to_string()),
        took(rollout.status.as_ref(), &step.release, now).unwrap_or_else(|| "-".into()),
    ]
    .map(|cell| clean(&cell))
}

/// Versions of the chart before and after; one where it stays.
fn versions(step: &Step) -> String {
    let version = |chart: Option<&ChartRef>| chart.map_or_else(|| "-".to_owned(), |chart| chart.version.clone());
    let (from, to) = (version(step.from.as_ref()), version(step.to.as_ref()));
    let chart = if same_chart(step) { to.clone() } else { format!("{from} → {to}") };
    let content = (!same_chart(step) && from == to).then_some("new chart content");
    let values = step.values_changed.then_some("new values");
    let notes: Vec<&str> = content.into_iter().chain(values).collect();
    if notes.is_empty() { chart } else { format!("{chart} ({})", notes.join(", ")) }
}

/// AICR's word; it assesses versions, not values, so for new values alone the page says `Unknown`.
fn verdict(step: &Step) -> String {
    match step.verdict {
        Some(verdict) => verdict.to_string(),
        None if step.operation == Operation::Upgrade && same_chart(step) && step.values_changed => "Unknown".into(),
        None => "-".into(),
    }
}

fn same_chart(step: &Step) -> bool {
    matches!((&step.from, &step.to), (Some(from), Some(to)) if from.digest == to.digest)
}

fn crds(changes: &[CrdChange]) -> String {
    if changes.is_empty() {
        return "-".into();
    }
    let word = |effect: CrdEffect| match effect {
        CrdEffect::Added => "added",
        CrdEffect::Changed => "changed",
        CrdEffect::Dropped => "dropped",
    };
    changes.iter().map(|crd| format!("{} {}", word(crd.change), crd.name)).collect::<Vec<_>>().join("\n")
}

/// What a person should know before approving.
pub(crate) fn warnings(page: &mut Page, steps: &[(usize, &Step)]) {
    let all: Vec<_> =
        steps.iter().flat_map(|(_, step)| step.warnings.iter().map(|text| (&step.release, text))).collect();
    if all.is_empty() {
        return;
    }
    page.heading("Warnings");
    for (release, text) in all {
        page.text(2, "", Tone::Waiting, &format!("{release}: {text}"));
    }
}

fn messages(page: &mut Page, rollout: &RuntimeRollout) {
    let releases = rollout.status.as_ref().map(|status| status.releases.as_slice()).unwrap_or_default();
    let all: Vec<_> = releases.iter().filter_map(|known| Some((known, known.message.as_ref()?))).collect();
    if all.is_empty() {
        return;
    }
    page.heading("Releases");
    for (known, message) in all {
        page.text(2, "", Tone::Plain, &format!("{} {}: {message}", known.release, known.state));
    }
}
