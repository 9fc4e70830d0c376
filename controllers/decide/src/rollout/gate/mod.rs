//! The gates, in the order of `design/rules.md` section 3; the first that answers decides.
//!
//! None reads `status.phase`: begun, stalled, waiting and in flight are found anew from spec, Applications and `written`.

mod approval;
mod end;
mod hold;

pub use end::{is_stalled, is_unapproved};
pub(super) use hold::hold_of;

use aicr_crds::RuntimeRollout;
use jiff::Timestamp;

use super::{
    position::Position,
    start, validation,
    verdict::{ObjectRef, Verdict, Write},
    why::Why,
};
use crate::{
    seam,
    seen::{RolloutSeen, RuntimeSeen},
};

/// One gate: what it says, or nothing.
pub type Gate = fn(&Position<'_>, &RolloutSeen, Timestamp) -> Option<Verdict>;

/// All gates by name. It reads as the page does.
pub const GATES: [(&str, Gate); 16] = [
    ("ended", end::ended),
    ("written by a newer operator", end::newer),
    ("runtime gone", end::runtime_gone),
    ("deadline passed", end::deadline),
    ("revoked", end::revoked),
    ("superseded", end::superseded),
    ("approval expired", approval::expired),
    ("step in flight", end::in_flight),
    ("acknowledgement owed", approval::acknowledgement),
    ("approval missing", approval::missing),
    ("nothing left to start", end::complete),
    ("held", hold::held),
    ("inventory differs", hold::drift),
    ("target unfit", hold::unfit),
    ("next step", next_step),
    ("validation", validation::due),
];

/// What a rollout does next, given everything that was seen. Exactly one thing.
pub fn next(rollout: &RuntimeRollout, seen: &RolloutSeen, now: Timestamp) -> Verdict {
    next_at(&Position::find(rollout, &seen.applications), seen, now)
}

/// The same, where it is known how far the rollout has come.
pub fn next_at(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Verdict {
    let verdict = first(&GATES, position, seen, now);
    match &verdict {
        // What a Remove prepared and did not delete must not cascade after the end; nothing else keeps the outcome back.
        Verdict::End(_, why) => match marked(position, seen).filter(|_| !seam::is_broken("end: marks taken off")) {
            Some(withdraw) => Verdict::Do(withdraw, why.clone()),
            None => verdict,
        },
        Verdict::Do(..) => verdict,
        Verdict::Wait(..) => bounded(position, seen, verdict),
    }
}

/// A wait of an unfinished rollout is over when it has to end, whatever it waits for.
fn bounded(position: &Position<'_>, seen: &RolloutSeen, verdict: Verdict) -> Verdict {
    let spec = &position.rollout.spec;
    let may_expire = spec.needs_approval() && position.in_flight.is_none() && !validation::is_begun(position, seen);
    let expiry = spec.approval.as_ref().filter(|_| may_expire);
    let last = expiry.map_or(spec.deadline.0, |approval| approval.expires_at.0.min(spec.deadline.0));
    match verdict {
        Verdict::Wait(why @ (Why::Ended(_) | Why::NewerOperator(_)), until) => Verdict::Wait(why, until),
        Verdict::Wait(why, until) => Verdict::Wait(why, Some(until.map_or(last, |until| until.min(last)))),
        Verdict::Do(..) | Verdict::End(..) => verdict,
    }
}

/// The answer of the first gate that has one; the last one always has.
fn first(gates: &[(&str, Gate)], position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Verdict {
    gates
        .iter()
        .filter(|(name, _)| !seam::is_broken(name))
        .find_map(|(_, gate)| gate(position, seen, now))
        .unwrap_or(Verdict::Wait(Why::Complete, None))
}

/// What the gates below this one would answer, for the gates that ask.
fn below(name: &str, position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Verdict {
    let from = GATES.iter().position(|(gate, _)| *gate == name).map_or(GATES.len(), |index| index + 1);
    first(&GATES[from..], position, seen, now)
}

fn next_step(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Option<Verdict> {
    position.next.map(|index| start::start(position, seen, index, now))
}

fn marked(position: &Position<'_>, seen: &RolloutSeen) -> Option<Write> {
    let marked = position.applications().find(|application| {
        application.annotations.delete_rollout.as_deref() == Some(position.name()) && !application.is_deleting()
    });
    let suspended = match &seen.runtime {
        RuntimeSeen::There(facts) => facts.suspend_engine,
        RuntimeSeen::Gone => false,
    };
    marked.map(|application| Write::WithdrawRemove { on: ObjectRef::of(application), enabled: !suspended })
}
