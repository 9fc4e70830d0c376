//! Rule 3: consent carries the requester and the time, and is never the operator's.

use super::Case;
use crate::{
    person::{is_about_now, recorded},
    verdict::{Denial, Rule},
};

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Some((_, added)) = case.consent() else { return Ok(()) };
    if case.is_operator() {
        return Err(Rule::Stamp.forbids("the operator neither approves nor revokes nor acknowledges; ask an approver"));
    }
    let requester = recorded(&case.review.user);
    if added.stamps().any(|(person, _)| *person != requester) {
        return Err(Rule::Stamp.forbids(
            "who consents is stamped by admission and must be the requester; leave the name out and try again",
        ));
    }
    if added.stamps().any(|(_, at)| !is_about_now(at.0, case.now)) {
        return Err(Rule::Stamp.forbids(
            "the time of consent is more than 15 minutes from now; leave it out and try again, or set the nodes' clocks",
        ));
    }
    Ok(())
}
