//! What happens next with the runtime: the first thing that is due, or that keeps the rest back.

use aicr_crds::{
    Digest,
    keys::annotation,
    reason::{Outcome, Reason},
    rollout::{RolloutKind, SCHEMA_VERSION},
    runtime::DeletionPolicy,
};
use jiff::Timestamp;

use super::{
    adoption, create, deletion,
    prepare::prepare,
    rebuild, repair, retention, suspension,
    verdict::{Verdict, Why, Write},
};
use crate::{
    assess::{touched_by, unsuccessful},
    rollout::{self, Hold, ObjectRef, Position, is_owned},
    seam,
    seen::{World, outcome},
};

/// What happens next with the runtime. Exactly one thing.
pub fn next(world: &World, now: Timestamp) -> Verdict {
    match first(world, now) {
        // What was refused is tried again by itself.
        Verdict::Wait(why, at) => Verdict::Wait(why, at.into_iter().chain(suspension::again(world)).min()),
        verdict @ Verdict::Do(..) => verdict,
    }
}

fn first(world: &World, now: Timestamp) -> Verdict {
    if let Some(message) = unreadable(world).filter(|_| !seam::is_broken("runtime: unreadable")) {
        return Verdict::Wait(Why::Unreadable(message), None);
    }
    if let Some(on) = left_marked(world).filter(|_| !seam::is_broken("runtime: marks left")) {
        let enabled = !world.runtime.spec.suspend_engine;
        return Verdict::Do(Write::WithdrawRemove { on, enabled }, Why::Upkeep);
    }
    let deleting = deletion::policy(world);
    if deleting == Some(DeletionPolicy::Orphan) {
        return deletion::orphan(world);
    }
    if let Some(verdict) = deletion::finalizer(world).filter(|_| deleting.is_none()) {
        return verdict;
    }
    if let Some(verdict) = suspension::next(world, now) {
        return verdict;
    }
    if let Some(verdict) = in_progress(world, now) {
        return verdict;
    }
    if deleting == Some(DeletionPolicy::Delete) {
        return deletion::remove(world, now);
    }
    between(world, now).or_else(|| adoption::next(world, now)).unwrap_or_else(|| towards(world, now))
}

/// What the runtime waits for, whatever is put right meanwhile: what its conditions speak of.
pub fn standing(world: &World, now: Timestamp) -> Verdict {
    if let Some(message) = unreadable(world) {
        return Verdict::Wait(Why::Unreadable(message), None);
    }
    let deleting = deletion::policy(world);
    if deleting == Some(DeletionPolicy::Orphan) {
        return deletion::orphan(world);
    }
    if let Some(verdict) = in_progress(world, now) {
        return verdict;
    }
    if deleting == Some(DeletionPolicy::Delete) {
        return deletion::remove(world, now);
    }
    adoption::next(world, now).unwrap_or_else(|| towards(world, now))
}

/// What is done while no rollout is unfinished, whatever else waits: the lost plan, repairs, annotations.
fn between(world: &World, now: Timestamp) -> Option<Verdict> {
    rebuild::next(world, now).or_else(|| repair::next(world))
}

/// Towards the target.
fn towards(world: &World, now: Timestamp) -> Verdict {
    // While no candidate is known, nothing is due that is not there already.
    let Some(target) = world.target().or_else(|| world.active()) else { return Verdict::Wait(Why::NoTarget, None) };
    if !is_due(world, target) {
        return retention::next(world).unwrap_or(Verdict::Wait(Why::UpToDate, None));
    }
    ended_badly(world, RolloutKind::Change, target)
        .or_else(|| hold(world).map(|hold| Verdict::Wait(Why::Held(hold), None)))
        .unwrap_or_else(|| prepare(world, target, now))
}

fn in_progress(world: &World, now: Timestamp) -> Option<Verdict> {
    let unfinished = world.unfinished().filter(|_| !seam::is_broken("runtime: unfinished"))?;
    let seen = world.around(unfinished);
    let position = Position::find(unfinished, &seen.applications);
    let verdict = rollout::next_at(&position, &seen, now);
    let step = step_words(&position);
    let name = unfinished.metadata.name.clone().unwrap_or_default();
    Some(Verdict::Wait(Why::InProgress { name, verdict: Box::new(verdict), step }, None))
}

