//! How a step starts: `status.current` first, then the one write of its operation.

use aicr_crds::{
    application::{Application, Desired},
    reason::{Outcome, StepReason},
    rollout::{CurrentStep, Operation, Step},
};
use jiff::Timestamp;

use super::{
    current::{action_timeout, current, known},
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
    let starting = Why::Starting { release: step.release.clone(), operation: step.operation };
    let application = position.application(&step.release);
    let known = known(position, index, step);
    match evidence(seen, step, application, known, now) {
        Evidence::Newer => return Verdict::Wait(starting, Some(next_second(now))),
        Evidence::Taken => return Verdict::Do(Write::Begin { index }, starting),
        Evidence::Older if known.is_none() => return Verdict::Do(Write::Begin { index }, starting),
        Evidence::Older => {}
    }
    if let Some(trouble) = &seen.facts.trouble {
        return hindered(position, step, index, trouble, now);
    }
    match step.operation {
        Operation::Remove => remove(position, seen, step, application, starting),
        Operation::Adopt => adopt(position, seen, step, application, starting),
        Operation::Install | Operation::Upgrade | Operation::Verify => {
            place(position, seen, step, application, starting)
        }
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

/// The target lacks what the step names: waited for until the rollout's deadline.
fn unknown(position: &Position<'_>, step: &Step) -> Verdict {
    Verdict::Wait(Why::StepUnknown(step.release.clone()), Some(position.rollout.spec.deadline.0))
}

/// The step has begun, and what it needs could not be read or written: that is observed of it, and its time goes on.
fn hindered(position: &Position<'_>, step: &Step, index: usize, trouble: &str, now: Timestamp) -> Verdict {
    let current = current(position, index, step, None, now);
    let timeout = current.timeout_from.0 + action_timeout(position.rollout);
    let (reason, detail) = (StepReason::ReconcileFailed, trouble.to_owned());
    if now < timeout {
        Verdict::Wait(waits(step, reason, detail), Some(timeout))
    } else {
        Verdict::End(Outcome::Failed, Why::StepFailed { release: step.release.clone(), reason, detail })
    }
}

/// Adopt: the ownership annotations and nothing else. Its Application is there, as the inventory has just said.
fn adopt(
    position: &Position<'_>,
    seen: &RolloutSeen,
    step: &Step,
    application: Option<&Application>,
    why: Why,
) -> Verdict {
    match (desired(position, seen, &step.release), application) {
        (Some(desired), Some(application)) => {
            let on = ObjectRef::of(application);
            Verdict::Do(Write::Annotate { on, ownership: Box::new(desired.ownership) }, why)
        }
        (None, _) | (_, None) => unknown(position, step),
    }
}

/// Install, Upgrade and Verify: the whole Application, as this rollout writes it.
fn place(
    position: &Position<'_>,
    seen: &RolloutSeen,
    step: &Step,
    application: Option<&Application>,
    why: Why,
) -> Verdict {
    let Some(desired) = desired(position, seen, &step.release) else {
        return unknown(position, step);
    };
    match application {
        None => Verdict::Do(Write::Create(Box::new(desired)), why),
        Some(application) if !is_owned(application, &position.rollout.spec.runtime.uid) => {
            Verdict::End(Outcome::Failed, Why::Foreign(step.release.clone()))
        }
        Some(application) if application.is_deleting() => {
            let until = Some(position.rollout.spec.deadline.0);
            Verdict::Wait(waits(step, StepReason::Deleting, remaining(application, seen)), until)
        }
        Some(application) => {
            Verdict::Do(Write::Apply { desired: Box::new(desired), on: ObjectRef::of(application) }, why)
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
