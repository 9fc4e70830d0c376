//! ClusterRuntimes: who may write what, and what CEL cannot say of the spec.

use std::collections::BTreeMap;

use aicr_crds::{keys::finalizer::CLEANUP, runtime::NAME};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    authors::{self, Edit},
    fields::Fields,
    known::Known,
    policy::Policy,
    review::{Named, Operation, Review, Text},
    verdict::{Denial, Rule, Verdict, Warning},
};

/// The two emergency brakes: whoever may patch the runtime may pull them, with the door down too.
pub(crate) const BRAKES: [&str; 2] = ["paused", "suspendEngine"];
/// What the API server itself changes in an object's metadata.
const KEPT_BY_SERVER: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// What is judged of a ClusterRuntime.
#[derive(Debug, Deserialize)]
pub(crate) struct Runtime<'a> {
    #[serde(borrow)]
    metadata: Fields<'a>,
    #[serde(borrow, default)]
    spec: Fields<'a>,
}

impl Named for Runtime<'_> {
    fn name(&self) -> Option<&str> {
        // The request names it; a collection of one has no other name.
        Some(NAME)
    }
}

struct Case<'r, 'a> {
    review: &'r Review<'a, Runtime<'a>>,
    object: &'r Runtime<'a>,
    old: Option<&'r Runtime<'a>>,
    policy: &'r Policy,
    known: &'r Known,
    now: Timestamp,
}

/// Judges one write.
pub(crate) fn judge<'a>(review: &Review<'a, Runtime<'a>>, policy: &Policy, known: &Known, now: Timestamp) -> Verdict {
    let missing = || Rule::Readable.forbids("the review lacks the object; the API server's webhook call is broken");
    let old = match review.operation {
        Operation::Delete => return Verdict::ALLOW,
        Operation::Connect => return Verdict::Deny(missing()),
        Operation::Create => None,
        Operation::Update => review.old.as_ref(),
    };
    let Some(object) = &review.object else { return Verdict::Deny(missing()) };
    if review.operation == Operation::Update && old.is_none() {
        return Verdict::Deny(missing());
    }
    check(&Case { review, object, old, policy, known, now }).into()
}

fn check(case: &Case<'_, '_>) -> Result<Vec<Warning>, Denial> {
    if case.review.is_status() {
        return status(case).map(|()| Vec::new());
    }
    if case.policy.is_operator(&case.review.user) {
        return operator(case).map(|()| Vec::new());
    }
    name(case)?;
    adoption(case)?;
    written_authors(case)?;
    Ok(warnings(&case.object.spec))
}

fn status(case: &Case<'_, '_>) -> Result<(), Denial> {
    if case.policy.is_operator(&case.review.user) {
        return Ok(());
    }
    Err(Rule::RuntimeStatus.forbids("status is written by the operator alone; change spec instead"))
}

fn operator(case: &Case<'_, '_>) -> Result<(), Denial> {
    let refused = Rule::RuntimeOperator
        .forbids("the operator changes nothing of a ClusterRuntime but its own finalizer and status; ask a person");
    let Some(old) = case.old else { return Err(refused) };
    let besides: Vec<&str> = KEPT_BY_SERVER.into_iter().chain(["finalizers"]).collect();
    let same =
        case.object.spec.same_besides(&old.spec, &[]) && case.object.metadata.same_besides(&old.metadata, &besides);
    if same && others(&case.object.metadata) == others(&old.metadata) { Ok(()) } else { Err(refused) }
}

/// Everybody else's finalizers.
fn others(metadata: &Fields<'_>) -> Option<Vec<String>> {
    let Some(list) = metadata.get("finalizers") else { return Some(Vec::new()) };
    let list: Vec<String> = serde_json::from_str(list.get()).ok()?;
    Some(list.into_iter().filter(|name| name != CLEANUP).collect())
}

