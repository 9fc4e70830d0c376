//! Whether a release is ready at its current revision: the ten points of `facts/argocd.md` section 4, and its table.

use aicr_crds::{
    Digest,
    application::{Application, ApplicationStatus, HealthStatus, OperationPhase, OperationState, SyncStatus},
    keys::annotation,
    reason::StepReason,
};
use jiff::{SignedDuration, Timestamp};

use super::why::Outlook;
use crate::message::bounded;

/// How long stale evidence is borne before a comparison is asked for.
const STALE_AFTER: SignedDuration = SignedDuration::from_secs(5);
/// How long an engine that will not act by itself is watched before it is helped.
const WEDGED_AFTER: SignedDuration = SignedDuration::from_secs(120);
/// Bytes of Argo CD's words that a detail takes.
const DETAIL_LIMIT: usize = 2048;
/// Conditions that stand against readiness; warnings do not.
const ERRORS: [&str; 5] = ["ComparisonError", "InvalidSpecError", "UnknownError", "SyncError", "DeletionError"];

/// What the release must be.
#[derive(Clone, Debug)]
pub struct Expected {
    /// UID that the rollout recorded, where it did.
    pub uid: Option<String>,
    /// Fingerprint that the plan gives.
    pub fingerprint: Digest,
    /// When the step was begun, before its write.
    pub since: Timestamp,
    /// When a comparison was asked for last, by this step.
    pub refreshed_at: Option<Timestamp>,
    /// When this step started a sync itself.
    pub sync_started_at: Option<Timestamp>,
    /// When this step told another operation to terminate.
    pub terminated_at: Option<Timestamp>,
    /// From when an operation for other content may be terminated.
    pub terminate_after: Timestamp,
    /// The rollout whose own sync must have run; a Verify changes no content, so only that proves anything.
    pub sync_of: Option<String>,
}

/// The verdict on one observation.
#[derive(Clone, Debug, PartialEq)]
pub enum Readiness {
    /// Ready at its current revision.
    Ready,
    /// Not ready.
    NotReady(Observation),
}

/// Why a release is not ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The reason, of the closed list.
    pub reason: StepReason,
    /// Which resource, with Argo CD's words.
    pub detail: String,
    /// Whether waiting is of use.
    pub outlook: Outlook,
    /// What would help Argo CD on.
    pub action: Option<Action>,
}

/// What may be done beside the one write, each at most once per observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask for a comparison.
    Refresh,
    /// Start a sync of the spec's own source.
    Sync,
    /// Terminate an operation for other content.
    Terminate,
}

impl Observation {
    fn of(reason: StepReason, detail: impl AsRef<str>) -> Self {
        Self { reason, detail: bounded(detail.as_ref(), DETAIL_LIMIT), outlook: Outlook::Open, action: None }
    }

    fn hopeless(self) -> Self {
        Self { outlook: Outlook::Hopeless, ..self }
    }

    fn with(self, action: Option<Action>) -> Self {
        Self { action, ..self }
    }
}

/// One point of the rule: what stands against readiness, or nothing.
type Check = fn(&Application, &Expected, Timestamp) -> Option<Observation>;

/// Judges an Application at `now`.
pub fn readiness(application: &Application, expected: &Expected, now: Timestamp) -> Readiness {
    let checks: [Check; 9] =
        [identity, refused, comparison_error, operation, sync_due, compared, synced, fresh, health];
    let blocked = checks.iter().find_map(|check| check(application, expected, now));
    blocked.map_or(Readiness::Ready, Readiness::NotReady)
}

/// Points 1 and 2: it is the object that was written, as it was written.
fn identity(application: &Application, expected: &Expected, _: Timestamp) -> Option<Observation> {
    if application.is_deleting() {
        return Some(Observation::of(StepReason::Deleting, "the Application is being deleted"));
    }
    let recreated = expected.uid.as_deref().is_some_and(|uid| uid != application.uid());
    let edited = application.fingerprint != expected.fingerprint || application.foreign_source;
    (recreated || edited).then(|| {
        let what = if recreated {
            "the Application was recreated"
        } else {
            "source, values or destination were edited by hand; undo the edit"
        };
        Observation::of(StepReason::SpecDrifted, what)
    })
}

