//! Cascade finalizer, delete mark and deletion: only for an approved Remove step of a rollout that has not ended.

use aicr_crds::keys::{annotation, finalizer};

use super::{Act, App, Case};
use crate::{
    known::RolloutState,
    review::Text,
    verdict::{Denial, Rule},
};

pub(super) fn judge(case: &Case<'_, '_>) -> Result<(), Denial> {
    match case.act {
        Act::Create(new) => create(new),
        Act::Update { old, new } => update(case, old, new),
        Act::Delete(old) => delete(case, old),
    }
}

fn create(new: &App<'_>) -> Result<(), Denial> {
    if has_cascade(new) || mark(new).is_some() {
        return Err(Rule::Removal.forbids("a new Application is not marked for removal"));
    }
    Ok(())
}

/// Judged by what the write adds: marks that stay, or go together, keep nobody from suspending or orphaning.
fn update(case: &Case<'_, '_>, old: &App<'_>, new: &App<'_>) -> Result<(), Denial> {
    let adds_cascade = cascades(new).any(|name| !cascades(old).any(|held| held == name));
    let adds_mark = mark(new).is_some() && mark(new) != mark(old);
    if adds_cascade || adds_mark {
        // In deletion no finalizer can be added: a retry only rewrites the mark.
        if !has_cascade(new) && !new.is_deleting() {
            return Err(Rule::Removal.forbids("delete-rollout is set together with Argo CD's resources finalizer"));
        }
        return named(case, new);
    }
    let loses_mark = mark(old).is_some() && mark(new).is_none();
    if loses_mark && has_cascade(new) && !new.is_deleting() {
        return Err(Rule::Removal.forbids("delete-rollout and Argo CD's resources finalizer are taken off together"));
    }
    Ok(())
}

fn delete(case: &Case<'_, '_>, old: &App<'_>) -> Result<(), Denial> {
    named(case, old)?;
    if !has_cascade(old) && !old.is_deleting() {
        // Argo CD writes the whole list from its cache and may have erased it a moment ago.
        return Err(Rule::Removal.conflicts(
            "Argo CD's resources finalizer is not there, so a deletion would leave the release running; mark it again",
        ));
    }
    Ok(())
}

/// The rollout that `delete-rollout` names must be approved, unended, and remove this Application.
fn named(case: &Case<'_, '_>, application: &App<'_>) -> Result<(), Denial> {
    let Some(name) = mark(application) else {
        return Err(Rule::Removal.forbids(
            "Argo CD's resources finalizer, and a deletion, need the annotation delete-rollout that names an approved rollout",
        ));
    };
    let Some(rollout) = case.known.rollout(&name) else {
        return Err(Rule::Removal.conflicts("delete-rollout names no rollout that this replica knows; try again"));
    };
    if !rollout.removes.iter().any(|release| release == case.name) {
        return Err(
            Rule::Removal.forbids("the rollout that delete-rollout names has no Remove step for this Application")
        );
    }
    match rollout.state {
        RolloutState::Approved(until) if until > case.now => Ok(()),
        RolloutState::Approved(_) => {
            Err(Rule::Removal.forbids("the approval of the rollout that delete-rollout names has expired"))
        }
        RolloutState::Unapproved => Err(Rule::Removal.conflicts(
            "the rollout that delete-rollout names is not approved, as far as this replica knows; try again",
        )),
        RolloutState::Revoked => Err(Rule::Removal.forbids("the rollout that delete-rollout names is revoked")),
        RolloutState::Ended => Err(Rule::Removal.forbids("the rollout that delete-rollout names has ended")),
    }
}

fn mark<'a>(application: &App<'a>) -> Option<std::borrow::Cow<'a, str>> {
    application.annotation(annotation::DELETE_ROLLOUT)
}

fn has_cascade(application: &App<'_>) -> bool {
    cascades(application).next().is_some()
}

/// Only Argo CD's three names cascade; its hook finalizers come and go at any time.
fn cascades<'r>(application: &'r App<'_>) -> impl Iterator<Item = &'r str> {
    let all = application.metadata.finalizers.iter().flatten().map(Text::as_str);
    all.filter(|name| finalizer::ARGO_CASCADE.contains(name))
}
