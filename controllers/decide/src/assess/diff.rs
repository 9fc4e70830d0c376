//! What two plans and the live Applications have to do with each other, release by release.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use aicr_crds::{
    RuntimeRollout,
    application::{Application, Ownership},
    plan::{Plan, PlanRelease},
    rollout::Operation,
};

use crate::{
    rollout::{is_owned, written},
    runtime::was_free,
    seen::{World, age_key, outcome},
};

/// The transition from what is there to a target.
pub struct Transition<'a> {
    /// Everything that was seen.
    pub world: &'a World,
    /// The active plan, where there is one and it can be read.
    pub active: Option<&'a Plan>,
    /// The plan to reach.
    pub target: &'a Plan,
    /// Owned Applications by name.
    owned: BTreeMap<&'a str, &'a Application>,
}

/// One release of the target or to be removed, and what is to be done with it.
pub(super) struct Change<'a> {
    pub(super) release: String,
    pub(super) operation: Operation,
    pub(super) from: Option<From<'a>>,
    pub(super) to: Option<PlanRelease<'a>>,
}

/// What is there: a release of the active plan, or an Application that an unsuccessful rollout left.
#[derive(Clone, Copy)]
pub(super) enum From<'a> {
    Plan(PlanRelease<'a>),
    Application(&'a Application),
}

impl<'a> Transition<'a> {
    /// From the active plan, where there is one and it can be read, to the target.
    pub(crate) fn new(world: &'a World, active: Option<&'a Plan>, target: &'a Plan) -> Self {
        let ours = world.applications.iter().map(AsRef::as_ref).filter(|one| is_owned(one, world.uid()));
        // Of two of one name the first counts.
        let owned = ours.rev().map(|application| (application.name(), application)).collect();
        Self { world, active, target, owned }
    }

    /// Install, Upgrade and Verify in the target's order, then Remove in reverse.
    pub(super) fn changes(&self, touched: &BTreeSet<String>) -> Vec<Change<'a>> {
        let moving = self.target.releases().filter_map(|release| self.moving(release, touched));
        let mut moving: BTreeMap<String, Change<'a>> = moving.map(|change| (change.release.clone(), change)).collect();
        let verified = self.verified(&moving);
        let mut all: Vec<Change<'a>> = Vec::new();
        for release in self.target.releases() {
            let id = &release.content.id;
            if verified.contains(id.as_str()) {
                all.push(Change {
                    release: id.clone(),
                    operation: Operation::Verify,
                    from: self.active_release(id).map(From::Plan),
                    to: Some(release),
                });
            }
            all.extend(moving.remove(id));
        }
        all.extend(self.removals());
        all
    }

    fn active_release(&self, id: &str) -> Option<PlanRelease<'a>> {
        self.active.and_then(|plan| plan.release(id))
    }

    pub(super) fn application(&self, id: &str) -> Option<&'a Application> {
        self.owned.get(id).copied()
    }

    /// `None` where the release is unchanged: same in both plans, its Application at that content, and no rollout that
    /// did not succeed has touched it since.
    fn moving(&self, release: PlanRelease<'a>, touched: &BTreeSet<String>) -> Option<Change<'a>> {
        let id = &release.content.id;
        let before = self.active_release(id);
        let there = self.application(id);
        let same = before
            .is_some_and(|before| before.content == release.content && before.archive.digest == release.archive.digest);
        if same && !touched.contains(id) && there.is_some_and(|application| self.holds(application, release)) {
            return None;
        }
        // One that an earlier approved Remove deletes goes first, then it is installed.
        let there = there.filter(|application| !application.is_deleting());
        let operation = if there.is_some() { Operation::Upgrade } else { Operation::Install };
        // What an unsuccessful rollout moved is compared with the Application that is there, not with the active plan.
        let from = match (before, there) {
            (Some(before), Some(application)) if self.holds(application, before) => Some(From::Plan(before)),
            (_, Some(application)) => Some(From::Application(application)),
            (_, None) => None,
        };
        Some(Change { release: id.clone(), operation, from, to: Some(release) })
    }

    /// Whether an Application is at a release's content.
    pub(crate) fn holds(&self, application: &Application, release: PlanRelease<'_>) -> bool {
        let engine = &self.world.settings.engine;
        release.fingerprint(engine).is_ok_and(|print| print == application.fingerprint)
    }

    /// Gate releases that are the same while something of their component moves.
    fn verified(&self, moving: &BTreeMap<String, Change<'_>>) -> BTreeSet<&'a str> {
        let components: BTreeSet<&str> =
            moving.values().filter_map(|change| change.to).map(|to| to.content.component.as_str()).collect();
        let same = |release: &PlanRelease<'_>| !moving.contains_key(&release.content.id);
        let gates = self.target.releases().filter(|release| release.content.readiness_gate && same(release));
        let gates = gates.filter(|gate| components.contains(gate.content.component.as_str()));
        gates.map(|gate| gate.content.id.as_str()).collect()
    }

    /// Owned Applications that the target lacks: first what neither plan has, then in reverse order of the active plan.
    fn removals(&self) -> Vec<Change<'a>> {
        let uid = self.world.uid();
        let owned = self
            .world
            .applications
            .iter()
            .map(AsRef::as_ref)
            .filter(|application| application.annotations.runtime_uid.as_deref() == Some(uid));
        let mut gone: Vec<&Application> =
            owned.filter(|application| self.target.release(application.name()).is_none()).collect();
        let place = |application: &Application| {
            let active = self.active_release(application.name()).map(|release| release.order);
            let order = active.or_else(|| Ownership::read(application).ok().map(|ownership| ownership.order));
            (active.is_some(), std::cmp::Reverse(order))
        };
        gone.sort_by_key(|application| place(application));
        let change = |application: &'a Application| Change {
            release: application.name().to_owned(),
            operation: Operation::Remove,
            from: Some(self.active_release(application.name()).map_or(From::Application(application), From::Plan)),
            to: None,
        };
        gone.into_iter().map(change).collect()
    }

    /// Releases that a rollout newer than the newest success may have moved.
    pub(super) fn touched(&self) -> BTreeSet<String> {
        unsuccessful(self.world).flat_map(|rollout| touched_by(rollout, &self.world.applications)).collect()
    }

    /// Whether the newest rollout had this very target and did not succeed.
    pub(super) fn is_retry(&self) -> bool {
        self.world.newest().is_some_and(|newest| {
            newest.spec.target_plan_digest == Some(self.target.digest())
                && outcome(newest) != Some(aicr_crds::reason::Outcome::Succeeded)
        })
    }
}