/// An Application that an ended rollout marked for a Remove which did not happen: a plain delete must not cascade.
fn left_marked(world: &World) -> Option<ObjectRef> {
    let ended = |name: &str| {
        let named = world.rollouts.iter().find(|rollout| rollout.metadata.name.as_deref() == Some(name));
        named.is_some_and(|rollout| outcome(rollout).is_some())
    };
    let marked = world.applications.iter().find(|application| {
        !application.is_deleting() && application.annotations.delete_rollout.as_deref().is_some_and(ended)
    });
    marked.map(|application| ObjectRef::of(application))
}

/// A rollout or plan that this operator cannot read: nothing is written to Argo CD.
pub(super) fn unreadable(world: &World) -> Option<String> {
    let newer = world.rollouts.iter().find(|rollout| rollout.spec.schema_version != SCHEMA_VERSION);
    if let Some(rollout) = newer {
        let name = rollout.metadata.name.as_deref().unwrap_or_default();
        let schema = &rollout.spec.schema_version;
        return Some(format!(
            "rollouts written by a newer operator: {name} has schema version {schema:?}; upgrade the operator"
        ));
    }
    if create::changed_by(world).is_err() {
        let key = annotation::SPEC_CHANGED_BY;
        return Some(format!(
            "the runtime's annotation {key} cannot be read; have it taken off as the page on break-glass says"
        ));
    }
    let (name, why) = world.unreadable.first()?;
    Some(format!(
        "{why} (in {name}); after a downgrade upgrade the operator again, otherwise delete that object: a plan is resolved \
         or rebuilt again"
    ))
}

/// `9/18 gpu-operator (Upgrade)`.
fn step_words(position: &Position<'_>) -> Option<String> {
    let index = position.in_flight.or(position.next)?;
    let step = &position.steps()[index];
    Some(format!("{}/{} {} ({})", index + 1, position.steps().len(), step.release, step.operation))
}

/// The target differs from the active plan, or an unsuccessful rollout may since have moved a release.
fn is_due(world: &World, target: Digest) -> bool {
    let moved = || unsuccessful(world).any(|rollout| !touched_by(rollout, &world.applications).is_empty());
    world.active() != Some(target) || moved()
}

/// The newest rollout failed, expired or was revoked for this very target: none is due until a retry.
pub(super) fn ended_badly(world: &World, kind: RolloutKind, target: Digest) -> Option<Verdict> {
    let newest =
        world.newest().filter(|newest| newest.spec.kind == kind && newest.spec.target_plan_digest == Some(target))?;
    let outcome = outcome(newest).filter(|_| !seam::is_broken("runtime: ended badly"))?;
    match outcome {
        Outcome::Failed | Outcome::Expired | Outcome::Revoked if world.new_token().is_none() => {
            let foreign = world.applications.iter().filter(|_| kind == RolloutKind::Change).find(|application| {
                let named = newest.spec.steps.iter().any(|step| step.release == application.name());
                named && !is_owned(application, world.uid())
            });
            let why = Why::EndedBadly {
                name: newest.metadata.name.clone().unwrap_or_default(),
                outcome,
                message: newest.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default(),
                foreign: foreign.map(|application| application.name().to_owned()),
            };
            Some(Verdict::Wait(why, None))
        }
        Outcome::Failed
        | Outcome::Expired
        | Outcome::Revoked
        | Outcome::Succeeded
        | Outcome::Superseded
        | Outcome::Orphaned => None,
    }
}

/// What keeps new rollouts of every kind from starting.
pub(super) fn hold(world: &World) -> Option<Hold> {
    let spec = &world.runtime.spec;
    if seam::is_broken("runtime: held") {
        return None;
    }
    if spec.suspend_engine {
        return Some(Hold::EngineSuspended);
    }
    if spec.paused {
        return Some(Hold::Paused);
    }
    if let Some(reason) = world.engine.reason() {
        return Some(Hold::Engine(reason));
    }
    suspension::is_refused(world).then_some(Hold::Engine(Reason::EngineSuspensionRefused))
}
