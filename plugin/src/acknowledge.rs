//! Acknowledging: which release's recorded steps are done, or why nothing can be acknowledged.

use aicr_crds::{
    RuntimeRollout,
    rollout::{Acknowledgement, Phase, ReleaseState, SCHEMA_VERSION},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::{
    change::{Author, Change, to_the_second},
    view,
};

/// Why nothing can be acknowledged.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// It was written by another operator than this plugin knows.
    #[error("the rollout has schema {0:?}, written by a newer operator; use the plugin of its release")]
    Schema(String),
    /// It is over.
    #[error("the rollout has ended ({0}); nothing waits for an acknowledgement")]
    Ended(Phase),
    /// Nothing waits.
    #[error("no release of this rollout waits for an acknowledgement")]
    NothingOwed,
    /// More than one waits.
    #[error("several releases wait for an acknowledgement; name one: {0}")]
    Several(String),
    /// The rollout has no step for it.
    #[error("the rollout has no step for release {0}")]
    NoSuchRelease(String),
    /// It has no recorded steps after the apply.
    #[error("release {0} has no recorded steps to acknowledge")]
    NotManual(String),
    /// It was acknowledged before.
    #[error("release {0} is already acknowledged")]
    Already(String),
    /// Its apply is not done.
    #[error("release {release} is not applied yet ({state}); acknowledge it when the rollout waits for it")]
    NotApplied {
        /// The release.
        release: String,
        /// Its state.
        state: String,
    },
}

/// The acknowledged release, and the patch that says so.
pub(crate) fn prepare(
    rollout: &RuntimeRollout,
    now: Timestamp,
    release: Option<&str>,
    author: &Author,
) -> Result<(String, Change), Refusal> {
    if rollout.spec.schema_version != SCHEMA_VERSION {
        return Err(Refusal::Schema(rollout.spec.schema_version.clone()));
    }
    if let Some(phase) = view::ended(rollout) {
        return Err(Refusal::Ended(phase));
    }
    let release = match release {
        Some(release) => named(rollout, release)?,
        None => only(rollout)?,
    };
    // The whole list: a merge patch replaces lists, and the resourceVersion keeps what others added meanwhile.
    let mut all = rollout.spec.acknowledgements.clone();
    all.push(Acknowledgement {
        release: release.clone(),
        reason: author.reason.clone(),
        acknowledged_by: author.person.clone(),
        acknowledged_at: Time(to_the_second(now)),
    });
    let change = Change::of(rollout, json!({ "acknowledgements": all }));
    Ok((release, change))
}

fn only(rollout: &RuntimeRollout) -> Result<String, Refusal> {
    match view::owed(rollout).as_slice() {
        [] => Err(Refusal::NothingOwed),
        [step] => Ok(step.release.clone()),
        several => {
            let names: Vec<_> = several.iter().map(|step| step.release.as_str()).collect();
            Err(Refusal::Several(names.join(", ")))
        }
    }
}

fn named(rollout: &RuntimeRollout, release: &str) -> Result<String, Refusal> {
    let name = || release.to_owned();
    let steps = &rollout.spec.steps;
    let step = steps.iter().find(|step| step.release == release).ok_or_else(|| Refusal::NoSuchRelease(name()))?;
    if !step.acknowledge {
        return Err(Refusal::NotManual(name()));
    }
    if view::acknowledged(rollout, release) {
        return Err(Refusal::Already(name()));
    }
    match view::state(rollout, step) {
        Some(ReleaseState::Ready) => Ok(name()),
        other => {
            let state = other.map_or_else(|| "not begun".to_owned(), |state| state.to_string());
            Err(Refusal::NotApplied { release: name(), state })
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::fixture;

    fn two_owed() -> RuntimeRollout {
        let mut rollout = fixture::awaiting_acknowledgement();
        rollout.spec.steps.iter_mut().for_each(|step| step.acknowledge = true);
        rollout
    }

    fn acknowledged() -> RuntimeRollout {
        let mut rollout = fixture::awaiting_acknowledgement();
        rollout.spec.acknowledgements = fixture::succeeded().spec.acknowledgements;
        rollout
    }

    fn newer() -> RuntimeRollout {
        let mut rollout = fixture::awaiting_acknowledgement();
        rollout.spec.schema_version = "2".into();
        rollout
    }

    #[rstest]
    #[case::newer(newer(), None, "schema \"2\"")]
    #[case::ended(fixture::succeeded(), None, "has ended (Succeeded)")]
    #[case::too_early(fixture::in_flight(), None, "no release of this rollout waits")]
    #[case::several(two_owed(), None, "name one: cert-manager, gpu-operator, nvsentinel")]
    #[case::stranger(fixture::in_flight(), Some("other"), "has no step for release other")]
    #[case::not_manual(fixture::in_flight(), Some("gpu-operator"), "has no recorded steps")]
    #[case::already(acknowledged(), Some("nvsentinel"), "is already acknowledged")]
    #[case::none_left(acknowledged(), None, "no release of this rollout waits")]
    #[case::in_flight(fixture::in_flight(), Some("nvsentinel"), "not applied yet (not begun)")]
    fn what_cannot_be_acknowledged_says_why(
        #[case] rollout: RuntimeRollout,
        #[case] release: Option<&str>,
        #[case] says: &str,
    ) {
        let refusal = prepare(&rollout, fixture::now(), release, &fixture::author()).unwrap_err();
        assert!(refusal.to_string().contains(says), "{refusal}");
    }

    #[rstest]
    #[case::by_name(Some("nvsentinel"))]
    #[case::the_only_one(None)]
    fn the_whole_list_is_sent_for_the_version_that_was_read(#[case] release: Option<&str>) {
        let mut rollout = fixture::awaiting_acknowledgement();
        let mut earlier = fixture::succeeded().spec.acknowledgements;
        earlier[0].release = "cert-manager".into();
        rollout.spec.acknowledgements = earlier.clone();
        let (release, change) = prepare(&rollout, fixture::now(), release, &fixture::author()).unwrap();
        assert_eq!(release, "nvsentinel");
        assert_eq!(
            change.body(),
            json!({
                "metadata": { "resourceVersion": "4711" },
                "spec": { "acknowledgements": [earlier[0], {
                    "release": "nvsentinel",
                    "reason": "Maintenance window",
                    "acknowledgedBy": { "username": "bob@example.com", "groups": ["platform"] },
                    "acknowledgedAt": "2026-07-01T10:00:00Z",
                }] },
            })
        );
    }
}
