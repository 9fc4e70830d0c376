//! Argo CD, with its habits: it compares late, syncs older content, repeats itself, and says so in pieces.

use aicr_crds::{
    application::{
        Application, ApplicationStatus, ArgoCondition, AutomatedSync, HealthStatus, OperationPhase, OperationState,
        SourceId, SyncStatus,
    },
    keys::annotation,
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    cluster::Cluster,
    event::{Act, Condition, Health},
    ghost::{Ghost, Judged},
    hands::annotate,
    store::Change,
};

/// Argo CD's and the truth's time.
#[derive(Clone, Copy)]
struct Clock {
    argo: Timestamp,
    truth: Timestamp,
}

impl Cluster {
    /// Argo CD does something to the release at this place of the family.
    pub(crate) fn argo(&mut self, release: u8, act: Act) {
        let releases = &self.family.releases;
        let name = releases[usize::from(release) % releases.len()];
        let Some((application, _)) = self.truth.application(name) else { return };
        let is_ours = application.project == "aicr";
        if act == Act::Gone {
            if application.is_deleting() {
                self.commit(Change::ApplicationGone(name.to_owned()));
            }
            return;
        }
        if !is_ours || application.annotations.skip_reconcile.is_some() {
            return;
        }
        let clock = Clock { argo: self.now - SignedDuration::from_secs(self.argo_behind), truth: self.now };
        let starter = self.starter(name);
        self.change_application(name, |application, ghost| acts(application, ghost, act, clock, starter));
    }

    /// Name of the rollout that asked for the sync which waits.
    fn starter(&self, name: &str) -> Option<String> {
        let (application, ghost) = self.truth.application(name)?;
        let id = ghost.synced_for.filter(|_| application.operation_requested)?;
        self.truth.rollout(id)?.metadata.name.clone()
    }
}

fn acts(application: &mut Application, ghost: &mut Ghost, act: Act, clock: Clock, starter: Option<String>) {
    let before = (application.status.clone(), ghost.judged.clone());
    let asked = application.annotations.refresh.is_some();
    match act {
        Act::Settle => settles(application, ghost, HealthStatus::Healthy, clock, starter),
        Act::Unhealthy(health) => settles(application, ghost, bad(health), clock, starter),
        Act::Compare => compares(application, ghost, clock),
        Act::Start => starts(application, clock, starter),
        Act::StartOlder => starts_older(application, clock),
        Act::Finish => finishes(application, ghost, clock),
        Act::Retry => retries(application, clock),
        Act::Fail => fails(application, ghost, clock, starter),
        Act::Condition(condition) => {
            application.status.conditions = vec![said(condition)];
        }
        Act::Wedge => wedges(application, ghost, clock),
        Act::OldStatus => {
            if let Some(older) = ghost.older.take() {
                (application.status, ghost.judged) = *older;
                ghost.older = Some(Box::new(before));
            }
            return;
        }
        Act::Gone => {}
    }
    // A comparison that was asked for is not taken back: the barrier rests on that.
    if asked && application.annotations.refresh.is_none() {
        ghost.older = None;
    } else if before.0 != application.status {
        ghost.older = Some(Box::new(before));
    }
}

fn bad(health: Health) -> HealthStatus {
    match health {
        Health::Progressing => HealthStatus::Progressing,
        Health::Degraded => HealthStatus::Degraded,
        Health::Missing => HealthStatus::Missing,
        Health::Suspended => HealthStatus::Suspended,
    }
}

/// Whether a sync may begin: asked for, or automated and not failed for this very source (A33).
fn may_sync(application: &Application, ghost: &Ghost) -> bool {
    if application.operation_requested {
        return true;
    }
    let last = application.status.operation.as_ref();
    let failed = last.is_some_and(|state| match state.phase {
        OperationPhase::Failed | OperationPhase::Error => state.source_id == application.source_id,
        OperationPhase::Running | OperationPhase::Terminating | OperationPhase::Succeeded => false,
    });
    let wedged = last.is_some_and(|state| !state.has_result && state.phase == OperationPhase::Succeeded);
    application.automated == AutomatedSync::Enabled && !failed && !wedged && ghost.live != Some(application.fingerprint)
}

fn is_running(application: &Application) -> bool {
    application.status.operation.as_ref().is_some_and(|state| match state.phase {
        OperationPhase::Running | OperationPhase::Terminating => true,
        OperationPhase::Succeeded | OperationPhase::Failed | OperationPhase::Error => false,
    })
}

/// A whole round: what runs is finished, what may be synced is, and the comparison comes after it.
fn settles(
    application: &mut Application,
    ghost: &mut Ghost,
    health: HealthStatus,
    clock: Clock,
    starter: Option<String>,
) {
    if is_running(application) {
        finishes(application, ghost, clock);
    }
    if may_sync(application, ghost) {
        starts(application, clock, starter);
        finishes(application, ghost, clock);
    }
    if ghost.live.is_some() {
        ghost.health = health;
    }
    compares(application, ghost, clock);
}

