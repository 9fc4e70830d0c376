//! Promises 3 and 4 where the runtime is looked at: what is done between, around and after rollouts.

use aicr_crds::{
    Digest, RuntimeRollout,
    application::{Application, Desired},
    keys::finalizer,
    plan::Plan,
    reason::Outcome,
    rollout::{Operation, RolloutKind},
    runtime::DeletionPolicy,
};
use aicr_decide::{
    rollout::{ObjectRef, written},
    runtime::Write,
    seen::{EngineState, World, age_key, outcome},
};

use super::{Broken, must, starts::is_ours};
use crate::{cluster::Cluster, family::Family};

/// What is done beside the creation of rollouts.
pub(super) fn between(world: &World, family: &Family, write: &Write) -> Option<Broken> {
    let broken = |how: String| Some(Broken { promise: 3, how });
    if let Some(what) = unreadable(world) {
        return broken(format!("something is written although {what}"));
    }
    let deleting = world.runtime.metadata.deletion_timestamp.as_ref().map(|_| world.runtime.spec.deletion_policy);
    match write {
        Write::Follow { on, .. } | Write::Repair { on, .. } if busy(world).is_some() => {
            broken(format!("{} is put right although {}", on.name, busy(world).unwrap_or_default()))
        }
        Write::Recreate(desired) if busy(world).is_some() => {
            broken(format!("{} is written again although {}", desired.name, busy(world).unwrap_or_default()))
        }
        Write::Repair { desired, on, .. } => repaired(world, desired, on),
        Write::Recreate(desired) => recreated(world, desired),
        Write::SetAutomated { on, enabled } => {
            let free = !world.engine.is_absent() && deleting != Some(DeletionPolicy::Orphan);
            must(free && *enabled != world.runtime.spec.suspend_engine, 3, || {
                format!("automated sync of {} is set to {enabled}", on.name)
            })
        }
        Write::Orphan { on } => {
            must(deleting == Some(DeletionPolicy::Orphan) && world.engine != EngineState::Missing, 3, || {
                format!("{} is orphaned", on.name)
            })
        }
        Write::Release { .. } => released(world, deleting),
        Write::AddFinalizer => {
            must(deleting.is_none() && !has_finalizer(world), 3, || "a finalizer is added".to_owned())
        }
        Write::RebuildPlan(stored) => rebuilt(world, &stored.plan),
        Write::StorePlan(stored) => adopted(world, family, &stored.plan),
        Write::WithdrawRemove { on, .. } => withdrawn(world, on),
        Write::DeletePlan(name) => kept(world, name),
        Write::DeleteRollout(on) => forgotten(world, on),
        Write::Follow { .. } | Write::CreateRollout(_) | Write::RunAssessment(_) | Write::StoreAssessment { .. } => {
            None
        }
    }
}

fn unreadable(world: &World) -> Option<&'static str> {
    let newer = world.rollouts.iter().any(|one| one.spec.schema_version != aicr_crds::rollout::SCHEMA_VERSION);
    (!world.unreadable.is_empty()).then_some("a plan is unreadable").or(newer.then_some("a rollout is a newer one's"))
}

/// What keeps Applications from being put right.
fn busy(world: &World) -> Option<&'static str> {
    [
        (world.runtime.spec.suspend_engine, "the engine is suspended"),
        (world.engine.is_absent(), "Argo CD is not there"),
        (world.runtime.metadata.deletion_timestamp.is_some(), "the runtime is being deleted"),
        (world.rollouts.iter().any(|rollout| outcome(rollout).is_none()), "a rollout is unfinished"),
    ]
    .into_iter()
    .find_map(|(stands, what)| stands.then_some(what))
}

fn has_finalizer(world: &World) -> bool {
    world.runtime.metadata.finalizers.iter().flatten().any(|name| name == finalizer::CLEANUP)
}

fn name(rollout: &RuntimeRollout) -> Option<&str> {
    rollout.metadata.name.as_deref()
}

