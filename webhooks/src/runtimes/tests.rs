//! Who may write what of a ClusterRuntime.

use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    Known, Rule, Verdict, Warning, Webhook,
    sample::{OPERATOR, UID, ask, assert_forbidden, authors, review, runtime, with},
};

const AUTHORS: &str = "operator.aicr.run/spec-changed-by";

fn update(user: &str, old: &Value, new: &Value) -> Verdict {
    ask(Webhook::Runtimes, &review(user, Some(old), Some(new)), &Known::default())
}

fn create(user: &str, new: &Value) -> Verdict {
    ask(Webhook::Runtimes, &review(user, None, Some(new)), &Known::default())
}

/// As the stamp leaves it: ben's edit after ann's.
fn edited(change: impl FnOnce(&mut Value)) -> Value {
    with(&runtime(), |r| {
        change(r);
        r["metadata"]["annotations"][AUTHORS] = json!(authors(&[("ann", -60), ("ben", 0)]));
    })
}

fn created(change: impl FnOnce(&mut Value)) -> Value {
    with(&runtime(), |r| {
        change(r);
        r["metadata"]["annotations"][AUTHORS] = json!(authors(&[("ben", 0)]));
    })
}

#[test]
fn a_person_creates_and_edits_with_the_stamp() {
    assert_eq!(create("ben", &created(|_| {})), Verdict::ALLOW);
    assert_eq!(update("ben", &runtime(), &edited(|r| r["spec"]["intent"] = json!("inference"))), Verdict::ALLOW);
}

#[test]
fn the_authors_are_stamped_and_cannot_be_set() {
    let edit = |r: &mut Value| r["spec"]["intent"] = json!("inference");
    assert_forbidden(&update("ben", &runtime(), &with(&runtime(), edit)), Rule::Authors);
    assert_forbidden(&create("ben", &with(&runtime(), |_| {})), Rule::Authors);
    let bare = with(&created(|_| {}), |r| r["metadata"]["annotations"] = json!({}));
    assert_forbidden(&create("ben", &bare), Rule::Authors);
    assert_forbidden(&update("ben", &runtime(), &edited(|_| {})), Rule::Authors);
    let dropped = with(&runtime(), |r| r["metadata"]["annotations"] = json!({}));
    assert_forbidden(&update("ben", &runtime(), &dropped), Rule::Authors);
}

#[test]
fn the_brakes_are_no_edit() {
    let braked = with(&runtime(), |r| {
        r["spec"]["paused"] = json!(true);
        r["spec"]["suspendEngine"] = json!(true);
        r["metadata"]["annotations"]["operator.aicr.run/retry"] = json!("1");
    });
    assert_eq!(update("ben", &runtime(), &braked), Verdict::ALLOW);
}

#[test]
fn there_is_one_runtime_and_it_is_named_cluster() {
    assert_forbidden(&create("ben", &created(|r| r["metadata"]["name"] = json!("other"))), Rule::RuntimeName);
}

/// Nodes in both groups are discovery's to find: the runtime then says `PlacementOverlap` and names them.
#[rstest]
#[case::the_same(json!({ "role": "gpu" }), vec![Warning::PlacementOverlaps])]
#[case::narrower(json!({ "role": "gpu", "zone": "a" }), vec![Warning::PlacementOverlaps])]
#[case::every_node(json!({}), vec![])]
#[case::another(json!({ "role": "system", "zone": "a" }), vec![])]
fn groups_that_contain_each_other_are_admitted_with_a_warning(#[case] system: Value, #[case] said: Vec<Warning>) {
    let new = edited(|r| r["spec"]["placement"]["system"]["nodeSelector"] = system.clone());
    assert_eq!(update("ben", &runtime(), &new), Verdict::Allow(said));
}

