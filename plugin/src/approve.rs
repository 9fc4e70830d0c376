//! Approving: what is sent, or why this rollout cannot be approved.

use aicr_crds::{
    Digest, RuntimeRollout,
    digest::CanonicalError,
    rollout::{Approval, Phase, SCHEMA_VERSION},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::{
    change::{Author, Change, to_the_second},
    time::{flag, relative, stamp},
    view,
};

/// When an approval expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// At the rollout's deadline.
    Deadline,
    /// At this time.
    At(Timestamp),
}

impl Expiry {
    /// This long from now, or at the deadline.
    pub(crate) fn new(length: Option<SignedDuration>, now: Timestamp) -> Self {
        length.map_or(Self::Deadline, |length| {
            Self::At(to_the_second(now.saturating_add(length).unwrap_or(Timestamp::MAX)))
        })
    }
}

/// Why a rollout cannot be approved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// It was written by another operator than this plugin knows.
    #[error("the rollout has schema {0:?}, written by a newer operator; use the plugin of its release")]
    Schema(String),
    /// It is over.
    #[error("the rollout has ended ({0}); approve the next one, or ask for a retry")]
    Ended(Phase),
    /// Somebody was first.
    #[error("already approved by {by} until {until}; an approval can be neither changed nor extended, only revoked")]
    Already {
        /// Who.
        by: String,
        /// Until when, RFC 3339.
        until: String,
    },
    /// No step waits for anybody.
    #[error("no step of this rollout needs approval")]
    NotNeeded,
    /// It is about to end Expired.
    #[error("the rollout's deadline {0} has passed; it ends Expired")]
    PastDeadline(String),
    /// The approval would be over at once.
    #[error("the approval would expire at once; give --expires a longer duration")]
    ExpiresAtOnce,
    /// The approval would outlive the rollout.
    #[error("the approval would expire after the rollout's deadline {deadline}; the longest is --expires {longest}")]
    BeyondDeadline {
        /// RFC 3339.
        deadline: String,
        /// As `--expires` takes it.
        longest: String,
    },
    /// Since it was shown, another rollout took its name.
    #[error("the rollout is not the one that was shown any more; describe it and approve again")]
    Replaced,
    /// No digest, so nothing to bind.
    #[error("compute the binding digest")]
    Digest(#[from] CanonicalError),
}

/// The approval to send.
pub(crate) fn prepare(
    rollout: &RuntimeRollout,
    now: Timestamp,
    expiry: Expiry,
    author: &Author,
) -> Result<Approval, Refusal> {
    let spec = &rollout.spec;
    if spec.schema_version != SCHEMA_VERSION {
        return Err(Refusal::Schema(spec.schema_version.clone()));
    }
    if let Some(phase) = view::ended(rollout) {
        return Err(Refusal::Ended(phase));
    }
    if let Some(approval) = &spec.approval {
        let until = format!("{} ({})", stamp(approval.expires_at.0), relative(approval.expires_at.0, now));
        return Err(Refusal::Already { by: approval.approved_by.username.clone(), until });
    }
    if !spec.needs_approval() {
        return Err(Refusal::NotNeeded);
    }
    Ok(Approval {
        reason: author.reason.clone(),
        expires_at: Time(expires_at(spec.deadline.0, now, expiry)?),
        binding_digest: spec.binding_digest()?,
        approved_by: author.person.clone(),
        approved_at: Time(to_the_second(now)),
    })
}

fn expires_at(deadline: Timestamp, now: Timestamp, expiry: Expiry) -> Result<Timestamp, Refusal> {
    if deadline <= now {
        return Err(Refusal::PastDeadline(format!("{} ({})", stamp(deadline), relative(deadline, now))));
    }
    match expiry {
        Expiry::Deadline => Ok(deadline),
        Expiry::At(at) if at <= now => Err(Refusal::ExpiresAtOnce),
        Expiry::At(at) if at > deadline => {
            Err(Refusal::BeyondDeadline { deadline: stamp(deadline), longest: flag(deadline.duration_since(now)) })
        }
        Expiry::At(at) => Ok(at),
    }
}

/// The patch for an approval; refused when the rollout's digest is not the one that was shown.
pub(crate) fn change(rollout: &RuntimeRollout, approval: &Approval, shown: Digest) -> Result<Change, Refusal> {
    if approval.binding_digest == shown {
        Ok(Change::of(rollout, json!({ "approval": approval })))
    } else {
        Err(Refusal::Replaced)
    }
}

