//! Live objects of the release in flight, as the operator finds them when it looks.

use std::sync::Arc;

use aicr_decide::{
    facts::{CustomSeen, DaemonSetSeen, Live},
    rollout::Position,
    seen::RolloutSeen,
};

use crate::{
    cluster::Cluster,
    event::Gate,
    ghost::Ghost,
    store::{Id, Store},
};

/// Adds them to what was seen; the release, where one is in flight whose own gate says anything.
pub(crate) fn looks<'a>(view: &Store, position: &Position<'a>, seen: &mut RolloutSeen) -> Option<&'a str> {
    if view.ghosts.iter().all(|ghost| ghost.gate == Gate::None) {
        return None;
    }
    let release = position.steps()[position.in_flight?].release.as_str();
    let (_, ghost) = view.application(release)?;
    Arc::make_mut(&mut seen.facts).live = found(ghost);
    Some(release)
}

fn found(ghost: &Ghost) -> Live {
    let policy = |state: &str| CustomSeen {
        name: "ClusterPolicy policy".to_owned(),
        state: Some(state.to_owned()),
        ..CustomSeen::default()
    };
    let driver = |updated| DaemonSetSeen {
        name: "gpu/driver".to_owned(),
        desired: 3,
        updated,
        ready: 3,
        ..DaemonSetSeen::default()
    };
    match ghost.gate {
        Gate::None => Live::default(),
        Gate::Passes => Live { customs: vec![policy("ready")], daemon_sets: vec![driver(3)], ..Live::default() },
        Gate::Fails => Live { customs: vec![policy("ready")], daemon_sets: vec![driver(1)], ..Live::default() },
        Gate::Outdated => Live { outdated: vec!["Deployment gpu/x".to_owned()], ..Live::default() },
    }
}

impl Cluster {
    /// A look that was told in status: since when each one found the gate passing.
    pub(crate) fn has_looked_at(&mut self, id: Id, view: &Store, release: &str) {
        let gate = view.application(release).map(|(_, ghost)| ghost.gate);
        let known = self.passing.iter().position(|(other, name, _)| *other == id && name == release);
        match (gate, known) {
            (Some(Gate::Passes), None) => {
                self.passing.push((id, release.to_owned(), self.now));
                self.moves();
            }
            (Some(Gate::Passes), Some(_)) | (_, None) => {}
            (Some(Gate::None | Gate::Fails | Gate::Outdated) | None, Some(place)) => {
                // What could not be told is looked at once more.
                if self.is_told_otherwise(id) {
                    self.passing.remove(place);
                    self.moves();
                }
            }
        }
    }

    /// Whether status no longer says that the gate passes.
    fn is_told_otherwise(&self, id: Id) -> bool {
        let status = self.truth.rollout(id).and_then(|rollout| rollout.status.as_ref());
        let current = status.and_then(|status| status.current.as_ref());
        current.is_none_or(|current| current.gate_passed_since.is_none())
    }
}
