//! Between rollouts: owned Applications edited by hand are forced back, deleted ones are written again.

use std::collections::BTreeSet;

use aicr_crds::{
    Digest,
    application::{Application, AutomatedSync, Desired},
    keys::{annotation, label},
};

use super::{
    place::{Place, Places, desired, differing, moved_missing, names, owned, removed_by},
    verdict::{Verdict, Why, Write},
};
use crate::{assess::unsuccessful, rollout::ObjectRef, seam, seen::World};

/// The next repair. Also while paused, or while resolution or a failed rollout stalls; not while a rollout is unfinished,
/// the engine suspended or absent, or plans unreadable, which the caller has asked already.
pub(super) fn next(world: &World) -> Option<Verdict> {
    if world.runtime.spec.suspend_engine || world.engine.is_absent() {
        return None;
    }
    let places = Places::of(world);
    let edited = owned(world).find_map(|application| forced_back(world, &places, application));
    edited.or_else(|| recreated(world)).map(|write| Verdict::Do(write, Why::Upkeep))
}

fn forced_back(world: &World, places: &Places, application: &Application) -> Option<Write> {
    let refused = world.facts.refusals.automation.contains_key(application.name());
    if application.is_deleting() || refused {
        return None;
    }
    let Place::At { plan, rollout } = places.place(application) else { return None };
    let edited = is_edited(world, places, application, (plan, &rollout))?;
    let wanted = edited.then(|| desired(world, plan, application.name(), &rollout))??;
    Some(Write::Repair {
        on: ObjectRef::of(application),
        managers: application.managers.clone(),
        desired: Box::new(wanted),
    })
}

/// Spec or ownership annotations are not as written; a `plan-digest` that has yet to follow is no edit, nor is the name of
/// a rollout that is gone: retention takes those that wrote what has not changed since. `None` where the plan cannot be
/// read or lacks the release.
fn is_edited(
    world: &World,
    places: &Places,
    application: &Application,
    (plan, rollout): (Digest, &str),
) -> Option<bool> {
    let (print, differing) = differing(world, application, plan, rollout)?;
    let spec = application.fingerprint != print
        || application.foreign_source
        || application.project != world.settings.engine.project
        || application.policy != Desired::policy()
        || application.automated != AutomatedSync::Enabled;
    let unlabelled = application.label(label::MANAGED_BY) != Some(label::MANAGED_BY_VALUE);
    // What follows a success is written by `follow`.
    let following = [annotation::PLAN_DIGEST, annotation::ORDER, annotation::CHART_VERSION, annotation::DEPENDS_ON];
    let gone = application.annotations.rollout.as_deref().is_some_and(|named| !places.knows(named));
    let follows = |key: &str| following.contains(&key) || (gone && key == annotation::ROLLOUT);
    Some(spec || unlabelled || differing.iter().any(|key| !follows(key)))
}

/// Releases of the active plan without an Application, those aside that an unsuccessful rollout moved or removed.
fn recreated(world: &World) -> Option<Write> {
    let active = world.active()?;
    let success = world.newest_success()?.metadata.name.clone()?;
    let moved = moved_missing(world);
    let removed: BTreeSet<String> = unsuccessful(world).flat_map(removed_by).collect();
    let there = names(world);
    let (_, stored) = world.plans.get(&active)?;
    let anything = seam::is_broken("repair: moved release");
    let missing = stored
        .plan
        .releases()
        .map(|release| &release.content.id)
        .find(|id| !there.contains(id.as_str()) && (anything || !moved.contains(*id) && !removed.contains(*id)))?;
    desired(world, active, missing, &success).map(|desired| Write::Recreate(Box::new(desired)))
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