#[cfg(test)]
mod tests {
    use aicr_crds::rollout::Need;
    use kube::ResourceExt;
    use rstest::rstest;

    use super::*;
    use crate::fixture;

    fn after(length: SignedDuration) -> Expiry {
        Expiry::new(Some(length), fixture::now())
    }

    fn no_step_needs_it() -> RuntimeRollout {
        let mut rollout = fixture::pending();
        rollout.spec.steps.iter_mut().for_each(|step| step.approval.need = Need::NotRequired);
        rollout
    }

    fn newer() -> RuntimeRollout {
        let mut rollout = fixture::awaiting_approval();
        rollout.spec.schema_version = "2".into();
        rollout
    }

    fn overdue() -> RuntimeRollout {
        let mut rollout = fixture::awaiting_approval();
        rollout.spec.deadline = Time(fixture::now());
        rollout
    }

    fn ended_without_status() -> RuntimeRollout {
        let mut rollout = fixture::awaiting_approval();
        rollout.status = None;
        rollout.labels_mut().insert(aicr_crds::keys::label::OUTCOME.into(), "Superseded".into());
        rollout
    }

    #[rstest]
    #[case::newer(newer(), Expiry::Deadline, "schema \"2\"")]
    #[case::ended(fixture::succeeded(), Expiry::Deadline, "has ended (Succeeded)")]
    #[case::ended_by_label(ended_without_status(), Expiry::Deadline, "has ended (Superseded)")]
    #[case::approved(
        fixture::in_flight(),
        Expiry::Deadline,
        "already approved by bob@example.com until 2026-07-01T12:00:00Z (in 2h)"
    )]
    #[case::not_needed(no_step_needs_it(), Expiry::Deadline, "no step of this rollout needs approval")]
    #[case::overdue(overdue(), Expiry::Deadline, "deadline 2026-07-01T10:00:00Z")]
    #[case::at_once(fixture::pending(), after(SignedDuration::ZERO), "expire at once")]
    #[case::too_long(fixture::pending(), after(SignedDuration::from_hours(5)), "the longest is --expires 4h10m")]
    #[case::absurd(fixture::pending(), after(SignedDuration::MAX), "the longest is --expires 4h10m")]
    fn what_cannot_be_approved_says_why(#[case] rollout: RuntimeRollout, #[case] expiry: Expiry, #[case] says: &str) {
        let refusal = prepare(&rollout, fixture::now(), expiry, &fixture::author()).unwrap_err();
        assert!(refusal.to_string().contains(says), "{refusal}");
    }

    #[test]
    fn an_approval_binds_what_was_read_and_lasts_until_the_deadline() {
        let rollout = fixture::awaiting_approval();
        let approval = prepare(&rollout, fixture::now(), Expiry::Deadline, &fixture::author()).unwrap();
        assert_eq!(approval.expires_at, rollout.spec.deadline);
        let change = change(&rollout, &approval, rollout.spec.binding_digest().unwrap()).unwrap();
        assert_eq!(
            change.body(),
            json!({
                "metadata": { "resourceVersion": "4711" },
                "spec": { "approval": {
                    "reason": "Maintenance window",
                    "expiresAt": "2026-07-01T14:10:00Z",
                    "bindingDigest": rollout.spec.binding_digest().unwrap(),
                    "approvedBy": { "username": "bob@example.com", "groups": ["platform"] },
                    "approvedAt": "2026-07-01T10:00:00Z",
                } },
            })
        );
    }

    #[test]
    fn the_deadline_itself_is_the_longest_expiry() {
        let rollout = fixture::pending();
        let exact = Expiry::At(rollout.spec.deadline.0);
        let approval = prepare(&rollout, fixture::now(), exact, &fixture::author()).unwrap();
        assert_eq!(approval.expires_at, rollout.spec.deadline);
        let over = Expiry::At(rollout.spec.deadline.0 + SignedDuration::from_secs(1));
        assert!(prepare(&rollout, fixture::now(), over, &fixture::author()).is_err());
    }

    #[test]
    fn another_rollout_under_the_same_name_is_not_approved() {
        let rollout = fixture::pending();
        let approval = prepare(&rollout, fixture::now(), Expiry::Deadline, &fixture::author()).unwrap();
        assert!(matches!(change(&rollout, &approval, Digest::of(b"shown")), Err(Refusal::Replaced)));
    }
}
