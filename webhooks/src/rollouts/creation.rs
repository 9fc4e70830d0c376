//! Rule 1: only the operator creates, without anybody's consent, and not beside another unfinished rollout.

use serde::Deserialize;

use super::{Act, CONSENT, Case};
use crate::{
    review::Text,
    verdict::{Denial, Rule},
};

#[derive(Deserialize)]
struct Runtime<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
}

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Act::Create(new) = &case.act else { return Ok(()) };
    if !case.is_operator() {
        return Err(Rule::Creation.forbids(
            "rollouts are created by the operator alone; change the ClusterRuntime, or ask for a retry, and it creates one",
        ));
    }
    let given = |field: &&str| new.spec.get(field).is_some_and(|value| value.get() != "[]");
    if CONSENT.iter().any(given) {
        return Err(Rule::Creation
            .forbids("a rollout is created without approval, revocation and acknowledgements; leave them out"));
    }
    let Some(runtime) = new.spec.read::<Runtime<'_>>("runtime") else {
        return Err(Rule::Creation.forbids("a rollout names the runtime that it changes; set spec.runtime"));
    };
    if !case.known.is_delivered() {
        return Err(Rule::Creation.conflicts("this replica has not read the rollouts yet; try again"));
    }
    if case.known.has_other_unfinished(runtime.uid.as_str(), case.review.name()) {
        return Err(Rule::Creation.conflicts("another rollout of this runtime has not ended; wait for its end"));
    }
    Ok(())
}
