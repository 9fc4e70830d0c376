//! What people do to a rollout.

use aicr_crds::rollout::{Acknowledgement, Approval, Person, Revocation};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Story;

impl Story {
    pub(crate) fn approve(&mut self, expires_in: Option<SignedDuration>) {
        let now = self.now;
        let spec = &mut self.unfinished().spec;
        let expires_at = expires_in.map_or(spec.deadline.clone(), |window| Time(now + window));
        let binding_digest = spec.binding_digest().unwrap();
        spec.approval = Some(Approval {
            reason: "maintenance".into(),
            expires_at,
            binding_digest,
            approved_by: person("alice"),
            approved_at: Time(now),
        });
    }

    pub(crate) fn revoke(&mut self) {
        let now = self.now;
        self.unfinished().spec.revocation =
            Some(Revocation { reason: "not yet".into(), revoked_by: person("bob"), revoked_at: Time(now) });
    }

    pub(crate) fn acknowledge(&mut self, release: &str) {
        let entry = Acknowledgement {
            release: release.into(),
            reason: "done".into(),
            acknowledged_by: person("alice"),
            acknowledged_at: Time(self.now),
        };
        self.unfinished().spec.acknowledgements.push(entry);
    }

    /// Losing all of status must lose nothing.
    pub(crate) fn lose_status(&mut self) {
        self.runtime.status = None;
        for rollout in &mut self.rollouts {
            rollout.status = None;
        }
    }
}

fn person(name: &str) -> Person {
    Person { username: name.into(), groups: vec![] }
}
