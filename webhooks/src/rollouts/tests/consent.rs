//! What people may write: approval, revocation and acknowledgement.

use rstest::rstest;
use serde_json::{Value, json};

use super::{approve, update};
use crate::{
    Known, KnownRollout, RolloutState, Rule, Separation, Verdict, Warning, Webhook,
    sample::{
        OPERATOR, acknowledgement, approval, approved, ask, ask_with, assert_forbidden, ended, minutes, person, policy,
        review, revocation, rollout, with,
    },
};

#[test]
fn consent_is_neither_changed_nor_removed_nor_given_twice() {
    let held = with(&approved(), |r| {
        r["spec"]["revocation"] = revocation("alice");
        r["spec"]["acknowledgements"] = json!([acknowledgement("nvsentinel", "alice")]);
    });
    for change in [
        (|r: &mut Value| r["spec"]["approval"]["expiresAt"] = json!(minutes(180))) as fn(&mut Value),
        |r| r["spec"]["approval"] = Value::Null,
        |r| r["spec"]["revocation"]["reason"] = json!("another"),
        |r| r["spec"]["revocation"] = Value::Null,
        |r| r["spec"]["acknowledgements"] = json!([]),
        |r| r["spec"]["acknowledgements"][0]["reason"] = json!("another"),
        |r| {
            r["spec"]["acknowledgements"] =
                json!([r["spec"]["acknowledgements"][0], acknowledgement("nvsentinel", "bob")]);
        },
    ] {
        assert_forbidden(&update("alice", &held, &with(&held, change)), Rule::Immutability);
    }
    let twice = with(&approved(), |r| {
        r["spec"]["acknowledgements"] =
            json!([acknowledgement("nvsentinel", "alice"), acknowledgement("nvsentinel", "alice")]);
    });
    assert_forbidden(&update("alice", &approved(), &twice), Rule::Immutability);
    assert_eq!(update("bob", &held, &with(&held, |r| r["metadata"]["labels"]["team"] = json!("x"))), Verdict::ALLOW);
}

/// B48: an account that is no approver writes an approver's name; the stamp replaces it, and without it the rules refuse.
#[test]
fn a_name_in_the_body_helps_nobody() {
    let account = "system:serviceaccount:team:builder";
    let new = with(&rollout(), |r| r["spec"]["approval"] = approval(&rollout(), "alice"));
    let asked = review(account, Some(&rollout()), Some(&new));
    assert_forbidden(&ask(Webhook::Rollouts, &asked, &Known::default()), Rule::Stamp);
    let Verdict::Patch(patch) = ask(Webhook::Approvals, &asked, &Known::default()) else { panic!("not stamped") };
    let mut stamped = new;
    json_patch::patch(&mut stamped, &patch).unwrap();
    assert_eq!(stamped["spec"]["approval"]["approvedBy"], person(account));
    assert_forbidden(&update(account, &rollout(), &stamped), Rule::Approvers);
}

/// B48: the API server reports the impersonated, with their groups; the operator is known by its name alone.
#[test]
fn who_is_impersonated_approves_and_is_recorded_with_their_groups() {
    let mut asked = review("alice", Some(&rollout()), Some(&approved()));
    asked["request"]["userInfo"] = json!({ "username": "alice", "uid": "u-1", "groups": ["b", "a", "system:authenticated"],
        "extra": { "authentication.kubernetes.io/credential-id": ["x"] } });
    let Verdict::Patch(patch) = ask(Webhook::Approvals, &asked, &Known::default()) else { panic!("not stamped") };
    json_patch::patch(&mut asked["request"]["object"], &patch).unwrap();
    let recorded = json!({ "username": "alice", "groups": ["b", "a", "system:authenticated"] });
    assert_eq!(asked["request"]["object"]["spec"]["approval"]["approvedBy"], recorded);
    assert_eq!(ask(Webhook::Rollouts, &asked, &Known::default()), Verdict::ALLOW);
    let mut forged = review("ben", None, Some(&with(&rollout(), |r| r["metadata"]["annotations"] = json!({}))));
    forged["request"]["userInfo"]["groups"] = json!(["system:serviceaccounts:aicr-system", "system:masters"]);
    assert_forbidden(&ask(Webhook::Rollouts, &forged, &Known::from_rollouts(vec![])), Rule::Creation);
}

/// B48.
#[test]
fn consent_names_the_requester_and_the_time_and_is_never_the_operators() {
    assert_forbidden(&approve(&rollout(), |a| a["approvedBy"] = person("bob")), Rule::Stamp);
    assert_forbidden(&approve(&rollout(), |a| a["approvedBy"]["groups"] = json!(["system:masters"])), Rule::Stamp);
    assert_forbidden(&approve(&rollout(), |a| a["approvedAt"] = json!(minutes(16))), Rule::Stamp);
    assert_forbidden(&approve(&rollout(), |a| a["approvedAt"] = json!(minutes(-16))), Rule::Stamp);
    assert_eq!(approve(&rollout(), |a| a["approvedAt"] = json!(minutes(15))), Verdict::ALLOW);
    let by_operator = with(&rollout(), |r| r["spec"]["approval"] = approval(&rollout(), OPERATOR));
    assert_forbidden(&update(OPERATOR, &rollout(), &by_operator), Rule::Stamp);
    for (field, value) in
        [("revocation", revocation("bob")), ("acknowledgements", json!([acknowledgement("nvsentinel", "bob")]))]
    {
        let forged = with(&approved(), |r| r["spec"][field] = value);
        assert_forbidden(&update("alice", &approved(), &forged), Rule::Stamp);
    }
}

