//! Whether a release is ready at its current revision: the ten points of `facts/argocd.md` section 4, and its table.

mod gate;
mod operation;

use aicr_crds::{
    Digest,
    application::{Application, ApplicationStatus, HealthStatus, SyncStatus},
    keys::annotation,
    reason::StepReason,
};
use jiff::{SignedDuration, Timestamp};

use self::operation::{operation, sync_due};
use super::why::Outlook;
use crate::{
    facts::Live,
    message::{bounded, listed},
    seam,
};

pub use gate::GATE_STABLE;
pub(super) use operation::{may_terminate, words as operation_words};

/// How long stale evidence is borne before a comparison is asked for.
const STALE_AFTER: SignedDuration = SignedDuration::from_secs(5);
/// How soon after a comparison that was asked for health that is still bad is looked at again.
pub(super) const AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(30);
/// How long health is let progress by itself before a comparison is asked for, and another one after that: what progresses
/// takes minutes, and Argo CD tells of most of it by itself.
const PROGRESSING_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// Bytes of Argo CD's words that a detail takes.
pub(super) const DETAIL_LIMIT: usize = 2048;
/// How many resources a detail names.
const NAMED: usize = 5;
/// Conditions that stand against readiness; warnings do not.
const ERRORS: [&str; 5] = ["ComparisonError", "InvalidSpecError", "UnknownError", "SyncError", "DeletionError"];

/// What the release must be.
#[derive(Clone, Debug)]
pub struct Expected<'a> {
    /// UID that the rollout recorded, where it did.
    pub uid: Option<&'a str>,
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
    pub sync_of: Option<&'a str>,
    /// When a comparison past Argo CD's caches was asked for, by this step.
    pub hard_refreshed_at: Option<Timestamp>,
    /// Since when the release's own gate passes, as this step found it.
    pub gate_passed_since: Option<Timestamp>,
    /// Live objects of the release.
    pub live: &'a Live,
    /// Releases that the rollout removes: with those, objects may be shared for a while (A152).
    pub removes: Vec<&'a str>,
    /// What shows that a comparison is newer than the step's write.
    pub proof: Proof,
}

/// What shows that a comparison is newer than the step's write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It is of content that was not there before.
    NewContent,
    /// It was asked for after the write: the content was there before, and the step may have been begun long before it
    /// was written.
    Asked,
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
    /// Whether all is ready and only the gate's stable period is waited for.
    pub gate_passes: bool,
}

/// What may be done beside the one write, each at most once per observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask for a comparison.
    Refresh,
    /// Ask for a comparison past Argo CD's caches.
    HardRefresh,
    /// Start a sync of the spec's own source.
    Sync,
    /// Terminate an operation for other content.
    Terminate,
}

impl Observation {
    fn of(reason: StepReason, detail: impl AsRef<str>) -> Self {
        let detail = bounded(detail.as_ref(), DETAIL_LIMIT);
        Self { reason, detail, outlook: Outlook::Open, action: None, gate_passes: false }
    }

    fn hopeless(self) -> Self {
        Self { outlook: Outlook::Hopeless, ..self }
    }

    fn with(self, action: Option<Action>) -> Self {
        Self { action, ..self }
    }
}

