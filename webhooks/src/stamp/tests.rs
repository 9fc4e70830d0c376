//! What is stamped, and that nothing else is.

use serde_json::{Value, json};

use crate::{
    Known, Rule, Verdict, Webhook,
    sample::{
        UID, acknowledgement, approval, approved, ask, assert_forbidden, authors, minutes, person, review, revocation,
        rollout, runtime, with,
    },
};

const AUTHORS: &str = "operator.aicr.run/spec-changed-by";

/// The new object as the API server stores it, or the refusal.
fn stamped(user: &str, old: Option<&Value>, new: &Value) -> Result<Value, Verdict> {
    let mut object = new.clone();
    match ask(Webhook::Approvals, &review(user, old, Some(new)), &Known::default()) {
        Verdict::Allow(_) => {}
        Verdict::Patch(patch) => json_patch::patch(&mut object, &patch).unwrap(),
        denied @ Verdict::Deny(_) => return Err(denied),
    }
    let again = ask(Webhook::Approvals, &review(user, old, Some(&object)), &Known::default());
    assert_eq!(again, Verdict::ALLOW, "the stamp is idempotent");
    Ok(object)
}

fn without_stamp(mut given: Value, by: &str, at: &str) -> Value {
    given.as_object_mut().unwrap().remove(by);
    given.as_object_mut().unwrap().remove(at);
    given
}

#[test]
fn an_approval_gets_the_requester_and_the_time_and_nothing_else_changes() {
    let bare = without_stamp(approval(&rollout(), "alice"), "approvedBy", "approvedAt");
    let new = with(&rollout(), |r| r["spec"]["approval"] = bare);
    assert_eq!(stamped("alice", Some(&rollout()), &new).unwrap(), approved());
}

/// K13.
#[test]
fn a_forged_name_or_time_is_replaced() {
    let forged = with(&approved(), |r| r["spec"]["approval"]["approvedBy"] = person("bob"));
    assert_eq!(stamped("alice", Some(&rollout()), &forged).unwrap(), approved());
    for minute in [-1, 1] {
        let forged = with(&approved(), |r| r["spec"]["approval"]["approvedAt"] = json!(minutes(minute)));
        assert_eq!(stamped("alice", Some(&rollout()), &forged).unwrap(), approved());
    }
}

#[test]
fn a_revocation_and_only_the_added_acknowledgement_are_stamped() {
    let held = with(&approved(), |r| r["spec"]["acknowledgements"] = json!([acknowledgement("nfd", "bob")]));
    let bare = without_stamp(acknowledgement("nvsentinel", "alice"), "acknowledgedBy", "acknowledgedAt");
    let new = with(&held, |r| {
        r["spec"]["revocation"] = without_stamp(revocation("alice"), "revokedBy", "revokedAt");
        r["spec"]["acknowledgements"].as_array_mut().unwrap().push(bare);
    });
    let stored = stamped("alice", Some(&held), &new).unwrap();
    assert_eq!(stored["spec"]["revocation"], revocation("alice"));
    let both = json!([acknowledgement("nfd", "bob"), acknowledgement("nvsentinel", "alice")]);
    assert_eq!(stored["spec"]["acknowledgements"], both);
}

#[test]
fn an_approval_that_is_there_is_left_for_the_rules_to_judge() {
    let edited = with(&approved(), |r| r["spec"]["approval"]["reason"] = json!("another"));
    assert_eq!(stamped("bob", Some(&approved()), &edited).unwrap(), edited);
}

#[test]
fn what_is_no_object_is_left_for_the_schema_to_refuse() {
    for odd in [json!("yes"), json!([]), json!(1)] {
        for field in ["approval", "revocation", "acknowledgements"] {
            let new = with(&rollout(), |r| r["spec"][field] = odd.clone());
            assert_eq!(stamped("alice", Some(&rollout()), &new).unwrap(), new);
        }
        let new = with(&runtime(), |r| r["spec"] = odd);
        assert_eq!(stamped("alice", Some(&runtime()), &new).unwrap(), new);
    }
}

