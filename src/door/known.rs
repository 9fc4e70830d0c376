//! What the door knows of the rollouts, exchanged whenever the watch brings something new.

use std::sync::Arc;

use aicr_drive::Rollouts;
use aicr_webhooks::{Known, KnownRollout};
use arc_swap::ArcSwap;

/// Follows the watch, without end.
pub(super) async fn refresh(mut rollouts: Rollouts, known: Arc<ArcSwap<Known>>) {
    loop {
        rollouts.changed().await;
        let Some(now) = rollouts.reduced(|rollout| KnownRollout::from(rollout)) else { continue };
        let now = Known::from_rollouts(now);
        if **known.load() != now {
            known.store(Arc::new(now));
        }
    }
}
