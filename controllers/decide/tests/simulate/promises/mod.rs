//! The nine promises of `design/rules.md` section 6, each with checkers of its own that share no code with the gates.

mod between;
mod ends;
mod lands;
mod ready;
mod rest;
mod runtime;
mod starts;
mod validation;
mod waits;

use std::fmt;

use aicr_crds::{
    Digest, RuntimeRollout,
    application::Application,
    rollout::{Operation, Step, Written},
};
use aicr_decide::{
    rollout::{Position, Verdict},
    seen::RolloutSeen,
};
use jiff::Timestamp;

use crate::{
    cluster::Cluster,
    store::{Id, Store},
};

pub(crate) use between::puts_right;
pub(crate) use ends::{ended_once, told_once};
pub(crate) use lands::{begun, lands};
pub(crate) use rest::at_rest;
pub(crate) use runtime::{conditions, runtime_decided};
pub(crate) use validation::runs_once;
pub(crate) use waits::says;

/// The promises, by number.
pub(crate) const PROMISES: [&str; 9] = [
    "no desired state without the approval it needs",
    "at most one step in flight, one rollout at work",
    "no step while a gate holds, nothing else but what is named",
    "no release is moved backwards",
    "ready only on evidence that is newer than the write",
    "what is expired, revoked or superseded starts nothing",
    "each outcome, Event and count exactly once",
    "lost status, restarts and late events change no outcome",
    "every wait ends, and status says on what",
];

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Its number.
    pub(crate) promise: usize,
    /// How.
    pub(crate) how: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "promise {} ({}): {}", self.promise, PROMISES[self.promise - 1], self.how)
    }
}

/// Broken where this does not hold.
pub(crate) fn must(holds: bool, promise: usize, how: impl FnOnce() -> String) -> Option<Broken> {
    (!holds).then(|| Broken { promise, how: how() })
}

/// What one decision on a rollout was made of.
pub(crate) struct Context<'a> {
    pub(crate) view: &'a Store,
    pub(crate) id: Id,
    pub(crate) rollout: &'a RuntimeRollout,
    /// What it wrote down of itself is read from there; what is made of that is the checkers' own.
    pub(crate) position: &'a Position<'a>,
    pub(crate) seen: &'a RolloutSeen,
    pub(crate) now: Timestamp,
    pub(crate) cluster: &'a Cluster,
}

/// How far a rollout has come, worked out once for all checkers and otherwise than the gates do.
pub(crate) struct Progress<'a> {
    pub(crate) name: &'a str,
    pub(crate) written: &'a Written,
    /// Step in flight.
    pub(crate) flying: Option<usize>,
    /// First step that is not done.
    pub(crate) open: Option<usize>,
}

impl<'a> Context<'a> {
    fn steps(&self) -> &'a [Step] {
        &self.rollout.spec.steps
    }

    /// Whether the rollout is seen as it is. What is decided on an older one, its own status not yet seen, does not land.
    fn is_current(&self) -> bool {
        let truth = self.cluster.truth.rollout(self.id);
        truth.is_some_and(|truth| truth.metadata.resource_version == self.rollout.metadata.resource_version)
    }

    fn application(&self, name: &str) -> Option<&'a Application> {
        self.view.application(name).map(|(application, _)| application)
    }

    /// Fingerprint of a release of the target.
    fn print(&self, release: &str) -> Option<Digest> {
        let target = self.rollout.spec.target_plan_digest?;
        self.cluster.family.print(target, release).or_else(|| {
            let (_, stored) = self.view.world.plans.get(&target)?;
            stored.plan.release(release)?.fingerprint(&self.view.world.settings.engine).ok()
        })
    }

    fn progress(&self) -> Progress<'a> {
        let mut progress = Progress {
            name: self.rollout.metadata.name.as_deref().unwrap_or_default(),
            written: &self.position.written,
            flying: None,
            open: None,
        };
        for (place, step) in self.steps().iter().enumerate() {
            if self.flies(&progress, step) {
                progress.flying = Some(place);
            }
            if progress.open.is_none() && !self.is_done(&progress, step) {
                progress.open = Some(place);
            }
        }
        progress
    }

    /// Written for it and not recorded ready; or deleted for it and not gone.
    fn flies(&self, progress: &Progress<'_>, step: &Step) -> bool {
        let Some(application) = self.application(&step.release) else { return false };
        let entry = progress.written.get(&step.release);
        match step.operation {
            Operation::Remove => entry.is_some() && application.is_deleting(),
            Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Adopt => {
                let named = application.annotations.rollout.as_deref() == Some(progress.name);
                (named || entry.is_some()) && entry.is_none_or(|entry| !entry.ready)
            }
        }
    }

    fn is_done(&self, progress: &Progress<'_>, step: &Step) -> bool {
        let entry = progress.written.get(&step.release);
        match step.operation {
            Operation::Remove => entry.is_some() && self.application(&step.release).is_none(),
            Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Adopt => {
                entry.is_some_and(|entry| entry.ready)
            }
        }
    }
}

/// Everything that one decision must keep.
pub(crate) fn decided(context: &Context<'_>, verdict: &Verdict) -> Option<Broken> {
    let progress = context.progress();
    starts::starts(context, &progress, verdict)
        .or_else(|| validation::validates(context, &progress, verdict))
        .or_else(|| starts::helps(context, &progress, verdict))
        .or_else(|| ready::ready(context, &progress, verdict))
        .or_else(|| ends::ends(context, &progress, verdict))
        .or_else(|| ends::must_end(context, &progress, verdict))
        .or_else(|| waits::waits(context, &progress, verdict))
        .or_else(|| waits::forgets(context, &progress, verdict))
}
