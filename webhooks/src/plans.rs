//! Plan ConfigMaps: the operator makes them, and nobody changes one.

use aicr_crds::{
    keys::{label, role},
    plan::{StoredPlan, StoredPlanError},
};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    fields::{Fields, same},
    policy::Policy,
    review::{Named, Operation, Review},
    verdict::{Denial, Rule, Verdict},
};

/// What the API server may change in a write that changes nothing.
const KEPT_BY_SERVER: [&str; 2] = ["managedFields", "resourceVersion"];

/// A ConfigMap as it came; it may be a mebibyte, and is read further only when a rule needs it.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Map<'a>(#[serde(borrow)] &'a RawValue);

impl Named for Map<'_> {
    fn name(&self) -> Option<&str> {
        None
    }
}

/// Judges one write.
pub(crate) fn judge(review: &Review<'_, Map<'_>>, policy: &Policy) -> Verdict {
    let judged = match review.operation {
        // The page tells people to delete a damaged plan.
        Operation::Delete => Ok(()),
        Operation::Connect => Err(missing()),
        Operation::Create => create(review, policy),
        Operation::Update => update(review, policy),
    };
    judged.map(|()| Vec::new()).into()
}

fn create(review: &Review<'_, Map<'_>>, policy: &Policy) -> Result<(), Denial> {
    let object = review.object.as_ref().ok_or_else(missing)?;
    if !is_plan(object, review, policy)? {
        return Ok(());
    }
    if !policy.is_operator(&review.user) {
        return Err(Rule::PlanCreation.forbids(
            "plans are stored by the operator alone; to choose one, name its digest in spec.selection of the ClusterRuntime",
        ));
    }
    let map: ConfigMap = serde_json::from_str(object.0.get()).map_err(|_| missing())?;
    if map.immutable != Some(true) {
        return Err(Rule::PlanIntegrity.forbids("a plan must be immutable; report this defect of the operator"));
    }
    StoredPlan::from_config_map(&map).map(|_| ()).map_err(|error| Rule::PlanIntegrity.forbids(words(&error)))
}

fn words(error: &StoredPlanError) -> &'static str {
    match error {
        StoredPlanError::Schema(_) => {
            "the schema-version label is not one that this operator reads; upgrade the operator"
        }
        StoredPlanError::Disagree { .. } => {
            "name, plan-digest annotation and payload do not agree; the operator must store the plan again"
        }
        StoredPlanError::Absent { .. }
        | StoredPlanError::Unreadable { .. }
        | StoredPlanError::Expand { .. }
        | StoredPlanError::Invalid { .. } => "its payload is no plan; the operator must store the plan again",
    }
}

fn update(review: &Review<'_, Map<'_>>, policy: &Policy) -> Result<(), Denial> {
    let (Some(object), Some(old)) = (&review.object, &review.old) else { return Err(missing()) };
    if !is_plan(object, review, policy)? && !is_plan(old, review, policy)? {
        return Ok(());
    }
    // A storage migration writes every object back as it is.
    if is_unchanged(&fields(old)?, &fields(object)?)? {
        return Ok(());
    }
    Err(Rule::PlanImmutability.forbids(
        "a plan is never changed, nor made of another ConfigMap; delete it if it is damaged, and the operator stores it again",
    ))
}

fn is_plan(map: &Map<'_>, review: &Review<'_, Map<'_>>, policy: &Policy) -> Result<bool, Denial> {
    if review.namespace.as_str() != policy.namespace {
        return Ok(false);
    }
    let fields = fields(map)?;
    let Some(metadata) = fields.get("metadata") else { return Ok(false) };
    let metadata = Fields::of(metadata).map_err(|_| missing())?;
    let Some(labels) = metadata.get("labels") else { return Ok(false) };
    let labels = Fields::of(labels).map_err(|_| missing())?;
    Ok(labels.text(label::ROLE).is_some_and(|word| word.as_str() == role::PLAN))
}

fn is_unchanged(old: &Fields<'_>, new: &Fields<'_>) -> Result<bool, Denial> {
    if same(old.get("metadata"), new.get("metadata")) && old.same_besides(new, &[]) {
        return Ok(true);
    }
    let (Some(before), Some(after)) = (old.get("metadata"), new.get("metadata")) else { return Ok(false) };
    let before = Fields::of(before).map_err(|_| missing())?;
    let after = Fields::of(after).map_err(|_| missing())?;
    Ok(old.same_besides(new, &["metadata"]) && before.same_besides(&after, &KEPT_BY_SERVER))
}

fn fields<'a>(map: &Map<'a>) -> Result<Fields<'a>, Denial> {
    Fields::of(map.0).map_err(|_| missing())
}

fn missing() -> Denial {
    Rule::Readable.forbids("the review holds no ConfigMap that can be read; the API server's webhook call is broken")
}

#[cfg(test)]
mod tests;