/// B57: fifty reconciles add and take off the one finalizer; everybody else's entries stay.
#[test]
fn the_operators_finalizer_comes_and_goes_beside_those_of_others_and_twice_is_no_other() {
    let list = |names: Value| with(&runtime(), |r| r["metadata"]["finalizers"] = names);
    let cleanup = "operator.aicr.run/cleanup";
    let beside = [list(json!(["a/b", cleanup])), list(json!(["a/b"])), list(json!([cleanup, "a/b", cleanup]))];
    for old in &beside {
        for new in &beside {
            assert_eq!(update(OPERATOR, old, new), Verdict::ALLOW);
        }
        assert_forbidden(&update(OPERATOR, old, &list(json!([cleanup]))), Rule::RuntimeOperator);
        assert_forbidden(&update(OPERATOR, old, &list(json!(["a/b", "a/b", cleanup]))), Rule::RuntimeOperator);
    }
}

/// B46: the webhook is not called for it; should it be, nobody is locked out.
#[test]
fn a_runtime_is_deleted_by_whoever_may() {
    for user in [OPERATOR, "ben", "system:serviceaccount:kube-system:namespace-controller"] {
        let asked = review(user, Some(&runtime()), None);
        assert_eq!(ask(Webhook::Runtimes, &asked, &Known::default()), Verdict::ALLOW);
        assert_eq!(ask(Webhook::Approvals, &asked, &Known::default()), Verdict::ALLOW);
    }
}

#[test]
fn a_runtime_does_not_adopt_itself() {
    let own = edited(|r| r["spec"]["adoption"] = json!({ "runtimeUID": UID }));
    assert_forbidden(&update("ben", &runtime(), &own), Rule::RuntimeSpec);
    let other = edited(|r| r["spec"]["adoption"] = json!({ "runtimeUID": "0c1d6f0e-5a41-4f0b-9a3e-0d2c8c1f7a11" }));
    assert_eq!(update("ben", &runtime(), &other), Verdict::ALLOW);
}

#[test]
fn the_operator_changes_its_finalizer_and_nothing_else() {
    let bare = with(&runtime(), |r| {
        r["metadata"]["finalizers"] = json!([]);
        r["metadata"]["managedFields"] = json!([{}]);
    });
    assert_eq!(update(OPERATOR, &runtime(), &bare), Verdict::ALLOW);
    assert_eq!(update(OPERATOR, &bare, &runtime()), Verdict::ALLOW);
    for change in [
        (|r: &mut Value| r["spec"]["paused"] = json!(true)) as fn(&mut Value),
        |r| r["spec"]["intent"] = json!("inference"),
        |r| r["metadata"]["labels"] = json!({ "a": "b" }),
        |r| r["metadata"]["annotations"]["operator.aicr.run/retry"] = json!("1"),
        |r| r["metadata"]["finalizers"] = json!(["operator.aicr.run/cleanup", "other/finalizer"]),
    ] {
        assert_forbidden(&update(OPERATOR, &runtime(), &with(&runtime(), change)), Rule::RuntimeOperator);
    }
    let foreign = with(&runtime(), |r| r["metadata"]["finalizers"] = json!(["other/finalizer"]));
    assert_forbidden(&update(OPERATOR, &foreign, &bare), Rule::RuntimeOperator);
    assert_forbidden(&create(OPERATOR, &runtime()), Rule::RuntimeOperator);
}

#[test]
fn status_is_the_operators() {
    let mut asked = review("ben", Some(&runtime()), Some(&runtime()));
    asked["request"]["subResource"] = json!("status");
    assert_forbidden(&ask(Webhook::Runtimes, &asked, &Known::default()), Rule::RuntimeStatus);
    asked["request"]["userInfo"]["username"] = json!(OPERATOR);
    assert_eq!(ask(Webhook::Runtimes, &asked, &Known::default()), Verdict::ALLOW);
}

#[test]
fn a_person_is_warned_of_deletion_and_of_missing_validation() {
    let new = edited(|r| {
        r["spec"]["deletionPolicy"] = json!("Delete");
        r["spec"]["validation"] = json!({ "deployment": "Disabled" });
    });
    let both = Verdict::Allow(vec![Warning::DeletionDeletes, Warning::ValidationDisabled]);
    assert_eq!(update("ben", &runtime(), &new), both);
}
