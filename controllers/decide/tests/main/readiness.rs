//! The readiness rule: its table, and the ways in which Argo CD's status lies.

use std::sync::LazyLock;

use aicr_crds::{
    application::{Application, Desired},
    keys::annotation,
    reason::StepReason,
};
use aicr_decide::facts::Live;
use aicr_decide::rollout::{Action, Expected, Observation, Outlook, Proof, Readiness, readiness};
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};

use crate::story::{argo, engine, plans::plan};

const START: &str = "2026-11-29T12:00:00Z";

pub(crate) fn at(seconds: i64) -> Timestamp {
    START.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn desired() -> Desired {
    let stored = plan("gpu-operator=1", "r", at(0));
    Desired::new(
        &engine(),
        stored.plan.release("gpu-operator").unwrap(),
        stored.plan.digest(),
        "uid-runtime",
        "rollout-1",
    )
    .unwrap()
}

/// Nothing that Argo CD does not judge.
static NOTHING: LazyLock<Live> = LazyLock::new(Live::default);

pub(crate) fn expected() -> Expected<'static> {
    Expected {
        uid: Some("uid-app"),
        fingerprint: desired().fingerprint(),
        since: at(0),
        refreshed_at: None,
        sync_started_at: None,
        terminated_at: None,
        terminate_after: at(900),
        sync_of: None,
        hard_refreshed_at: None,
        gate_passed_since: None,
        live: &NOTHING,
        removes: vec![],
        proof: Proof::NewContent,
    }
}

/// Written at second 0, settled by Argo CD at second 3.
pub(crate) fn settled() -> Value {
    let mut application = desired().body(Some("uid-app"));
    argo::settles(&mut application, at(3));
    application
}

pub(crate) fn judge(application: &Value, expected: &Expected<'_>, second: i64) -> Readiness {
    readiness(&serde_json::from_value::<Application>(application.clone()).unwrap(), expected, at(second))
}

fn observed(application: &Value, second: i64) -> Observation {
    match judge(application, &expected(), second) {
        Readiness::NotReady(observation) => observation,
        Readiness::Ready => panic!("ready"),
    }
}

#[test]
fn all_ten_points_together_are_ready() {
    assert_eq!(judge(&settled(), &expected(), 4), Readiness::Ready);
}

#[rstest]
#[case::deleting("/metadata/deletionTimestamp", json!(START), StepReason::Deleting)]
#[case::recreated("/metadata/uid", json!("uid-other"), StepReason::SpecDrifted)]
#[case::edited("/spec/source/helm/values", json!("x: 1\n"), StepReason::SpecDrifted)]
#[case::sources("/spec/sources", json!([{"repoURL": "x"}]), StepReason::SpecDrifted)]
#[case::not_compared("/status/sync/comparedTo/source/targetRevision", json!("sha256:old"), StepReason::WaitingForComparison)]
#[case::out_of_sync("/status/sync/status", json!("OutOfSync"), StepReason::OutOfSync)]
#[case::unknown("/status/sync/status", json!("Unknown"), StepReason::WaitingForComparison)]
#[case::refused("/status/conditions", json!([{"type": "InvalidSpecError", "message": "no project"}]), StepReason::SpecRefused)]
#[case::credentials("/status/conditions", json!([{"type": "ComparisonError", "message": "401 Unauthorized"}]), StepReason::RegistryCredentials)]
#[case::schema("/status/conditions", json!([{"type": "ComparisonError", "message": "field not declared in schema"}]), StepReason::DiffSchema)]
#[case::schema_denied("/status/conditions", json!([{"type": "ComparisonError", "message": "denied: field not declared in schema"}]), StepReason::DiffSchema)]
#[case::digest_with_a_status("/status/conditions", json!([{"type": "ComparisonError", "message": "no chart at sha256:9401f403e"}]), StepReason::ComparisonError)]
#[case::render("/status/conditions", json!([{"type": "ComparisonError", "message": "render"}]), StepReason::ComparisonError)]
#[case::excluded("/status/conditions", json!([{"type": "ExcludedResourceWarning", "message": "Lease"}]), StepReason::NotAllApplied)]
#[case::about_to_run("/operation", json!({"sync": {}}), StepReason::SyncRunning)]
#[case::old_evidence("/status/reconciledAt", json!("2026-11-29T11:59:59Z"), StepReason::WaitingForComparison)]
#[case::progressing("/status/health/status", json!("Progressing"), StepReason::HealthProgressing)]
#[case::degraded("/status/health/status", json!("Degraded"), StepReason::HealthDegraded)]
#[case::missing("/status/health/status", json!("Missing"), StepReason::HealthMissing)]
#[case::no_health("/status/health", json!({}), StepReason::HealthUnknown)]
fn each_point_alone_keeps_it_from_being_ready(#[case] path: &str, #[case] value: Value, #[case] reason: StepReason) {
    let mut application = settled();
    let (parent, key) = path.rsplit_once('/').unwrap();
    application.pointer_mut(parent).unwrap()[key] = value;
    assert_eq!(observed(&application, 4).reason, reason);
}

