//! The step's rules: what is observed of the one in flight, and how the next one starts.

use aicr_crds::{
    application::{Application, Desired, OperationPhase},
    keys::annotation,
    reason::{Outcome, StepReason},
    rollout::{CurrentStep, Operation, Step, WrittenEntry},
};
use jiff::{SignedDuration, Timestamp};

use super::{
    current::{action_timeout, current},
    drift::{is_owned, wanted},
    position::Position,
    readiness::{Action, Expected, Observation, Readiness, readiness},
    verdict::{ObjectRef, Verdict, Write},
    why::{Halt, Outlook, Why},
};
use crate::seen::{RolloutSeen, RuntimeSeen, TargetSeen};

/// How long an observation of which waiting is of no use must stand before it fails the step.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// Why the step in flight stands still, if it does: paused, suspended, or without an engine.
pub(crate) fn halt(seen: &RolloutSeen) -> Option<Halt> {
    let facts = match &seen.runtime {
        RuntimeSeen::Gone => None,
        RuntimeSeen::There(facts) => Some(facts),
    };
    if facts.is_some_and(|facts| facts.suspend_engine) {
        return Some(Halt::EngineSuspended);
    }
    if facts.is_some_and(|facts| facts.paused) {
        return Some(Halt::Paused);
    }
    seen.engine.reason().filter(|_| seen.engine.is_absent()).map(Halt::Engine)
}

/// The rules of the step in flight; `None` where none is.
pub(super) fn in_flight(position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Option<Verdict> {
    let index = position.in_flight?;
    let step = &position.steps()[index];
    let application = position.application(&step.release)?;
    if step.operation == Operation::Install && position.entry(&step.release).is_none() {
        return Some(record(step, application, false));
    }
    let halt = halt(seen);
    let current = current(position.rollout, index, step, halt, now);
    match observe(position, seen, step, application, &current, now) {
        Readiness::Ready => Some(record(step, application, true)),
        Readiness::NotReady(observation) => {
            Some(not_ready(position, seen, &InFlight { step, application, current, halt }, observation, now))
        }
    }
}

/// The step in flight, gathered.
struct InFlight<'a> {
    step: &'a Step,
    application: &'a Application,
    current: CurrentStep,
    halt: Option<Halt>,
}

fn record(step: &Step, application: &Application, ready: bool) -> Verdict {
    let entry = WrittenEntry { uid: application.uid().to_owned(), ready };
    let why = if ready {
        Why::StepReady { release: step.release.clone() }
    } else {
        Why::Starting { release: step.release.clone(), operation: step.operation }
    };
    Verdict::Do(Write::Record { release: step.release.clone(), entry }, why)
}

fn observe(
    position: &Position<'_>,
    seen: &RolloutSeen,
    step: &Step,
    application: &Application,
    current: &CurrentStep,
    now: Timestamp,
) -> Readiness {
    let deleting = |detail: &str| Observation {
        reason: StepReason::Deleting,
        detail: detail.to_owned(),
        outlook: Outlook::Open,
        action: None,
    };
    match step.operation {
        Operation::Remove => return Readiness::NotReady(deleting(&remaining(application))),
        Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Adopt => {}
    }
    let Some(desired) = wanted(step, seen) else {
        let detail = "the target plan cannot be read".to_owned();
        return Readiness::NotReady(Observation {
            reason: StepReason::ReconcileFailed,
            detail,
            outlook: Outlook::Open,
            action: None,
        });
    };
    let recorded = position.entry(&step.release).map(|entry| entry.uid.clone());
    let listed = position
        .rollout
        .spec
        .inventory
        .iter()
        .find(|item| item.application == step.release)
        .map(|item| item.uid.clone());
    let expected = Expected {
        uid: recorded.or(listed),
        fingerprint: desired.fingerprint(),
        since: current.started_at.0,
        refreshed_at: current.refreshed_at.as_ref().map(|time| time.0),
        sync_started_at: current.sync_started_at.as_ref().map(|time| time.0),
        terminated_at: current.terminated_at.as_ref().map(|time| time.0),
        terminate_after: current.timeout_from.0 + action_timeout(position.rollout) / 2,
        sync_of: (step.operation == Operation::Verify).then(|| position.name().to_owned()),
    };
    readiness(application, &expected, now)
}

