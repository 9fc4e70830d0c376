//! The release's own gate on live objects, for what Argo CD counts as healthy without looking.

use aicr_crds::reason::StepReason;
use aicr_decide::{
    facts::{CustomSeen, DaemonSetSeen, Live},
    rollout::{Action, Expected, GATE_STABLE, Outlook, Readiness},
};

use crate::{
    readiness::{at, expected, judge, settled},
    story::argo,
};

/// B72, A54: an `OnDelete` `DaemonSet` counts by revision, whatever its pods' readiness says.
#[test]
fn a_daemon_set_is_ready_only_when_every_node_runs_its_present_revision() {
    let set = |updated, ready| DaemonSetSeen {
        name: "gpu-operator/driver".into(),
        desired: 3,
        updated,
        ready,
        pods: vec!["pod driver-x on node n2: Init:CrashLoopBackOff".into()],
    };
    let judged = |set| {
        let live = Live { daemon_sets: vec![set], ..Live::default() };
        judge(&settled(), &Expected { live: &live, ..expected() }, 4)
    };
    let Readiness::NotReady(behind) = judged(set(1, 3)) else { panic!("ready") };
    assert_eq!(behind.reason, StepReason::GateNotReady);
    assert!(behind.detail.contains("1 of 3 nodes updated"), "{}", behind.detail);
    // B74: the node and the pod's state are named; nothing is drained or deleted.
    assert!(behind.detail.contains("driver-x on node n2: Init:CrashLoopBackOff"), "{}", behind.detail);
    assert_eq!((behind.action, behind.outlook), (None, Outlook::Open));
    let Readiness::NotReady(unready) = judged(set(3, 2)) else { panic!("ready") };
    assert!(unready.detail.contains("2 of 3 nodes ready"), "{}", unready.detail);
}

/// B73, A53, A55: a custom resource's own word counts, and only once it has kept it for a minute.
#[test]
fn a_gate_must_pass_without_a_break_for_its_stable_period() {
    let said = |state: &str, since: Option<i64>, second| {
        let custom = CustomSeen {
            name: "ClusterPolicy cluster-policy".into(),
            state: Some(state.into()),
            ..CustomSeen::default()
        };
        let live = Live { customs: vec![custom], ..Live::default() };
        let expected = Expected { live: &live, gate_passed_since: since.map(at), ..expected() };
        match judge(&settled(), &expected, second) {
            Readiness::Ready => None,
            Readiness::NotReady(observation) => Some((observation.reason, observation.gate_passes)),
        }
    };
    assert_eq!(said("ready", None, 4), Some((StepReason::GateNotReady, true)));
    assert_eq!(said("notReady", Some(4), 30), Some((StepReason::GateNotReady, false)));
    assert_eq!(said("ready", Some(30), 89), Some((StepReason::GateNotReady, true)));
    let stable = 30 + GATE_STABLE.as_secs();
    assert_eq!(said("ready", Some(30), stable), None);
}

#[test]
fn a_ready_condition_that_is_not_true_stands_against_readiness() {
    let judged = |ready: &str| {
        let custom = CustomSeen {
            name: "Widget w".into(),
            ready: Some(ready.into()),
            message: "two replicas missing".into(),
            ..CustomSeen::default()
        };
        let live = Live { customs: vec![custom], ..Live::default() };
        judge(&settled(), &Expected { live: &live, gate_passed_since: Some(at(-100)), ..expected() }, 4)
    };
    let Readiness::NotReady(unready) = judged("False") else { panic!("ready") };
    assert_eq!(unready.detail, "Widget w has Ready=False: two replicas missing");
    assert_eq!(judged("True"), Readiness::Ready);
}

/// B05, B66: green, while the live object is not as rendered; looked at past the caches once, no loop.
#[test]
fn an_object_that_is_not_as_rendered_is_named_and_looked_at_past_the_caches_once() {
    let live = Live { outdated: vec!["Deployment gpu/x: spec.image".into()], ..Live::default() };
    let with = |hard: Option<i64>| Expected { live: &live, hard_refreshed_at: hard.map(at), ..expected() };
    let Readiness::NotReady(first) = judge(&settled(), &with(None), 4) else { panic!("ready") };
    assert_eq!((first.reason, first.action), (StepReason::GateNotReady, Some(Action::HardRefresh)));
    assert!(first.detail.contains("Deployment gpu/x: spec.image"), "{}", first.detail);
    let Readiness::NotReady(again) = judge(&settled(), &with(Some(4)), 600) else { panic!("ready") };
    assert_eq!(again.action, None);
}

#[test]
fn bad_health_names_the_resources_that_are_known_to_be_bad() {
    let mut application = settled();
    argo::health(&mut application, "Progressing");
    let live = Live { unhealthy: vec!["Service gpu/lb: Progressing: no address".into()], ..Live::default() };
    let Readiness::NotReady(unhealthy) = judge(&application, &Expected { live: &live, ..expected() }, 4) else {
        panic!("ready")
    };
    assert_eq!(unhealthy.detail, "Service gpu/lb: Progressing: no address");
}
