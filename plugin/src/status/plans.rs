//! The head of the page: which AICR, which plans, which snapshot.

use jiff::Timestamp;

use super::seen::Runtime;
use crate::{page::Page, text::Tone, time::relative};

/// Hex digits of a plan that people read, as in the name of its rollouts.
const SHORT: usize = 16;

/// Plans, AICR, discovery, and whether the operator has seen the newest spec.
pub(super) fn write(page: &mut Page, runtime: &Runtime, now: Timestamp) {
    let status = &runtime.status;
    page.field("Runtime", Tone::Heading, aicr_crds::runtime::NAME);
    if let (Some(observed), Some(newest)) = (status.observed_generation, runtime.generation)
        && observed < newest
    {
        let text = format!("of spec {observed}; the operator has not seen spec {newest} yet");
        page.field("Status", Tone::Waiting, &text);
    }
    let active = status.active_plan_digest.as_deref().map_or("none", short);
    page.field("Active plan", Tone::Plain, active);
    page.field("Candidate", Tone::Plain, &candidate(runtime));
    if !runtime.spec.selection.pinned_plan_digest.is_empty() {
        page.field("Pinned", Tone::Plain, short(&runtime.spec.selection.pinned_plan_digest));
    }
    if !status.aicr.version.is_empty() {
        page.field("AICR", Tone::Plain, &status.aicr.version);
    }
    discovery(page, runtime, now);
}

fn candidate(runtime: &Runtime) -> String {
    let (active, candidate) = (&runtime.status.active_plan_digest, &runtime.status.candidate_plan_digest);
    match candidate.as_deref() {
        None => "none".to_owned(),
        Some(digest) if active.as_deref() == Some(digest) => format!("{} (the active plan)", short(digest)),
        Some(digest) => short(digest).to_owned(),
    }
}

fn discovery(page: &mut Page, runtime: &Runtime, now: Timestamp) {
    let discovery = &runtime.status.discovery;
    let Some(snapshot) = &discovery.snapshot else { return };
    let criteria = discovery.criteria.values().filter_map(|value| value.as_str());
    let (criteria, age) = (criteria.collect::<Vec<_>>().join(" "), relative(snapshot.taken_at.0, now));
    let nodes = format!("{} accelerated and {} system nodes", discovery.accelerated_nodes, discovery.system_nodes);
    let found = if criteria.is_empty() { nodes } else { format!("{criteria}, {nodes}") };
    page.field("Discovered", Tone::Plain, &format!("{found} ({}, {age})", snapshot.config_map));
}

/// The first hex digits of a plan's digest.
fn short(digest: &str) -> &str {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    hex.get(..SHORT).unwrap_or(hex)
}
