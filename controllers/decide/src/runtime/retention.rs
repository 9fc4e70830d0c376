//! Which plans and rollouts may go: what runs, what may be gone back to and what says what moved stays.

use std::collections::BTreeSet;

use aicr_crds::{Digest, plan::Plan};
use jiff::Timestamp;

use super::verdict::{Verdict, Why, Write};
use crate::{
    rollout::ObjectRef,
    seam,
    seen::{ResolutionState, World, age_key, outcome},
};

/// How many other plans stay, the most recent ones.
const OTHERS: usize = 5;
/// How many ended rollouts stay, the newest ones.
const ENDED: usize = 20;

/// The next object to go; only while nothing else is due.
pub(super) fn next(world: &World) -> Option<Verdict> {
    // What is not known yet, a candidate or a live Application, could not be kept.
    let unknown = world.resolution.state != ResolutionState::Resolved || world.engine.is_absent();
    if unknown {
        return None;
    }
    let plan = surplus_plans(world).into_iter().next().map(|digest| Write::DeletePlan(Plan::config_map_name(digest)));
    let write = plan.or_else(|| surplus_rollouts(world).into_iter().next().map(Write::DeleteRollout))?;
    Some(Verdict::Do(write, Why::UpToDate))
}

/// Active, candidate, pinned, and whatever an unfinished rollout, the newest success or a live Application refers to.
pub(crate) fn kept_plans(world: &World) -> BTreeSet<Digest> {
    if seam::is_broken("retention: kept") {
        return BTreeSet::new();
    }
    let pinned = world.runtime.spec.selection.pinned_plan_digest.parse().ok();
    let known = [world.active(), world.target(), world.resolution.candidate, pinned];
    let unfinished = world.rollouts.iter().map(AsRef::as_ref).filter(|rollout| outcome(rollout).is_none());
    let referred = unfinished
        .chain(world.newest_success())
        .flat_map(|rollout| [rollout.spec.from_plan_digest, rollout.spec.target_plan_digest]);
    let live = world.applications.iter().map(|application| application.annotations.plan_digest);
    known.into_iter().chain(referred).chain(live).flatten().collect()
}

/// Plans beyond the most recent others, oldest first.
pub(crate) fn surplus_plans(world: &World) -> Vec<Digest> {
    let kept = kept_plans(world);
    let mut others: Vec<(Timestamp, Digest)> = world
        .plans
        .iter()
        .map(|(digest, (at, _))| (*at, *digest))
        .filter(|(_, digest)| !kept.contains(digest))
        .collect();
    others.sort();
    let surplus = others.len().saturating_sub(seam::kept(OTHERS));
    others.into_iter().take(surplus).map(|(_, digest)| digest).collect()
}

/// Ended rollouts beyond the newest, oldest first; never the newest success nor one after it.
fn surplus_rollouts(world: &World) -> Vec<ObjectRef> {
    let success = world.newest_success().map(age_key);
    let mut ended: Vec<_> = world.rollouts.iter().filter(|rollout| outcome(rollout).is_some()).collect();
    ended.sort_by(|one, other| age_key(one).cmp(&age_key(other)));
    let surplus = ended.len().saturating_sub(seam::kept(ENDED));
    let old = ended.into_iter().take(surplus);
    old.filter(|rollout| success.as_ref().is_some_and(|success| age_key(rollout) < *success))
        .map(|rollout| ObjectRef {
            name: rollout.metadata.name.clone().unwrap_or_default(),
            uid: rollout.metadata.uid.clone().unwrap_or_default(),
            resource_version: rollout.metadata.resource_version.clone().unwrap_or_default(),
        })
        .collect()
}
