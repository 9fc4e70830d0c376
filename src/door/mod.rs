//! The door in this process: the webhooks' router over TLS, with what it knows and who counts.

mod certificate;
mod known;
mod metrics;

use std::{sync::Arc, time::Duration};

use aicr_drive::Rollouts;
use aicr_webhooks::{Door, Known, Policy};
use arc_swap::ArcSwap;
use axum::Router;
use jiff::Timestamp;

pub(crate) use certificate::{Source, mounted};

/// How long after the drain began the API server may still come: its endpoints have gone by then.
pub(crate) const LINGER: Duration = Duration::from_secs(10);
/// Connections at once; each API server has one for each path, and more only while reviews overlap.
pub(crate) const CONNECTIONS: usize = 256;

/// The routes, and what keeps their knowledge fresh for as long as it is polled.
pub(crate) fn open(policy: Policy, rollouts: Rollouts) -> (Router, impl Future<Output = ()>) {
    let known = Arc::new(ArcSwap::from_pointee(Known::default()));
    let refreshed = known::refresh(rollouts, Arc::clone(&known));
    let door = Door {
        policy: Arc::new(policy),
        known,
        clock: Arc::new(Timestamp::now),
        observer: Arc::new(metrics::Counted::new(aicr_drive::metrics::registry())),
    };
    (aicr_webhooks::router(door), refreshed)
}
