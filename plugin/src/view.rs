//! What a rollout says of itself: phase, end, state of a release, what is owed; read also where its status is lost.

use aicr_crds::{
    RuntimeRollout,
    keys::{annotation, label},
    reason::Outcome,
    rollout::{Need, Operation, Phase, ReleaseState, Step, Written},
};
use kube::ResourceExt;

/// The phase; none before the rollout starts. The outcome label outlives the status.
pub(crate) fn phase(rollout: &RuntimeRollout) -> Option<Phase> {
    let outcome = rollout.labels().get(label::OUTCOME);
    let ended = outcome.and_then(|word| Outcome::ALL.iter().find(|outcome| outcome.as_str() == word));
    ended.map(|outcome| Phase::from(*outcome)).or_else(|| rollout.status.as_ref()?.phase)
}

/// The terminal phase of a rollout that has ended.
pub(crate) fn ended(rollout: &RuntimeRollout) -> Option<Phase> {
    phase(rollout).filter(|phase| Outcome::ALL.iter().any(|outcome| Phase::from(*outcome) == *phase))
}

/// The state of a step's release; none before it is begun. Without status, the `written` annotation knows.
pub(crate) fn state(rollout: &RuntimeRollout, step: &Step) -> Option<ReleaseState> {
    let releases = rollout.status.as_ref().map(|status| status.releases.as_slice()).unwrap_or_default();
    let known = releases.iter().find(|known| known.release == step.release);
    known.map(|known| known.state).or_else(|| {
        let written: Written = serde_json::from_str(rollout.annotations().get(annotation::WRITTEN)?).ok()?;
        Some(match (written.get(&step.release)?.ready, step.operation == Operation::Remove) {
            (true, true) => ReleaseState::Removed,
            (true, false) => ReleaseState::Ready,
            (false, true) => ReleaseState::Deleting,
            (false, false) => ReleaseState::Progressing,
        })
    })
}

/// Whether an acknowledgement of this release is there.
pub(crate) fn acknowledged(rollout: &RuntimeRollout, release: &str) -> bool {
    rollout.spec.acknowledgements.iter().any(|known| known.release == release)
}

/// The applied manual releases whose recorded steps nobody has acknowledged, in the order of the steps.
pub(crate) fn owed(rollout: &RuntimeRollout) -> Vec<&Step> {
    let due = |step: &&Step| {
        step.acknowledge && state(rollout, step) == Some(ReleaseState::Ready) && !acknowledged(rollout, &step.release)
    };
    rollout.spec.steps.iter().filter(due).collect()
}

/// Whether an approver is waited for, whatever the phase says: approval can be given while a rollout is held.
pub(crate) fn is_unapproved(rollout: &RuntimeRollout) -> bool {
    rollout.spec.needs_approval() && rollout.spec.approval.is_none()
}

/// The steps that need an approver, each with its place from 1.
pub(crate) fn to_approve(rollout: &RuntimeRollout) -> Vec<(usize, &Step)> {
    let required = |(_, step): &(usize, &Step)| step.approval.need == Need::Required;
    rollout.spec.steps.iter().enumerate().map(|(index, step)| (index + 1, step)).filter(required).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_rollout_that_has_not_started_has_no_phase() {
        assert_eq!(phase(&fixture::pending()), None);
        assert_eq!(ended(&fixture::awaiting_approval()), None);
    }

    #[test]
    fn the_outcome_label_outlives_the_status() {
        let mut rollout = fixture::succeeded();
        rollout.status = None;
        assert_eq!(phase(&rollout), Some(Phase::Succeeded));
        assert_eq!(ended(&rollout), Some(Phase::Succeeded));
    }

    #[test]
    fn what_was_written_is_known_without_status() {
        let mut rollout = fixture::awaiting_acknowledgement();
        assert_eq!(owed(&rollout).len(), 1);
        rollout.status = None;
        assert!(owed(&rollout).is_empty(), "nothing says that it is ready");
        let written = r#"{"nvsentinel":{"uid":"u","ready":true},"prometheus-adapter":{"uid":"v","ready":false}}"#;
        rollout.annotations_mut().insert(annotation::WRITTEN.into(), written.into());
        assert_eq!(owed(&rollout)[0].release, "nvsentinel");
        let removed = rollout.spec.steps.iter().find(|step| step.release == "prometheus-adapter").unwrap();
        assert_eq!(state(&rollout, removed), Some(ReleaseState::Deleting));
    }

    #[test]
    fn an_acknowledged_release_is_not_owed() {
        assert!(owed(&fixture::succeeded()).is_empty());
    }
}