/// Point 5, first half: a spec that Argo CD refuses does not move `comparedTo`, so this is read first (A13).
fn refused(application: &Application, _: &Expected, _: Timestamp) -> Option<Observation> {
    let message = conditions(&application.status, &["InvalidSpecError", "UnknownError"])?;
    Some(Observation::of(StepReason::SpecRefused, message).hopeless())
}

fn comparison_error(application: &Application, _: &Expected, _: Timestamp) -> Option<Observation> {
    let message = conditions(&application.status, &["ComparisonError"])?;
    let lower = message.to_lowercase();
    let reason = if ["401", "403", "unauthorized", "denied", "expired"].iter().any(|word| lower.contains(word)) {
        StepReason::RegistryCredentials
    } else if lower.contains("not declared in schema") {
        StepReason::DiffSchema
    } else {
        StepReason::ComparisonError
    };
    Some(Observation::of(reason, message))
}

/// Points 6 and 7: no operation waits or runs; the last one, if it was for this source, did not fail.
fn operation(application: &Application, expected: &Expected, now: Timestamp) -> Option<Observation> {
    let Some(state) = &application.status.operation else {
        return application
            .operation_requested
            .then(|| Observation::of(StepReason::SyncRunning, "a sync is about to run"));
    };
    let ours = is_ours(application, state);
    match state.phase {
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

/// After a sync of somebody's local manifests, comparisons use those until another operation (A42).
fn local(state: &OperationState, expected: &Expected) -> Observation {
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
        Some(finished) if now.duration_since(finished) > SignedDuration::from_mins(15) => {
            Observation::of(StepReason::EngineWedged, format!("the sync is marked Running but finished at {finished} and is not retried: {words}; terminate it in Argo CD")).hopeless()
        }
        Some(_) => Observation::of(StepReason::SyncRetrying, format!("retry {}: {words}", state.retries)),
        None => Observation::of(StepReason::SyncRunning, words),
    }
}

fn other(state: &OperationState, expected: &Expected, now: Timestamp) -> Observation {
    let action = (now >= expected.terminate_after && expected.terminated_at.is_none()).then_some(Action::Terminate);
    let words = format!(
        "an operation for other content is in flight (started by {}, retry {}): {}",
        who(state),
        state.retries,
        with_failures(state)
    );
    Observation::of(StepReason::OtherOperation, words).with(action)
}

/// Argo CD never retries the same content by itself after a failed operation (A33): one that failed before this step is
/// synced again once; one that this step saw fail is final.
fn failed(application: &Application, state: &OperationState, expected: &Expected) -> Observation {
    let words = with_failures(state);
    let before = state.finished_at.is_some_and(|finished| finished < expected.since);
    if before && expected.sync_started_at.is_none() {
        return Observation::of(StepReason::SyncFailed, words).with(Some(Action::Sync));
    }
    let synced = application.status.sync == Some(SyncStatus::Synced);
    Observation::of(if synced { StepReason::HookFailed } else { StepReason::SyncFailed }, words).hopeless()
}

/// A final operation without a result blocks automated sync for good, without a word (A35, B01).
fn wedged(
    application: &Application,
    state: &OperationState,
    expected: &Expected,
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
fn sync_due(application: &Application, expected: &Expected, _: Timestamp) -> Option<Observation> {
    let rollout = expected.sync_of.as_deref()?;
    let last = application.status.operation.as_ref();
    // Ours may have been replaced by another before it was seen.
    let displaced = |at: Timestamp| last.and_then(|state| state.finished_at).is_some_and(|finished| finished > at);
    let action = expected.sync_started_at.is_none_or(displaced).then_some(Action::Sync);
    (last.and_then(|state| state.rollout.as_deref()) != Some(rollout))
        .then(|| Observation::of(StepReason::SyncRunning, "a sync is started").with(action))
}

/// Point 3: the last comparison was of this source and destination.
fn compared(application: &Application, expected: &Expected, now: Timestamp) -> Option<Observation> {
    (application.status.compared_to != Some(expected.fingerprint)).then(|| {
        Observation::of(StepReason::WaitingForComparison, "Argo CD has not compared the current source yet")
            .with(refresh(application, expected, now))
    })
}

/// Points 4 and 5: live objects are as rendered, and no error stands.
fn synced(application: &Application, expected: &Expected, now: Timestamp) -> Option<Observation> {
    let status = &application.status;
    let unsynced: Vec<&str> = status.unsynced.iter().map(|resource| resource.name.as_str()).collect();
    match &status.sync {
        Some(SyncStatus::Synced) => not_applied(status),
        Some(SyncStatus::OutOfSync) => match conditions(status, &["SyncError"]) {
            Some(message) => Some(Observation::of(StepReason::SyncFailed, message).hopeless()),
            None => Some(Observation::of(StepReason::OutOfSync, unsynced.join(", "))),
        },
        Some(SyncStatus::Unknown) | None => {
            Some(Observation::of(StepReason::WaitingForComparison, "sync status Unknown").with(refresh(
                application,
                expected,
                now,
            )))
        }
    }
}

fn not_applied(status: &ApplicationStatus) -> Option<Observation> {
    let excluded = conditions(status, &["ExcludedResourceWarning"]);
    excluded.map(|message| Observation::of(StepReason::NotAllApplied, message).hopeless()).or_else(|| {
        let error = conditions(status, &ERRORS)?;
        Some(Observation::of(StepReason::SyncFailed, error))
    })
}

/// Point 8: the comparison began after our write and after the last operation.
///
/// The second half is Argo CD's own clock. For the first, a comparison that this step asked for and that was made (Argo CD
/// takes the annotation off) is proof without clocks (A28).
fn fresh(application: &Application, expected: &Expected, now: Timestamp) -> Option<Observation> {
    let finished = application.status.operation.as_ref().and_then(|state| state.finished_at);
    // `reconciledAt` has one-second resolution (A15).
    let after = |at: Timestamp| {
        application.status.reconciled_at.is_some_and(|reconciled| reconciled.as_second() >= at.as_second())
    };
    let barrier = expected.refreshed_at.is_some() && application.annotation(annotation::ARGO_REFRESH).is_none();
    let fresh = finished.is_none_or(after) && (barrier || after(expected.since));
    (!fresh).then(|| {
        Observation::of(StepReason::WaitingForComparison, "the last comparison is older than the last operation")
            .with(refresh(application, expected, now))
    })
}

/// Once per observation: only when none is asked for, and none was since the evidence grew old.
fn refresh(application: &Application, expected: &Expected, now: Timestamp) -> Option<Action> {
    let asked = application.annotation(annotation::ARGO_REFRESH).is_some();
    let finished = application.status.operation.as_ref().and_then(|state| state.finished_at);
    let stale_since = finished.map_or(expected.since, |finished| finished.max(expected.since));
    let asked_since = expected.refreshed_at.is_some_and(|at| at >= stale_since);
    let waited = now.duration_since(stale_since) >= STALE_AFTER;
    (waited && !asked && !asked_since).then_some(Action::Refresh)
}

/// Point 9. Health of a CRD that was just established stays bad until the next comparison, so one is asked for once since
/// it turned bad.
fn health(application: &Application, expected: &Expected, now: Timestamp) -> Option<Observation> {
    let status = &application.status;
    let (reason, action) = match &status.health {
        Some(HealthStatus::Healthy) => return None,
        Some(HealthStatus::Progressing) => (StepReason::HealthProgressing, None),
        Some(HealthStatus::Suspended) => (StepReason::HealthSuspended, None),
        Some(HealthStatus::Degraded) => (StepReason::HealthDegraded, look_again(application, expected, now)),
        Some(HealthStatus::Missing) => (StepReason::HealthMissing, look_again(application, expected, now)),
        Some(HealthStatus::Unknown) | None => (StepReason::HealthUnknown, look_again(application, expected, now)),
    };
    Some(Observation::of(reason, "").with(action))
}

fn look_again(application: &Application, expected: &Expected, now: Timestamp) -> Option<Action> {
    let since = application.status.health_since.map_or(expected.since, |since| since.max(expected.since));
    let asked = application.annotation(annotation::ARGO_REFRESH).is_some()
        || expected.refreshed_at.is_some_and(|at| at >= since);
    (!asked && now.duration_since(since) >= STALE_AFTER).then_some(Action::Refresh)
}

/// All messages of these condition types, or `None`.
fn conditions(status: &ApplicationStatus, kinds: &[&str]) -> Option<String> {
    let messages: Vec<&str> = status
        .conditions
        .iter()
        .filter(|condition| kinds.contains(&condition.kind.as_str()))
        .map(|condition| condition.message.as_str())
        .collect();
    (!messages.is_empty()).then(|| messages.join("; "))
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