/// Rollouts that did not succeed and are newer than the newest that did.
fn movers(world: &World) -> impl Iterator<Item = &RuntimeRollout> {
    let ended_well = |rollout: &&RuntimeRollout| outcome(rollout) == Some(Outcome::Succeeded);
    let success = world.rollouts.iter().map(AsRef::as_ref).filter(ended_well).map(age_key).max();
    world.rollouts.iter().map(AsRef::as_ref).filter(move |rollout| {
        outcome(rollout).is_some_and(|outcome| outcome != Outcome::Succeeded)
            && success.as_ref().is_none_or(|success| age_key(rollout) > *success)
    })
}

/// Whether a rollout that is gone wrote it for another plan, which may have been the active one.
pub(super) fn is_anothers(world: &World, application: &Application, plan: Digest) -> bool {
    let named = application.annotations.rollout.as_deref();
    let gone = world.rollouts.iter().all(|rollout| name(rollout) != named);
    gone && application.annotations.plan_digest.is_some_and(|noted| noted != plan)
}

/// Promise 4: to the plan that it is at, and no other.
fn repaired(world: &World, desired: &Desired, on: &ObjectRef) -> Option<Broken> {
    let application = world.applications.iter().find(|application| application.name() == on.name)?;
    let named = application.annotations.rollout.as_deref();
    let mover = movers(world).find(|rollout| name(rollout) == named);
    let plan = mover.map_or_else(|| world.active(), |mover| mover.spec.target_plan_digest);
    let elsewhere = movers(world).find(|rollout| {
        let places = |step: &aicr_crds::rollout::Step| step.release == on.name && step.operation != Operation::Remove;
        name(rollout) != named && written(rollout).contains_key(&on.name) && rollout.spec.steps.iter().any(places)
    });
    must(plan == Some(desired.ownership.plan_digest), 4, || format!("{} is forced to a plan it is not at", on.name))
        .or_else(|| {
            must(mover.is_some() || elsewhere.is_none(), 4, || format!("{} is forced back behind a rollout", on.name))
        })
        .or_else(|| {
            let moved = application.fingerprint != desired.fingerprint();
            let gone = moved && is_anothers(world, application, desired.ownership.plan_digest);
            must(!gone, 4, || format!("{} is forced back behind a rollout that is gone", on.name))
        })
}

/// Promise 4: never one that an unsuccessful rollout moved or removed.
fn recreated(world: &World, desired: &Desired) -> Option<Broken> {
    let release = &desired.name;
    let moved = movers(world).any(|rollout| written(rollout).contains_key(release));
    must(!moved, 4, || format!("{release} is written again, which an unsuccessful rollout had moved")).or_else(|| {
        must(world.active() == Some(desired.ownership.plan_digest), 4, || {
            format!("{release} is written again from another plan than the active one")
        })
    })
}

fn released(world: &World, deleting: Option<DeletionPolicy>) -> Option<Broken> {
    let mut ours = world.applications.iter().filter(|application| is_ours(application, world.uid()));
    let left = |application: &Application| {
        application.annotations.orphaned_from.as_deref() != Some(world.uid())
            && !world.facts.refusals.orphaning.contains_key(application.name())
    };
    let unfinished = world.rollouts.iter().any(|rollout| outcome(rollout).is_none());
    let fine = match deleting {
        None => false,
        Some(DeletionPolicy::Orphan) => !unfinished && !ours.any(|application| left(application)),
        Some(DeletionPolicy::Delete) => {
            let removes = world.rollouts.iter().filter(|rollout| rollout.spec.kind == RolloutKind::Remove);
            let last = removes.max_by_key(|rollout| age_key(rollout));
            !unfinished && ours.next().is_none() && last.and_then(|last| outcome(last)) == Some(Outcome::Succeeded)
        }
    };
    must(fine, 3, || format!("the runtime is let go before its policy has run ({deleting:?})"))
}

fn rebuilt(world: &World, plan: &Plan) -> Option<Broken> {
    let lost = world.active().is_some_and(|active| active == plan.digest() && !world.plans.contains_key(&active));
    must(lost, 3, || "a plan is written back that is not the lost one".to_owned())
}

