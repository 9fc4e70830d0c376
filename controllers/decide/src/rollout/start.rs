//! How a step starts: `status.current` first, then the one write of its operation.

use aicr_crds::{
    application::{Application, Desired},
    reason::{Outcome, StepReason},
    rollout::{CurrentStep, Operation, Step},
};
use jiff::Timestamp;

use super::{
    current::{current, known, times_out},
    drift::{is_owned, wanted_print},
    position::Position,
    readiness::Proof,
    remove::{remaining, remove, waits},
    step::proof,
    verdict::{ObjectRef, Verdict, Write},
    why::Why,
};
use crate::seen::{RolloutSeen, TargetSeen};

/// How the step at `index` starts: `status.current` first, then its one write.
pub(super) fn start(position: &Position<'_>, seen: &RolloutSeen, index: usize, now: Timestamp) -> Verdict {
    let step = &position.steps()[index];
    let application = position.application(&step.release);
    let known = known(position, index, step);
    let due = Due { position, seen, step, application, clocks: current(position, index, step, None, now), now };
    match evidence(seen, step, application, known, now) {
        Evidence::Newer => return Verdict::Wait(due.why(), Some(next_second(now))),
        Evidence::Taken => return Verdict::Do(Write::Begin { index }, due.why()),
        Evidence::Older if known.is_none() => return Verdict::Do(Write::Begin { index }, due.why()),
        Evidence::Older => {}
    }
    if let Some(trouble) = &seen.facts.trouble {
        return due.waits(StepReason::ReconcileFailed, trouble.clone());
    }
    match step.operation {
        Operation::Remove => remove(&due),
        Operation::Adopt => adopt(&due),
        Operation::Install | Operation::Upgrade | Operation::Verify => place(&due),
    }
}

/// A step that is to be written, with everything that decides how.
pub(super) struct Due<'a> {
    /// How far its rollout has come.
    pub(super) position: &'a Position<'a>,
    /// What was seen around that.
    pub(super) seen: &'a RolloutSeen,
    /// The step.
    pub(super) step: &'a Step,
    /// The Application of its release, as it is there.
    pub(super) application: Option<&'a Application>,
    /// Its clocks: it has begun.
    pub(super) clocks: CurrentStep,
    /// Now.
    pub(super) now: Timestamp,
}

impl Due<'_> {
    /// It starts.
    pub(super) fn why(&self) -> Why {
        Why::Starting { release: self.step.release.clone(), operation: self.step.operation }
    }

    /// When it fails, whatever it waits for.
    pub(super) fn timeout(&self) -> Timestamp {
        times_out(&self.clocks, self.position.rollout)
    }

    /// It has begun, and waits for something before it is written: that is observed of it, and its time goes on.
    pub(super) fn waits(&self, reason: StepReason, detail: String) -> Verdict {
        let timeout = self.timeout();
        if self.now < timeout {
            Verdict::Wait(waits(self.step, reason, detail), Some(timeout))
        } else {
            Verdict::End(Outcome::Failed, Why::StepFailed { release: self.step.release.clone(), reason, detail })
        }
    }

    /// Its time is over, by what was observed of it last.
    pub(super) fn fails(&self) -> Verdict {
        let observed = self.clocks.observed.clone().unwrap_or_default();
        let (word, detail) = observed.split_once(": ").unwrap_or((observed.as_str(), ""));
        let reason = StepReason::ALL.iter().copied().find(|reason| reason.as_str() == word);
        let (reason, detail) =
            reason.map_or_else(|| (StepReason::Deleting, observed.clone()), |reason| (reason, detail.to_owned()));
        Verdict::End(Outcome::Failed, Why::StepFailed { release: self.step.release.clone(), reason, detail })
    }

    /// The target lacks what it names.
    fn unknown(&self) -> Verdict {
        Verdict::Wait(Why::StepUnknown(self.step.release.clone()), Some(self.position.rollout.spec.deadline.0))
    }
}

/// What a comparison of the step's very content, made before its write, would be taken for: `reconciledAt` has whole seconds
/// (A15), and one of the step's own second counts as newer than its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// For what it is: there is none, or it was made in a second before.
    Older,
    /// For newer than a step that began now.
    Newer,
    /// For newer than the step, which has begun: it begins anew.
    Taken,
}

fn evidence(
    seen: &RolloutSeen,
    step: &Step,
    application: Option<&Application>,
    begun: Option<&CurrentStep>,
    now: Timestamp,
) -> Evidence {
    let Some(status) = application.map(|application| &application.status) else { return Evidence::Older };
    let Some(made) = status.reconciled_at.map(Timestamp::as_second) else { return Evidence::Older };
    // Where the engine's clock is ahead there is no second to wait for.
    let is_now = made == now.as_second();
    let is_taken = begun.is_some_and(|begun| begun.started_at.0.as_second() <= made) && made < now.as_second();
    let is_proof = step.operation != Operation::Remove && proof(step) == Proof::NewContent;
    if !is_proof
        || !(is_now || is_taken)
        || status.compared_to.is_none()
        || status.compared_to != wanted_print(step, seen)
    {
        return Evidence::Older;
    }
    if is_now { Evidence::Newer } else { Evidence::Taken }
}

fn next_second(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second() + 1).unwrap_or(now)
}

/// Adopt: the ownership annotations and nothing else. Its Application is there, as the inventory has just said.
fn adopt(due: &Due<'_>) -> Verdict {
    match (desired(due.position, due.seen, &due.step.release), due.application) {
        (Some(desired), Some(application)) => {
            let on = ObjectRef::of(application);
            Verdict::Do(Write::Annotate { on, ownership: Box::new(desired.ownership) }, due.why())
        }
        (None, _) | (_, None) => due.unknown(),
    }
}

/// Install, Upgrade and Verify: the whole Application, as this rollout writes it.
fn place(due: &Due<'_>) -> Verdict {
    let Some(desired) = desired(due.position, due.seen, &due.step.release) else {
        return due.unknown();
    };
    match due.application {
        None => Verdict::Do(Write::Create(Box::new(desired)), due.why()),
        Some(application) if !is_owned(application, &due.position.rollout.spec.runtime.uid) => {
            Verdict::End(Outcome::Failed, Why::Foreign(due.step.release.clone()))
        }
        Some(application) if application.is_deleting() => {
            // An earlier removal takes the time that it takes: until the deadline.
            let why = waits(due.step, StepReason::Deleting, remaining(application, due.seen));
            Verdict::Wait(why, Some(due.position.rollout.spec.deadline.0))
        }
        Some(application) => {
            Verdict::Do(Write::Apply { desired: Box::new(desired), on: ObjectRef::of(application) }, due.why())
        }
    }
}

/// A release of the target, as this rollout writes it; `None` where the target is not read or lacks it.
pub(super) fn desired(position: &Position<'_>, seen: &RolloutSeen, release: &str) -> Option<Desired> {
    let plan = match &seen.target {
        TargetSeen::Plan(stored) => &stored.plan,
        TargetSeen::None | TargetSeen::Unfit(..) => return None,
    };
    let uid = &position.rollout.spec.runtime.uid;
    Desired::new(&seen.settings.engine, plan.release(release)?, plan.digest(), uid, position.name()).ok()
}
