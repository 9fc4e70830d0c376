//! Who agreed to the rollout, until when; what is missing; what is acknowledged and owed.

use aicr_crds::{RuntimeRollout, rollout::Approval};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::{
    page::Page,
    text::{Tone, count},
    time::{relative, stamp},
    view,
};

/// The approval, its withdrawal, and the acknowledgements.
pub(crate) fn write(page: &mut Page, rollout: &RuntimeRollout, now: Timestamp) {
    match &rollout.spec.approval {
        Some(approval) => given(page, rollout, approval, now),
        None if rollout.spec.needs_approval() => missing(page, rollout),
        None => page.field("Approval", Tone::Plain, "not required: no step needs it"),
    }
    if let Some(revocation) = &rollout.spec.revocation {
        let who = format!("by {} at {}", revocation.revoked_by.username, stamp(revocation.revoked_at.0));
        page.field("Revoked", Tone::Bad, &format!("{who}\n{}", revocation.reason));
    }
    acknowledgements(page, rollout);
}

fn given(page: &mut Page, rollout: &RuntimeRollout, approval: &Approval, now: Timestamp) {
    let (by, at, until) = (&approval.approved_by.username, approval.approved_at.0, approval.expires_at.0);
    let left = if view::ended(rollout).is_some() { String::new() } else { format!(" ({})", relative(until, now)) };
    let tone = if until <= now && !left.is_empty() { Tone::Bad } else { Tone::Plain };
    let text = format!("by {by} at {}\nuntil {}{left}\n{}", stamp(at), stamp(until), approval.reason);
    page.field("Approved", tone, &text);
    if rollout.spec.binding_digest().ok() != Some(approval.binding_digest) {
        page.field("", Tone::Bad, &format!("binds another content: {}", approval.binding_digest));
    }
}

fn missing(page: &mut Page, rollout: &RuntimeRollout) {
    let (needed, all) = (view::to_approve(rollout).len(), rollout.spec.steps.len());
    let what = format!("required for {needed} of {}", count(all, "step"));
    if view::ended(rollout).is_some() {
        page.field("Approval", Tone::Plain, &format!("{what}; nobody gave it"));
    } else {
        let command = format!("kubectl aicr approve {} --reason \"...\"", rollout.name_any());
        page.field("Approval", Tone::Waiting, &format!("{what}; nobody has given it yet\n{command}"));
    }
}

fn acknowledgements(page: &mut Page, rollout: &RuntimeRollout) {
    for known in &rollout.spec.acknowledgements {
        let who = format!("by {} at {}", known.acknowledged_by.username, stamp(known.acknowledged_at.0));
        page.field("Acknowledged", Tone::Plain, &format!("{} {who}\n{}", known.release, known.reason));
    }
    if view::ended(rollout).is_some() {
        return;
    }
    for step in view::owed(rollout) {
        let (release, name) = (&step.release, rollout.name_any());
        let command = format!("kubectl aicr acknowledge {name} {release} --reason \"...\"");
        let text = format!("{release}: do its recorded steps after the apply, then\n{command}");
        page.field("Owed", Tone::Waiting, &text);
    }
}
