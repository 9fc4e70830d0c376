//! Moves that need a migration, so that no rollout is created.

use aicr_crds::{application::IN_CLUSTER, plan::PlanRelease, rollout::Verdict};

use super::diff::Transition;
use crate::{message::listed, seen::Assessment};

/// How many causes a message names.
const NAMED: usize = 5;

/// Why the transition is blocked: a release that keeps its name and changes namespace, chart name or destination, or a
/// component that AICR assesses `blocked`.
pub fn blocked(transition: &Transition<'_>, assessment: Option<&Assessment>) -> Option<String> {
    let mut causes: Vec<String> =
        transition.target.releases().filter_map(|release| moved(transition, release)).collect();
    let rows = assessment.into_iter().flat_map(|assessment| &assessment.rows);
    let refused = rows.filter(|(_, row)| row.verdict == Some(Verdict::Blocked));
    causes.extend(refused.map(|(component, row)| format!("AICR assesses {component} blocked: {}", row.explanation)));
    (!causes.is_empty()).then(|| {
        format!(
            "{}; return to a plan without that change: revert the input, or pin the active plan",
            listed(&causes, NAMED)
        )
    })
}

fn moved(transition: &Transition<'_>, release: PlanRelease<'_>) -> Option<String> {
    let content = release.content;
    let before = transition
        .active
        .and_then(|plan| plan.release(&content.id))
        .map(|before| (&before.content.namespace, &before.content.chart.repository));
    let there = transition.application(&content.id).map(|application| {
        let below = application.source.repo_url.rsplit_once('/').map_or("", |(_, name)| name);
        let destination = &application.destination;
        // A cluster by name is never ours.
        let server = if destination.name.is_empty() { &destination.server } else { &destination.name };
        (&destination.namespace, server, below)
    });
    if let Some((namespace, repository)) = before {
        if *namespace != content.namespace {
            return Some(format!("release {} moves from namespace {namespace} to {}", content.id, content.namespace));
        }
        if chart(repository) != chart(&content.chart.repository) {
            return Some(format!(
                "release {} changes its chart from {} to {}",
                content.id,
                chart(repository),
                chart(&content.chart.repository)
            ));
        }
    }
    let (namespace, server, below) = there?;
    let foreign_place = *namespace != content.namespace || server != IN_CLUSTER;
    let foreign_chart = below != chart(&content.chart.repository);
    (foreign_place || foreign_chart).then(|| {
        format!("Application {} is installed in {namespace} of {server} from chart {below}, and the target has namespace {} and chart {}", content.id, content.namespace, chart(&content.chart.repository))
    })
}

fn chart(repository: &str) -> &str {
    repository.rsplit_once('/').map_or(repository, |(_, name)| name)
}
