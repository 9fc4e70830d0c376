//! A rollout as it is created: everything fixed, nothing defaulted.

use std::collections::{BTreeMap, BTreeSet};

use aicr_crds::{
    RuntimeRollout, RuntimeRolloutSpec,
    keys::{annotation, label},
    reason::Outcome,
    rollout::{AssessmentRef, Author, InventoryItem, RolloutKind, RuntimeRef, Step},
    runtime::SelectionPolicy,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::{
    assess::{Transition, rollout_name},
    rollout::is_owned,
    seen::{Assessment, World, outcome},
};

/// The rollout of a transition, created at `now`.
pub(super) fn rollout(
    transition: &Transition<'_>,
    steps: Vec<Step>,
    assessment: Option<&Assessment>,
    now: Timestamp,
) -> RuntimeRollout {
    let world = transition.world;
    let target = transition.target.digest();
    let (name, attempt) = rollout_name(&format!("rollout-{}", target.short()), &world.rollout_names);
    let spec = &world.runtime.spec;
    let window = aicr_crds::duration::parse(&spec.rollout.deadline).unwrap_or(SignedDuration::from_hours(6));
    let spec = RuntimeRolloutSpec {
        schema_version: aicr_crds::rollout::SCHEMA_VERSION.to_owned(),
        runtime: RuntimeRef {
            name: world.runtime.metadata.name.clone().unwrap_or_default(),
            uid: world.uid().to_owned(),
        },
        kind: RolloutKind::Change,
        from_plan_digest: world.active(),
        target_plan_digest: Some(target),
        target: Some(target.short()),
        attempt,
        retry_token: world.token(),
        selection: spec.selection.policy,
        requested_by: authors(world),
        steps,
        inventory: inventory(world),
        action_timeout: spec.rollout.action_timeout.clone(),
        deadline: Time(whole_seconds(now + window)),
        validation: spec.validation.deployment,
        assessment: assessment
            .map(|assessment| AssessmentRef { config_map: assessment.config_map.clone(), digest: assessment.digest }),
        approval: None,
        revocation: None,
        acknowledgements: Vec::new(),
    };
    let labels = BTreeMap::from([(label::MANAGED_BY.to_owned(), label::MANAGED_BY_VALUE.to_owned())]);
    RuntimeRollout {
        metadata: ObjectMeta { name: Some(name), labels: Some(labels), ..ObjectMeta::default() },
        spec,
        status: None,
    }
}

/// Kubernetes times have whole seconds; what is bound by a digest must not change on the way.
fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

fn inventory(world: &World) -> Vec<InventoryItem> {
    let owned = world.applications.iter().filter(|application| is_owned(application, world.uid()));
    let mut items: Vec<InventoryItem> = owned
        .map(|application| InventoryItem {
            application: application.name().to_owned(),
            uid: application.uid().to_owned(),
            plan_digest: application.annotation(annotation::PLAN_DIGEST).and_then(|digest| digest.parse().ok()),
            fingerprint: application.fingerprint,
        })
        .collect();
    items.sort_by(|one, other| one.application.cmp(&other.application));
    items
}

/// Entries of `spec-changed-by` that no `Succeeded` rollout of kind Change with selection Automatic holds with the same
/// time: a success frees exactly the edits it carried.
fn authors(world: &World) -> Vec<Author> {
    let entries = changed_by(world).unwrap_or_default();
    let carrying = world.rollouts.iter().filter(|rollout| {
        let automatic =
            rollout.spec.kind == RolloutKind::Change && rollout.spec.selection == SelectionPolicy::Automatic;
        automatic && outcome(rollout) == Some(Outcome::Succeeded)
    });
    let spent: BTreeSet<&Author> = carrying.flat_map(|rollout| &rollout.spec.requested_by).collect();
    entries.iter().filter(|entry| !spent.contains(entry)).take(64).cloned().collect()
}

/// Who changed the runtime's spec, as its annotation says; an error where that cannot be read, since a list that is taken
/// for empty would free everybody.
pub(super) fn changed_by(world: &World) -> Result<Vec<Author>, serde_json::Error> {
    let annotations = world.runtime.metadata.annotations.as_ref();
    annotations
        .and_then(|all| all.get(annotation::SPEC_CHANGED_BY))
        .map_or_else(|| Ok(Vec::new()), |text| serde_json::from_str(text))
}
