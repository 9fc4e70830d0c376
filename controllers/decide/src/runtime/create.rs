//! A rollout as it is created: everything fixed, nothing defaulted.

use std::collections::{BTreeMap, BTreeSet};

use aicr_crds::{
    Digest, RuntimeRollout, RuntimeRolloutSpec,
    application::{Application, Ownership},
    keys::{annotation, label},
    reason::Outcome,
    rollout::{
        AssessmentRef, Author, ChartRef, InventoryItem, Need, Operation, RolloutKind, RuntimeRef, Step, StepApproval,
    },
    runtime::{DeploymentValidation, SelectionPolicy},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::{
    place::{owned, remover},
    rebuild::Rebuilt,
    verdict::{Verdict, Why, Write},
};
use crate::{
    assess::{REMOVES, Transition, application_chart, chart_ref, rollout_name},
    seen::{Assessment, World, age_key, outcome},
};

/// The rollout of a transition, created at `now`.
pub(super) fn rollout(
    transition: &Transition<'_>,
    steps: Vec<Step>,
    assessment: Option<&Assessment>,
    now: Timestamp,
) -> RuntimeRollout {
    let target = transition.target.digest();
    let prefix = format!("rollout-{}", target.short());
    let made = Made { kind: RolloutKind::Change, prefix, target: Some(target), steps };
    let mut rollout = new(transition.world, made, &owned(transition.world).collect::<Vec<_>>(), now);
    rollout.spec.assessment = assessment
        .map(|assessment| AssessmentRef { config_map: assessment.config_map.clone(), digest: assessment.digest });
    rollout
}

/// Creates it; not in the second of another one, since Kubernetes' times would not tell which is the newer.
pub(super) fn verdict(world: &World, rollout: RuntimeRollout, now: Timestamp) -> Verdict {
    let name = rollout.metadata.name.clone().unwrap_or_default();
    let newest = world.rollouts.iter().filter_map(|rollout| age_key(rollout).0).max();
    match newest.filter(|newest| newest.as_second() >= now.as_second()) {
        Some(newest) => Verdict::Wait(Why::Creating(name), Some(whole_seconds(newest) + SignedDuration::from_secs(1))),
        None => Verdict::Do(Write::CreateRollout(Box::new(rollout)), Why::Creating(name)),
    }
}

/// The rollout that takes over an earlier runtime's Applications.
pub(super) fn adoption(
    world: &World,
    rebuilt: &Rebuilt,
    applications: &[&Application],
    now: Timestamp,
) -> RuntimeRollout {
    let target = rebuilt.plan.digest();
    let steps = rebuilt.plan.releases().map(|release| {
        let chart = chart_ref(release);
        bare(&release.content.id, Operation::Adopt, Some(chart.clone()), Some(chart), "takes over a release")
    });
    let prefix = format!("adopt-{}", target.short());
    let made = Made { kind: RolloutKind::Adopt, prefix, target: Some(target), steps: steps.collect() };
    // What is ours already and beside them would otherwise count as having appeared.
    let taken: BTreeSet<&str> = applications.iter().map(|application| application.name()).collect();
    let others = owned(world).filter(|own| !taken.contains(own.name()));
    let inventory: Vec<&Application> = applications.iter().copied().chain(others).collect();
    new(world, made, &inventory, now)
}

/// The rollout that removes every owned Application, in reverse order, found from the live Applications alone.
pub(super) fn removal(world: &World, now: Timestamp) -> RuntimeRollout {
    let mut all: Vec<&Application> = owned(world).collect();
    let place = |application: &Application| Ownership::read(application).ok().map(|ownership| ownership.order);
    all.sort_by_key(|application| std::cmp::Reverse((place(application), application.name().to_owned())));
    let steps = all.iter().map(|application| {
        let from = application_chart(application, &world.settings.engine.repository);
        let mut step = bare(application.name(), Operation::Remove, from, None, "removes a release");
        step.warnings = vec![REMOVES.to_owned()];
        step
    });
    let hex: String = world.uid().chars().filter(char::is_ascii_alphanumeric).take(16).collect();
    let made =
        Made { kind: RolloutKind::Remove, prefix: format!("remove-{hex}"), target: None, steps: steps.collect() };
    new(world, made, &all, now)
}

fn bare(release: &str, operation: Operation, from: Option<ChartRef>, to: Option<ChartRef>, reason: &str) -> Step {
    Step {
        release: release.to_owned(),
        operation,
        from,
        to,
        values_changed: false,
        verdict: None,
        crds: Vec::new(),
        approval: StepApproval { need: Need::Required, reason: reason.to_owned() },
        acknowledge: false,
        warnings: Vec::new(),
    }
}

/// What differs between the kinds of rollout.
struct Made {
    kind: RolloutKind,
    prefix: String,
    target: Option<Digest>,
    steps: Vec<Step>,
}

fn new(world: &World, made: Made, applications: &[&Application], now: Timestamp) -> RuntimeRollout {
    let Made { kind, prefix, target, steps } = made;
    let (name, attempt) = rollout_name(&prefix, &names(world));
    let spec = &world.runtime.spec;
    let window = aicr_crds::duration::parse(&spec.rollout.deadline).unwrap_or(SignedDuration::from_hours(6));
    let spec = RuntimeRolloutSpec {
        schema_version: aicr_crds::rollout::SCHEMA_VERSION.to_owned(),
        runtime: RuntimeRef {
            name: world.runtime.metadata.name.clone().unwrap_or_default(),
            uid: world.uid().to_owned(),
        },
        kind,
        from_plan_digest: world.active(),
        target_plan_digest: target,
        target: target.map(|target| target.short()),
        attempt,
        retry_token: world.token(),
        selection: spec.selection.policy,
        requested_by: authors(world),
        steps,
        inventory: inventory(world, applications),
        action_timeout: spec.rollout.action_timeout.clone(),
        deadline: Time(whole_seconds(now + window)),
        validation: if kind == RolloutKind::Change {
            spec.validation.deployment
        } else {
            DeploymentValidation::Disabled
        },
        assessment: None,
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

/// Names that no rollout may have again: of those that are there, and of those that Applications still name, since an
/// Application that names a rollout counts as begun by it.
fn names(world: &World) -> BTreeSet<String> {
    let said = world.applications.iter().map(|application| &application.annotations);
    let named = said.flat_map(|said| [&said.rollout, &said.delete_rollout]);
    world.rollout_names.iter().cloned().chain(named.flatten().cloned()).collect()
}

/// Kubernetes times have whole seconds; what is bound by a digest must not change on the way.
fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

fn inventory(world: &World, applications: &[&Application]) -> Vec<InventoryItem> {
    let mut items: Vec<InventoryItem> = applications
        .iter()
        .map(|application| InventoryItem {
            application: application.name().to_owned(),
            uid: application.uid().to_owned(),
            plan_digest: application.annotations.plan_digest,
            fingerprint: application.fingerprint,
            removed_by: remover(world, application),
        })
        .collect();
    items.sort_by(|one, other| one.application.cmp(&other.application));
    items
}

/// Entries of `spec-changed-by` that no `Succeeded` rollout of kind Change with selection Automatic holds with the same
/// time: a success frees exactly the edits it carried.
pub(crate) fn authors(world: &World) -> Vec<Author> {
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
