//! Points 6 and 7: what Argo CD's last operation says, once it is known what it was for (A18).

use aicr_crds::{
    RuntimeRollout,
    application::{Application, OperationPhase, OperationState, SyncStatus},
    reason::StepReason,
    rollout::CurrentStep,
};
use jiff::{SignedDuration, Timestamp};

use super::{Action, Expected, Observation};
use crate::rollout::current::terminates_after;

/// How long an engine that will not act by itself is watched before it is helped.
const WEDGED_AFTER: SignedDuration = SignedDuration::from_secs(120);
/// How long a termination that was asked for is waited for.
const TOLD_FOR: SignedDuration = SignedDuration::from_secs(15);
/// How long a retry may not come before the operation counts as wedged.
const RETRY_LOST_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// No operation waits or runs; the last one, if it was for this source, did not fail.
pub(super) fn operation(application: &Application, expected: &Expected<'_>, now: Timestamp) -> Option<Observation> {
    let Some(state) = &application.status.operation else {
        return application
            .operation_requested
            .then(|| Observation::of(StepReason::SyncRunning, "a sync is about to run"));
    };
    let ours = is_ours(application, state);
    match state.phase {
        OperationPhase::Running | OperationPhase::Terminating if in_window(state) => {
            Some(Observation::of(StepReason::SyncWindow, with_failures(state)))
        }
        OperationPhase::Running | OperationPhase::Terminating if ours => Some(running(state, now)),
        OperationPhase::Running | OperationPhase::Terminating => Some(other(state, expected, now)),
        OperationPhase::Succeeded | OperationPhase::Failed | OperationPhase::Error
            if application.operation_requested =>
        {
            Some(Observation::of(StepReason::SyncRunning, "a sync is about to run"))
        }
        OperationPhase::Succeeded | OperationPhase::Failed | OperationPhase::Error if state.local_manifests => {
            Some(local(state, expected))
        }
        OperationPhase::Failed | OperationPhase::Error if ours => Some(failed(application, state, expected)),
        OperationPhase::Succeeded | OperationPhase::Failed | OperationPhase::Error => {
            wedged(application, state, expected, now)
        }
    }
}

/// A sync window stops an operation without ending it, and it can then not be terminated either (A43).
fn in_window(state: &OperationState) -> bool {
    state.message.to_lowercase().contains("sync window")
}

/// After a sync of somebody's local manifests, comparisons use those until another operation (A42).
fn local(state: &OperationState, expected: &Expected<'_>) -> Observation {
    let action = expected.sync_started_at.is_none().then_some(Action::Sync);
    Observation::of(StepReason::SpecDrifted, format!("synced from local manifests by {}", who(state))).with(action)
}

/// An operation that does not say what it was for counts as ours only once it started after our write.
fn is_ours(application: &Application, state: &OperationState) -> bool {
    state.source_id.is_some() && state.source_id == application.source_id
}

fn running(state: &OperationState, now: Timestamp) -> Observation {
    let words = with_failures(state);
    match state.finished_at {
        // Between two tries; one that does not come is wedged (B10).
        Some(finished) if now.duration_since(finished) > RETRY_LOST_AFTER => {
            Observation::of(StepReason::EngineWedged, format!("the sync is marked Running but finished at {finished} and is not retried: {words}; terminate it in Argo CD")).hopeless()
        }
        Some(_) => Observation::of(StepReason::SyncRetrying, format!("retry {}: {words}", state.retries)),
        None => Observation::of(StepReason::SyncRunning, words),
    }
}

fn other(state: &OperationState, expected: &Expected<'_>, now: Timestamp) -> Observation {
    let due = now >= expected.terminate_after && !was_told(expected.terminated_at, now);
    // One that is terminating already was told so, by whomever.
    let action = (due && state.phase == OperationPhase::Running).then_some(Action::Terminate);
    let words = format!("an operation for other content is in flight {}", told(state));
    Observation::of(StepReason::OtherOperation, words).with(action)
}

