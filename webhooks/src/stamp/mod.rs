//! The mutating webhook: writes down who consents and who changes the spec, and touches nothing else.

mod consent;
mod runtime;

use jiff::Timestamp;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, jsonptr::PointerBuf};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    fields::Fields,
    known::Known,
    review::{Kind, Named, Operation, Review, Text},
    verdict::{Denial, Rule, Verdict},
};

/// The kinds that are stamped.
pub(crate) const KINDS: [Kind; 2] = [Kind::RuntimeRollout, Kind::ClusterRuntime];

/// What is stamped of either kind. Asked before the schema is: anything may stand where an object should, and is left
/// for the schema to refuse in its own words.
#[derive(Debug, Deserialize)]
pub(crate) struct Stampable<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: Fields<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    uid: Option<Text<'a>>,
    #[serde(borrow, default)]
    annotations: Option<Annotations<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Annotations<'a> {
    #[serde(borrow, default, rename = "operator.aicr.run/spec-changed-by")]
    spec_changed_by: Option<Text<'a>>,
}

impl Named for Stampable<'_> {
    fn name(&self) -> Option<&str> {
        self.metadata.name.as_ref().map(Text::as_str)
    }
}

impl Stampable<'_> {
    fn authors(&self) -> Option<&str> {
        self.metadata.annotations.as_ref()?.spec_changed_by.as_ref().map(Text::as_str)
    }
}

/// What is stamped; idempotent, so that the API server may ask twice.
pub(crate) fn judge(review: &Review<'_, Stampable<'_>>, known: &Known, now: Timestamp) -> Verdict {
    match stamps(review, known, now) {
        Ok(stamps) if stamps.is_empty() => Verdict::ALLOW,
        Ok(stamps) => Verdict::Patch(Patch(stamps)),
        Err(denial) => Verdict::Deny(denial),
    }
}

fn stamps(review: &Review<'_, Stampable<'_>>, known: &Known, now: Timestamp) -> Result<Vec<PatchOperation>, Denial> {
    match review.operation {
        Operation::Create | Operation::Update => {}
        Operation::Delete | Operation::Connect => return Ok(Vec::new()),
    }
    let missing = || Rule::Readable.forbids("the review lacks the object; the API server's webhook call is broken");
    let object = review.object.as_ref().ok_or_else(missing)?;
    if review.operation == Operation::Update && review.old.is_none() {
        return Err(missing());
    }
    if !object.spec.is_object() {
        return Ok(Vec::new());
    }
    match review.kind {
        Kind::RuntimeRollout => Ok(consent::stamps(review, object, now)),
        Kind::ClusterRuntime => runtime::stamps(review, object, known, now),
        Kind::Application | Kind::ConfigMap => Ok(Vec::new()),
    }
}

/// Sets a member of an object, whether it is there or not.
fn set<const N: usize>(path: [&str; N], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path), value })
}

fn unset<const N: usize>(path: [&str; N]) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path: PointerBuf::from_tokens(path) })
}

#[cfg(test)]
mod tests;