fn name(case: &Case<'_, '_>) -> Result<(), Denial> {
    let named = case.object.metadata.text("name");
    if case.old.is_some() || named.as_ref().map(Text::as_str) == Some(NAME) {
        return Ok(());
    }
    Err(Rule::RuntimeName.forbids("a ClusterRuntime must be named cluster; there is one for the whole cluster"))
}

type Selector = BTreeMap<String, String>;

#[derive(Deserialize)]
struct Placement {
    accelerated: Group,
    #[serde(default)]
    system: Option<Group>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Group {
    node_selector: Selector,
}

/// Whether one group's selector contains the other's, so that every node of the narrower one is in both. No refusal:
/// which nodes there are is for discovery to see, and the runtime then says `PlacementOverlap` with their names.
fn overlaps(spec: &Fields<'_>) -> bool {
    let Some(Placement { accelerated, system: Some(system) }) = spec.read("placement") else { return false };
    let (one, other) = (accelerated.node_selector, system.node_selector);
    let within = |narrow: &Selector, wide: &Selector| wide.iter().all(|(key, value)| narrow.get(key) == Some(value));
    !other.is_empty() && (within(&one, &other) || within(&other, &one))
}

fn adoption(case: &Case<'_, '_>) -> Result<(), Denial> {
    let adopted = case.object.spec.get("adoption").and_then(|adoption| Fields::of(adoption).ok());
    let uid = adopted.and_then(|adoption| adoption.text("runtimeUID"));
    if uid.is_none() || is_unchanged(case, "adoption") || uid != case.object.metadata.text("uid") {
        return Ok(());
    }
    Err(Rule::RuntimeSpec
        .forbids("spec.adoption.runtimeUID is this runtime's own UID; name the earlier runtime, or leave it out"))
}

fn is_unchanged(case: &Case<'_, '_>, field: &str) -> bool {
    case.old.is_some_and(|old| crate::fields::same(old.spec.get(field), case.object.spec.get(field)))
}

fn written_authors(case: &Case<'_, '_>) -> Result<(), Denial> {
    let before = case.old.and_then(|old| authors_of(&old.metadata));
    let after = authors_of(&case.object.metadata);
    let (before, after) = (before.as_ref().map(Text::as_str), after.as_ref().map(Text::as_str));
    if case.old.is_some_and(|old| case.object.spec.same_besides(&old.spec, &BRAKES)) {
        return authors::unchanged(before, after);
    }
    let uid = case.old.and_then(|old| old.metadata.text("uid")).unwrap_or_default();
    let user = case.review.user.name();
    Edit { before, user, runtime_uid: uid.as_str(), known: case.known, now: case.now }.check(after)
}

fn authors_of<'a>(metadata: &Fields<'a>) -> Option<Text<'a>> {
    let annotations: &'a RawValue = metadata.get("annotations")?;
    let annotations: Annotations<'a> = serde_json::from_str(annotations.get()).ok()?;
    annotations.spec_changed_by
}

#[derive(Deserialize)]
struct Annotations<'a> {
    #[serde(borrow, default, rename = "operator.aicr.run/spec-changed-by")]
    spec_changed_by: Option<Text<'a>>,
}

fn warnings(spec: &Fields<'_>) -> Vec<Warning> {
    let deletes = spec.text("deletionPolicy").is_some_and(|policy| policy.as_str() == "Delete");
    let validation = spec.get("validation").and_then(|validation| Fields::of(validation).ok());
    let word = validation.and_then(|validation| validation.text("deployment"));
    let disabled = word.is_some_and(|word| word.as_str() == "Disabled");
    let said = [
        (deletes, Warning::DeletionDeletes),
        (disabled, Warning::ValidationDisabled),
        (overlaps(spec), Warning::PlacementOverlaps),
    ];
    said.into_iter().filter_map(|(holds, warning)| holds.then_some(warning)).collect()
}

#[cfg(test)]
mod tests;