/// Rollouts newer than the newest success that ended without success.
pub(crate) fn unsuccessful(world: &World) -> impl Iterator<Item = &RuntimeRollout> {
    let since = world.newest_success().map(age_key);
    world.rollouts.iter().map(AsRef::as_ref).filter(move |rollout| {
        let ended_badly = outcome(rollout).is_some_and(|outcome| outcome != aicr_crds::reason::Outcome::Succeeded);
        ended_badly && since.as_ref().is_none_or(|since| age_key(rollout) > *since)
    })
}

/// Releases that a rollout wrote, by its own record and by what Applications say; and those without an Application that it
/// was free to write.
pub(crate) fn touched_by(rollout: &RuntimeRollout, applications: &[Arc<Application>]) -> BTreeSet<String> {
    let name = rollout.metadata.name.as_deref();
    let named = applications
        .iter()
        .filter(|application| application.annotations.rollout.as_deref() == name)
        .map(|application| application.name().to_owned());
    let there: BTreeSet<&str> = applications.iter().map(|application| application.name()).collect();
    let gone = rollout.spec.steps.iter().filter(|step| match step.operation {
        Operation::Upgrade | Operation::Verify => !there.contains(step.release.as_str()),
        // Not begun, it is not there to be gone; begun, the record says so.
        Operation::Install | Operation::Remove | Operation::Adopt => false,
    });
    let gone = gone.filter(|_| was_free(rollout)).map(|step| step.release.clone());
    written(rollout).into_keys().chain(named).chain(gone).collect()
}
