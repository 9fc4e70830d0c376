//! Rule 2: a spec gains approval, revocation and acknowledgements, each once, and changes in nothing else.

use super::{ACKNOWLEDGEMENTS, APPROVAL, Act, CONSENT, Case, REVOCATION, consent};
use crate::{
    fields::{Fields, same},
    verdict::{Denial, Rule},
};

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Act::Update { old, new } = &case.act else { return Ok(()) };
    if !new.spec.same_besides(&old.spec, &CONSENT) {
        return Err(Rule::Immutability
            .forbids("what a rollout does is fixed at its creation; change the ClusterRuntime, or ask for a retry"));
    }
    for (field, says) in [
        (APPROVAL, "an approval can be neither changed nor extended nor removed; revoke it and ask for a new rollout"),
        (REVOCATION, "a revocation can be neither changed nor removed; ask for a retry"),
    ] {
        let held = old.spec.get(field);
        if held.is_some() && !same(held, new.spec.get(field)) {
            return Err(Rule::Immutability.forbids(says));
        }
    }
    acknowledgements(&old.spec, &new.spec)
}

fn acknowledgements(old: &Fields<'_>, new: &Fields<'_>) -> Result<(), Denial> {
    if same(old.get(ACKNOWLEDGEMENTS), new.get(ACKNOWLEDGEMENTS)) {
        return Ok(());
    }
    let (held, listed) = (consent::list(old)?, consent::list(new)?);
    if !held.iter().all(|held| listed.contains(held)) {
        return Err(Rule::Immutability
            .forbids("an acknowledgement can be neither changed nor removed; send the list with yours added"));
    }
    let twice = |(place, one): (usize, &aicr_crds::rollout::Acknowledgement)| {
        listed[..place].iter().any(|other| other.release == one.release)
    };
    if listed.iter().enumerate().any(twice) {
        return Err(Rule::Immutability.forbids("a release is acknowledged once; leave the second entry out"));
    }
    Ok(())
}
