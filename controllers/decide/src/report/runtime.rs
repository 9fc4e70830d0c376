//! A runtime's status, from what was seen and decided.

use aicr_crds::{ClusterRuntimeStatus, runtime::RolloutInProgress};
use jiff::Timestamp;

use super::conditions::conditions;
use crate::{runtime::Verdict, seen::World};

/// The whole status; the hands write it only where it differs from what is stored.
pub fn status(world: &World, verdict: &Verdict, now: Timestamp) -> ClusterRuntimeStatus {
    let stored = world.runtime.status.clone().unwrap_or_default();
    let active = world.active();
    ClusterRuntimeStatus {
        observed_generation: world.runtime.metadata.generation,
        conditions: conditions(world, verdict, now),
        active_plan_digest: active,
        active_plan: active.map(|digest| digest.short()),
        candidate_plan_digest: world.resolution.candidate.or(stored.candidate_plan_digest),
        rollout: world.unfinished().map(|rollout| RolloutInProgress {
            name: rollout.metadata.name.clone().unwrap_or_default(),
            phase: rollout.status.as_ref().and_then(|status| status.phase),
        }),
        discovery: world.resolution.discovery.clone().or(stored.discovery),
        aicr: world.resolution.aicr.clone().or(stored.aicr),
    }
}
