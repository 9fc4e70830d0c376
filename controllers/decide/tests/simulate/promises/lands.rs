//! Promises 2, 4 and 6, where a write meets the truth.

use aicr_decide::{
    rollout::{Write, written},
    seen::outcome,
};

use super::{Broken, must, starts::step_of};
use crate::{cluster::Cluster, store::Id};

/// What must be true of the cluster when a step's write lands.
pub(crate) fn lands(cluster: &Cluster, id: Id, write: &Write) -> Option<Broken> {
    let rollout = cluster.truth.rollout(id)?;
    let place = step_of(write, &rollout.spec.steps)?;
    let release = &rollout.spec.steps[place].release;
    must(outcome(rollout).is_none(), 6, || format!("{release} is written for a rollout that has ended"))
        .or_else(|| backwards(cluster, id, release))
        .or_else(|| other_at_work(cluster, id))
}

/// Promise 4: the last who wrote it was not a younger rollout.
fn backwards(cluster: &Cluster, id: Id, release: &str) -> Option<Broken> {
    let (application, _) = cluster.truth.application(release)?;
    let writer = application.annotations.rollout.as_deref().and_then(|name| cluster.truth.id_of(name))?;
    must(writer <= id, 4, || format!("{release} is written by a rollout that is older than its last one"))
}

/// Promise 2: no other rollout of this runtime has begun and not ended.
fn other_at_work(cluster: &Cluster, id: Id) -> Option<Broken> {
    let at_work = |other: &Id| {
        *other != id
            && cluster.truth.is_own(*other)
            && cluster.truth.is_unfinished(*other)
            && cluster.truth.rollout(*other).is_some_and(|rollout| !written(rollout).is_empty())
    };
    let other = cluster.truth.ids().find(at_work);
    must(other.is_none(), 2, || format!("rollout {id} writes while rollout {} is at work", other.unwrap_or_default()))
}

/// Promise 6: a step is begun on a rollout that nobody had revoked and nothing had ended.
pub(crate) fn begun(cluster: &Cluster, id: Id) -> Option<Broken> {
    let rollout = cluster.truth.rollout(id)?;
    must(rollout.spec.revocation.is_none(), 6, || "a step begins after a revocation".to_owned())
        .or_else(|| must(outcome(rollout).is_none(), 6, || "a step begins after the end".to_owned()))
}
