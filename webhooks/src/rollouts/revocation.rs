//! Rule 7: what a revocation must hold, and which rollout may be revoked.

use super::{APPROVAL, Case};
use crate::verdict::{Denial, Rule};

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Some((old, added)) = case.consent() else { return Ok(()) };
    let Some(revocation) = &added.revocation else { return Ok(()) };
    if old.is_ended() {
        return Err(Rule::Revocation.forbids("the rollout has ended; there is nothing left to revoke"));
    }
    if old.is_validating() {
        return Err(Rule::Revocation.forbids(
            "every step is applied and validation runs; there is nothing left to revoke, wait for its result",
        ));
    }
    if old.spec.get(APPROVAL).is_none() {
        return Err(
            Rule::Revocation.forbids("there is no approval to revoke; to hold the rollout, pause the ClusterRuntime")
        );
    }
    if revocation.reason.trim().is_empty() {
        return Err(Rule::Revocation.forbids("a revocation needs a reason; give one with --reason"));
    }
    Ok(())
}
