//! Events: what they say and under which name, so that a second create is no second Event.

use std::collections::BTreeSet;

use aicr_crds::{
    ClusterRuntime, Digest, RuntimeRollout,
    reason::{ConditionType, EventReason, Outcome},
    rollout::RolloutKind,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::{
    message::{EVENT_LIMIT, bounded},
    resolve::{Failure, JobSeen},
};

/// An Event to be created, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// Object name of the Event: deterministic, so that the same occurrence is the same Event.
    pub name: String,
    /// Reason, which also gives the type.
    pub reason: EventReason,
    /// What a person reads; 1024 bytes at most.
    pub note: String,
}

impl EventNote {
    /// An Event of the object with this UID; `occurrence` tells one from the next of its kind.
    pub fn new(uid: &str, reason: EventReason, occurrence: &str, note: &str) -> Self {
        let digest = Digest::of(format!("{uid}/{reason}/{occurrence}").as_bytes());
        Self { name: format!("aicr-operator.{}", digest.prefix(32)), reason, note: bounded(note, EVENT_LIMIT) }
    }
}

/// The Event of a rollout that was created; once for each.
pub fn created_event(runtime: &ClusterRuntime, rollout: &RuntimeRollout) -> EventNote {
    let uid = runtime.metadata.uid.as_deref().unwrap_or_default();
    let name = rollout.metadata.name.as_deref().unwrap_or_default();
    let approval = if rollout.spec.needs_approval() { "it needs approval" } else { "it needs no approval" };
    let stack = match rollout.spec.kind {
        RolloutKind::Change | RolloutKind::Remove => "",
        RolloutKind::Adopt if writers(rollout) > 1 => "; several plans wrote the Applications",
        RolloutKind::Adopt => "; every Application was written by one plan",
    };
    let note = format!("rollout {name} was created, with {} steps; {approval}{stack}", rollout.spec.steps.len());
    EventNote::new(uid, EventReason::RolloutCreated, name, &note)
}

/// How many plans wrote the Applications of an inventory.
fn writers(rollout: &RuntimeRollout) -> usize {
    let plans: BTreeSet<_> = rollout.spec.inventory.iter().filter_map(|item| item.plan_digest).collect();
    plans.len()
}

/// The Event that announces a rollout's end.
pub fn outcome_event(rollout: &RuntimeRollout, outcome: Outcome, message: &str) -> EventNote {
    let uid = rollout.metadata.uid.as_deref().unwrap_or_default();
    EventNote::new(uid, EventReason::of_outcome(outcome), outcome.as_str(), message)
}

/// The Event of a runtime that turned Stalled, or stalls for another reason; once per stall.
pub fn stalled_event(runtime: &ClusterRuntime, new: &[Condition]) -> Option<EventNote> {
    let is_stalled =
        |condition: &&Condition| condition.type_ == ConditionType::Stalled.as_str() && condition.status == "True";
    let now = new.iter().find(is_stalled)?;
    let before = runtime.status.as_ref().and_then(|status| status.conditions.iter().find(is_stalled));
    let same = before.is_some_and(|before| before.reason == now.reason);
    // The version that the change was decided on tells A, B, A within one stall apart.
    let version = runtime.metadata.resource_version.as_deref().unwrap_or_default();
    let occurrence = format!("{}/{}/{version}", now.reason, now.last_transition_time.0);
    let uid = runtime.metadata.uid.as_deref().unwrap_or_default();
    (!same).then(|| EventNote::new(uid, EventReason::Stalled, &occurrence, &format!("{}: {}", now.reason, now.message)))
}

/// The Event of a failed AICR run; once per run.
pub fn run_failed(runtime: &ClusterRuntime, job: &JobSeen, failure: &Failure) -> EventNote {
    let uid = runtime.metadata.uid.as_deref().unwrap_or_default();
    let said = crate::resolve::said(job.stage, failure);
    let note = format!(
        "stage {}, run {}, attempt {}, class {}: {said}",
        job.stage,
        job.run,
        job.attempt,
        failure.class.as_str()
    );
    EventNote::new(uid, EventReason::AICRRunFailed, &job.run, &note)
}

#[cfg(test)]
mod tests {
    use aicr_crds::reason::Reason;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::resolve::{Class, JobPhase, Stage};

    fn runtime() -> ClusterRuntime {
        let runtime = json!({
            "metadata": {"name": "cluster", "uid": "u"},
            "spec": {"intent": "training", "placement": {"accelerated": {"nodeSelector": {"pool": "gpu"}}}},
        });
        serde_json::from_value(runtime).unwrap()
    }

    fn failed(run: &str, exit: Option<i32>, text: &str) -> (JobSeen, Failure) {
        let failure = Failure { exit, text: text.into(), class: Class::Bounded, reason: Reason::AICRInternal };
        let phase = JobPhase::Failed { failure: failure.clone(), at: Timestamp::UNIX_EPOCH };
        let (name, input) = ("aicr-recipe-0123-2".to_owned(), "0123".to_owned());
        (JobSeen { name, stage: Stage::Recipe, input, attempt: 2, run: run.into(), phase }, failure)
    }

    #[test]
    fn a_failed_run_is_told_with_stage_run_attempt_and_class_and_once() {
        let tell = |(job, failure): (JobSeen, Failure)| run_failed(&runtime(), &job, &failure);
        let note = tell(failed("20261129-195132-aa", Some(8), "[INTERNAL] it broke"));
        assert_eq!(note.reason, EventReason::AICRRunFailed);
        let said =
            "stage recipe, run 20261129-195132-aa, attempt 2, class bounded: aicr recipe exited 8: [INTERNAL] it broke";
        assert_eq!(note.note, said);
        // Seen again, by whoever leads then, it is the same Event; another run's is another.
        assert_eq!(tell(failed("20261129-195132-aa", None, "later")).name, note.name);
        assert_ne!(tell(failed("20261129-195132-bb", Some(8), "[INTERNAL] it broke")).name, note.name);
    }

    /// B85.
    #[test]
    fn what_a_failed_run_said_is_cut_to_what_an_event_holds() {
        let (job, failure) = failed("r", Some(8), &"ü".repeat(60 * 1024));
        let note = run_failed(&runtime(), &job, &failure).note;
        assert!(
            note.len() <= EVENT_LIMIT && note.starts_with("stage recipe, run r, attempt 2, class bounded: "),
            "{note}"
        );
    }
}