#[test]
fn only_those_in_the_list_consent_cluster_admin_included() {
    for user in ["mallory", "kubernetes-admin"] {
        let by = with(&rollout(), |r| r["spec"]["approval"] = approval(&rollout(), user));
        assert_forbidden(&update(user, &rollout(), &by), Rule::Approvers);
        let by = with(&approved(), |r| r["spec"]["revocation"] = revocation(user));
        assert_forbidden(&update(user, &approved(), &by), Rule::Approvers);
        let by = with(&approved(), |r| r["spec"]["acknowledgements"] = json!([acknowledgement("nvsentinel", user)]));
        assert_forbidden(&update(user, &approved(), &by), Rule::Approvers);
    }
    let mut asked = review(
        "gus",
        Some(&rollout()),
        Some(&with(&rollout(), |r| {
            r["spec"]["approval"] = approval(&rollout(), "gus");
            r["spec"]["approval"]["approvedBy"]["groups"] = json!(["aicr-approvers"]);
        })),
    );
    asked["request"]["userInfo"]["groups"] = json!(["aicr-approvers"]);
    assert_eq!(ask(Webhook::Rollouts, &asked, &Known::default()), Verdict::ALLOW);
}

#[test]
fn an_author_does_not_approve_unless_the_chart_says_so_and_then_with_a_warning() {
    let by_author = with(&rollout(), |r| r["spec"]["approval"] = approval(&rollout(), "ann"));
    assert_forbidden(&update("ann", &rollout(), &by_author), Rule::Separation);
    let mut lenient = policy();
    lenient.separation = Separation::SelfApproval;
    let asked = |user: &str, new: &Value| {
        ask_with(Webhook::Rollouts, &review(user, Some(&rollout()), Some(new)), &lenient, &Known::default())
    };
    assert_eq!(asked("ann", &by_author), Verdict::Allow(vec![Warning::SelfApproval]));
    let by_other = with(&rollout(), |r| r["spec"]["approval"] = approval(&rollout(), "alice"));
    assert_eq!(asked("alice", &by_other), Verdict::ALLOW);
    let revoked = with(&approved(), |r| r["spec"]["revocation"] = revocation("ann"));
    assert_eq!(update("ann", &approved(), &revoked), Verdict::ALLOW, "an author may always stop it");
}

#[rstest]
#[case::no_reason("reason", json!(" "))]
#[case::past("expiresAt", json!(minutes(0)))]
#[case::beyond_the_deadline("expiresAt", json!(minutes(361)))]
#[case::another_digest("bindingDigest", json!(aicr_crds::Digest::of(b"other")))]
fn an_approval_needs_reason_expiry_and_digest(#[case] field: &str, #[case] value: Value) {
    assert_forbidden(&approve(&rollout(), |a| a[field] = value), Rule::Approval);
}

#[test]
fn an_approval_may_last_until_the_deadline() {
    assert_eq!(approve(&rollout(), |a| a["expiresAt"] = json!(minutes(360))), Verdict::ALLOW);
}

/// B94: what the approver saw is bound, whatever differs.
#[rstest]
#[case::runtime("runtime", json!({ "name": "cluster", "uid": "other" }))]
#[case::inventory("inventory", json!([{ "application": "a", "uid": "u", "fingerprint": aicr_crds::Digest::of(b"f") }]))]
#[case::deadline("deadline", json!(minutes(361)))]
#[case::target("targetPlanDigest", json!(aicr_crds::Digest::of(b"other")))]
#[case::authors("requestedBy", json!([]))]
fn an_approval_made_for_something_else_is_refused(#[case] field: &str, #[case] value: Value) {
    let other = with(&rollout(), |r| r["spec"][field] = value);
    assert_bound(&other);
}

/// B94.
#[test]
fn an_approval_made_for_other_steps_or_another_order_is_refused() {
    assert_bound(&with(&rollout(), |r| r["spec"]["steps"].as_array_mut().unwrap().reverse()));
    assert_bound(&with(&rollout(), |r| r["spec"]["steps"][0]["operation"] = json!("Remove")));
}

/// The approval of the sample holds neither for this rollout, nor may an approved one become this one.
#[track_caller]
fn assert_bound(other: &Value) {
    let given = approval(&rollout(), "alice");
    assert_forbidden(&update("alice", other, &with(other, |r| r["spec"]["approval"] = given)), Rule::Approval);
    let became = with(&approved(), |r| {
        let given = r["spec"]["approval"].take();
        r["spec"] = other["spec"].clone();
        r["spec"]["approval"] = given;
    });
    for user in [OPERATOR, "kubernetes-admin"] {
        assert_forbidden(&update(user, &approved(), &became), Rule::Immutability);
    }
}

