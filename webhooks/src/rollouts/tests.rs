//! A table of cases for each rule.

mod consent;

use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    Known, KnownRollout, RolloutState, Rule, Verdict, Webhook,
    sample::{
        OPERATOR, ROLLOUT, UID, acknowledgement, approval, approved, ask, assert_forbidden, ended, policy, review,
        revocation, rollout, with, word,
    },
};

fn known(name: &str, state: RolloutState) -> Known {
    Known::from_rollouts(vec![KnownRollout {
        name: name.into(),
        runtime_uid: UID.into(),
        state,
        removes: vec![],
        frees: vec![],
    }])
}

fn update(user: &str, old: &Value, new: &Value) -> Verdict {
    ask(Webhook::Rollouts, &review(user, Some(old), Some(new)), &Known::default())
}

fn create(user: &str, new: &Value, known: &Known) -> String {
    word(&ask(Webhook::Rollouts, &review(user, None, Some(new)), known))
}

fn delete(user: &str, old: &Value) -> String {
    word(&ask(Webhook::Rollouts, &review(user, Some(old), None), &Known::default()))
}

/// The verdict on an approval by alice with something changed.
fn approve(old: &Value, change: impl FnOnce(&mut Value)) -> Verdict {
    let mut given = approval(old, "alice");
    change(&mut given);
    update("alice", old, &with(old, |r| r["spec"]["approval"] = given))
}

#[test]
fn an_approver_who_did_not_ask_for_it_approves_revokes_and_acknowledges() {
    assert_eq!(approve(&rollout(), |_| {}), Verdict::ALLOW);
    let revoked = with(&approved(), |r| r["spec"]["revocation"] = revocation("alice"));
    assert_eq!(update("alice", &approved(), &revoked), Verdict::ALLOW);
    let done = with(&approved(), |r| r["spec"]["acknowledgements"] = json!([acknowledgement("nvsentinel", "alice")]));
    assert_eq!(update("alice", &approved(), &done), Verdict::ALLOW);
}

#[test]
fn creation_is_the_operators_without_consent_and_one_at_a_time() {
    let (new, none) = (with(&rollout(), |r| r["metadata"]["annotations"] = json!({})), Known::from_rollouts(vec![]));
    assert_eq!(create(OPERATOR, &new, &none), "allow");
    assert_eq!(create("alice", &new, &none), "Creation 403");
    assert_eq!(create(OPERATOR, &new, &Known::default()), "Creation 409");
    for (field, value) in [
        ("approval", approval(&new, "alice")),
        ("revocation", revocation("alice")),
        ("acknowledgements", json!([acknowledgement("nvsentinel", "alice")])),
    ] {
        assert_eq!(create(OPERATOR, &with(&new, |r| r["spec"][field] = value), &none), "Creation 403", "{field}");
    }
    assert_eq!(create(OPERATOR, &with(&new, |r| r["spec"]["acknowledgements"] = json!([])), &none), "allow");
    for state in [RolloutState::Unapproved, RolloutState::Revoked, RolloutState::Approved(crate::sample::now())] {
        assert_eq!(create(OPERATOR, &new, &known("rollout-other-1", state)), "Creation 409", "{state:?}");
        assert_eq!(create(OPERATOR, &new, &known(ROLLOUT, state)), "allow", "its own name: the API server says so");
    }
    assert_eq!(create(OPERATOR, &new, &known("rollout-other-1", RolloutState::Ended)), "allow");
}

#[rstest]
#[case::target("targetPlanDigest", json!("sha256:0"))]
#[case::runtime_uid("runtime", json!({ "name": "cluster", "uid": "other" }))]
#[case::deadline("deadline", json!("2027-01-01T00:00:00Z"))]
#[case::steps("steps", json!([]))]
#[case::inventory("inventory", json!([{ "application": "a", "uid": "u", "fingerprint": "f" }]))]
#[case::a_new_field("surprise", json!(1))]
fn the_spec_changes_for_nobody(#[case] field: &str, #[case] value: Value) {
    for user in ["alice", OPERATOR, "kubernetes-admin"] {
        let changed = with(&rollout(), |r| r["spec"][field] = value.clone());
        assert_forbidden(&update(user, &rollout(), &changed), Rule::Immutability);
        assert_forbidden(&update(user, &changed, &rollout()), Rule::Immutability);
    }
}

#[rstest]
#[case::outcome("labels", "outcome", "Succeeded")]
#[case::evidence("annotations", "evidence", "oci://e")]
#[case::finished_at("annotations", "finished-at", "2026-11-29T22:00:00Z")]
#[case::retry_spent("annotations", "retry-spent", "t")]
#[case::written("annotations", "written", "{}")]
fn outcome_and_progress_are_written_by_the_operator(#[case] map: &str, #[case] key: &str, #[case] value: &str) {
    let marked = with(&rollout(), |r| r["metadata"][map][format!("operator.aicr.run/{key}")] = json!(value));
    assert_eq!(update(OPERATOR, &rollout(), &marked), Verdict::ALLOW);
    assert_forbidden(&update("alice", &rollout(), &marked), Rule::OperatorFields);
    assert_forbidden(&update("alice", &marked, &rollout()), Rule::OperatorFields);
    let born =
        with(&marked, |r| r["metadata"]["annotations"].as_object_mut().unwrap().retain(|name, _| name.ends_with(key)));
    let ends = matches!(key, "outcome" | "evidence" | "finished-at");
    let known = Known::from_rollouts(vec![]);
    assert_eq!(create(OPERATOR, &born, &known), if ends { "OperatorFields 403" } else { "allow" });
}