/// The finalizers that keep an Application in deletion.
fn remaining(application: &Application) -> String {
    let finalizers = application.metadata.finalizers.clone().unwrap_or_default();
    if finalizers.is_empty() { String::new() } else { format!("held by {}", finalizers.join(", ")) }
}

fn not_ready(
    position: &Position<'_>,
    seen: &RolloutSeen,
    step: &InFlight<'_>,
    observation: Observation,
    now: Timestamp,
) -> Verdict {
    let Observation { reason, detail, outlook, action } = observation;
    let hopeless = outlook == Outlook::Hopeless;
    let release = step.step.release.clone();
    let waiting = |detail: String| Why::Step {
        release: release.clone(),
        operation: step.step.operation,
        reason,
        detail,
        halt: step.halt,
        outlook,
    };
    if step.halt.is_some() {
        return Verdict::Wait(waiting(detail), None);
    }
    let timeout = step.current.timeout_from.0 + action_timeout(position.rollout);
    let failing_since = step.current.failing_since.as_ref().map_or(now, |time| time.0);
    if now >= timeout || (hopeless && seen.engine.reason().is_none() && now >= failing_since + GRACE) {
        return Verdict::End(Outcome::Failed, Why::StepFailed { release, reason, detail });
    }
    let write = action.and_then(|action| write(action, seen, step));
    match write {
        Some(write) => Verdict::Do(write, waiting(detail)),
        None => Verdict::Wait(
            waiting(detail),
            Some(if hopeless { timeout.min(failing_since + GRACE) } else { next_look(step, reason, timeout, now) }),
        ),
    }
}

/// Argo CD's next word is an event. Beside it: a look at evidence that may turn stale or bad for good, the time when an
/// operation for other content may be terminated, and the time-out.
fn next_look(step: &InFlight<'_>, reason: StepReason, timeout: Timestamp, now: Timestamp) -> Timestamp {
    let soon = match reason {
        StepReason::WaitingForComparison
        | StepReason::HealthDegraded
        | StepReason::HealthMissing
        | StepReason::HealthUnknown => 5,
        StepReason::OtherOperation | StepReason::EngineWedged | StepReason::SyncRetrying => 15,
        StepReason::SpecRefused
        | StepReason::ComparisonError
        | StepReason::RegistryCredentials
        | StepReason::DiffSchema
        | StepReason::OutOfSync
        | StepReason::SyncRunning
        | StepReason::SyncFailed
        | StepReason::SyncWindow
        | StepReason::HookFailed
        | StepReason::NotAllApplied
        | StepReason::SharedResource
        | StepReason::HealthProgressing
        | StepReason::HealthSuspended
        | StepReason::GateNotReady
        | StepReason::SpecDrifted
        | StepReason::Deleting
        | StepReason::ReconcileFailed => 60,
    };
    // Once asked, the answer is an event.
    let wait = if step.current.refreshed_at.is_some() { soon.max(15) } else { soon };
    timeout.min(now + SignedDuration::from_secs(wait))
}

fn write(action: Action, seen: &RolloutSeen, step: &InFlight<'_>) -> Option<Write> {
    let on = ObjectRef::of(step.application);
    match action {
        Action::Refresh => Some(Write::Refresh { on, hard: false }),
        Action::Sync => Some(Write::Sync { on, source: wanted(step.step, seen)?.source().clone() }),
        Action::Terminate => Some(Write::Terminate { on }),
    }
}

