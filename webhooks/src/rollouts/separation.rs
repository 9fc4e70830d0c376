//! Rule 5: nobody approves what they asked for.

use aicr_crds::rollout::Author;

use super::{Case, Rollout};
use crate::{
    policy::Separation,
    verdict::{Denial, Rule, Warning},
};

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Some(old) = approved(case) else { return Ok(()) };
    match (is_author(case, old)?, case.policy.separation) {
        (true, Separation::FourEyes) => Err(Rule::Separation.forbids(
            "you are among those who changed the ClusterRuntime since a rollout last succeeded (spec.requestedBy); another approver must approve",
        )),
        (true, Separation::SelfApproval) | (false, _) => Ok(()),
    }
}

/// What is said where the chart has switched the rule off.
pub(super) fn warning(case: &Case<'_, '_>) -> Option<Warning> {
    let old = approved(case)?;
    is_author(case, old).is_ok_and(|is| is).then_some(Warning::SelfApproval)
}

fn approved<'c>(case: &'c Case<'_, '_>) -> Option<&'c Rollout<'c>> {
    let (old, added) = case.consent()?;
    added.approval.is_some().then_some(old)
}

fn is_author(case: &Case<'_, '_>, old: &Rollout<'_>) -> Result<bool, Denial> {
    let Some(authors) = old.spec.read::<Vec<Author>>("requestedBy") else {
        return Err(
            Rule::Separation.forbids("spec.requestedBy cannot be read; ask for a retry, and approve that rollout")
        );
    };
    Ok(authors.iter().any(|author| author.user == case.review.user.name()))
}
