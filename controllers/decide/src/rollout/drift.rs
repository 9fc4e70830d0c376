//! The inventory: what differs between the Applications as approved, plus what the rollout itself did, and as they are.

use std::fmt;

use aicr_crds::{
    Digest,
    application::{Application, Desired},
    keys::label,
    rollout::{InventoryItem, Operation, Step},
};

use super::position::Position;
use crate::{seam, seen::RolloutSeen};

/// One difference, in the words of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The Application.
    pub application: String,
    /// What happened to it.
    pub change: Change,
}

/// What happened to an Application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not there.
    Appeared,
    /// It is not there any more.
    Disappeared,
    /// It has another UID.
    Recreated,
    /// Its annotation names another plan.
    AtPlan(String),
    /// Its source, values or destination changed.
    Edited,
}

impl Change {
    /// The rule's name.
    fn rule(&self) -> &'static str {
        match self {
            Self::Appeared => "drift: appeared",
            Self::Disappeared => "drift: disappeared",
            Self::Recreated => "drift: recreated",
            Self::AtPlan(_) => "drift: at plan",
            Self::Edited => "drift: edited",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.application;
        match &self.change {
            Change::Appeared => write!(f, "{name} appeared"),
            Change::Disappeared => write!(f, "{name} disappeared"),
            Change::Recreated => write!(f, "{name} was recreated"),
            Change::AtPlan(plan) => write!(f, "{name} is at plan {plan}"),
            Change::Edited => write!(f, "{name} was edited"),
        }
    }
}

/// What an Application must be by now.
struct Expectation<'a> {
    uid: Option<&'a str>,
    plan: Option<Digest>,
    fingerprint: Option<Digest>,
}

/// Every difference, by name; the release whose step is in flight is judged by its step instead.
pub(super) fn drift(position: &Position<'_>, seen: &RolloutSeen) -> Vec<Difference> {
    let spec = &position.rollout.spec;
    let in_flight = position.in_flight.map(|index| spec.steps[index].release.as_str());
    let items = ByName::of(&spec.inventory, |item| &item.application);
    let steps = ByName::of(&spec.steps, |step| &step.release);
    let owned = position.applications().filter(|application| is_owned(application, &spec.runtime.uid));
    let wrote = position.written.keys().map(String::as_str);
    let unwritten = owned.map(Application::name).filter(|name| position.entry(name).is_none());
    let beside = wrote.chain(unwritten).filter(|name| items.first(name).is_none()).map(|name| (name, None));
    let listed = items.sorted.iter().map(|item| (item.application.as_str(), Some(*item)));
    let judged = listed.chain(beside).filter(|(name, _)| Some(*name) != in_flight);
    let planned = judged.map(|(name, item)| (name, Planned { item, step: steps.first(name) }));
    let mut found: Vec<Difference> =
        planned.filter_map(|(name, planned)| difference(name, planned, position, seen)).collect();
    found.sort_by(|one, other| one.application.cmp(&other.application));
    found.dedup_by(|one, other| one.application == other.application);
    found
}

/// A list by the names of what is in it.
struct ByName<'a, T> {
    sorted: Vec<&'a T>,
    name: fn(&T) -> &str,
}

impl<'a, T> ByName<'a, T> {
    fn of(all: &'a [T], name: fn(&T) -> &str) -> Self {
        let mut sorted: Vec<&T> = all.iter().collect();
        sorted.sort_by(|one, other| name(one).cmp(name(other)));
        Self { sorted, name }
    }

    /// The first of this name, in the order of the list.
    fn first(&self, name: &str) -> Option<&'a T> {
        let place = self.sorted.partition_point(|one| (self.name)(one) < name);
        self.sorted.get(place).copied().filter(|one| (self.name)(one) == name)
    }
}

/// What the rollout says of one Application: as approved, and to be done.
#[derive(Clone, Copy)]
struct Planned<'a> {
    item: Option<&'a InventoryItem>,
    step: Option<&'a Step>,
}

