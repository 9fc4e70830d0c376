//! Which plan an Application is at, and which releases an unsuccessful rollout may have moved.

use std::collections::BTreeSet;

use aicr_crds::{
    Digest, RuntimeRollout,
    application::{Application, Desired, Ownership},
    reason::Outcome,
    rollout::{Operation, Written},
};

use crate::{
    assess::unsuccessful,
    rollout::{is_owned, written},
    seam,
    seen::{World, outcome},
};

/// Where an Application is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// At this plan, written there by this rollout.
    At {
        /// The plan.
        plan: Digest,
        /// The rollout.
        rollout: &'a str,
    },
    /// Its annotations contradict the rollouts: it is left and named.
    Contradiction(String),
    /// No rollout has succeeded, and none that did not names it.
    Nowhere,
}

/// What says where Applications are, read once for all of them.
pub(crate) struct Places<'w> {
    world: &'w World,
    movers: Vec<Mover<'w>>,
    active: Option<Digest>,
    success: &'w str,
    known: BTreeSet<&'w str>,
}

/// A rollout that did not succeed and is newer than the active plan's.
struct Mover<'w> {
    name: &'w str,
    target: Option<Digest>,
    free: bool,
    wrote: Written,
    places: BTreeSet<&'w str>,
}

impl<'w> Mover<'w> {
    fn of(rollout: &'w RuntimeRollout) -> Self {
        let places = rollout.spec.steps.iter().filter(|step| step.operation != Operation::Remove);
        Self {
            name: name(rollout),
            target: rollout.spec.target_plan_digest,
            free: was_free(rollout),
            wrote: written(rollout),
            places: places.map(|step| step.release.as_str()).collect(),
        }
    }

    /// Whether it wrote a release, by its own record, or by what the Application's annotation says of its plan.
    fn wrote(&self, release: &str, noted: Option<Digest>) -> bool {
        self.wrote.contains_key(release) || (self.free && noted.is_some() && noted == self.target)
    }
}

impl<'w> Places<'w> {
    /// Of this runtime.
    pub(crate) fn of(world: &'w World) -> Self {
        let success = world.newest_success();
        Self {
            world,
            movers: unsuccessful(world).map(Mover::of).collect(),
            active: success.and_then(|success| success.spec.target_plan_digest),
            success: success.map(name).unwrap_or_default(),
            known: world.rollouts.iter().map(|rollout| name(rollout)).collect(),
        }
    }

    /// Whether there is a rollout of this name.
    pub(crate) fn knows(&self, rollout: &str) -> bool {
        self.known.contains(rollout)
    }

    /// Whether an Application is not at its release's content in this plan, as far as that can be read.
    fn differs(&self, application: &Application, plan: Digest) -> bool {
        let release = self.world.plans.get(&plan).and_then(|(_, stored)| stored.plan.release(application.name()));
        let print = release.and_then(|release| release.fingerprint(&self.world.settings.engine).ok());
        print.is_some_and(|print| print != application.fingerprint)
    }

    /// The target of the rollout that its `rollout` annotation names where that one did not succeed and is newer than the
    /// active plan's, else the active plan; never backwards.
    pub(crate) fn place<'a>(&'a self, application: &'a Application) -> Place<'a> {
        let named = application.annotations.rollout.as_deref().unwrap_or_default();
        let release = application.name();
        let noted = application.annotations.plan_digest;
        if let Some(mover) = self.movers.iter().find(|mover| mover.name == named) {
            let placed = mover.wrote(release, noted) && mover.places.contains(release);
            return match mover.target.filter(|_| placed) {
                Some(plan) => Place::At { plan, rollout: named },
                None => contradiction(application, named),
            };
        }
        let moved = |mover: &Mover<'_>| {
            let claimed = noted != self.active && mover.wrote(release, noted);
            mover.places.contains(release) && (mover.wrote.contains_key(release) || claimed)
        };
        if self.movers.iter().any(moved) {
            return contradiction(application, named);
        }
        let Some(plan) = self.active else { return Place::Nowhere };
        // Written for another plan by a rollout that is gone: that one may have succeeded, and been the newest.
        let gone = !self.known.contains(named) && noted.is_some_and(|noted| noted != plan);
        if gone && self.differs(application, plan) && !seam::is_broken("repair: rollout gone") {
            return contradiction(application, named);
        }
        let rollout = if self.known.contains(named) { named } else { self.success };
        Place::At { plan, rollout }
    }
}

fn contradiction<'a>(application: &Application, named: &str) -> Place<'a> {
    Place::Contradiction(format!(
        "Application {}: its annotations name rollout {named:?} and plan {}, which the rollouts contradict; restore them, or retry",
        application.name(),
        application.annotations.plan_digest.map_or_else(|| "none".to_owned(), |plan| plan.short())
    ))
}

