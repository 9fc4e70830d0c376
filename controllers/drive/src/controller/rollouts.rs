//! The rollouts, one after the other, each with its own patience.

use std::time::Instant;

use aicr_crds::{ClusterRuntime, RuntimeRollout};
use aicr_decide::seen::{RolloutSeen, World, outcome};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::{Control, Earliest};
use crate::{gather::View, metrics::metrics, rollout};

/// Around what one rollout is looked at.
#[derive(Clone, Copy)]
struct At<'a> {
    runtime: Option<&'a ClusterRuntime>,
    view: View,
    now: Timestamp,
}

impl Control {
    /// Every rollout of the runtime that is unfinished or not yet told of, each in the world as it is then.
    pub(super) async fn rollouts(&mut self, world: &World, next: &mut Earliest) {
        self.begun.tell(&self.hands, world, self.hands.now()).await;
        match world.unfinished() {
            Some(rollout) => rollout::measure(Some(rollout), &world.around(rollout)),
            None => metrics().progress(None),
        }
        let open: Vec<String> = world
            .rollouts
            .iter()
            .filter(|rollout| rollout::is_open(rollout))
            .map(|rollout| rollout.name_any())
            .collect();
        for name in open {
            let Some((sight, now)) = self.fresh().await else { return };
            let world = &sight.world;
            if let Some(rollout) = world.rollouts.iter().find(|rollout| rollout.metadata.name.as_ref() == Some(&name)) {
                let at = At { runtime: Some(&world.runtime), view: sight.view(), now };
                self.one(rollout, world.around(rollout), at, next).await;
            }
        }
    }

    /// One rollout. Patience is each one's own: one that cannot be told of keeps no other from its time-out.
    async fn one(&mut self, rollout: &RuntimeRollout, seen: RolloutSeen, at: At<'_>, next: &mut Earliest) {
        let name = rollout.name_any();
        if !self.patience.is_over(&name, at.now) {
            return;
        }
        let begun = Instant::now();
        let looked = rollout::step(&mut self.hands, rollout, seen, at.view, at.now).await;
        metrics().reconciled("rollout", begun.elapsed().as_secs_f64());
        match looked {
            Ok(look) => {
                self.patience.forgive(&name);
                next.add(look.time(at.now));
            }
            Err(error) => self.failed(&name, at.runtime, &error, at.now).await,
        }
    }

    /// Rollouts of runtimes that are gone: those that are unfinished, or not yet told of, or have left a mark.
    pub(super) async fn orphans(&mut self, now: Timestamp, next: &mut Earliest) {
        let present = self.hands.gather.runtime();
        // An unreadable runtime is not one that is gone.
        let unreadable = matches!(present, Some(Err(_)));
        let uid = present.and_then(Result::ok).and_then(|runtime| runtime.metadata.uid.clone());
        for rollout in self.hands.gather.all_rollouts() {
            let ended = outcome(&rollout).is_some();
            let open = rollout::is_open(&rollout) || (ended && self.hands.gather.is_marked(&rollout));
            if Some(&rollout.spec.runtime.uid) != uid.as_ref() && open && (ended || !unreadable) {
                let seen = self.hands.gather.without_runtime();
                self.one(&rollout, seen, At { runtime: None, view: View::Whole, now }, next).await;
            }
        }
    }
}