/// Ours by owner, or by label where no owner is named; one that lost only its label is an edit, not a disappearance.
pub fn is_owned(application: &Application, runtime_uid: &str) -> bool {
    match application.annotations.runtime_uid.as_deref() {
        Some(uid) => uid == runtime_uid,
        None => application.label(label::MANAGED_BY) == Some(label::MANAGED_BY_VALUE),
    }
}

fn difference(name: &str, planned: Planned<'_>, position: &Position<'_>, seen: &RolloutSeen) -> Option<Difference> {
    let there = position.application(name);
    let Planned { item, .. } = planned;
    // In deletion by an earlier approved Remove when this rollout was made: it may go.
    let may_go = item.is_some_and(|item| item.removed_by.is_some());
    let change = match (expectation(planned, position, seen), there) {
        (Some(expected), None) if may_go && expected.uid == item.map(|item| item.uid.as_str()) => None,
        (None, None) => None,
        (None, Some(_)) => Some(Change::Appeared),
        (Some(_), None) => Some(Change::Disappeared),
        (Some(expected), Some(application)) => compared(&expected, application),
    };
    change
        .filter(|change| !seam::is_broken(change.rule()))
        .map(|change| Difference { application: name.to_owned(), change })
}

/// `None` where the Application must not be there (yet, or any more).
fn expectation<'a>(planned: Planned<'a>, position: &'a Position<'_>, seen: &RolloutSeen) -> Option<Expectation<'a>> {
    let Planned { item, step } = planned;
    let listed = item.map(|item| Expectation {
        uid: Some(&item.uid),
        plan: item.plan_digest,
        fingerprint: Some(item.fingerprint),
    });
    let Some((step, entry)) = step.and_then(|step| Some((step, position.entry(&step.release)?))) else { return listed };
    match step.operation {
        // Deleted by this rollout: gone is right, and still there is its step's affair.
        Operation::Remove => position.application(&step.release).and(listed),
        Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Adopt => Some(Expectation {
            uid: Some(&entry.uid),
            plan: position.rollout.spec.target_plan_digest,
            fingerprint: wanted_print(step, seen),
        }),
    }
}

/// The Application that a step writes; `None` where the target cannot be read, which another gate says.
pub(super) fn wanted(step: &Step, seen: &RolloutSeen) -> Option<Desired> {
    let (plan, rollout, uid) = match &seen.target {
        crate::seen::TargetSeen::Plan(stored) => (&stored.plan, "", ""),
        crate::seen::TargetSeen::None | crate::seen::TargetSeen::Unfit(..) => return None,
    };
    Desired::new(&seen.settings.engine, plan.release(&step.release)?, plan.digest(), uid, rollout).ok()
}

/// Its fingerprint alone.
pub(super) fn wanted_print(step: &Step, seen: &RolloutSeen) -> Option<Digest> {
    match &seen.target {
        crate::seen::TargetSeen::Plan(stored) => {
            stored.plan.release(&step.release)?.fingerprint(&seen.settings.engine).ok()
        }
        crate::seen::TargetSeen::None | crate::seen::TargetSeen::Unfit(..) => None,
    }
}

fn compared(expected: &Expectation<'_>, application: &Application) -> Option<Change> {
    if expected.uid.is_some_and(|uid| uid != application.uid()) {
        return Some(Change::Recreated);
    }
    let plan = application.annotations.plan_digest;
    if plan != expected.plan {
        return Some(Change::AtPlan(plan.map_or_else(|| "none".to_owned(), |plan| plan.short())));
    }
    let edited = expected.fingerprint.is_some_and(|fingerprint| fingerprint != application.fingerprint);
    let unlabelled = application.label(label::MANAGED_BY) != Some(label::MANAGED_BY_VALUE);
    (edited || unlabelled).then_some(Change::Edited)
}
