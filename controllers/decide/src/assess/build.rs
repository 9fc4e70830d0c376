//! Steps as a rollout records them, and the rollout's name.

use std::collections::BTreeSet;

use aicr_crds::{
    application::Application,
    plan::PlanRelease,
    rollout::{ChartRef, Operation, Step, Verdict},
};

pub use super::diff::Transition;
use super::diff::{touched_by, unsuccessful};
use super::{
    approval::{AfterFailure, Case, Content, approval},
    crds,
    diff::{Change, From},
};
use crate::{
    runtime::authors,
    seen::{Assessment, AssessmentRow, age_key},
};

/// How many CRDs a step lists, as the CRD of rollouts bounds it.
const CRDS: usize = 128;

/// The ordered steps of a transition.
pub fn steps(transition: &Transition<'_>, assessment: Option<&Assessment>) -> Vec<Step> {
    let touched = transition.touched();
    let changes = transition.changes(&touched);
    let edited = !authors(transition.world).is_empty();
    let past = Past { retry: transition.is_retry(), edited, owed: owed(transition), touched };
    changes.into_iter().map(|change| step(&change, transition, assessment, &past)).collect()
}

/// What rollouts that did not succeed have left.
struct Past<'a> {
    /// Whether the newest had this very target.
    retry: bool,
    /// Whether somebody changed the spec, and no rollout has carried that yet.
    edited: bool,
    /// Releases that they moved.
    touched: BTreeSet<String>,
    /// Releases whose recorded steps are owed.
    owed: BTreeSet<&'a str>,
}

fn step(change: &Change<'_>, transition: &Transition<'_>, assessment: Option<&Assessment>, past: &Past<'_>) -> Step {
    let from = change.from.and_then(|from| chart_of(from, transition));
    let to = change.to.map(chart_ref);
    let chart_changes = chart_changes(change);
    let row = row(change, assessment).filter(|_| chart_changes && change.operation == Operation::Upgrade);
    let crds = if chart_changes { crd_changes(change) } else { Vec::new() };
    let after_failure = match (past.retry, past.touched.contains(&change.release)) {
        (true, _) => AfterFailure::Retry,
        (false, true) => AfterFailure::TakesBack,
        (false, false) => AfterFailure::None,
    };
    let verdict = row.and_then(|row| row.verdict);
    let content = match (chart_changes, values_changed(change)) {
        (true, true) if past.edited => Content::EditedChart,
        (true, _) => Content::Chart,
        (false, true) => Content::Values,
        (false, false) => Content::Same,
    };
    let case = Case { operation: change.operation, content, verdict, crds: &crds, after_failure };
    Step {
        release: change.release.clone(),
        operation: change.operation,
        values_changed: values_changed(change),
        verdict,
        approval: approval(&case),
        acknowledge: row.is_some_and(owes) || (content == Content::Same && past.owed.contains(change.release.as_str())),
        warnings: warnings(change.operation, crds.len()),
        from,
        to,
        crds: crds.into_iter().take(CRDS).collect(),
    }
}

/// A verdict counts only for a release whose Application holds the active plan's content.
fn row<'a>(change: &Change<'_>, assessment: Option<&'a Assessment>) -> Option<&'a AssessmentRow> {
    let component = match (change.from, change.to) {
        (Some(From::Plan(_)), Some(to)) => &to.content.component,
        (Some(From::Application(_)) | None, _) | (_, None) => return None,
    };
    // Only the component's own chart is what AICR assesses, not what it generates around it.
    let primary = change.to.is_some_and(|to| to.content.id == *component);
    assessment.filter(|_| primary)?.rows.get(component)
}

/// Manual, with recorded steps after the apply.
fn owes(row: &AssessmentRow) -> bool {
    let apply = row.steps.iter().position(|step| step == "apply");
    row.verdict == Some(Verdict::Manual) && apply.is_some_and(|apply| apply + 1 < row.steps.len())
}

fn chart_changes(change: &Change<'_>) -> bool {
    match (change.from, change.to) {
        (Some(From::Plan(before)), Some(after)) => before.content.chart != after.content.chart,
        (Some(From::Application(application)), Some(after)) => {
            application.source.target_revision != after.archive.digest.to_string()
        }
        (None, _) | (_, None) => true,
    }
}

