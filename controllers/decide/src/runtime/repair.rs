//! Between rollouts: owned Applications edited by hand are forced back, deleted ones are written again, annotations follow.

use std::collections::BTreeSet;

use aicr_crds::{
    application::{Application, AutomatedSync, Desired},
    keys::{annotation, label},
    reason::Outcome,
};

use super::{
    place::{Place, Placed, Places, desired, moved_missing, names, owned, removed_by},
    suspension,
    verdict::{Verdict, Why, Write},
};
use crate::{
    assess::unsuccessful,
    rollout::ObjectRef,
    seam,
    seen::{World, outcome},
};

/// The next repair, else the next annotations that follow. Also while paused, or while resolution or a failed rollout stalls;
/// not while a rollout is unfinished, the engine suspended or absent, or plans unreadable, which the caller has asked already.
pub(super) fn next(world: &World) -> Option<Verdict> {
    if world.runtime.spec.suspend_engine || world.engine.is_absent() {
        return None;
    }
    let places = Places::of(world);
    let there = owned(world).filter(|application| !application.is_deleting());
    let found: Vec<Placed<'_>> = there.filter_map(|application| Placed::find(world, &places, application)).collect();
    let repair = || found.iter().find_map(|one| forced_back(world, &places, one)).or_else(|| recreated(world));
    let repair = if is_retried(world) { None } else { repair() };
    let write = repair.or_else(|| found.iter().find_map(|one| follow(world, one)))?;
    Some(Verdict::Do(write, Why::Upkeep))
}

/// A retry is made from the live state: nothing is forced back between the rollout that it ends and the one that it makes.
fn is_retried(world: &World) -> bool {
    world.newest().and_then(outcome).is_some_and(|outcome| outcome != Outcome::Succeeded) && world.new_token().is_some()
}

fn forced_back(world: &World, places: &Places<'_>, found: &Placed<'_>) -> Option<Write> {
    let application = found.application;
    if suspension::refuses(world, application) || !is_edited(world, places, found) {
        return None;
    }
    Some(Write::Repair {
        on: ObjectRef::of(application),
        managers: application.managers.clone(),
        desired: Box::new(found.desired(world)?),
    })
}

/// Spec or ownership annotations are not as written; a `plan-digest` that has yet to follow is no edit, nor is the name of
/// a rollout that is gone: retention takes those that wrote what has not changed since.
fn is_edited(world: &World, places: &Places<'_>, found: &Placed<'_>) -> bool {
    let application = found.application;
    let spec = application.fingerprint != found.print
        || application.foreign_source
        || application.project != world.settings.engine.project
        || application.policy != Desired::policy()
        || application.automated != AutomatedSync::Enabled;
    let unlabelled = application.label(label::MANAGED_BY) != Some(label::MANAGED_BY_VALUE);
    // What follows a success is written by `follow`.
    let following = [annotation::PLAN_DIGEST, annotation::ORDER, annotation::CHART_VERSION, annotation::DEPENDS_ON];
    let gone = || application.annotations.rollout.as_deref().is_some_and(|named| !places.knows(named));
    let follows = |key: &str| following.contains(&key) || (key == annotation::ROLLOUT && gone());
    spec || unlabelled || found.differing.iter().any(|key| !follows(key))
}

/// Unchanged releases' ownership annotations follow the plan that they are at, before the next inventory is taken.
fn follow(world: &World, found: &Placed<'_>) -> Option<Write> {
    if found.differing.is_empty() || found.print != found.application.fingerprint {
        return None;
    }
    let on = ObjectRef::of(found.application);
    Some(Write::Follow { on, ownership: Box::new(found.desired(world)?.ownership) })
}

/// Releases of the active plan without an Application, those aside that an unsuccessful rollout moved or removed.
fn recreated(world: &World) -> Option<Write> {
    let active = world.active()?;
    let success = world.newest_success()?.metadata.name.as_deref()?;
    let (_, stored) = world.plans.get(&active)?;
    let there = names(world);
    let releases = stored.plan.releases().map(|release| release.content.id.as_str());
    let mut missing = releases.filter(|id| !there.contains(id)).peekable();
    missing.peek()?;
    let moved = moved_missing(world);
    let removed: BTreeSet<String> = unsuccessful(world).flat_map(removed_by).collect();
    let anything = seam::is_broken("repair: moved release");
    let missing = missing.find(|id| anything || !moved.contains(*id) && !removed.contains(*id))?;
    desired(world, active, missing, success).map(|desired| Write::Recreate(Box::new(desired)))
}

/// Applications whose annotations contradict the rollouts, so that nothing is forced on them.
pub(crate) fn contradictions(world: &World) -> Vec<String> {
    let places = Places::of(world);
    let said = |application: &Application| match places.place(application) {
        Place::Contradiction(message) => Some(message),
        Place::At { .. } | Place::Nowhere => None,
    };
    owned(world).filter_map(said).collect()
}
