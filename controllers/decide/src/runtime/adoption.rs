//! Applications of an earlier runtime: never taken over silently, adopted only when they rebuild into a plan.

use std::collections::BTreeMap;

use aicr_crds::{application::Application, keys::label, reason::Outcome, rollout::RolloutKind};
use jiff::Timestamp;

use super::{
    create,
    rebuild::{rebuild, stored},
    verdict::{Verdict, Why, Write},
};
use crate::{
    message::listed,
    seen::{World, outcome},
};

/// How many Applications a message names.
const NAMED: usize = 5;

/// What is done about another runtime's Applications; `None` where there are none.
pub(super) fn next(world: &World, now: Timestamp) -> Option<Verdict> {
    let named = world.runtime.spec.adoption.as_ref().map(|adoption| adoption.runtime_uid.as_str());
    if let Some(message) = orphaned(world, named) {
        return Some(Verdict::Wait(Why::OrphanedObjects(message), None));
    }
    let all = adoptable(world, named?);
    if all.is_empty() {
        return None;
    }
    Some(adopt(world, &all, now))
}

/// Applications of runtimes that `spec.adoption` does not name.
fn orphaned(world: &World, named: Option<&str>) -> Option<String> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for application in world.applications.iter().filter(|application| is_ours_by_label(application)) {
        let uid = application.annotations.runtime_uid.as_deref().unwrap_or_default();
        if !uid.is_empty() && uid != world.uid() && Some(uid) != named {
            found.entry(uid).or_default().push(application.name());
        }
    }
    let said: Vec<String> =
        found.iter().map(|(uid, names)| format!("{} (runtime {uid})", listed(names, NAMED))).collect();
    (!said.is_empty()).then(|| {
        format!(
            "Applications of another runtime exist: {}; adopt them by naming that runtime in spec.adoption.runtimeUID, or \
             delete them, which leaves their resources running",
            listed(&said, NAMED)
        )
    })
}

fn is_ours_by_label(application: &Application) -> bool {
    application.label(label::MANAGED_BY) == Some(label::MANAGED_BY_VALUE)
}

/// The named runtime's Applications; with them those that an adoption which did not succeed has taken over already.
fn adoptable<'a>(world: &'a World, named: &str) -> Vec<&'a Application> {
    let uid =
        |application: &&Application| application.annotations.runtime_uid.as_deref().unwrap_or_default().to_owned();
    let half_way = is_half_way(world);
    let wanted = |application: &&Application| {
        let owner = uid(application);
        owner == named || (half_way && owner == world.uid())
    };
    let all: Vec<&Application> = world.applications.iter().map(AsRef::as_ref).filter(wanted).collect();
    let any_left = all.iter().any(|application| uid(application) == named);
    if any_left || half_way { all } else { Vec::new() }
}

/// The newest rollout is an adoption that did not succeed: it is retried over all of them.
fn is_half_way(world: &World) -> bool {
    let newest = world.newest().filter(|newest| newest.spec.kind == RolloutKind::Adopt);
    newest.and_then(outcome).is_some_and(|outcome| outcome != Outcome::Succeeded)
}

fn adopt(world: &World, all: &[&Application], now: Timestamp) -> Verdict {
    let rebuilt = match rebuild(world, all) {
        Ok(rebuilt) => rebuilt,
        Err(why) => {
            let message = format!("{why}; undo the edit: a stack that cannot be verified is not adopted");
            return Verdict::Wait(Why::AdoptionBlocked(message), None);
        }
    };
    if let Some(verdict) = super::next::ended_badly(world, RolloutKind::Adopt, rebuilt.plan.digest()) {
        return verdict;
    }
    if let Some(hold) = super::next::hold(world) {
        return Verdict::Wait(Why::Held(hold), None);
    }
    match world.plans.get(&rebuilt.plan.digest()) {
        Some((_, there)) if there.context.runtime_uid == world.uid() => {
            create::verdict(world, create::adoption(world, &rebuilt, all, now), now)
        }
        // Absent, or the earlier runtime's of the same digest, which ours replaces.
        Some(_) | None => {
            let why = Why::Creating(format!("adopt-{}", rebuilt.plan.digest().short()));
            Verdict::Do(Write::StorePlan(Box::new(stored(world, rebuilt.plan, now))), why)
        }
    }
}
