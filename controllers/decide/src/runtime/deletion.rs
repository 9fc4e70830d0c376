//! The runtime in deletion: its Applications orphaned, or removed by an approved rollout, then the finalizer off.

use aicr_crds::{
    RuntimeRollout, application::AutomatedSync, keys::finalizer, reason::Outcome, rollout::RolloutKind,
    runtime::DeletionPolicy,
};
use jiff::Timestamp;

use super::{
    create,
    place::owned,
    verdict::{Verdict, Why, Write},
};
use crate::{
    message::listed,
    rollout::ObjectRef,
    seen::{EngineState, World, age_key, outcome},
};

/// How many Applications a message names.
const NAMED: usize = 10;

/// Whether a person has deleted the runtime, and how.
pub(super) fn policy(world: &World) -> Option<DeletionPolicy> {
    world.runtime.metadata.deletion_timestamp.as_ref().map(|_| world.runtime.spec.deletion_policy)
}

/// The finalizer that keeps a runtime until its policy has run.
pub(super) fn finalizer(world: &World) -> Option<Verdict> {
    let there = has_finalizer(world);
    (!there).then_some(Verdict::Do(Write::AddFinalizer, Why::Upkeep))
}

fn has_finalizer(world: &World) -> bool {
    world.runtime.metadata.finalizers.iter().flatten().any(|name| name == finalizer::CLEANUP)
}

/// Orphan: annotate, let the unfinished rollout end, Event, finalizer off. Neither pause nor suspension keeps it.
pub(super) fn orphan(world: &World) -> Verdict {
    if !has_finalizer(world) {
        return Verdict::Wait(Why::Deleting("the runtime is released".to_owned()), None);
    }
    let blind = match world.engine {
        EngineState::Missing => {
            Some("Argo CD's Application CRD is not served, so the Applications cannot be annotated")
        }
        EngineState::Unauthorized => Some("the operator may not list Applications, so that they cannot be annotated"),
        EngineState::Available | EngineState::ProjectMissing | EngineState::CredentialsStale => None,
    };
    if let Some(message) = blind {
        return Verdict::Wait(Why::Deleting(message.to_owned()), None);
    }
    let uid = world.uid();
    let refused = &world.facts.refusals.orphaning;
    let next = owned(world).find(|application| {
        application.annotations.orphaned_from.as_deref() != Some(uid) && !refused.contains_key(application.name())
    });
    if let Some(application) = next {
        return Verdict::Do(Write::Orphan { on: ObjectRef::of(application) }, Why::Deleting(orphaning(world)));
    }
    if let Some(rollout) = world.unfinished() {
        let name = rollout.metadata.name.as_deref().unwrap_or_default();
        return Verdict::Wait(Why::Deleting(format!("rollout {name} is ended first")), None);
    }
    Verdict::Do(Write::Release { note: orphaning(world) }, Why::Deleting("the runtime is released".to_owned()))
}

/// What `RuntimeOrphaned` says.
fn orphaning(world: &World) -> String {
    let refused = &world.facts.refusals.orphaning;
    let names: Vec<&str> = owned(world)
        .map(aicr_crds::application::Application::name)
        .filter(|name| !refused.contains_key(*name))
        .collect();
    let suspended: Vec<&str> = owned(world)
        .filter(|application| application.automated == AutomatedSync::Disabled)
        .map(aicr_crds::application::Application::name)
        .collect();
    let left = if suspended.is_empty() {
        String::new()
    } else {
        format!("; automated sync stays off on {}", listed(&suspended, NAMED))
    };
    if names.is_empty() {
        return format!("no Application was orphaned{left}");
    }
    format!("Applications left in place and orphaned: {}{left}", listed(&names, NAMED))
}

/// Applications that could not be annotated, with why.
pub(crate) fn refused(world: &World) -> Option<String> {
    let all: Vec<String> = world
        .facts
        .refusals
        .orphaning
        .iter()
        .map(|(name, refusal)| format!("Application {name}: {}", refusal.why))
        .collect();
    (!all.is_empty()).then(|| format!("left in place without orphaned-from: {}", listed(&all, NAMED)))
}

/// Delete: a removal rollout of everything that is there; then the finalizer off.
pub(super) fn remove(world: &World, now: Timestamp) -> Verdict {
    if !has_finalizer(world) {
        return Verdict::Wait(Why::Deleting("the runtime is released".to_owned()), None);
    }
    let removal = newest_removal(world);
    if let Some(ended) = removal.and_then(outcome) {
        match ended {
            Outcome::Succeeded if owned(world).next().is_none() && !world.engine.is_absent() => {
                let note = "every release was removed".to_owned();
                return Verdict::Do(Write::Release { note: note.clone() }, Why::Deleting(note));
            }
            Outcome::Failed | Outcome::Expired | Outcome::Revoked if world.new_token().is_none() => {
                return failed(world, ended);
            }
            Outcome::Succeeded
            | Outcome::Failed
            | Outcome::Expired
            | Outcome::Revoked
            | Outcome::Superseded
            | Outcome::Orphaned => {}
        }
    }
    if let Some(hold) = super::next::hold(world) {
        return Verdict::Wait(Why::Held(hold), None);
    }
    create::verdict(world, create::removal(world, now), now)
}

fn newest_removal(world: &World) -> Option<&RuntimeRollout> {
    world
        .rollouts
        .iter()
        .map(AsRef::as_ref)
        .filter(|rollout| rollout.spec.kind == RolloutKind::Remove)
        .max_by_key(|rollout| age_key(rollout))
}

fn failed(world: &World, outcome: Outcome) -> Verdict {
    let newest = newest_removal(world);
    let name = newest.and_then(|rollout| rollout.metadata.name.clone()).unwrap_or_default();
    let message = newest.and_then(|rollout| rollout.status.as_ref()).and_then(|status| status.message.clone());
    Verdict::Wait(Why::RemovalFailed { name, outcome, message: message.unwrap_or_default() }, None)
}