/// Only what `spec.adoption` names, and only as the Applications are.
fn adopted(world: &World, family: &Family, plan: &Plan) -> Option<Broken> {
    let named = world.runtime.spec.adoption.as_ref().map(|adoption| adoption.runtime_uid.as_str());
    let print = |name: &str| {
        let counted = || plan.release(name)?.fingerprint(&world.settings.engine).ok();
        family.print(plan.digest(), name).or_else(counted)
    };
    let same = |application: &Application| print(application.name()) == Some(application.fingerprint);
    let mut theirs = world
        .applications
        .iter()
        .filter(|application| named.is_some() && application.annotations.runtime_uid.as_deref() == named);
    must(named.is_some(), 3, || "a plan is stored for an adoption that nobody asked for".to_owned()).or_else(|| {
        must(theirs.all(|application| same(application)), 3, || {
            "the plan to adopt is not what the Applications are".to_owned()
        })
    })
}

fn withdrawn(world: &World, on: &ObjectRef) -> Option<Broken> {
    let application = world.applications.iter().find(|application| application.name() == on.name);
    let marked = application.filter(|application| !application.is_deleting());
    let by = marked.and_then(|application| application.annotations.delete_rollout.as_deref());
    let ended = by
        .is_some_and(|by| world.rollouts.iter().any(|rollout| name(rollout) == Some(by) && outcome(rollout).is_some()));
    must(ended, 3, || format!("marks are taken off {}, whose rollout has not ended", on.name))
}

/// What runs, or may be gone back to, is never forgotten.
fn kept(world: &World, config_map: &str) -> Option<Broken> {
    let pinned: Option<Digest> = world.runtime.spec.selection.pinned_plan_digest.parse().ok();
    let mut needed: Vec<Digest> = [world.active(), world.resolution.candidate, pinned].into_iter().flatten().collect();
    for rollout in world.rollouts.iter().filter(|rollout| outcome(rollout).is_none()) {
        needed.extend([rollout.spec.from_plan_digest, rollout.spec.target_plan_digest].into_iter().flatten());
    }
    needed.extend(world.applications.iter().filter_map(|one| one.annotations.plan_digest));
    let gone = needed.into_iter().find(|digest| Plan::config_map_name(*digest) == config_map);
    must(gone.is_none(), 3, || format!("{config_map} is forgotten, which is needed"))
}

fn forgotten(world: &World, on: &ObjectRef) -> Option<Broken> {
    let rollout = world.rollouts.iter().find(|rollout| name(rollout) == Some(&on.name))?;
    let ended_well = |rollout: &&RuntimeRollout| outcome(rollout) == Some(Outcome::Succeeded);
    let success = world.rollouts.iter().map(AsRef::as_ref).filter(ended_well).map(age_key).max();
    let old = outcome(rollout).is_some() && success.is_some_and(|success| age_key(rollout) < success);
    must(old, 3, || format!("rollout {} is forgotten, which says what is there", on.name))
}

/// Promise 4, where a repair meets the truth: nobody younger wrote the Application last.
pub(crate) fn puts_right(cluster: &Cluster, write: &Write) -> Option<Broken> {
    let (release, ownership) = match write {
        Write::Repair { desired, .. } => (desired.name.as_str(), &desired.ownership),
        Write::Follow { on, ownership } => (on.name.as_str(), ownership.as_ref()),
        Write::Recreate(_)
        | Write::Orphan { .. }
        | Write::SetAutomated { .. }
        | Write::WithdrawRemove { .. }
        | Write::CreateRollout(_)
        | Write::RunAssessment(_)
        | Write::StoreAssessment { .. }
        | Write::AddFinalizer
        | Write::Release { .. }
        | Write::RebuildPlan(_)
        | Write::StorePlan(_)
        | Write::DeletePlan(_)
        | Write::DeleteRollout(_) => return None,
    };
    let (application, _) = cluster.truth.application(release)?;
    let writer = application.annotations.rollout.as_deref().and_then(|name| cluster.truth.id_of(name))?;
    let named = cluster.truth.id_of(&ownership.rollout);
    must(named.is_none_or(|named| writer <= named), 4, || format!("{release} is put right behind its last rollout"))
}