/// One point of the rule: what stands against readiness, or nothing.
type Check = fn(&Application, &Expected<'_>, Timestamp) -> Option<Observation>;

/// All points by name, in the order in which they are asked.
const CHECKS: [(&str, Check); 11] = [
    ("ready: identity", identity),
    ("ready: ignored", ignored),
    ("ready: refused", refused),
    ("ready: comparison error", comparison_error),
    ("ready: operation", operation),
    ("ready: sync of its own", sync_due),
    ("ready: compared", compared),
    ("ready: synced", synced),
    ("ready: fresh", fresh),
    ("ready: health", health),
    ("ready: own gate", own_gate),
];

/// Judges an Application at `now`.
pub fn readiness(application: &Application, expected: &Expected<'_>, now: Timestamp) -> Readiness {
    let mut whole = CHECKS.iter().filter(|(name, _)| !seam::is_broken(name));
    let blocked = whole.find_map(|(_, check)| check(application, expected, now));
    blocked.map_or(Readiness::Ready, Readiness::NotReady)
}

/// Point 10.
fn own_gate(_: &Application, expected: &Expected<'_>, now: Timestamp) -> Option<Observation> {
    gate::gate(expected, now)
}

/// Points 1 and 2: it is the object that was written, as it was written.
fn identity(application: &Application, expected: &Expected<'_>, _: Timestamp) -> Option<Observation> {
    if application.is_deleting() {
        return Some(Observation::of(StepReason::Deleting, "the Application is being deleted"));
    }
    let recreated = expected.uid.is_some_and(|uid| uid != application.uid());
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

/// An Application that Argo CD is told to leave alone keeps its last status for ever.
fn ignored(application: &Application, _: &Expected<'_>, _: Timestamp) -> Option<Observation> {
    (application.annotations.skip_reconcile.as_deref() == Some("true")).then(|| {
        Observation::of(
            StepReason::EngineWedged,
            format!("annotation {} makes Argo CD ignore it; remove it", annotation::ARGO_SKIP_RECONCILE),
        )
    })
}

/// Point 5, first half: a spec that Argo CD refuses does not move `comparedTo`, so this is read first (A13). It looks at a
/// refused spec again only minutes later, also where it was too early itself: a controller that has just started misses
/// projects that are there.
fn refused(application: &Application, expected: &Expected<'_>, now: Timestamp) -> Option<Observation> {
    let message = conditions(&application.status, &["InvalidSpecError", "UnknownError"])?;
    let action = refresh(application, expected, now);
    Some(Observation::of(StepReason::SpecRefused, message).hopeless().with(action))
}

fn comparison_error(application: &Application, expected: &Expected<'_>, now: Timestamp) -> Option<Observation> {
    let message = conditions(&application.status, &["ComparisonError"])?;
    let lower = message.to_lowercase();
    let reason = if lower.contains("not declared in schema") {
        StepReason::DiffSchema
    } else if refuses_credentials(&lower) {
        StepReason::RegistryCredentials
    } else {
        StepReason::ComparisonError
    };
    // A failure that is served from the cache outlives its cause (B19).
    let cached = is_cached(&message) && expected.hard_refreshed_at.is_none();
    let waited = now.duration_since(expected.since) >= STALE_AFTER;
    Some(Observation::of(reason, message).with((cached && waited).then_some(Action::HardRefresh)))
}

/// Whether Argo CD serves a failure of before.
pub(super) fn is_cached(message: &str) -> bool {
    message.to_lowercase().contains("(cached)")
}

/// Whether these words, in lower case, tell of refused credentials; a status may stand in a digest by chance.
pub(crate) fn refuses_credentials(message: &str) -> bool {
    let mut words = message.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| ["401", "403"].contains(&word))
        || ["unauthorized", "denied", "expired"].iter().any(|word| message.contains(word))
}

/// Point 3: the last comparison was of this source and destination.
fn compared(application: &Application, expected: &Expected<'_>, now: Timestamp) -> Option<Observation> {
    (application.status.compared_to != Some(expected.fingerprint)).then(|| {
        Observation::of(StepReason::WaitingForComparison, "Argo CD has not compared the current source yet")
            .with(refresh(application, expected, now))
    })
}

/// Points 4 and 5: live objects are as rendered, and no error stands.
fn synced(application: &Application, expected: &Expected<'_>, now: Timestamp) -> Option<Observation> {
    let status = &application.status;
    let unsynced: Vec<&str> = status.unsynced.iter().map(|resource| resource.name.as_str()).collect();
    match &status.sync {
        Some(SyncStatus::Synced) => not_applied(status, expected),
        Some(SyncStatus::OutOfSync) => match conditions(status, &["SyncError"]) {
            Some(message) if message.to_lowercase().contains("sync window") => {
                Some(Observation::of(StepReason::SyncWindow, message))
            }
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

fn not_applied(status: &ApplicationStatus, expected: &Expected<'_>) -> Option<Observation> {
    if let Some(message) = conditions(status, &["ExcludedResourceWarning"]) {
        return Some(Observation::of(StepReason::NotAllApplied, message).hopeless());
    }
    if let Some(message) = conditions(status, &["SharedResourceWarning"])
        && !names_any(&message, &expected.removes)
    {
        return Some(Observation::of(StepReason::SharedResource, message).hopeless());
    }
    let error = conditions(status, &ERRORS)?;
    Some(Observation::of(StepReason::SyncFailed, error))
}

/// Whether Argo CD's words name one of these Applications; names are split where none of their characters stands.
pub(super) fn names_any(message: &str, names: &[&str]) -> bool {
    let words = message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'));
    let mut words = words.map(|word| word.trim_matches('.'));
    words.any(|word| names.contains(&word))
}

/// Point 8: the comparison began after our write and after the last operation.
///
/// The second half is Argo CD's own clock. For the first, a comparison that this step asked for and that was made (Argo CD
/// takes the annotation off) is proof without clocks (A28).
fn fresh(application: &Application, expected: &Expected<'_>, now: Timestamp) -> Option<Observation> {
    let finished = application.status.operation.as_ref().and_then(|state| state.finished_at);
    // `reconciledAt` has one-second resolution (A15).
    let after = |at: Timestamp| {
        application.status.reconciled_at.is_some_and(|reconciled| reconciled.as_second() >= at.as_second())
    };
    let barrier = expected.refreshed_at.is_some() && application.annotations.refresh.is_none();
    let newer = match expected.proof {
        Proof::NewContent => after(expected.since),
        Proof::Asked => false,
    };
    let fresh = finished.is_none_or(after) && (barrier || newer);
    (!fresh).then(|| {
        Observation::of(StepReason::WaitingForComparison, "the last comparison is older than the last operation")
            .with(refresh(application, expected, now))
    })
}

/// Once per observation: only when none is asked for, and none was since the evidence grew old.
fn refresh(application: &Application, expected: &Expected<'_>, now: Timestamp) -> Option<Action> {
    let asked = application.annotations.refresh.is_some();
    let finished = application.status.operation.as_ref().and_then(|state| state.finished_at);
    let stale_since = finished.map_or(expected.since, |finished| finished.max(expected.since));
    let asked_since = expected.refreshed_at.is_some_and(|at| at >= stale_since);
    // Where nothing else is proof there is nothing to wait for.
    let at_once = expected.proof == Proof::Asked && expected.refreshed_at.is_none();
    let waited = now.duration_since(stale_since) >= STALE_AFTER;
    ((waited || at_once) && !asked && !asked_since).then_some(Action::Refresh)
}

/// Point 9. Health of a CRD that was just established stays bad, or Progressing, until the next comparison, and the first
/// one that is asked for may come too early as well.
fn health(application: &Application, expected: &Expected<'_>, now: Timestamp) -> Option<Observation> {
    let (reason, looks) = match &application.status.health {
        Some(HealthStatus::Healthy) => return None,
        Some(HealthStatus::Progressing) => (StepReason::HealthProgressing, Some(PROGRESSING)),
        // A person suspended it, and a person's change is told by an event.
        Some(HealthStatus::Suspended) => (StepReason::HealthSuspended, None),
        Some(HealthStatus::Degraded) => (StepReason::HealthDegraded, Some(BAD)),
        Some(HealthStatus::Missing) => (StepReason::HealthMissing, Some(BAD)),
        Some(HealthStatus::Unknown) | None => (StepReason::HealthUnknown, Some(BAD)),
    };
    let action = looks.and_then(|looks| look_again(application, expected, &looks, now));
    Some(Observation::of(reason, listed(&expected.live.unhealthy, NAMED)).with(action))
}

/// When comparisons are asked for, while health is not as it should be.
struct Looks {
    /// So long since it turned to what it is.
    first: SignedDuration,
    /// So long after one that was asked for.
    again: SignedDuration,
}

const BAD: Looks = Looks { first: STALE_AFTER, again: AGAIN_AFTER };
const PROGRESSING: Looks = Looks { first: PROGRESSING_AFTER, again: PROGRESSING_AFTER };

/// Once since it turned to what it is, then again and again after each comparison that was asked for and made.
fn look_again(application: &Application, expected: &Expected<'_>, looks: &Looks, now: Timestamp) -> Option<Action> {
    let status = &application.status;
    let since = status.health_since.map_or(expected.since, |since| since.max(expected.since));
    let due = match expected.refreshed_at.filter(|asked| *asked >= since) {
        // Argo CD's time is anybody's who may write the Application.
        None => since.checked_add(looks.first).ok(),
        // `reconciledAt` has one-second resolution (A15).
        Some(asked) => {
            let made = status.reconciled_at.is_some_and(|reconciled| reconciled.as_second() >= asked.as_second());
            made.then(|| asked + looks.again)
        }
    };
    let is_open = application.annotations.refresh.is_some();
    due.filter(|due| now >= *due && !is_open).map(|_| Action::Refresh)
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