/// A controller that has just started refuses projects that are there, and looks again only minutes later (seen on Argo CD
/// 3.4.2): longer than a step is let stand so.
#[test]
fn a_spec_that_is_refused_is_looked_at_again_once_before_it_fails() {
    let mut application = settled();
    application["status"]["conditions"] = json!([{"type": "InvalidSpecError", "message": "project does not exist"}]);
    let early = observed(&application, 4);
    assert_eq!((early.outlook, early.action), (Outlook::Hopeless, None));
    assert_eq!(observed(&application, 20).action, Some(Action::Refresh));
    let asked = Expected { refreshed_at: Some(at(20)), ..expected() };
    let Readiness::NotReady(after) = judge(&application, &asked, 30) else { panic!("ready") };
    assert_eq!((after.outlook, after.action), (Outlook::Hopeless, None));
    let adopted = Expected { proof: Proof::Asked, ..expected() };
    let Readiness::NotReady(at_once) = judge(&application, &adopted, 0) else { panic!("ready") };
    assert_eq!(at_once.action, Some(Action::Refresh), "what writes no content is compared only when asked for");
}

#[test]
fn a_warning_that_says_nothing_about_the_release_does_not_count() {
    let mut application = settled();
    application["status"]["conditions"] = json!([{"type": "OrphanedResourceWarning", "message": "x"}]);
    assert_eq!(judge(&application, &expected(), 4), Readiness::Ready);
}

/// B08: only an operation that did not fail for this source, with `Synced`, can be ready.
#[rstest]
fn the_last_operation_and_the_present_sync_status_are_told_apart(
    #[values("Succeeded", "Failed", "none")] phase: &str,
    #[values("Synced", "OutOfSync", "Unknown")] sync: &str,
    #[values(true, false)] ours: bool,
) {
    let mut application = settled();
    application["status"]["sync"]["status"] = json!(sync);
    if phase == "none" {
        application["status"].as_object_mut().unwrap().remove("operationState");
    } else {
        let state = &mut application["status"]["operationState"];
        state["phase"] = json!(phase);
        if !ours {
            state["operation"]["sync"]["source"]["targetRevision"] = json!("sha256:other");
        }
    }
    let ready = sync == "Synced" && !(phase == "Failed" && ours);
    assert_eq!(judge(&application, &expected(), 4) == Readiness::Ready, ready, "{phase} {sync} ours={ours}");
}

/// B01: a final operation without a result, and no word of it.
#[test]
fn a_wedged_engine_is_helped_once_and_then_named() {
    let mut application = settled();
    application["status"]["sync"]["status"] = json!("OutOfSync");
    application["status"]["operationState"] = json!({"phase": "Succeeded", "startedAt": START, "operation": {}});
    assert_eq!(
        (observed(&application, 60).reason, observed(&application, 60).action),
        (StepReason::EngineWedged, None)
    );
    assert_eq!(observed(&application, 120).action, Some(Action::Sync));
    let helped = Expected { sync_started_at: Some(at(120)), ..expected() };
    let Readiness::NotReady(again) = judge(&application, &helped, 241) else { panic!("ready") };
    assert_eq!((again.reason, again.outlook, again.action), (StepReason::EngineWedged, Outlook::Hopeless, None));
    assert!(again.detail.contains("start a sync in Argo CD"), "{}", again.detail);
}

