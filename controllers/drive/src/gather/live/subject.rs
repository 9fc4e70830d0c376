//! Which release is asked about, and what about it.

use aicr_crds::{
    RuntimeRollout,
    application::{Application, HealthStatus, SyncStatus},
    rollout::Step,
};
use aicr_decide::{rollout::Position, seen::World};

use super::workloads::label_before;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Synced and not healthy: which resources.
    Health,
    /// Synced and healthy: the release's own gate.
    Gate,
    /// In deletion: what holds it.
    Deletion,
}

/// The release of the step in flight or next.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) application: Application,
    pub(super) question: Question,
    /// The chart label that its objects had before this step, where the step changes it.
    pub(super) label_before: Option<String>,
    pub(super) rollout: String,
}

/// The same question about the same release: what Argo CD writes to the Application meanwhile is no other.
impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.question, one.application.uid().to_owned(), one.rollout.clone());
        key(self) == key(other)
    }
}

impl Subject {
    /// Whom to ask about now, if anybody.
    pub(super) fn find(world: &World) -> Option<Self> {
        let rollout = world.unfinished()?;
        let position = Position::find(rollout, &world.applications);
        let step = &position.steps()[position.in_flight.or(position.next)?];
        let application = position.application(&step.release)?;
        let question = question(application, position.in_flight.is_some())?;
        Some(Self::new(application, question, rollout, step))
    }

    fn new(application: &Application, question: Question, rollout: &RuntimeRollout, step: &Step) -> Self {
        let versions = step.from.as_ref().zip(step.to.as_ref());
        Self {
            application: application.clone(),
            question,
            label_before: versions.and_then(|(from, to)| label_before(&to.chart, &from.version, &to.version)),
            rollout: rollout.metadata.uid.clone().unwrap_or_default(),
        }
    }
}

fn question(application: &Application, in_flight: bool) -> Option<Question> {
    if application.is_deleting() {
        return Some(Question::Deletion);
    }
    let synced = application.status.sync == Some(SyncStatus::Synced);
    match (in_flight && synced, &application.status.health) {
        (false, _) | (true, None | Some(HealthStatus::Missing)) => None,
        (true, Some(HealthStatus::Healthy)) => Some(Question::Gate),
        (
            true,
            Some(HealthStatus::Progressing | HealthStatus::Degraded | HealthStatus::Suspended | HealthStatus::Unknown),
        ) => Some(Question::Health),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn application(sync: &str, health: &str, deleted: Option<&str>) -> Application {
        let value: Value = json!({
            "metadata": { "name": "gpu", "uid": "u", "deletionTimestamp": deleted },
            "spec": { "destination": { "namespace": "gpu" }, "project": "aicr" },
            "status": { "sync": { "status": sync }, "health": { "status": health } },
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn live_objects_are_asked_for_once_argo_cd_has_synced_or_while_it_deletes() {
        let asked = |sync, health| question(&application(sync, health, None), true);
        assert_eq!(asked("Synced", "Healthy"), Some(Question::Gate));
        assert_eq!(asked("Synced", "Degraded"), Some(Question::Health));
        assert_eq!(asked("OutOfSync", "Healthy"), None);
        assert_eq!(question(&application("Synced", "Healthy", None), false), None);
        let deleting = application("OutOfSync", "Healthy", Some("2026-11-29T12:00:00Z"));
        assert_eq!(question(&deleting, false), Some(Question::Deletion));
    }
}