/// Releases for which an unsuccessful rollout left a debt: it goes over to the step that finds their content there.
fn owed<'a>(transition: &Transition<'a>) -> BTreeSet<&'a str> {
    let mut all: Vec<_> = unsuccessful(transition.world).collect();
    all.sort_by(|one, other| age_key(one).cmp(&age_key(other)));
    let mut owed = BTreeSet::new();
    for rollout in all {
        let wrote = touched_by(rollout, &transition.world.applications);
        for step in rollout.spec.steps.iter().filter(|step| wrote.contains(&step.release)) {
            // It took the release elsewhere, or to this content.
            if step.acknowledge {
                owed.insert(step.release.as_str());
            } else if moves(step) {
                owed.remove(step.release.as_str());
            }
        }
        for paid in &rollout.spec.acknowledgements {
            owed.remove(paid.release.as_str());
        }
    }
    owed
}

/// Whether a step changed content, so that an older debt for it has ended.
fn moves(step: &Step) -> bool {
    step.from != step.to || step.values_changed
}

fn values_changed(change: &Change<'_>) -> bool {
    match (change.from, change.to) {
        (Some(From::Plan(before)), Some(after)) => before.content.values != after.content.values,
        (Some(From::Application(application)), Some(after)) => application.source.values != after.content.values,
        (None, _) | (_, None) => false,
    }
}

fn crd_changes(change: &Change<'_>) -> Vec<aicr_crds::rollout::CrdChange> {
    let old: &[String] = match change.from {
        Some(From::Plan(before)) => &before.archive.crds,
        Some(From::Application(_)) | None => &[],
    };
    let new: &[String] = change.to.map_or(&[], |to| &to.archive.crds);
    match change.operation {
        // Cascade deletion never deletes CRDs (A107).
        Operation::Remove | Operation::Verify | Operation::Adopt => Vec::new(),
        Operation::Install | Operation::Upgrade => crds::changes(old, new),
    }
}

/// What a Remove leaves, said before it is approved.
pub(crate) const REMOVES: &str = "CRDs, resources kept by policy and the namespace stay";

fn warnings(operation: Operation, crds: usize) -> Vec<String> {
    let stays = match operation {
        Operation::Remove => Some(REMOVES.to_owned()),
        Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Adopt => None,
    };
    let more = (crds > CRDS).then(|| format!("{} more CRDs are not listed", crds - CRDS));
    stays.into_iter().chain(more).collect()
}

pub(crate) fn chart_ref(release: PlanRelease<'_>) -> ChartRef {
    ChartRef {
        chart: release.content.chart.repository.clone(),
        version: release.archive.version.clone(),
        digest: release.archive.digest,
    }
}

fn chart_of(from: From<'_>, transition: &Transition<'_>) -> Option<ChartRef> {
    match from {
        From::Plan(release) => Some(chart_ref(release)),
        From::Application(application) => application_chart(application, &transition.world.settings.engine.repository),
    }
}

/// The chart that an Application points at; `None` where that is no digest.
pub(crate) fn application_chart(application: &Application, repository: &str) -> Option<ChartRef> {
    let url = &application.source.repo_url;
    let below = url.strip_prefix(&format!("oci://{repository}/")).unwrap_or(url);
    let version = application.annotations.chart_version.as_deref().unwrap_or_default();
    Some(ChartRef {
        chart: below.to_owned(),
        version: version.to_owned(),
        digest: application.source.target_revision.parse().ok()?,
    })
}

/// `<prefix>-<attempt>`, the attempt one more than the highest that exists under that prefix, of any runtime.
pub fn rollout_name(prefix: &str, existing: &BTreeSet<String>) -> (String, i32) {
    let attempts = existing.iter().filter_map(|name| name.strip_prefix(prefix)?.strip_prefix('-')?.parse::<i32>().ok());
    let attempt = attempts.max().unwrap_or(0).saturating_add(1);
    (format!("{prefix}-{attempt}"), attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attempt_is_one_more_than_the_highest_that_exists() {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(rollout_name("rollout-ab", &names(&[])), ("rollout-ab-1".into(), 1));
        assert_eq!(
            rollout_name("rollout-ab", &names(&["rollout-ab-1", "rollout-ab-9", "rollout-abc-40", "rollout-ab-x"])),
            ("rollout-ab-10".into(), 10)
        );
    }
}
