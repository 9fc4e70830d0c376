//! Rule 10: an unfinished rollout is deleted by nobody but the operator.

use super::{Act, Case};
use crate::verdict::{Denial, Rule};

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Act::Delete(old) = &case.act else { return Ok(()) };
    if old.is_ended() || case.is_operator() {
        return Ok(());
    }
    Err(Rule::Deletion.forbids(
        "the rollout has not ended, and deleting it would lose what it did; pause the ClusterRuntime, or revoke the approval, and let it end",
    ))
}
