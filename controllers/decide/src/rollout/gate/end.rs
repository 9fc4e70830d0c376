//! The gates that end a rollout.

use aicr_crds::{reason::Outcome, rollout::RolloutKind, runtime::DeletionPolicy};
use jiff::Timestamp;

use super::{
    super::{
        drift::drift,
        position::Position,
        step,
        validation::{self, Validation},
        verdict::{Verdict, Write},
        why::{Superseder, Why},
    },
    below, marked,
};
use crate::seen::{RolloutSeen, RuntimeFacts, RuntimeSeen, age_key, outcome};

/// 1. The outcome label alone says that it ended. What a Remove of it prepared and did not delete is taken off whenever it
///    is seen.
pub(super) fn ended(position: &Position<'_>, seen: &RolloutSeen, _: Timestamp) -> Option<Verdict> {
    let outcome = outcome(position.rollout)?;
    Some(match marked(position, seen) {
        Some(withdraw) => Verdict::Do(withdraw, Why::Ended(outcome)),
        None => Verdict::Wait(Why::Ended(outcome), None),
    })
}

/// 2. A schema of a newer operator is never acted on.
pub(super) fn newer(position: &Position<'_>, _: &RolloutSeen, _: Timestamp) -> Option<Verdict> {
    let schema = &position.rollout.spec.schema_version;
    (schema != aicr_crds::rollout::SCHEMA_VERSION).then(|| Verdict::Wait(Why::NewerOperator(schema.clone()), None))
}

/// 3. Gone, of another UID, or being orphaned.
pub(super) fn runtime_gone(_: &Position<'_>, seen: &RolloutSeen, _: Timestamp) -> Option<Verdict> {
    let gone = match &seen.runtime {
        RuntimeSeen::Gone => true,
        RuntimeSeen::There(facts) => facts.deleting == Some(DeletionPolicy::Orphan),
    };
    gone.then_some(Verdict::End(Outcome::Orphaned, Why::RuntimeGone))
}

/// 4. The deadline stands before every gate that waits for a step, so that no hold lets a rollout outlive it.
pub(super) fn deadline(position: &Position<'_>, _: &RolloutSeen, now: Timestamp) -> Option<Verdict> {
    let deadline = position.rollout.spec.deadline.0;
    if now < deadline {
        return None;
    }
    let in_flight = position.in_flight.map(|index| position.steps()[index].release.clone());
    let outcome = if position.rollout.spec.revocation.is_some() { Outcome::Revoked } else { Outcome::Expired };
    Some(Verdict::End(outcome, Why::DeadlinePassed { deadline, in_flight }))
}

