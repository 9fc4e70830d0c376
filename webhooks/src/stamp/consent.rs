//! Who approves, revokes or acknowledges, and when.

use aicr_crds::rollout::Person;
use jiff::Timestamp;
use json_patch::PatchOperation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{json, value::RawValue};

use super::{Stampable, set};
use crate::{
    fields::Fields,
    person::{is_fresh, recorded, to_the_second},
    review::Review,
};

/// The two members that are stamped.
struct Names {
    by: &'static str,
    at: &'static str,
}

const APPROVAL: Names = Names { by: "approvedBy", at: "approvedAt" };
const REVOCATION: Names = Names { by: "revokedBy", at: "revokedAt" };
const ACKNOWLEDGEMENT: Names = Names { by: "acknowledgedBy", at: "acknowledgedAt" };

/// Stamps what this write adds.
pub(super) fn stamps(
    review: &Review<'_, Stampable<'_>>,
    object: &Stampable<'_>,
    now: Timestamp,
) -> Vec<PatchOperation> {
    // On CREATE nobody consents: the validating webhook refuses it.
    let Some(old) = &review.old else { return Vec::new() };
    let person = recorded(&review.user);
    let mut stamps = Vec::new();
    for (field, names) in [("approval", &APPROVAL), ("revocation", &REVOCATION)] {
        if let (Some(added), None) = (object.spec.get(field), old.spec.get(field)) {
            stamps.extend(missing(added, names, &person, now).map(|(name, value)| set(["spec", field, name], value)));
        }
    }
    let held: Vec<Fields<'_>> = old.spec.read("acknowledgements").unwrap_or_default();
    let listed: Vec<&RawValue> = object.spec.read("acknowledgements").unwrap_or_default();
    for (index, entry) in listed.into_iter().enumerate() {
        let release = Fields::of(entry).ok().and_then(|entry| entry.text("release"));
        if held.iter().any(|held| held.text("release") == release) {
            continue;
        }
        let index = index.to_string();
        let added = missing(entry, &ACKNOWLEDGEMENT, &person, now);
        stamps.extend(added.map(|(name, value)| set(["spec", "acknowledgements", &index, name], value)));
    }
    stamps
}

/// What the entry does not already say of this requester and this moment.
fn missing<'n>(
    entry: &RawValue,
    names: &'n Names,
    person: &Person,
    now: Timestamp,
) -> impl Iterator<Item = (&'n str, serde_json::Value)> {
    let fields = Fields::of(entry).unwrap_or_default();
    let by: Option<Person> = fields.read(names.by);
    let at: Option<Time> = fields.read(names.at);
    let is_stamped = by.as_ref() == Some(person) && at.is_some_and(|at| is_fresh(at.0, now));
    let stamp = [(names.by, json!(person)), (names.at, json!(Time(to_the_second(now))))];
    stamp.into_iter().filter(move |_| fields.is_object() && !is_stamped)
}
