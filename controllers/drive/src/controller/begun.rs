//! Rollouts whose beginning was told of: whoever created one may have stopped before it told.

use std::collections::BTreeSet;

use aicr_decide::{
    report,
    seen::{World, outcome},
};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::{Hands, TOLD};
use crate::{events::About, write::Announced};

/// UIDs of those of which this process knows that they were told of.
#[derive(Default)]
pub(super) struct Begun(BTreeSet<String>);

impl Begun {
    /// Tells of each unfinished rollout once; what was told before is found by the Event's name. One that is older than
    /// Events live is not told of again.
    pub(super) async fn tell(&mut self, hands: &Hands, world: &World, now: Timestamp) {
        for rollout in world.rollouts.iter().filter(|rollout| outcome(rollout).is_none()) {
            let uid = rollout.uid().unwrap_or_default();
            let created = rollout.metadata.creation_timestamp.as_ref().map(|time| time.0);
            let is_old = created.is_some_and(|created| now >= created + TOLD);
            if is_old || self.0.contains(&uid) {
                continue;
            }
            let note = report::created_event(&world.runtime, rollout);
            match hands.write.announce(&About::Runtime(&world.runtime), &note).await {
                Announced::Now | Announced::Before => drop(self.0.insert(uid)),
                Announced::Failed => {}
            }
        }
        self.0.retain(|uid| world.rollouts.iter().any(|rollout| rollout.metadata.uid.as_ref() == Some(uid)));
    }
}
