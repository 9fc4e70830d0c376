//! Rule 6: what an approval must hold, and which rollout may be approved.

use aicr_crds::{
    RuntimeRolloutSpec,
    rollout::{Approval, SCHEMA_VERSION},
};
use jiff::Timestamp;

use super::{Case, Rollout};
use crate::verdict::{Denial, Rule};

const UNREADABLE: &str = "the rollout cannot be read by this operator; upgrade the operator, then approve";

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Some((old, added)) = case.consent() else { return Ok(()) };
    let Some(approval) = &added.approval else { return Ok(()) };
    let spec = spec(old)?;
    stage(old, &spec, case.now)?;
    content(approval, &spec, case.now)
}

fn spec(old: &Rollout<'_>) -> Result<RuntimeRolloutSpec, Denial> {
    let unreadable = || Rule::Approval.forbids(UNREADABLE);
    if old.spec.text("schemaVersion").is_none_or(|version| version.as_str() != SCHEMA_VERSION) {
        return Err(unreadable());
    }
    let value = old.spec.to_value().map_err(|_| unreadable())?;
    serde_json::from_value(value).map_err(|_| unreadable())
}

/// Read from spec and label: an approval may come while the rollout is held, and when it has no status.
fn stage(old: &Rollout<'_>, spec: &RuntimeRolloutSpec, now: Timestamp) -> Result<(), Denial> {
    if old.is_ended() {
        return Err(Rule::Approval.forbids("the rollout has ended; approve the next one, or ask for a retry"));
    }
    if spec.deadline.0 <= now {
        return Err(Rule::Approval.forbids("the rollout's deadline has passed, and it ends Expired; ask for a retry"));
    }
    if !spec.needs_approval() {
        return Err(Rule::Approval.forbids("no step of this rollout needs an approval; there is nothing to do"));
    }
    Ok(())
}

fn content(approval: &Approval, spec: &RuntimeRolloutSpec, now: Timestamp) -> Result<(), Denial> {
    if approval.reason.trim().is_empty() {
        return Err(Rule::Approval.forbids("an approval needs a reason; give one with --reason"));
    }
    if approval.expires_at.0 <= now {
        return Err(Rule::Approval.forbids("the approval's expiry is not in the future; give a longer --expires"));
    }
    if approval.expires_at.0 > spec.deadline.0 {
        return Err(Rule::Approval
            .forbids("the approval would expire after the rollout's deadline; give a shorter --expires, or none"));
    }
    let digest = spec.binding_digest().map_err(|_| Rule::Approval.forbids(UNREADABLE))?;
    if approval.binding_digest != digest {
        return Err(Rule::Approval.forbids(
            "the approval's binding digest is not that of this rollout: it was made for something else; run kubectl aicr describe, then approve what it shows",
        ));
    }
    Ok(())
}
