//! Whose an Application is: the label and the annotations that the operator's own carry, and keep.

use aicr_crds::{Digest, keys::annotation};

use super::{Act, App, Case};
use crate::verdict::{Denial, Rule};

/// What every Application of the operator is annotated with. A key that a later release adds must not be asked for until
/// the release after it: in a rolling upgrade the leader may still be the one before.
pub(super) const KEYS: [&str; 11] = [
    annotation::RUNTIME_UID,
    annotation::PLAN_DIGEST,
    annotation::ROLLOUT,
    annotation::RELEASE,
    annotation::COMPONENT,
    annotation::DEPENDS_ON,
    annotation::ORDER,
    annotation::CHART_VERSION,
    annotation::CHART_CONTENT,
    annotation::READINESS_GATE,
    annotation::FINGERPRINT,
];

const FOREIGN: &str = "the Application is not the operator's (neither its label nor its annotations), and is never taken over; rename it, or take the component out of the plan";
const INCOMPLETE: &str = "an Application of the operator carries its label and all ownership annotations; keep them, and put back what is missing";

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    match case.act {
        Act::Create(new) => complete(case, new),
        Act::Update { old, .. } | Act::Delete(old) if !old.is_ours() => Err(Rule::Ownership.forbids(FOREIGN)),
        Act::Update { old, new } => kept(case, old, new),
        Act::Delete(_) => Ok(()),
    }
}

fn complete(case: &Case<'_, '_>, new: &App<'_>) -> Result<(), Denial> {
    let has_all = KEYS.iter().all(|key| new.annotation(key).is_some());
    let names_itself = new.annotation(annotation::RELEASE).is_some_and(|release| release == case.name);
    let digest = new.annotation(annotation::PLAN_DIGEST).is_some_and(|digest| digest.parse::<Digest>().is_ok());
    if new.has_label() && has_all && names_itself && digest {
        return Ok(());
    }
    Err(Rule::Ownership.forbids(INCOMPLETE))
}

/// A narrow patch loses none of them; what somebody else took off need not be put back by it.
fn kept(case: &Case<'_, '_>, old: &App<'_>, new: &App<'_>) -> Result<(), Denial> {
    let loses_label = old.has_label() && !new.has_label();
    let loses_key = KEYS.iter().any(|key| old.annotation(key).is_some() && new.annotation(key).is_none());
    let renames = new.annotation(annotation::RELEASE) != old.annotation(annotation::RELEASE)
        && new.annotation(annotation::RELEASE).is_none_or(|release| release != case.name);
    if loses_label || loses_key || renames { Err(Rule::Ownership.forbids(INCOMPLETE)) } else { Ok(()) }
}
