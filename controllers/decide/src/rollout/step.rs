//! The step in flight: what is observed of it, and what becomes of that.

use aicr_crds::{
    Digest,
    application::Application,
    reason::{Outcome, StepReason},
    rollout::{ChartRef, CurrentStep, Operation, Step, WrittenEntry},
};
use jiff::{SignedDuration, Timestamp};

use super::{
    current::{current, terminates_after, times_out},
    drift::{wanted, wanted_print},
    gate::hold_of,
    position::Position,
    readiness::{AGAIN_AFTER, Action, Expected, Observation, Proof, Readiness, readiness},
    remove::{remaining, removed_by},
    verdict::{ObjectRef, Verdict, Write},
    why::{Halt, Hold, Outlook, Why},
};
use crate::seen::{RolloutSeen, RuntimeSeen};

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
    let current = current(position, index, step, halt, now);
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
    let plain = |reason, detail: String| {
        Readiness::NotReady(Observation { reason, detail, outlook: Outlook::Open, action: None, gate_passes: false })
    };
    if let Some(trouble) = &seen.facts.trouble {
        return plain(StepReason::ReconcileFailed, trouble.clone());
    }
    match step.operation {
        Operation::Remove => return plain(StepReason::Deleting, remaining(application, seen)),
        Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Adopt => {}
    }
    let Some(fingerprint) = wanted_print(step, seen) else {
        return plain(StepReason::ReconcileFailed, "the target plan cannot be read".to_owned());
    };
    readiness(application, &expected(position, seen, step, current, fingerprint), now)
}

/// What the release must be, as this step knows it.
fn expected<'a>(
    position: &'a Position<'_>,
    seen: &'a RolloutSeen,
    step: &Step,
    current: &CurrentStep,
    fingerprint: Digest,
) -> Expected<'a> {
    let recorded = position.entry(&step.release).map(|entry| entry.uid.as_str());
    let listed = position
        .rollout
        .spec
        .inventory
        .iter()
        .find(|item| item.application == step.release)
        .map(|item| item.uid.as_str());
    Expected {
        uid: recorded.or(listed),
        fingerprint,
        since: current.started_at.0,
        refreshed_at: current.refreshed_at.as_ref().map(|time| time.0),
        sync_started_at: current.sync_started_at.as_ref().map(|time| time.0),
        terminated_at: current.terminated_at.as_ref().map(|time| time.0),
        terminate_after: terminates_after(current, position.rollout),
        hard_refreshed_at: current.hard_refreshed_at.as_ref().map(|time| time.0),
        gate_passed_since: current.gate_passed_since.as_ref().map(|time| time.0),
        live: &seen.facts.live,
        removes: removed_by(position),
        sync_of: (step.operation == Operation::Verify).then(|| position.name()),
        proof: proof(step),
    }
}

/// A retry may write content that is there already, a Verify and an Adopt always do; a sync of its own is a Verify's proof.
pub(super) fn proof(step: &Step) -> Proof {
    let digest = |chart: &Option<ChartRef>| chart.as_ref().map(|chart| chart.digest);
    match step.operation {
        Operation::Upgrade if digest(&step.from) == digest(&step.to) && !step.values_changed => Proof::Asked,
        Operation::Adopt => Proof::Asked,
        Operation::Install | Operation::Upgrade | Operation::Verify | Operation::Remove => Proof::NewContent,
    }
}

fn not_ready(
    position: &Position<'_>,
    seen: &RolloutSeen,
    step: &InFlight<'_>,
    observation: Observation,
    now: Timestamp,
) -> Verdict {
    let Observation { reason, detail, outlook, action, gate_passes } = observation;
    let hold = hold_of(position, seen);
    // Held, or without an engine, nothing fails before its time: a project that vanished must not end the rollout.
    let outlook = match (gate_passes, &hold) {
        (true, _) => Outlook::Passing,
        (false, None) => outlook,
        (false, Some(_)) => Outlook::Open,
    };
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
        return Verdict::Wait(waiting(detail), Some(position.rollout.spec.deadline.0));
    }
    let timeout = times_out(&step.current, position.rollout);
    let failing_since = step.current.failing_since.as_ref().map_or(now, |time| time.0);
    if now >= timeout || (hopeless && now >= failing_since + GRACE) {
        return Verdict::End(Outcome::Failed, Why::StepFailed { release, reason, detail });
    }
    let write = action.filter(|_| may_act(hold.as_ref())).and_then(|action| write(action, seen, step));
    let look = if hopeless { timeout.min(failing_since + GRACE) } else { next_look(step, reason, timeout, now) };
    match write {
        Some(write) => Verdict::Do(write, waiting(detail)),
        None => Verdict::Wait(waiting(detail), Some(look)),
    }
}

/// What helps Argo CD on is written only where Argo CD may be written to.
fn may_act(hold: Option<&Hold>) -> bool {
    match hold {
        None | Some(Hold::Resolution(..) | Hold::Engine(aicr_crds::reason::Reason::RegistryCredentialsStale)) => true,
        Some(Hold::Paused | Hold::EngineSuspended | Hold::Engine(_) | Hold::Unreadable(_)) => false,
    }
}

/// Argo CD's next word is an event. Beside it: a look at evidence that may turn stale or bad for good, the time when an
/// operation for other content may be terminated, and the time-out.
fn next_look(step: &InFlight<'_>, reason: StepReason, timeout: Timestamp, now: Timestamp) -> Timestamp {
    let soon = match reason {
        StepReason::WaitingForComparison
        | StepReason::GateNotReady
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
        | StepReason::SpecDrifted
        | StepReason::Deleting
        | StepReason::ReconcileFailed => 60,
    };
    // Once asked, the answer is an event.
    let asked = step.current.refreshed_at.as_ref().map(|asked| asked.0);
    let wait = if asked.is_some() { soon.max(15) } else { soon };
    let again = asked.map(|asked| asked + AGAIN_AFTER).filter(|again| *again > now);
    let look = now + SignedDuration::from_secs(wait);
    timeout.min(again.map_or(look, |again| again.min(look)))
}

fn write(action: Action, seen: &RolloutSeen, step: &InFlight<'_>) -> Option<Write> {
    let on = ObjectRef::of(step.application);
    match action {
        Action::Refresh => Some(Write::Refresh { on, hard: false }),
        Action::HardRefresh => Some(Write::Refresh { on, hard: true }),
        Action::Sync => Some(Write::Sync { on, source: wanted(step.step, seen)?.source() }),
        Action::Terminate => Some(Write::Terminate { on }),
    }
}
