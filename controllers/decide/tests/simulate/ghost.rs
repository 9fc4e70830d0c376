//! What is true of an Application beside what it says: what runs in the cluster, and what Argo CD's words rest on.

use aicr_crds::{
    Digest,
    application::{ApplicationStatus, HealthStatus},
};
use jiff::Timestamp;

use crate::{event::Gate, store::Id};

/// What is true of one Application; no decision sees it.
#[derive(Clone, Debug)]
pub(crate) struct Ghost {
    /// Fingerprint of what runs in the cluster.
    pub(crate) live: Option<Digest>,
    /// How that fares.
    pub(crate) health: HealthStatus,
    /// The rollout whose step wrote the Application last, and when.
    pub(crate) step: Option<(Id, Timestamp)>,
    /// When the comparison began that the status rests on, and what ran then.
    pub(crate) judged: Option<Judged>,
    /// The rollout for which the last finished sync was started, where it was.
    pub(crate) synced_for: Option<Id>,
    /// Whether somebody deleted it without its resources, which go on to run.
    pub(crate) is_left: bool,
    /// What its own gate finds.
    pub(crate) gate: Gate,
    /// An older status, for Argo CD to write once more.
    pub(crate) older: Option<Box<(ApplicationStatus, Option<Judged>)>>,
}

/// What a comparison saw.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    /// When it began.
    pub(crate) at: Timestamp,
    /// What ran then.
    pub(crate) live: Option<Digest>,
    /// How that fared.
    pub(crate) healthy: bool,
    /// Whether an operation ended since.
    pub(crate) outdated: bool,
}

impl Default for Ghost {
    fn default() -> Self {
        Self {
            live: None,
            health: HealthStatus::Missing,
            step: None,
            judged: None,
            synced_for: None,
            is_left: false,
            gate: Gate::None,
            older: None,
        }
    }
}
