//! The head of the page: what the rollout is, where it is, and its times.

use aicr_crds::{
    Digest, RuntimeRollout,
    keys::annotation,
    rollout::{Author, Phase},
    runtime::DeploymentValidation,
};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::{
    page::Page,
    text::Tone,
    time::{relative, short, stamp},
    view,
};

/// Name, kind, phase, message, transition and who asked for it.
pub(crate) fn write(page: &mut Page, rollout: &RuntimeRollout, now: Timestamp) {
    let spec = &rollout.spec;
    let phase = view::phase(rollout);
    page.field("Name", Tone::Heading, &rollout.name_any());
    page.field("Kind", Tone::Plain, &format!("{} (attempt {})", spec.kind, spec.attempt));
    page.field("Phase", phase.map_or(Tone::Plain, tone), super::phase(rollout));
    if let Some(status) = &rollout.status {
        if let Some(step) = &status.step {
            page.field("Step", Tone::Plain, step);
        }
        if let Some(message) = &status.message {
            page.field("Message", Tone::Plain, message);
        }
        if let Some(current) = &status.current {
            let seen = current.observed.as_deref().map(|seen| format!(", {seen}")).unwrap_or_default();
            let since = short(now.duration_since(current.started_at.0));
            let held = if current.halted { ", halted" } else { "" };
            let text = format!("{} {}, for {since}{held}{seen}", current.operation, current.release);
            page.field("In flight", Tone::Plain, &text);
        }
    }
    page.field("Transition", Tone::Plain, &transition(rollout));
    page.field("Requested by", Tone::Plain, &requested_by(&spec.requested_by));
}

/// Deadline with the time left, or how long it took; validation and evidence.
pub(crate) fn times(page: &mut Page, rollout: &RuntimeRollout, now: Timestamp) {
    let status = rollout.status.as_ref();
    let time = |time: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| time.map(|time| time.0);
    let started = time(status.and_then(|status| status.started_at.as_ref()));
    let finished = time(status.and_then(|status| status.finished_at.as_ref()));
    if let Some(started) = started {
        page.field("Started", Tone::Plain, &format!("{} ({})", stamp(started), relative(started, now)));
    }
    if let Some(finished) = finished {
        let took = started.map(|started| format!(" (took {})", short(finished.duration_since(started))));
        page.field("Finished", Tone::Plain, &format!("{}{}", stamp(finished), took.unwrap_or_default()));
    }
    let deadline = rollout.spec.deadline.0;
    match view::ended(rollout) {
        Some(_) => page.field("Deadline", Tone::Plain, &stamp(deadline)),
        None if deadline <= now => {
            page.field("Deadline", Tone::Bad, &format!("{} (passed {})", stamp(deadline), relative(deadline, now)));
        }
        None => page.field("Deadline", Tone::Plain, &format!("{} ({})", stamp(deadline), relative(deadline, now))),
    }
    page.field("Validation", Tone::Plain, &validation(rollout));
    if let Some(evidence) = rollout.annotations().get(annotation::EVIDENCE) {
        page.field("Evidence", Tone::Plain, evidence);
    }
}

/// `from → to`, each the first 16 hex digits of its plan.
pub(crate) fn transition(rollout: &RuntimeRollout) -> String {
    let plan = |digest: Option<&Digest>| digest.map_or_else(|| "nothing".to_owned(), Digest::short);
    format!("{} → {}", plan(rollout.spec.from_plan_digest.as_ref()), plan(rollout.spec.target_plan_digest.as_ref()))
}

fn requested_by(authors: &[Author]) -> String {
    if authors.is_empty() {
        return "nobody known".into();
    }
    authors.iter().map(|author| format!("{} at {}", author.user, stamp(author.at.0))).collect::<Vec<_>>().join("\n")
}

fn validation(rollout: &RuntimeRollout) -> String {
    let required = match rollout.spec.validation {
        DeploymentValidation::Required => "Required",
        DeploymentValidation::Disabled => "Disabled",
    };
    let validation = rollout.status.as_ref().and_then(|status| status.validation.as_ref());
    match validation.map(|validation| (validation, validation.result.as_deref())) {
        Some((_, Some(result))) => format!("{required}: {result}"),
        Some((validation, None)) => format!("{required}: job {} runs", validation.job),
        None => required.into(),
    }
}

fn tone(phase: Phase) -> Tone {
    match phase {
        Phase::AwaitingApproval | Phase::AwaitingAcknowledgement | Phase::Stalled => Tone::Waiting,
        Phase::Progressing | Phase::Validating | Phase::Superseded | Phase::Orphaned => Tone::Plain,
        Phase::Succeeded => Tone::Good,
        Phase::Failed | Phase::Expired | Phase::Revoked => Tone::Bad,
    }
}