/// 5. After the step in flight, however that ends.
pub(super) fn revoked(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Option<Verdict> {
    let revocation = position.rollout.spec.revocation.as_ref()?;
    let why = Why::Revoked { by: revocation.revoked_by.username.clone(), reason: revocation.reason.clone() };
    Some(after_step(position, seen, now, Outcome::Revoked, why))
}

/// Ends with this outcome once no step is in flight, whatever becomes of that one.
pub(super) fn after_step(
    position: &Position<'_>,
    seen: &RolloutSeen,
    now: Timestamp,
    outcome: Outcome,
    why: Why,
) -> Verdict {
    match step::in_flight(position, seen, now) {
        None | Some(Verdict::End(..)) => Verdict::End(outcome, why),
        Some(verdict @ (Verdict::Do(..) | Verdict::Wait(..))) => verdict,
    }
}

/// 6. Deletion with policy Delete after the step in flight; without one, a retry while stalled or unapproved, another
///    target before the first step or while stalled, an older unfinished rollout.
pub(super) fn superseded(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Option<Verdict> {
    let facts = match &seen.runtime {
        RuntimeSeen::Gone => return None,
        RuntimeSeen::There(facts) => facts,
    };
    let kind = position.rollout.spec.kind;
    if facts.deleting == Some(DeletionPolicy::Delete) && kind != RolloutKind::Remove {
        return Some(after_step(position, seen, now, Outcome::Superseded, Why::Superseded(Superseder::Removal)));
    }
    if position.in_flight.is_none()
        && let Some(superseder) = superseder(position, seen, facts, now)
    {
        return Some(Verdict::End(Outcome::Superseded, Why::Superseded(superseder)));
    }
    // Seen while it runs, is held, has recovered or owes an acknowledgement: the token is spent.
    facts.new_token.clone().map(|token| Verdict::Do(Write::SpendToken { token }, Why::TokenSpent))
}

fn superseder(position: &Position<'_>, seen: &RolloutSeen, facts: &RuntimeFacts, now: Timestamp) -> Option<Superseder> {
    let (created, _, name) = age_key(position.rollout);
    if let Some((_, older)) = seen
        .unfinished
        .iter()
        .find(|(at, other)| created.is_some_and(|created| (*at, other.as_str()) < (created, name)))
    {
        return Some(Superseder::Older(older.clone()));
    }
    let moved = facts.target.is_some() && facts.target != position.rollout.spec.target_plan_digest;
    let moved = moved && position.rollout.spec.kind == RolloutKind::Change;
    if !moved && facts.new_token.is_none() {
        return None;
    }
    let answer = below("superseded", position, seen, now);
    if let Some(token) = &facts.new_token
        && (is_stalled(&answer) || is_unapproved(&answer))
    {
        return Some(Superseder::Retry(token.clone()));
    }
    (moved && (!position.is_begun_at_all() || is_stalled(&answer))).then_some(Superseder::Target)
}

/// Whether a rollout is stalled: only a person, or undoing a change, helps.
pub fn is_stalled(verdict: &Verdict) -> bool {
    match verdict.why() {
        Why::Drift(_) | Why::Unfit(..) | Why::StepUnknown(_) => true,
        Why::Ended(_)
        | Why::NewerOperator(_)
        | Why::RuntimeGone
        | Why::DeadlinePassed { .. }
        | Why::Revoked { .. }
        | Why::Superseded(_)
        | Why::ApprovalExpired(_)
        | Why::Step { .. }
        | Why::StepFailed { .. }
        | Why::StepReady { .. }
        | Why::AcknowledgementOwed { .. }
        | Why::AwaitingApproval(_)
        | Why::ApprovalMismatch
        | Why::Held(_)
        | Why::Foreign(_)
        | Why::Starting { .. }
        | Why::TokenSpent
        | Why::Validating { .. }
        | Why::ValidationFailed(_)
        | Why::ValidationUnavailable(_)
        | Why::Validated { .. }
        | Why::Complete => false,
    }
}

/// Whether an approver is waited for.
pub fn is_unapproved(verdict: &Verdict) -> bool {
    matches!(verdict.why(), Why::AwaitingApproval(_) | Why::ApprovalMismatch)
}

/// 8. A step, or validation, is in flight.
pub(super) fn in_flight(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Option<Verdict> {
    step::in_flight(position, seen, now).or_else(|| validation::in_flight(position, seen, now))
}

/// 11. Inventory once more, then success; a hold does not keep it. Validation comes before it where it is required.
pub(super) fn complete(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Option<Verdict> {
    if position.next.is_some() || position.in_flight.is_some() {
        return None;
    }
    let why = match validation::validation(position, seen, now) {
        Validation::None => Why::Complete,
        Validation::Passed { run, evidence } => Why::Validated { run, evidence },
        Validation::Due(_)
        | Validation::Running { .. }
        | Validation::Backoff(..)
        | Validation::Unavailable(_)
        | Validation::Failed(_) => return None,
    };
    let differences = drift(position, seen);
    Some(if differences.is_empty() {
        Verdict::End(Outcome::Succeeded, why)
    } else {
        Verdict::Wait(Why::Drift(differences), Some(position.rollout.spec.deadline.0))
    })
}