/// How the step at `index` starts: `status.current` first, then its one write.
pub(super) fn start(position: &Position<'_>, seen: &RolloutSeen, index: usize) -> Verdict {
    let step = &position.steps()[index];
    let starting = Why::Starting { release: step.release.clone(), operation: step.operation };
    let stored = position.rollout.status.as_ref().and_then(|status| status.current.as_ref());
    let begun =
        stored.is_some_and(|current| usize::try_from(current.index) == Ok(index) && current.release == step.release);
    if !begun {
        return Verdict::Do(Write::Begin { index }, starting);
    }
    let application = position.application(&step.release);
    match step.operation {
        Operation::Remove => remove(position, step, application, starting),
        Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Adopt => {
            place(position, seen, step, application, starting)
        }
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
    let Some(desired) = desired(position, seen, step) else {
        return Verdict::Wait(Why::StepUnknown(step.release.clone()), None);
    };
    match application {
        None => Verdict::Do(Write::Create(Box::new(desired)), why),
        Some(application) if !is_owned(application, &position.rollout.spec.runtime.uid) => {
            Verdict::End(Outcome::Failed, Why::Foreign(step.release.clone()))
        }
        Some(application) if application.is_deleting() => {
            Verdict::Wait(waits(step, StepReason::Deleting, remaining(application)), None)
        }
        Some(application) => {
            Verdict::Do(Write::Apply { desired: Box::new(desired), on: ObjectRef::of(application) }, why)
        }
    }
}

fn waits(step: &Step, reason: StepReason, detail: String) -> Why {
    Why::Step {
        release: step.release.clone(),
        operation: step.operation,
        reason,
        detail,
        halt: None,
        outlook: Outlook::Open,
    }
}

/// A failed comparison makes Argo CD forget delete hooks (A135), and a running operation is served before deletion (A136).
fn unremovable(application: &Application) -> Option<StepReason> {
    let status = &application.status;
    if status.conditions.iter().any(|condition| condition.kind == "ComparisonError") {
        return Some(StepReason::ComparisonError);
    }
    let running = status.operation.as_ref().is_some_and(|state| match state.phase {
        OperationPhase::Running | OperationPhase::Terminating => true,
        OperationPhase::Succeeded | OperationPhase::Failed | OperationPhase::Error => false,
    });
    (running || application.operation_requested).then_some(StepReason::SyncRunning)
}

fn desired(position: &Position<'_>, seen: &RolloutSeen, step: &Step) -> Option<Desired> {
    let plan = match &seen.target {
        TargetSeen::Plan(stored) => &stored.plan,
        TargetSeen::None | TargetSeen::Unfit(..) => return None,
    };
    let uid = &position.rollout.spec.runtime.uid;
    Desired::new(&seen.settings.engine, plan.release(&step.release)?, plan.digest(), uid, position.name()).ok()
}

/// Remove: both marks in one patch, an entry in `written`, all gates again, then the delete.
fn remove(position: &Position<'_>, step: &Step, application: Option<&Application>, why: Why) -> Verdict {
    let Some(application) = application else {
        // Deleted earlier by an approved Remove: the inventory lets it go, and there is nothing left to do.
        let entry = WrittenEntry { uid: String::new(), ready: true };
        return Verdict::Do(Write::Record { release: step.release.clone(), entry }, why);
    };
    if let Some(reason) = unremovable(application) {
        return Verdict::Wait(waits(step, reason, "a Remove waits for it".to_owned()), None);
    }
    // Argo CD writes the whole list of finalizers from its cache, and may have erased one a moment ago.
    let takes_all = application.cascades() || application.is_deleting();
    let marked = application.annotation(annotation::DELETE_ROLLOUT) == Some(position.name());
    if !marked || !takes_all {
        return Verdict::Do(Write::PrepareRemove { on: ObjectRef::of(application) }, why);
    }
    if position.entry(&step.release).is_none() {
        return record(step, application, false);
    }
    Verdict::Do(Write::Delete { on: ObjectRef::of(application) }, why)
}