#[rstest]
#[case::outcome("labels", "outcome")]
#[case::evidence("annotations", "evidence")]
#[case::finished_at("annotations", "finished-at")]
fn an_end_is_written_once_by_the_operator_too(#[case] map: &str, #[case] key: &str) {
    let key = format!("operator.aicr.run/{key}");
    let old = with(&ended("Failed"), |r| r["metadata"]["annotations"]["operator.aicr.run/evidence"] = json!("oci://e"));
    assert_forbidden(
        &update(OPERATOR, &old, &with(&old, |r| r["metadata"][map][&key] = json!("Succeeded"))),
        Rule::OperatorFields,
    );
    assert_forbidden(
        &update(OPERATOR, &old, &with(&old, |r| r["metadata"][map][&key] = Value::Null)),
        Rule::OperatorFields,
    );
}

/// The leader may be of a later release, which knows of another outcome.
/// With an owner that is not there the garbage collector would delete it, whoever may not.
#[test]
fn a_rollout_is_given_no_owner_and_may_lose_one() {
    let owned = with(&rollout(), |r| {
        r["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "gone"}]);
    });
    assert_forbidden(&update("alice", &rollout(), &owned), Rule::OperatorFields);
    assert_eq!(update("alice", &owned, &owned), Verdict::ALLOW);
    assert_eq!(
        update("system:serviceaccount:kube-system:generic-garbage-collector", &owned, &rollout()),
        Verdict::ALLOW
    );
}

#[test]
fn any_outcome_is_set_once() {
    let later = with(&rollout(), |r| r["metadata"]["labels"]["operator.aicr.run/outcome"] = json!("Great"));
    assert_eq!(update(OPERATOR, &rollout(), &later), Verdict::ALLOW);
    let again = with(&later, |r| r["metadata"]["labels"]["operator.aicr.run/outcome"] = json!("Failed"));
    assert_forbidden(&update(OPERATOR, &later, &again), Rule::OperatorFields);
}

#[test]
fn status_is_written_by_the_operator() {
    let mut asked = review("alice", Some(&rollout()), Some(&rollout()));
    asked["request"]["subResource"] = json!("status");
    assert_forbidden(&ask(Webhook::Rollouts, &asked, &Known::default()), Rule::OperatorFields);
    asked["request"]["userInfo"]["username"] = json!(OPERATOR);
    assert_eq!(ask(Webhook::Rollouts, &asked, &Known::default()), Verdict::ALLOW);
}

/// B46: on DELETE there is no object.
#[test]
fn an_unfinished_rollout_is_deleted_by_nobody_but_the_operator() {
    assert_eq!(delete("kubernetes-admin", &rollout()), "Deletion 403");
    assert_eq!(delete("system:serviceaccount:kube-system:namespace-controller", &approved()), "Deletion 403");
    assert_eq!(delete(OPERATOR, &rollout()), "allow");
    assert_eq!(delete("kubernetes-admin", &ended("Failed")), "allow");
    let mut asked = review("alice", Some(&rollout()), None);
    asked["request"].as_object_mut().unwrap().remove("object");
    assert_forbidden(&ask(Webhook::Rollouts, &asked, &Known::default()), Rule::Deletion);
    assert_eq!(ask(Webhook::Approvals, &asked, &Known::default()), Verdict::ALLOW);
}

#[test]
fn the_delete_of_a_collection_is_named_from_the_old_object() {
    let mut asked = review("alice", Some(&rollout()), None);
    asked["request"].as_object_mut().unwrap().remove("name");
    let body = serde_json::to_vec(&asked).unwrap();
    let judged = crate::judge(Webhook::Rollouts, &body, &policy(), &Known::default(), crate::sample::now()).unwrap();
    let answer: Value = serde_json::from_slice(&judged.answer).unwrap();
    let message = answer["response"]["status"]["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("RuntimeRollout {ROLLOUT}: the rollout has not ended")), "{message}");
    assert!(message.ends_with("[Deletion]"), "{message}");
    assert_eq!(answer["response"]["status"]["code"], 403);
    assert_eq!(answer["response"]["status"]["reason"], "Forbidden");
    assert_eq!(answer["response"]["uid"], asked["request"]["uid"]);
}

#[test]
fn an_update_without_its_objects_is_refused() {
    for absent in ["object", "oldObject"] {
        let mut asked = review("alice", Some(&rollout()), Some(&rollout()));
        asked["request"][absent] = Value::Null;
        assert_forbidden(&ask(Webhook::Rollouts, &asked, &Known::default()), Rule::Readable);
    }
}

/// The review's structs spell keys out, as serde wants them.
#[test]
fn the_keys_that_are_read_are_those_of_the_kinds() {
    use aicr_crds::keys::{annotation, label};
    assert_eq!(label::OUTCOME, "operator.aicr.run/outcome");
    assert_eq!(label::MANAGED_BY, "app.kubernetes.io/managed-by");
    assert_eq!(annotation::EVIDENCE, "operator.aicr.run/evidence");
    assert_eq!(annotation::FINISHED_AT, "operator.aicr.run/finished-at");
    assert_eq!(annotation::RETRY_SPENT, "operator.aicr.run/retry-spent");
    assert_eq!(annotation::WRITTEN, "operator.aicr.run/written");
    assert_eq!(annotation::SPEC_CHANGED_BY, "operator.aicr.run/spec-changed-by");
    let mut phases = aicr_crds::rollout::Phase::ALL.iter();
    assert!(phases.any(|phase| phase.as_str() == "Validating"));
}
