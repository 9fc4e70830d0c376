//! Rule 8: an acknowledgement is for a release that waits for it.

use aicr_crds::rollout::{Step, Written};

use super::{Case, Rollout};
use crate::{
    review::Text,
    verdict::{Denial, Rule},
};

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    let Some((old, added)) = case.consent() else { return Ok(()) };
    if added.acknowledgements.is_empty() {
        return Ok(());
    }
    if old.is_ended() {
        return Err(
            Rule::Acknowledgement.forbids("the rollout has ended; acknowledge in the rollout that takes the debt over")
        );
    }
    let Some(steps) = old.spec.read::<Vec<Step>>("steps") else {
        return Err(Rule::Acknowledgement.forbids("the rollout's steps cannot be read; upgrade the operator"));
    };
    let written = written(old);
    for given in &added.acknowledgements {
        if given.reason.trim().is_empty() {
            return Err(Rule::Acknowledgement.forbids("an acknowledgement needs a reason; give one with --reason"));
        }
        if !steps.iter().any(|step| step.release == given.release && step.acknowledge) {
            return Err(Rule::Acknowledgement.forbids(
                "no step of this rollout asks for that acknowledgement; kubectl aicr describe lists those that do",
            ));
        }
        if !written.get(&given.release).is_some_and(|entry| entry.ready) {
            return Err(Rule::Acknowledgement.forbids(
                "that release is not applied yet; do its recorded steps once the rollout waits for them, then acknowledge",
            ));
        }
    }
    Ok(())
}

/// What the rollout did, as the operator keeps it outside status.
fn written(old: &Rollout<'_>) -> Written {
    let text = old.metadata.annotations.as_ref().and_then(|annotations| annotations.written.as_ref());
    let text = text.and_then(|text| serde_json::from_str::<Text<'_>>(text.0.get()).ok());
    text.and_then(|text| serde_json::from_str(text.as_str()).ok()).unwrap_or_default()
}