/// B01, A104: an operation of this content that ended without a result, as where the project went meanwhile, tried nothing.
#[rstest]
#[case(json!(null))]
#[case(json!(at(50)))]
fn an_operation_that_ended_without_a_result_is_started_once_more(#[case] finished: Value) {
    let mut application = settled();
    application["status"]["sync"]["status"] = json!("OutOfSync");
    let state = application["status"]["operationState"].as_object_mut().unwrap();
    state.remove("syncResult");
    state.extend([("phase".to_owned(), json!("Error")), ("finishedAt".to_owned(), finished)]);
    let seen = observed(&application, 60);
    assert_eq!((seen.reason, seen.outlook, seen.action), (StepReason::SyncFailed, Outlook::Open, Some(Action::Sync)));
    let helped = Expected { sync_started_at: Some(at(60)), ..expected() };
    let Readiness::NotReady(again) = judge(&application, &helped, 61) else { panic!("ready") };
    assert_eq!((again.reason, again.outlook, again.action), (StepReason::SyncFailed, Outlook::Hopeless, None));
}

/// Whoever may write an Application may write any time into its status.
#[test]
fn a_time_at_the_end_of_all_times_is_no_trouble() {
    let mut application = settled();
    application["status"]["health"] = json!({"status": "Degraded", "lastTransitionTime": "9999-12-30T22:00:00Z"});
    let seen = observed(&application, 60);
    assert_eq!((seen.reason, seen.action), (StepReason::HealthDegraded, None));
}

/// B02: an operation for other content never decides, is named, and is terminated after the bound; seen on Argo CD 3.4.2: a
/// termination in the middle of a try is written over, so that it is asked for again.
#[test]
fn an_operation_for_other_content_is_waited_for_and_then_terminated() {
    let mut application = settled();
    let state = &mut application["status"]["operationState"];
    state["phase"] = json!("Running");
    state["operation"]["sync"]["source"]["targetRevision"] = json!("sha256:old");
    (state["retryCount"], state["message"]) = (json!(3), json!("one or more objects failed"));
    let early = observed(&application, 899);
    assert_eq!((early.reason, early.action), (StepReason::OtherOperation, None));
    assert!(early.detail.contains("retry 3") && early.detail.contains("objects failed"), "{}", early.detail);
    assert_eq!(observed(&application, 900).action, Some(Action::Terminate));
    let told = Expected { terminated_at: Some(at(900)), ..expected() };
    let action = |second| {
        let Readiness::NotReady(after) = judge(&application, &told, second) else { panic!("ready") };
        after.action
    };
    assert_eq!((action(914), action(915)), (None, Some(Action::Terminate)));
}

/// B03: right after an operation ended, health is still from before it.
#[test]
fn health_from_before_the_operation_ended_does_not_count() {
    let mut application = settled();
    application["status"]["operationState"]["finishedAt"] = json!(at(6));
    let stale = observed(&application, 20);
    assert_eq!((stale.reason, stale.action), (StepReason::WaitingForComparison, Some(Action::Refresh)));
    application["metadata"]["annotations"][annotation::ARGO_REFRESH] = json!("normal");
    assert_eq!(observed(&application, 21).action, None, "asked for already");
    argo::compared(&mut application);
    application["status"]["reconciledAt"] = json!(at(6));
    argo::health(&mut application, "Progressing");
    assert_eq!(observed(&application, 22).reason, StepReason::HealthProgressing);
    argo::health(&mut application, "Healthy");
    assert_eq!(judge(&application, &expected(), 23), Readiness::Ready);
}

/// B10, second half: running and finished at the same time, with no retry in sight.
#[test]
fn a_running_operation_that_finished_long_ago_is_wedged() {
    let mut application = settled();
    application["status"]["operationState"]["phase"] = json!("Running");
    application["status"]["operationState"]["finishedAt"] = json!(at(10));
    assert_eq!(observed(&application, 60).reason, StepReason::SyncRetrying);
    let wedged = observed(&application, 10 + 20 * 60);
    assert_eq!((wedged.reason, wedged.outlook), (StepReason::EngineWedged, Outlook::Hopeless));
}

#[test]
fn a_comparison_that_was_asked_for_proves_freshness_without_clocks() {
    let mut application = settled();
    // Argo CD's clock is ten minutes behind ours.
    application["status"]["reconciledAt"] = json!(at(-600));
    application["status"]["operationState"]["finishedAt"] = json!(at(-601));
    assert_eq!(observed(&application, 10).action, Some(Action::Refresh));
    let asked = Expected { refreshed_at: Some(at(10)), ..expected() };
    application["metadata"]["annotations"][annotation::ARGO_REFRESH] = json!("normal");
    assert_ne!(judge(&application, &asked, 11), Readiness::Ready, "not compared yet");
    argo::compared(&mut application);
    assert_eq!(judge(&application, &asked, 12), Readiness::Ready);
}

