//! Rule 4: only those whom the chart lists consent, whatever RBAC says.

use super::Case;
use crate::verdict::{Denial, Rule};

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    if case.consent().is_none() || case.policy.is_approver(&case.review.user) {
        return Ok(());
    }
    Err(Rule::Approvers.forbids(
        "you are not an approver; only the users and groups in the chart's approvers may approve, revoke and acknowledge, cluster-admin included: ask one of them",
    ))
}
