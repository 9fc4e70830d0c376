//! What a write adds of people's consent.

use aicr_crds::rollout::{Acknowledgement, Approval, Person, Revocation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;

use super::{ACKNOWLEDGEMENTS, APPROVAL, REVOCATION, Rollout};
use crate::{
    fields::{Fields, same},
    verdict::{Denial, Rule},
};

const UNREADABLE: &str =
    "an approval, revocation or acknowledgement cannot be read; use kubectl aicr approve, revoke or acknowledge";

/// What the new object has and the old one lacks.
#[derive(Debug, Default)]
pub(super) struct Added {
    pub(super) approval: Option<Approval>,
    pub(super) revocation: Option<Revocation>,
    pub(super) acknowledgements: Vec<Acknowledgement>,
}

impl Added {
    /// Compares two versions of a rollout.
    pub(super) fn between(old: &Rollout<'_>, new: &Rollout<'_>) -> Result<Self, Denial> {
        Ok(Self {
            approval: added(&old.spec, &new.spec, APPROVAL)?,
            revocation: added(&old.spec, &new.spec, REVOCATION)?,
            acknowledgements: acknowledgements(&old.spec, &new.spec)?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.approval.is_none() && self.revocation.is_none() && self.acknowledgements.is_empty()
    }

    /// Who is said to have consented, and when.
    pub(super) fn stamps(&self) -> impl Iterator<Item = (&Person, &Time)> {
        let approval = self.approval.iter().map(|given| (&given.approved_by, &given.approved_at));
        let revocation = self.revocation.iter().map(|given| (&given.revoked_by, &given.revoked_at));
        let rest = self.acknowledgements.iter().map(|given| (&given.acknowledged_by, &given.acknowledged_at));
        approval.chain(revocation).chain(rest)
    }
}

fn added<'a, T: Deserialize<'a>>(old: &Fields<'a>, new: &Fields<'a>, field: &str) -> Result<Option<T>, Denial> {
    match (old.get(field), new.get(field)) {
        (None, Some(value)) => {
            serde_json::from_str(value.get()).map(Some).map_err(|_| Rule::Readable.forbids(UNREADABLE))
        }
        (None | Some(_), None) | (Some(_), Some(_)) => Ok(None),
    }
}

fn acknowledgements(old: &Fields<'_>, new: &Fields<'_>) -> Result<Vec<Acknowledgement>, Denial> {
    if same(old.get(ACKNOWLEDGEMENTS), new.get(ACKNOWLEDGEMENTS)) {
        return Ok(Vec::new());
    }
    let (held, mut listed) = (list(old)?, list(new)?);
    listed.retain(|given| !held.iter().any(|held| held.release == given.release));
    Ok(listed)
}

/// All acknowledgements of a spec.
pub(super) fn list(spec: &Fields<'_>) -> Result<Vec<Acknowledgement>, Denial> {
    let Some(listed) = spec.get(ACKNOWLEDGEMENTS) else { return Ok(Vec::new()) };
    serde_json::from_str(listed.get()).map_err(|_| Rule::Readable.forbids(UNREADABLE))
}
