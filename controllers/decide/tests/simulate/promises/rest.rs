//! Promise 9 where everything has come to rest: what nothing holds back has been done.

use aicr_crds::{application::AutomatedSync, reason::Outcome, rollout::SCHEMA_VERSION, runtime::DeletionPolicy};
use aicr_decide::seen::{EngineState, World, age_key, outcome};

use super::{Broken, between::is_anothers, must, starts::is_ours};
use crate::cluster::Cluster;

/// What must be true once the operator has nothing left to do.
pub(crate) fn at_rest(cluster: &Cluster) -> Option<Broken> {
    let world = &cluster.truth.world;
    let readable =
        world.unreadable.is_empty() && world.rollouts.iter().all(|one| one.spec.schema_version == SCHEMA_VERSION);
    if !cluster.truth.has_runtime || !readable {
        return None;
    }
    released(world).or_else(|| unmarked(world)).or_else(|| suspended(cluster)).or_else(|| repaired(cluster))
}

/// A runtime that is orphaned is let go.
fn released(world: &World) -> Option<Broken> {
    let orphaned = world.runtime.metadata.deletion_timestamp.is_some()
        && world.runtime.spec.deletion_policy == DeletionPolicy::Orphan;
    let finalizers = world.runtime.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
    let blind = match world.engine {
        EngineState::Missing | EngineState::Unauthorized => true,
        EngineState::Available | EngineState::ProjectMissing | EngineState::CredentialsStale => false,
    };
    must(!(orphaned && finalizers) || blind, 9, || "an orphaned runtime is not let go".to_owned())
}

/// What an ended rollout marked for a Remove would cascade at anybody's plain delete.
fn unmarked(world: &World) -> Option<Broken> {
    let ended = |name: &str| {
        let named = world.rollouts.iter().find(|rollout| rollout.metadata.name.as_deref() == Some(name));
        named.is_some_and(|rollout| outcome(rollout).is_some())
    };
    let marked = world.applications.iter().find(|application| {
        !application.is_deleting() && application.annotations.delete_rollout.as_deref().is_some_and(ended)
    });
    must(marked.is_none(), 3, || format!("{} keeps the marks of an ended rollout", marked.map_or("", |one| one.name())))
}

/// What was refused is tried again after a minute.
fn is_known_as_refused(cluster: &Cluster, name: &str) -> bool {
    let view = cluster.operators[cluster.leader].view.as_ref();
    view.is_some_and(|view| view.world.facts.refusals.automation.contains_key(name))
}

/// A suspended engine syncs nothing by itself.
fn suspended(cluster: &Cluster) -> Option<Broken> {
    let world = &cluster.truth.world;
    let orphaned = world.runtime.metadata.deletion_timestamp.is_some()
        && world.runtime.spec.deletion_policy == DeletionPolicy::Orphan;
    if !world.runtime.spec.suspend_engine || world.engine.is_absent() || orphaned {
        return None;
    }
    let on = world.applications.iter().find(|application| {
        application.automated == AutomatedSync::Enabled
            && !application.is_deleting()
            && is_ours(application, world.uid())
            && !is_known_as_refused(cluster, application.name())
            && !cluster.refusing.contains(&application.name())
    });
    must(on.is_none(), 9, || format!("{} syncs by itself while suspended", on.map_or("", |one| one.name())))
}

/// With the newest rollout a success, each release is there as the plan has it.
fn repaired(cluster: &Cluster) -> Option<Broken> {
    let world = &cluster.truth.world;
    let newest = world.rollouts.iter().max_by_key(|rollout| age_key(rollout))?;
    let busy = world.runtime.spec.suspend_engine
        || world.engine.is_absent()
        || world.runtime.metadata.deletion_timestamp.is_some()
        || outcome(newest) != Some(Outcome::Succeeded)
        || world.rollouts.iter().any(|rollout| outcome(rollout).is_none());
    let active = newest.spec.target_plan_digest.filter(|_| !busy)?;
    let (_, stored) = world.plans.get(&active)?;
    stored.plan.releases().find_map(|release| {
        let name = release.content.id.as_str();
        if cluster.refusing.contains(&name) || is_known_as_refused(cluster, name) {
            return None;
        }
        let print = release.fingerprint(&world.settings.engine).ok();
        let there = cluster.truth.application(name).map(|(application, _)| application);
        let fine = there.is_some_and(|application| {
            application.is_deleting()
                || !is_ours(application, world.uid())
                || is_anothers(world, application, active)
                || (print == Some(application.fingerprint) && application.automated == AutomatedSync::Enabled)
        });
        must(fine, 9, || format!("{name} is not as the active plan has it, and nothing puts it right"))
    })
}