/// Found by simulation: begun, held, compared, written; nothing tells that comparison from one after the write.
#[test]
fn content_that_was_there_before_is_ready_only_after_a_comparison_that_was_asked_for() {
    let unchanged = Expected { proof: Proof::Asked, ..expected() };
    let Readiness::NotReady(waits) = judge(&settled(), &unchanged, 4) else { panic!("ready") };
    assert_eq!((waits.reason, waits.action), (StepReason::WaitingForComparison, Some(Action::Refresh)));
    let asked = Expected { refreshed_at: Some(at(8)), ..unchanged };
    assert_eq!(judge(&settled(), &asked, 9), Readiness::Ready);
}

/// A33: Argo CD never syncs the same content again after a failure; a retry starts the sync itself, once.
#[test]
fn content_that_failed_before_this_step_is_synced_again_once() {
    let mut application = settled();
    argo::fails(&mut application, at(-60), "boom");
    application["status"]["reconciledAt"] = json!(at(3));
    let before = observed(&application, 5);
    assert_eq!(
        (before.reason, before.action, before.outlook),
        (StepReason::SyncFailed, Some(Action::Sync), Outlook::Open)
    );
    argo::fails(&mut application, at(30), "boom");
    let again = observed(&application, 31);
    assert_eq!((again.reason, again.action, again.outlook), (StepReason::SyncFailed, None, Outlook::Hopeless));
}

#[test]
fn a_failed_hook_on_a_synced_release_fails_it() {
    let mut application = settled();
    application["status"]["operationState"]["phase"] = json!("Failed");
    application["status"]["operationState"]["syncResult"]["resources"] = json!([{"kind": "Job", "namespace": "gpu-operator", "name": "gate", "hookPhase": "Failed", "message": "backoff limit"}]);
    let hook = observed(&application, 10);
    assert_eq!(hook.reason, StepReason::HookFailed);
    assert!(hook.detail.contains("Job gpu-operator/gate: backoff limit"), "{}", hook.detail);
}

#[test]
fn a_verify_is_ready_only_after_its_own_sync() {
    let verify = Expected { sync_of: Some("rollout-1"), ..expected() };
    let Readiness::NotReady(due) = judge(&settled(), &verify, 5) else { panic!("ready") };
    assert_eq!(due.action, Some(Action::Sync));
    let started = Expected { sync_started_at: Some(at(5)), ..verify };
    assert_ne!(judge(&settled(), &started, 6), Readiness::Ready, "an older view");
    let mut application = settled();
    application["operation"] =
        json!({"sync": {}, "info": [{"name": aicr_crds::application::ROLLOUT_INFO, "value": "rollout-1"}]});
    assert_ne!(judge(&application, &started, 7), Readiness::Ready);
    argo::settles(&mut application, at(8));
    assert_eq!(judge(&application, &started, 9), Readiness::Ready);
}

/// Seen on Argo CD 3.4.2: a chart of nothing but CRDs stays Degraded, another one's health Progressing for three minutes,
/// until the next comparison.
#[rstest]
#[case::bad("Degraded", StepReason::HealthDegraded, 5, 30)]
#[case::on_its_way("Progressing", StepReason::HealthProgressing, 60, 60)]
fn health_is_looked_at_again_after_each_comparison_that_was_asked_for(
    #[case] health: &str,
    #[case] reason: StepReason,
    #[case] first: i64,
    #[case] again: i64,
) {
    let mut application = settled();
    application["status"]["health"] = json!({"status": health, "lastTransitionTime": at(3)});
    assert_eq!(observed(&application, 2 + first).action, None);
    assert_eq!(observed(&application, 3 + first).action, Some(Action::Refresh));
    let asked = Expected { refreshed_at: Some(at(3 + first)), ..expected() };
    let action = |application: &Value, second| {
        let Readiness::NotReady(waits) = judge(application, &asked, second) else { panic!("ready") };
        assert_eq!(waits.reason, reason);
        waits.action
    };
    let due = 3 + first + again;
    // The comparison is still that of second 3: none has been made since.
    assert_eq!(action(&application, due + 22), None);
    application["status"]["reconciledAt"] = json!(at(4 + first));
    assert_eq!(action(&application, due - 1), None);
    assert_eq!(action(&application, due), Some(Action::Refresh));
    application["metadata"]["annotations"][annotation::ARGO_REFRESH] = json!("normal");
    assert_eq!(action(&application, due + 22), None);
}

