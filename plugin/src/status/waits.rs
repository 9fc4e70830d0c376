//! What a rollout waits for: a person or an event, and the times that end the wait.

use std::fmt;

use aicr_crds::{
    RuntimeRollout, duration,
    reason::Reason,
    rollout::{CurrentStep, Phase},
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::seen::Seen;
use crate::{
    text::Tone,
    time::{relative, stamp},
    view,
};

/// Who or what ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    /// Somebody has to do something.
    Person,
    /// Something has to happen in the cluster.
    Event,
}

/// A time that ends a wait, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    at: Timestamp,
    then: &'static str,
}

/// What a rollout waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    on: On,
    what: String,
    /// What ends it, soonest first.
    pub(super) until: Vec<Bound>,
}

impl Wait {
    /// What this unfinished rollout waits for.
    pub(super) fn of(rollout: &RuntimeRollout, seen: &Seen, now: Timestamp) -> Self {
        let current = rollout.status.as_ref().and_then(|status| status.current.as_ref());
        let (on, what) = awaited(rollout, seen, current, now);
        let mut until = bounds(rollout);
        if let Some(current) = current.filter(|current| !current.halted && on == On::Event) {
            until.extend(step_fails(rollout, current));
        }
        until.sort_by_key(|bound| bound.at);
        Self { on, what, until }
    }

    /// How it is shown.
    pub(super) fn tone(&self) -> Tone {
        match self.on {
            On::Person => Tone::Waiting,
            On::Event => Tone::Plain,
        }
    }

    /// As `status -o json` has it.
    pub(super) fn document(&self, rollout: &RuntimeRollout) -> Value {
        let until: Vec<_> =
            self.until.iter().map(|bound| json!({ "at": stamp(bound.at), "then": bound.then })).collect();
        let on = match self.on {
            On::Person => "Person",
            On::Event => "Event",
        };
        json!({ "rollout": rollout.name_any(), "on": on, "what": self.what, "until": until })
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.on {
            On::Person => write!(f, "a person: {}", self.what),
            On::Event => f.write_str(&self.what),
        }
    }
}

impl Bound {
    /// `until 2026-07-01T14:10:00Z (in 4h 10m): it ends Expired`.
    pub(super) fn text(&self, now: Timestamp) -> String {
        format!("until {} ({}): {}", stamp(self.at), relative(self.at, now), self.then)
    }
}

fn awaited(rollout: &RuntimeRollout, seen: &Seen, current: Option<&CurrentStep>, now: Timestamp) -> (On, String) {
    if rollout.spec.deadline.0 <= now || rollout.spec.revocation.is_some() {
        return (On::Event, "the operator to end it".to_owned());
    }
    if let Some(hold) = seen.hold() {
        return (On::Person, lift(hold).to_owned());
    }
    if view::is_unapproved(rollout) {
        return (On::Person, "an approver".to_owned());
    }
    match view::phase(rollout) {
        Some(Phase::AwaitingApproval) => (On::Person, "an approval of another rollout, after a retry".to_owned()),
        Some(Phase::AwaitingAcknowledgement) => (On::Person, acknowledgement(rollout)),
        Some(Phase::Stalled) => (On::Person, "what its message says".to_owned()),
        Some(Phase::Validating) => (On::Event, validation(rollout)),
        None
        | Some(
            Phase::Progressing
            | Phase::Succeeded
            | Phase::Failed
            | Phase::Expired
            | Phase::Revoked
            | Phase::Superseded
            | Phase::Orphaned,
        ) => (On::Event, current.map_or_else(|| "the operator's next step".to_owned(), in_flight)),
    }
}

fn lift(hold: Reason) -> &'static str {
    if hold == Reason::Paused {
        "spec.paused holds every step"
    } else {
        "spec.suspendEngine holds every step and Argo CD"
    }
}

fn acknowledgement(rollout: &RuntimeRollout) -> String {
    let owed: Vec<_> = view::owed(rollout).iter().map(|step| step.release.as_str()).collect();
    match owed.as_slice() {
        [] => "an acknowledgement".to_owned(),
        owed => format!("the recorded steps of {}, and their acknowledgement", owed.join(", ")),
    }
}

fn validation(rollout: &RuntimeRollout) -> String {
    let validation = rollout.status.as_ref().and_then(|status| status.validation.as_ref());
    validation.map_or_else(
        || "deployment validation".to_owned(),
        |validation| format!("deployment validation, job {}", validation.job),
    )
}

fn in_flight(current: &CurrentStep) -> String {
    let observed = current.observed.as_deref().map(|observed| format!(" ({observed})")).unwrap_or_default();
    let halted = if current.halted { "; it is halted, and its time stands still" } else { "" };
    format!("release {} to be ready{observed}{halted}", current.release)
}

/// The times that end the whole rollout.
fn bounds(rollout: &RuntimeRollout) -> Vec<Bound> {
    let mut all = vec![Bound { at: rollout.spec.deadline.0, then: "its deadline, when it ends Expired" }];
    if let Some(approval) = &rollout.spec.approval {
        let then = "its approval expires: the step in flight finishes, and it ends Expired";
        all.push(Bound { at: approval.expires_at.0, then });
    }
    all
}

fn step_fails(rollout: &RuntimeRollout, current: &CurrentStep) -> Option<Bound> {
    let timeout: SignedDuration = duration::parse(&rollout.spec.action_timeout).ok()?;
    let at = current.timeout_from.0.checked_add(timeout).ok()?;
    Some(Bound { at, then: "the step's time, when it fails" })
}