#[test]
fn who_creates_a_runtime_is_its_first_author_whatever_the_file_says() {
    for annotations in [Value::Null, json!({}), json!({ AUTHORS: authors(&[("bob", 0)]) }), json!({ "a/b": "c" })] {
        let new = with(&runtime(), |r| r["metadata"]["annotations"] = annotations.clone());
        let stored = stamped("ben", None, &new).unwrap();
        assert_eq!(stored["metadata"]["annotations"][AUTHORS], authors_value(&[("ben", 0)]));
        assert_eq!(stored["metadata"]["annotations"]["a/b"], annotations["a/b"]);
    }
}

/// The annotation as it is written: the order of its keys is that of the type.
fn authors_value(list: &[(&str, i64)]) -> Value {
    let entries = list.iter().map(|(user, at)| format!(r#"{{"user":"{user}","at":"{}"}}"#, minutes(*at)));
    json!(format!("[{}]", entries.collect::<Vec<_>>().join(",")))
}

#[test]
fn an_edit_adds_its_author_and_a_second_persons_edit_frees_nobody() {
    let edit = |intent: &str, old: &Value| with(old, |r| r["spec"]["intent"] = json!(intent));
    let stored = stamped("ben", Some(&runtime()), &edit("inference", &runtime())).unwrap();
    assert_eq!(stored["metadata"]["annotations"][AUTHORS], authors_value(&[("ann", -60), ("ben", 0)]));
}

#[test]
fn the_brakes_change_no_author_and_a_replace_without_the_annotation_passes() {
    let braked = with(&runtime(), |r| r["spec"]["paused"] = json!(true));
    assert_eq!(stamped("ben", Some(&runtime()), &braked).unwrap(), braked);
    for annotations in [Value::Null, json!({}), json!({ AUTHORS: "[]" })] {
        let replaced = with(&braked, |r| r["metadata"]["annotations"] = annotations);
        assert_eq!(stamped("ben", Some(&runtime()), &replaced).unwrap(), braked);
    }
    let unknown = with(&runtime(), |r| r["metadata"]["annotations"] = json!({}));
    let set = with(&unknown, |r| r["metadata"]["annotations"] = json!({ AUTHORS: "[]" }));
    assert_eq!(stamped("ben", Some(&unknown), &set).unwrap(), unknown);
}

#[test]
fn an_unreadable_list_is_not_overwritten() {
    let broken = with(&runtime(), |r| r["metadata"]["annotations"][AUTHORS] = json!("?"));
    let edit = with(&broken, |r| r["spec"]["intent"] = json!("inference"));
    assert_forbidden(&stamped("ben", Some(&broken), &edit).unwrap_err(), Rule::Authors);
}

/// What the stamp leaves is what the rules ask for.
#[test]
fn what_is_stamped_passes_the_rules() {
    let bare = without_stamp(approval(&rollout(), "alice"), "approvedBy", "approvedAt");
    let new = with(&rollout(), |r| r["spec"]["approval"] = bare);
    let stored = stamped("alice", Some(&rollout()), &new).unwrap();
    assert_eq!(
        ask(Webhook::Rollouts, &review("alice", Some(&rollout()), Some(&stored)), &Known::default()),
        Verdict::ALLOW
    );
    let edit = with(&runtime(), |r| r["spec"]["intent"] = json!("inference"));
    let stored = stamped("ben", Some(&runtime()), &edit).unwrap();
    assert_eq!(
        ask(Webhook::Runtimes, &review("ben", Some(&runtime()), Some(&stored)), &Known::default()),
        Verdict::ALLOW
    );
    let new = with(&runtime(), |r| r["metadata"] = json!({ "name": "cluster", "uid": UID }));
    let stored = stamped("ben", None, &new).unwrap();
    assert_eq!(ask(Webhook::Runtimes, &review("ben", None, Some(&stored)), &Known::default()), Verdict::ALLOW);
}
