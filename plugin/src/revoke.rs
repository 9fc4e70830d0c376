//! Revoking: withdrawing an approval, once, while there is still something to stop.

use aicr_crds::{
    RuntimeRollout,
    rollout::{Phase, Revocation, SCHEMA_VERSION},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::{
    change::{Author, Change, to_the_second},
    time::stamp,
    view,
};

/// Why a rollout cannot be revoked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// It was written by another operator than this plugin knows.
    #[error("the rollout has schema {0:?}, written by a newer operator; use the plugin of its release")]
    Schema(String),
    /// It is over.
    #[error("the rollout has ended ({0}); there is nothing to revoke")]
    Ended(Phase),
    /// Every change is made.
    #[error("the rollout is Validating: every change has been made, so there is nothing to revoke")]
    Validating,
    /// There is no approval.
    #[error("the rollout is not approved, so there is nothing to revoke")]
    NotApproved,
    /// Somebody was first.
    #[error("already revoked by {by} at {at}")]
    Already {
        /// Who.
        by: String,
        /// When, RFC 3339.
        at: String,
    },
}

/// The patch that withdraws the approval.
pub(crate) fn prepare(rollout: &RuntimeRollout, now: Timestamp, author: &Author) -> Result<Change, Refusal> {
    let spec = &rollout.spec;
    if spec.schema_version != SCHEMA_VERSION {
        return Err(Refusal::Schema(spec.schema_version.clone()));
    }
    if let Some(phase) = view::ended(rollout) {
        return Err(Refusal::Ended(phase));
    }
    if let Some(known) = &spec.revocation {
        return Err(Refusal::Already { by: known.revoked_by.username.clone(), at: stamp(known.revoked_at.0) });
    }
    if view::phase(rollout) == Some(Phase::Validating) {
        return Err(Refusal::Validating);
    }
    if spec.approval.is_none() {
        return Err(Refusal::NotApproved);
    }
    let revocation = Revocation {
        reason: author.reason.clone(),
        revoked_by: author.person.clone(),
        revoked_at: Time(to_the_second(now)),
    };
    Ok(Change::of(rollout, json!({ "revocation": revocation })))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::fixture;

    fn with_phase(phase: Phase) -> RuntimeRollout {
        let mut rollout = fixture::in_flight();
        rollout.status.as_mut().unwrap().phase = Some(phase);
        rollout
    }

    fn revoked() -> RuntimeRollout {
        let mut rollout = fixture::in_flight();
        rollout.spec.revocation = Some(Revocation {
            reason: "Stop".into(),
            revoked_by: fixture::author().person,
            revoked_at: Time(fixture::now()),
        });
        rollout
    }

    #[rstest]
    #[case::ended(with_phase(Phase::Failed), "has ended (Failed)")]
    #[case::validating(with_phase(Phase::Validating), "is Validating")]
    #[case::not_approved(fixture::awaiting_approval(), "is not approved")]
    #[case::revoked(revoked(), "already revoked by bob@example.com at 2026-07-01T10:00:00Z")]
    fn what_cannot_be_revoked_says_why(#[case] rollout: RuntimeRollout, #[case] says: &str) {
        let refusal = prepare(&rollout, fixture::now(), &fixture::author()).unwrap_err();
        assert!(refusal.to_string().contains(says), "{refusal}");
    }

    #[test]
    fn a_revocation_says_who_when_and_why() {
        let change = prepare(&fixture::in_flight(), fixture::now(), &fixture::author()).unwrap();
        assert_eq!(
            change.body()["spec"],
            json!({ "revocation": {
                "reason": "Maintenance window",
                "revokedBy": { "username": "bob@example.com", "groups": ["platform"] },
                "revokedAt": "2026-07-01T10:00:00Z",
            } })
        );
    }
}