/// A termination that comes in the middle of a try is written over by Argo CD, which patches the phase when it ends.
fn was_told(at: Option<Timestamp>, now: Timestamp) -> bool {
    at.is_some_and(|at| now < at + TOLD_FOR)
}

fn told(state: &OperationState) -> String {
    format!("(started by {}, retry {}): {}", who(state), state.retries, with_failures(state))
}

/// What is said of the operation that a Remove waits for.
pub(in crate::rollout) fn words(application: &Application) -> String {
    match &application.status.operation {
        Some(state) if !application.operation_requested => format!("an operation is in flight {}", told(state)),
        Some(_) | None => "an operation is about to run".to_owned(),
    }
}

/// Whether the operation that runs may be terminated, which keeps this begun Remove back (A136).
pub(in crate::rollout) fn may_terminate(
    application: &Application,
    clocks: &CurrentStep,
    rollout: &RuntimeRollout,
    now: Timestamp,
) -> bool {
    let runs = application.status.operation.as_ref().is_some_and(|state| state.phase == OperationPhase::Running);
    runs && now >= terminates_after(clocks, rollout) && !was_told(clocks.terminated_at.as_ref().map(|at| at.0), now)
}

/// Argo CD never retries the same content by itself after a failed operation (A33): one that failed before this step is
/// synced again once; one that this step saw fail is final.
fn failed(application: &Application, state: &OperationState, expected: &Expected<'_>) -> Observation {
    let words = with_failures(state);
    let before = state.finished_at.or(state.started_at).is_some_and(|at| at < expected.since);
    // Without a result nothing was tried, and nothing will be (A35): as where the project was gone meanwhile (A104).
    if (before || !state.has_result) && expected.sync_started_at.is_none() {
        return Observation::of(StepReason::SyncFailed, words).with(Some(Action::Sync));
    }
    let synced = application.status.sync == Some(SyncStatus::Synced);
    Observation::of(if synced { StepReason::HookFailed } else { StepReason::SyncFailed }, words).hopeless()
}

/// A final operation without a result blocks automated sync for good, without a word (A35, B01).
fn wedged(
    application: &Application,
    state: &OperationState,
    expected: &Expected<'_>,
    now: Timestamp,
) -> Option<Observation> {
    let out_of_sync = application.status.sync == Some(SyncStatus::OutOfSync);
    if state.has_result || !out_of_sync {
        return None;
    }
    let words = "Argo CD's last operation ended without a result, which blocks automated sync; start a sync in Argo CD";
    let since = state.started_at.unwrap_or(expected.since).max(expected.since);
    let observation = Observation::of(StepReason::EngineWedged, words);
    match expected.sync_started_at {
        None if now.duration_since(since) >= WEDGED_AFTER => Some(observation.with(Some(Action::Sync))),
        Some(helped) if now.duration_since(helped) >= WEDGED_AFTER => Some(observation.hopeless()),
        None | Some(_) => Some(observation),
    }
}

/// Content that is there already proves nothing until this step's own sync has run.
pub(super) fn sync_due(application: &Application, expected: &Expected<'_>, _: Timestamp) -> Option<Observation> {
    let rollout = expected.sync_of?;
    let last = application.status.operation.as_ref();
    // Ours may have been replaced by another before it was seen.
    let displaced = |at: Timestamp| last.and_then(|state| state.finished_at).is_some_and(|finished| finished > at);
    let action = expected.sync_started_at.is_none_or(displaced).then_some(Action::Sync);
    (last.and_then(|state| state.rollout.as_deref()) != Some(rollout))
        .then(|| Observation::of(StepReason::SyncRunning, "a sync is started").with(action))
}

fn with_failures(state: &OperationState) -> String {
    if state.failures.is_empty() {
        state.message.clone()
    } else {
        format!("{} ({})", state.message, state.failures.join("; "))
    }
}

fn who(state: &OperationState) -> &str {
    if state.initiated_by.is_empty() { "unknown" } else { &state.initiated_by }
}