fn name(rollout: &RuntimeRollout) -> &str {
    rollout.metadata.name.as_deref().unwrap_or_default()
}

/// Whether its steps could start: approved, or in need of no approval.
pub(crate) fn was_free(rollout: &RuntimeRollout) -> bool {
    let spec = &rollout.spec;
    !spec.needs_approval() || is_bound(rollout)
}

fn is_bound(rollout: &RuntimeRollout) -> bool {
    let approval = rollout.spec.approval.as_ref();
    approval.is_some_and(|approval| seam::binding(rollout) == Some(approval.binding_digest))
}

/// An Application at a plan that can be read and has its release.
pub(crate) struct Placed<'a> {
    /// The Application.
    pub(crate) application: &'a Application,
    /// The plan.
    pub(crate) plan: Digest,
    /// The rollout that wrote it there.
    pub(crate) rollout: &'a str,
    /// Fingerprint of the release in the plan.
    pub(crate) print: Digest,
    /// Its annotations that are not as this rollout would write them.
    pub(crate) differing: Vec<&'static str>,
}

impl<'a> Placed<'a> {
    /// Where it is, and how it differs from that.
    pub(crate) fn find(world: &World, places: &'a Places<'_>, application: &'a Application) -> Option<Self> {
        let Place::At { plan, rollout } = places.place(application) else { return None };
        let (_, stored) = world.plans.get(&plan)?;
        let release = stored.plan.release(application.name())?;
        let print = release.fingerprint(&world.settings.engine).ok()?;
        let differing = Ownership::differing(application, release, plan, (world.uid(), rollout), print);
        Some(Self { application, plan, rollout, print, differing })
    }

    /// The Application as the plan wants it.
    pub(crate) fn desired(&self, world: &World) -> Option<Desired> {
        desired(world, self.plan, self.application.name(), self.rollout)
    }
}

/// The Application of a release as a plan wants it; `None` where the plan cannot be read or lacks the release.
pub(crate) fn desired(world: &World, plan: Digest, release: &str, rollout: &str) -> Option<Desired> {
    let (_, stored) = world.plans.get(&plan)?;
    let engine = &world.settings.engine;
    Desired::new(engine, stored.plan.release(release)?, plan, world.uid(), rollout).ok()
}

/// Releases without an Application that an unsuccessful rollout may have moved: writing them from the active plan would
/// roll them back without approval.
pub(crate) fn moved_missing(world: &World) -> BTreeSet<String> {
    let there = names(world);
    let moved = |rollout: &RuntimeRollout| -> Vec<String> {
        let done = written(rollout);
        let steps = rollout.spec.steps.iter().filter(|step| match step.operation {
            Operation::Remove => false,
            // Never begun, it is simply not installed.
            Operation::Install | Operation::Adopt => done.contains_key(&step.release),
            Operation::Upgrade | Operation::Verify => done.contains_key(&step.release) || was_free(rollout),
        });
        steps.map(|step| step.release.clone()).collect()
    };
    let removed: BTreeSet<String> = unsuccessful(world).flat_map(removed_by).collect();
    let all = unsuccessful(world).filter(|rollout| was_free(rollout)).flat_map(moved);
    all.filter(|release| !there.contains(release.as_str()) && !removed.contains(release)).collect()
}

/// Releases that an unsuccessful rollout removed.
pub(crate) fn removed_by(rollout: &RuntimeRollout) -> Vec<String> {
    let done = written(rollout);
    let steps = rollout.spec.steps.iter().filter(|step| step.operation == Operation::Remove);
    steps.filter(|step| done.contains_key(&step.release)).map(|step| step.release.clone()).collect()
}

/// Names of all Applications.
pub(crate) fn names(world: &World) -> BTreeSet<&str> {
    world.applications.iter().map(|application| application.name()).collect()
}

/// Owned Applications in order of their names.
pub(crate) fn owned(world: &World) -> impl Iterator<Item = &Application> {
    world.applications.iter().map(AsRef::as_ref).filter(|application| is_owned(application, world.uid()))
}

/// The ended rollout, if any, whose approved Remove deletes this Application.
pub(crate) fn remover(world: &World, application: &Application) -> Option<String> {
    let marked = application.annotations.delete_rollout.as_deref()?;
    let remover = world.rollouts.iter().find(|rollout| name(rollout) == marked)?;
    let ended = outcome(remover).is_some_and(|outcome| outcome != Outcome::Succeeded);
    let wrote = written(remover).get(application.name()).is_some_and(|entry| entry.uid == application.uid());
    (ended && wrote && application.is_deleting()).then(|| marked.to_owned())
}
