//! The rollouts as the watch sees them, for the door: read by reference, reduced by whoever asks.

use std::sync::Arc;

use aicr_crds::RuntimeRollout;
use tokio::sync::watch;

use super::Watches;

/// A view of all `RuntimeRollout`s.
pub struct Rollouts {
    watches: Arc<Watches>,
    changes: watch::Receiver<u64>,
}

impl Rollouts {
    /// A view that has seen nothing yet.
    pub(crate) fn new(watches: Arc<Watches>) -> Self {
        let mut changes = watches.changes.listen();
        changes.mark_changed();
        Self { watches, changes }
    }

    /// Every rollout that can be read, each reduced by `reduce`; nothing until the first list is here.
    pub fn reduced<T>(&self, reduce: impl Fn(&RuntimeRollout) -> T) -> Option<Vec<T>> {
        let seen = &self.watches.rollouts;
        let readable = |guard: Arc<kube::core::DeserializeGuard<RuntimeRollout>>| guard.0.as_ref().ok().map(&reduce);
        seen.is_synced().then(|| seen.all().into_iter().filter_map(readable).collect())
    }

    /// Returns when there may be something new; at once when first asked.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