/// Found by simulation: the record that it was told is in a status that had not been seen.
#[test]
fn an_operation_that_is_terminating_already_is_not_terminated_again() {
    let mut application = settled();
    argo::runs_older(&mut application, at(3), "");
    assert_eq!(observed(&application, 901).action, Some(Action::Terminate));
    application["status"]["operationState"]["phase"] = json!("Terminating");
    assert_eq!(
        (observed(&application, 901).reason, observed(&application, 901).action),
        (StepReason::OtherOperation, None)
    );
}

/// A42: after a sync of somebody's local manifests, `Synced` means synced with somebody's laptop.
#[test]
fn local_manifests_are_synced_away_once() {
    let mut application = settled();
    application["status"]["operationState"]["operation"]["sync"]["manifests"] = json!(["kind: ConfigMap"]);
    application["status"]["operationState"]["operation"]["initiatedBy"] = json!({"username": "mallory"});
    let local = observed(&application, 5);
    assert_eq!((local.reason, local.action), (StepReason::SpecDrifted, Some(Action::Sync)));
    assert!(local.detail.contains("mallory"), "{}", local.detail);
    let started = Expected { sync_started_at: Some(at(5)), ..expected() };
    assert_ne!(judge(&application, &started, 6), Readiness::Ready);
}

/// B06: a diff that does not know a field is the engine's own trouble, neither the registry's nor the render's.
#[test]
fn a_field_that_the_diff_does_not_know_has_a_reason_of_its_own() {
    let mut application = settled();
    application["status"]["sync"]["status"] = json!("Unknown");
    application["status"]["conditions"] = json!([{"type": "ComparisonError", "message": "error calculating structured merge diff: .status.terminatingReplicas: field not declared in schema"}]);
    let observation = observed(&application, 900);
    assert_eq!(
        (observation.reason, observation.outlook, observation.action),
        (StepReason::DiffSchema, Outlook::Open, None)
    );
    assert!(observation.detail.contains("terminatingReplicas"), "{}", observation.detail);
}

/// B19: a failure served from the cache is looked at past it once.
#[test]
fn a_cached_failure_is_looked_at_past_the_caches_once() {
    let mut application = settled();
    application["status"]["conditions"] =
        json!([{"type": "ComparisonError", "message": "Manifest generation error (cached): no chart"}]);
    assert_eq!(observed(&application, 4).action, None, "it may be gone by itself");
    assert_eq!(observed(&application, 5).action, Some(Action::HardRefresh));
    let asked = Expected { hard_refreshed_at: Some(at(5)), ..expected() };
    let Readiness::NotReady(again) = judge(&application, &asked, 700) else { panic!("ready") };
    assert_eq!((again.reason, again.action), (StepReason::ComparisonError, None));
}

/// B21: Argo CD's hook finalizers are there at any time and say nothing about removal.
#[test]
fn hook_finalizers_do_not_stand_against_readiness() {
    let mut application = settled();
    application["metadata"]["finalizers"] =
        json!(["pre-delete-finalizer.argocd.argoproj.io", "pre-delete-finalizer.argocd.argoproj.io/cleanup"]);
    assert_eq!(judge(&application, &expected(), 4), Readiness::Ready);
}

/// A43: a sync window stops an operation without ending it.
#[test]
fn a_sync_window_is_named_and_not_terminated() {
    let mut application = settled();
    argo::waits(&mut application, at(1), "operation is blocked by sync window");
    let observation = observed(&application, 1700);
    assert_eq!((observation.reason, observation.action), (StepReason::SyncWindow, None));
}

/// A45.
#[test]
fn an_application_that_argo_cd_is_told_to_ignore_proves_nothing() {
    let mut application = settled();
    application["metadata"]["annotations"]["argocd.argoproj.io/skip-reconcile"] = json!("true");
    assert_eq!(observed(&application, 4).reason, StepReason::EngineWedged);
}
