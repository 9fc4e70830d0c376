//! Cascade finalizer, delete mark and deletion: only for an approved Remove step of a rollout that has not ended.
//!
//! Whether the finalizer is there when the delete comes is for who decides the step, and for the version that the delete
//! names: admission asks for the mark.

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
        Act::Delete(old) => named(case, old),
    }
}

fn create(new: &App<'_>) -> Result<(), Denial> {
    if has_cascade(new) || mark(new).is_some() {
        return Err(Rule::Removal.forbids("a new Application is not marked for removal; create it without the marks"));
    }
    Ok(())
}

/// Judged by what the write adds: both marks that stay, or go together, keep nobody from suspending or orphaning. A
/// finalizer that stands there without the mark was set by hand: nothing is written until a person takes it off, as the
/// page on troubleshooting says.
fn update(case: &Case<'_, '_>, old: &App<'_>, new: &App<'_>) -> Result<(), Denial> {
    let adds_cascade = cascades(new).any(|name| !cascades(old).any(|held| held == name));
    let adds_mark = mark(new).is_some() && mark(new) != mark(old);
    if adds_cascade || adds_mark {
        // In deletion no finalizer can be added: a retry only rewrites the mark.
        if !has_cascade(new) && !new.is_deleting() {
            return Err(
                Rule::Removal.forbids("delete-rollout is set together with Argo CD's resources finalizer; set both")
            );
        }
        return named(case, new);
    }
    if mark(new).is_some() || !has_cascade(new) || new.is_deleting() {
        return Ok(());
    }
    Err(Rule::Removal.forbids(if mark(old).is_some() {
        "delete-rollout and Argo CD's resources finalizer are taken off together"
    } else {
        "Argo CD's resources finalizer is there without delete-rollout, and the operator writes nothing to such an Application; take the finalizer off"
    }))
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
            Rule::Removal.forbids("the rollout that delete-rollout names has no Remove step for this Application; name the one that removes it")
        );
    }
    match rollout.state {
        RolloutState::Approved(until) if until > case.now => Ok(()),
        RolloutState::Approved(_) => Err(Rule::Removal
            .forbids("the approval of the rollout that delete-rollout names has expired; take the marks off")),
        RolloutState::Unapproved => Err(Rule::Removal.conflicts(
            "the rollout that delete-rollout names is not approved, as far as this replica knows; try again",
        )),
        RolloutState::Revoked => {
            Err(Rule::Removal.forbids("the rollout that delete-rollout names is revoked; take the marks off"))
        }
        RolloutState::Ended => {
            Err(Rule::Removal.forbids("the rollout that delete-rollout names has ended; take the marks off"))
        }
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
