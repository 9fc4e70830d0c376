//! Rule 9: outcome, evidence and end are set once, progress and status are written, by the operator alone.

use super::{Act, Annotations, Case, Rollout};
use crate::{
    review::Text,
    verdict::{Denial, Rule},
};

const NOT_YOURS: &str = "status, the outcome label and the operator.aicr.run annotations of a rollout are written by the operator alone; leave them as they are";
const NO_OWNER: &str =
    "a rollout has no owner, with which it would be deleted; leave its metadata.ownerReferences as they are";
const ONCE: &str = "the outcome, evidence and end of a rollout are written once; ask for a retry";

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    match &case.act {
        Act::Create(new) => fresh(new),
        Act::Update { old, new } => update(case, old, new),
        Act::Delete(_) => Ok(()),
    }
}

/// The garbage collector deletes what has an owner that is not there, by its own right and not by that of who wrote it.
fn is_given_an_owner(old: &Rollout<'_>, new: &Rollout<'_>) -> bool {
    let before = old.metadata.owners.as_deref().unwrap_or_default();
    new.metadata.owners.iter().flatten().any(|owner| !before.contains(owner))
}

/// A rollout that began ended would hide that nothing was done.
fn fresh(new: &Rollout<'_>) -> Result<(), Denial> {
    let marks = new.metadata.annotations.as_ref();
    let ended = marks.is_some_and(|marks| marks.evidence.is_some() || marks.finished_at.is_some());
    if ended || new.outcome().is_some() {
        return Err(
            Rule::OperatorFields.forbids("a new rollout has neither outcome, evidence nor end; create it without them")
        );
    }
    Ok(())
}

fn update(case: &Case<'_, '_>, old: &Rollout<'_>, new: &Rollout<'_>) -> Result<(), Denial> {
    let none = Annotations::default();
    let before = old.metadata.annotations.as_ref().unwrap_or(&none);
    let after = new.metadata.annotations.as_ref().unwrap_or(&none);
    if !case.is_operator() {
        let touched = case.review.is_status() || before != after || old.outcome() != new.outcome();
        if touched {
            return Err(Rule::OperatorFields.forbids(NOT_YOURS));
        }
        return if is_given_an_owner(old, new) { Err(Rule::OperatorFields.forbids(NO_OWNER)) } else { Ok(()) };
    }
    let once = |held: Option<&Text<'_>>, now: Option<&Text<'_>>| held.is_none() || held == now;
    let kept = once(old.outcome(), new.outcome())
        && once(before.evidence.as_ref(), after.evidence.as_ref())
        && once(before.finished_at.as_ref(), after.finished_at.as_ref());
    if !kept {
        return Err(Rule::OperatorFields.forbids(ONCE));
    }
    Ok(())
}