/// B96: what failed is in the message, and nothing of it is allowed.
#[test]
fn an_approval_that_fails_says_which_check_refused_it() {
    let second = |seconds: i64| (crate::sample::now() + jiff::SignedDuration::from_secs(seconds)).to_string();
    let says = |verdict: &Verdict, rule: Rule, part: &str| {
        let Verdict::Deny(denial) = verdict else { panic!("{verdict:?}") };
        assert!(denial.rule == rule && denial.says.contains(part), "{denial:?}");
    };
    let other = json!(aicr_crds::Digest::of(b"other"));
    says(&approve(&rollout(), |a| a["bindingDigest"] = other), Rule::Approval, "binding digest");
    says(&approve(&rollout(), |a| a["expiresAt"] = json!(second(-1))), Rule::Approval, "not in the future");
    says(&approve(&rollout(), |a| a["expiresAt"] = json!(second(0))), Rule::Approval, "not in the future");
    assert_eq!(approve(&rollout(), |a| a["expiresAt"] = json!(second(1))), Verdict::ALLOW);
    let at_once = with(&approved(), |r| r["spec"]["revocation"] = revocation("alice"));
    says(&update("alice", &rollout(), &at_once), Rule::Revocation, "no approval to revoke");
    says(
        &update("alice", &at_once, &with(&at_once, |r| r["spec"]["approval"] = json!(null))),
        Rule::Immutability,
        "removed",
    );
    let stranger = with(&rollout(), |r| r["spec"]["approval"] = approval(&rollout(), "mallory"));
    says(&update("mallory", &rollout(), &stranger), Rule::Approvers, "not an approver");
    let late = with(&rollout(), |r| r["spec"]["deadline"] = json!(minutes(0)));
    says(&approve(&late, |_| {}), Rule::Approval, "deadline has passed");
}

/// B96: revoked in the second of the approval is revoked.
#[test]
fn an_approval_that_is_revoked_at_once_removes_nothing() {
    let revoked = with(&approved(), |r| r["spec"]["revocation"] = revocation("alice"));
    let read = |rollout: &Value| {
        KnownRollout::from(&serde_json::from_value::<aicr_crds::RuntimeRollout>(rollout.clone()).unwrap())
    };
    assert_eq!(read(&revoked).state, RolloutState::Revoked);
    assert!(matches!(read(&approved()).state, RolloutState::Approved(_)));
    assert_eq!(read(&ended("Succeeded")).state, RolloutState::Ended);
}

#[test]
fn a_rollout_that_ended_is_past_its_deadline_or_needs_none_is_not_approved() {
    let over = with(&rollout(), |r| r["metadata"]["labels"]["operator.aicr.run/outcome"] = json!("Failed"));
    assert_forbidden(&approve(&over, |_| {}), Rule::Approval);
    let late = with(&rollout(), |r| r["spec"]["deadline"] = json!(minutes(0)));
    assert_forbidden(&approve(&late, |_| {}), Rule::Approval);
    let free = with(&rollout(), |r| {
        for step in r["spec"]["steps"].as_array_mut().unwrap() {
            step["approval"]["need"] = json!("NotRequired");
        }
    });
    assert_forbidden(&approve(&free, |_| {}), Rule::Approval);
    let newer = with(&rollout(), |r| r["spec"]["schemaVersion"] = json!("2"));
    assert_forbidden(&approve(&newer, |_| {}), Rule::Approval);
}

#[test]
fn a_revocation_needs_an_approval_and_a_reason_and_comes_before_validation() {
    let revoke = |old: &Value, reason: &str| {
        let new = with(old, |r| {
            r["spec"]["revocation"] = revocation("alice");
            r["spec"]["revocation"]["reason"] = json!(reason);
        });
        update("alice", old, &new)
    };
    assert_forbidden(&revoke(&rollout(), "why"), Rule::Revocation);
    assert_forbidden(&revoke(&approved(), " "), Rule::Revocation);
    assert_forbidden(
        &revoke(&with(&approved(), |r| r["status"] = json!({ "phase": "Validating" })), "why"),
        Rule::Revocation,
    );
    assert_forbidden(&revoke(&ended("Succeeded"), "why"), Rule::Revocation);
    assert_eq!(revoke(&with(&approved(), |r| r["status"] = json!({ "phase": "Progressing" })), "why"), Verdict::ALLOW);
}

#[test]
fn an_acknowledgement_is_for_a_release_that_waits_for_it() {
    let acknowledge = |old: &Value, given: Value| {
        update("alice", old, &with(old, |r| r["spec"]["acknowledgements"] = json!([given])))
    };
    for release in ["nothing", "nfd", "late"] {
        assert_forbidden(&acknowledge(&approved(), acknowledgement(release, "alice")), Rule::Acknowledgement);
    }
    let silent = with(&acknowledgement("nvsentinel", "alice"), |given| given["reason"] = json!(""));
    assert_forbidden(&acknowledge(&approved(), silent), Rule::Acknowledgement);
    assert_forbidden(&acknowledge(&ended("Failed"), acknowledgement("nvsentinel", "alice")), Rule::Acknowledgement);
}
