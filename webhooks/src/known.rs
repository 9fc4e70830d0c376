//! What the door knows of the cluster: the rollouts as this replica's watch last saw them.

use aicr_crds::{
    RuntimeRollout,
    keys::label,
    rollout::{Author, Operation, RolloutKind},
    runtime::SelectionPolicy,
};
use jiff::Timestamp;

/// A snapshot of all RuntimeRollouts; at first, of nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    delivered: Option<Vec<KnownRollout>>,
}

/// One rollout, reduced to what rules about *other* objects read. What a rule reads of the rollout under review comes
/// with the review itself, which is never stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRollout {
    /// Its name.
    pub name: String,
    /// UID of its runtime.
    pub runtime_uid: String,
    /// How far it is.
    pub state: RolloutState,
    /// Applications that it removes.
    pub removes: Vec<String>,
    /// Edits that its success frees.
    pub frees: Vec<Author>,
}

/// Whether a rollout may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutState {
    /// Nobody approved it.
    Unapproved,
    /// Approved until then.
    Approved(Timestamp),
    /// Revoked, and about to end.
    Revoked,
    /// It has an outcome.
    Ended,
}

impl From<&RuntimeRollout> for KnownRollout {
    fn from(rollout: &RuntimeRollout) -> Self {
        let spec = &rollout.spec;
        let outcome = rollout.metadata.labels.as_ref().and_then(|labels| labels.get(label::OUTCOME));
        let state = match (outcome, &spec.revocation, &spec.approval) {
            (Some(_), _, _) => RolloutState::Ended,
            (None, Some(_), _) => RolloutState::Revoked,
            (None, None, Some(approval)) => RolloutState::Approved(approval.expires_at.0),
            (None, None, None) => RolloutState::Unapproved,
        };
        let succeeded = outcome.is_some_and(|outcome| outcome == "Succeeded");
        let frees = succeeded && spec.kind == RolloutKind::Change && spec.selection == SelectionPolicy::Automatic;
        let removes = spec.steps.iter().filter(|step| step.operation == Operation::Remove);
        Self {
            name: rollout.metadata.name.clone().unwrap_or_default(),
            runtime_uid: spec.runtime.uid.clone(),
            state,
            removes: removes.map(|step| step.release.clone()).collect(),
            frees: if frees { spec.requested_by.clone() } else { Vec::new() },
        }
    }
}

impl Known {
    /// The rollouts that a watch has delivered in full.
    pub fn of<'a>(rollouts: impl IntoIterator<Item = &'a RuntimeRollout>) -> Self {
        Self { delivered: Some(rollouts.into_iter().map(KnownRollout::from).collect()) }
    }

    /// The same from reduced rollouts.
    pub fn from_rollouts(rollouts: Vec<KnownRollout>) -> Self {
        Self { delivered: Some(rollouts) }
    }

    /// Whether the watch has delivered anything yet.
    pub fn is_delivered(&self) -> bool {
        self.delivered.is_some()
    }

    /// One rollout by name.
    pub fn rollout(&self, name: &str) -> Option<&KnownRollout> {
        self.all().find(|rollout| rollout.name == name)
    }

    /// Whether a rollout of this runtime, other than the one named, has not ended.
    pub fn has_other_unfinished(&self, runtime_uid: &str, name: &str) -> bool {
        self.all().any(|rollout| {
            rollout.runtime_uid == runtime_uid && rollout.name != name && rollout.state != RolloutState::Ended
        })
    }

    /// Whether a rollout that succeeded carried exactly this edit of this runtime.
    pub fn is_spent(&self, runtime_uid: &str, author: &Author) -> bool {
        self.all().any(|rollout| rollout.runtime_uid == runtime_uid && rollout.frees.contains(author))
    }

    fn all(&self) -> impl Iterator<Item = &KnownRollout> {
        self.delivered.iter().flatten()
    }
}