fn compares(application: &mut Application, ghost: &mut Ghost, clock: Clock) {
    annotate(application, annotation::ARGO_REFRESH, None);
    let print = application.fingerprint;
    let status = &mut application.status;
    status.conditions.clear();
    status.compared_to = Some(print);
    status.reconciled_at = Some(clock.argo);
    status.sync = Some(if ghost.live == Some(print) { SyncStatus::Synced } else { SyncStatus::OutOfSync });
    if status.health.as_ref() != Some(&ghost.health) {
        status.health = Some(ghost.health.clone());
        status.health_since = Some(clock.argo);
    }
    if let Some(state) = &status.operation
        && status.sync == Some(SyncStatus::OutOfSync)
        && state.phase == OperationPhase::Failed
        && state.source_id == application.source_id
    {
        let message = format!("failed last sync attempt: {}", state.message);
        status.conditions = vec![ArgoCondition { kind: "SyncError".to_owned(), message }];
    }
    ghost.judged = Some(Judged {
        at: clock.truth,
        live: ghost.live,
        healthy: ghost.health == HealthStatus::Healthy,
        outdated: false,
    });
}

fn state(source_id: SourceId, clock: Clock) -> OperationState {
    OperationState {
        phase: OperationPhase::Running,
        started_at: Some(clock.argo),
        finished_at: None,
        retries: 0,
        message: String::new(),
        source_id,
        has_result: false,
        local_manifests: false,
        initiated_by: String::new(),
        rollout: None,
        failures: Vec::new(),
    }
}

fn starts(application: &mut Application, clock: Clock, starter: Option<String>) {
    if is_running(application) {
        return;
    }
    application.operation_requested = false;
    application.status.operation = Some(OperationState { rollout: starter, ..state(application.source_id, clock) });
}

fn starts_older(application: &mut Application, clock: Clock) {
    if !is_running(application) {
        let older = Some(aicr_crds::Digest::of(b"older content"));
        application.status.operation =
            Some(OperationState { initiated_by: "somebody".to_owned(), ..state(older, clock) });
    }
}

/// The operation that runs ends, in a status of its own: sync status and health are still from before.
fn finishes(application: &mut Application, ghost: &mut Ghost, clock: Clock) {
    if !is_running(application) {
        return;
    }
    let ours = application.status.operation.as_ref().is_some_and(|state| state.source_id == application.source_id);
    if let Some(state) = &mut application.status.operation {
        let stopped = state.phase == OperationPhase::Terminating;
        state.phase = if stopped { OperationPhase::Failed } else { OperationPhase::Succeeded };
        state.finished_at = Some(clock.argo);
        state.has_result = true;
        ghost.live = match (stopped, ours) {
            (true, _) => ghost.live,
            (false, true) => Some(application.fingerprint),
            (false, false) => state.source_id,
        };
    }
    ghost.health = HealthStatus::Progressing;
    outdate(ghost, clock);
}

/// An operation has ended. Where its clock went back since it compared, nothing that Argo CD says could show that.
fn outdate(ghost: &mut Ghost, clock: Clock) {
    if let Some(judged) = &mut ghost.judged {
        judged.outdated |= judged.at <= clock.truth;
    }
}

fn retries(application: &mut Application, clock: Clock) {
    if let Some(state) = &mut application.status.operation
        && state.phase == OperationPhase::Running
    {
        state.retries += 1;
        state.finished_at = Some(clock.argo);
        "one object failed".clone_into(&mut state.message);
    }
}

fn fails(application: &mut Application, ghost: &mut Ghost, clock: Clock, starter: Option<String>) {
    if !is_running(application) && may_sync(application, ghost) {
        starts(application, clock, starter);
    }
    if !is_running(application) {
        return;
    }
    if let Some(state) = &mut application.status.operation {
        state.phase = OperationPhase::Failed;
        state.finished_at = Some(clock.argo);
        state.has_result = true;
        "it broke".clone_into(&mut state.message);
    }
    outdate(ghost, clock);
    compares(application, ghost, clock);
}

fn wedges(application: &mut Application, ghost: &mut Ghost, clock: Clock) {
    if is_running(application) {
        return;
    }
    application.operation_requested = false;
    application.status.operation = Some(OperationState {
        phase: OperationPhase::Succeeded,
        finished_at: Some(clock.argo),
        ..state(application.source_id, clock)
    });
    outdate(ghost, clock);
}

fn said(condition: Condition) -> ArgoCondition {
    let (kind, message) = match condition {
        Condition::Credentials => ("ComparisonError", "401 Unauthorized"),
        Condition::Schema => ("ComparisonError", "field not declared in schema"),
        Condition::Comparison => ("ComparisonError", "Manifest generation error (cached): render failed"),
        Condition::InvalidSpec => ("InvalidSpecError", "project aicr not found"),
        Condition::Excluded => ("ExcludedResourceWarning", "Lease"),
    };
    ArgoCondition { kind: kind.to_owned(), message: message.to_owned() }
}

/// What an Application looks like that Argo CD has never seen.
pub(crate) fn unseen() -> ApplicationStatus {
    ApplicationStatus::default()
}
