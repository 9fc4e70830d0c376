//! What people may not do to a rollout, in the words that they are told, and what they may.

use aicr_lab::product::APPROVERS;
use aicr_tests::people::Transcript;
use aicr_tests::{Stage, samples::digest};
use serde_json::{Value, json};

use super::forged::{self, approval, create, hours, name};

fn approve(approval: &Value) -> Value {
    json!({"spec": {"approval": approval}})
}

fn with(mut value: Value, field: &str, other: Value) -> Value {
    value[field] = other;
    value
}

/// Leaves nothing.
pub(crate) fn who_may_not_approve_is_told_why(stage: &Stage) {
    let told = Transcript::new("approvers");
    let rollout = create(stage, 1, "AwaitingApproval");
    let (good, forged) = (approve(&approval(&rollout)), name(1));
    let what = ["runtimerollout", forged.as_str()];
    let note = |did: &str, words: String| told.note(did, &words);

    let stranger = stage.person("erin", &[]);
    note("erin, who has no role, approves", stranger.patch(&what, &good).refused("Forbidden"));
    stage.kubectl(&[
        "create",
        "clusterrolebinding",
        "erin",
        "--clusterrole",
        "aicr-operator-approver",
        "--user",
        "erin",
    ]);
    stage.until("the role binding to count", 1, || {
        let words = stranger.patch(&what, &good).err;
        if words.contains("you are not an approver") { Ok(()) } else { Err(words) }
    });
    note("erin, with the role and not listed", stranger.patch(&what, &good).denied("rollouts", "not an approver"));
    let said = stranger.aicr(&["approve", &forged, "--yes", "--reason", "r"]);
    told.note_end("erin, by the plugin", &said.refused("not an approver"));
    stage.kubectl(&["delete", "clusterrolebinding", "erin"]);
    note(
        "the administrator of the cluster",
        stage.administrator().patch(&what, &good).denied("rollouts", "not an approver"),
    );
    let said = stage.administrator().aicr(&["approve", &forged, "--yes", "--reason", "r"]);
    told.note_end("the administrator, by the plugin", &said.refused("not an approver"));
    for author in ["bob", "carol"] {
        let person = stage.person(author, &[APPROVERS]);
        note(&format!("{author}, approver and author"), person.patch(&what, &good).denied("rollouts", "requestedBy"));
        let said = person.aicr(&["approve", &forged, "--yes", "--reason", "r"]);
        told.note_end(&format!("{author}, by the plugin"), &said.refused("requestedBy"));
    }
    // B48: the name in the body is not who asked.
    let body = approve(&with(approval(&rollout), "approvedBy", json!({"username": "alice", "groups": [APPROVERS]})));
    note(
        "an account that writes alice's name",
        operator_like(stage).patch(&what, &body).denied("rollouts", "not an approver"),
    );
    told.check();
    remove(stage, 1);
}

/// An account of the cluster that may write everything and is nobody's approver.
fn operator_like(stage: &Stage) -> aicr_tests::people::Person<'_> {
    stage.person("system:serviceaccount:default:robot", &["system:masters"])
}

/// Leaves nothing.
pub(crate) fn what_is_no_approval_is_said(stage: &Stage) {
    let told = Transcript::new("approvals");
    let rollout = create(stage, 2, "AwaitingApproval");
    let (good, forged) = (approval(&rollout), name(2));
    let what = ["runtimerollout", forged.as_str()];
    let alice = stage.person("alice", &[APPROVERS]);
    let denied = |did: &str, approval: Value, text: &str| {
        told.note(did, &alice.patch(&what, &approve(&approval)).denied("rollouts", text));
    };
    denied("an expiry that has passed", with(good.clone(), "expiresAt", json!(hours(-1))), "not in the future");
    denied(
        "an expiry after the deadline",
        with(good.clone(), "expiresAt", json!(hours(9))),
        "after the rollout's deadline",
    );
    denied("another binding digest", with(good.clone(), "bindingDigest", json!(digest('e'))), "binding digest");
    denied("no reason", with(good.clone(), "reason", json!(" ")), "needs a reason");
    let dry: Vec<&str> = what.into_iter().chain(["--dry-run=server"]).collect();
    told.note("a dry run passes", &alice.patch(&dry, &approve(&good)).passed());
    assert!(stage.rollout(&forged)["spec"]["approval"].is_null(), "B49: a dry run stores nothing");
    told.note("the good one", &alice.patch(&what, &approve(&good)).passed());
    let stored = stage.rollout(&forged)["spec"]["approval"].clone();
    assert_eq!(stored["approvedBy"]["username"], "alice");
    assert!(stored["approvedBy"]["groups"].to_string().contains(APPROVERS), "{stored}");

    let invalid = |did: &str, patch: Value| {
        told.note(did, &alice.patch(&what, &patch).refused("is invalid: spec.approval"));
    };
    invalid("the approval edited", json!({"spec": {"approval": {"reason": "another"}}}));
    invalid("the approval extended", json!({"spec": {"approval": {"expiresAt": hours(7)}}}));
    invalid("the approval removed", json!({"spec": {"approval": null}}));
    alice.aicr(&["approve", &forged, "--yes", "--reason", "r"]).refused("already approved by alice");

    // B94: the API server refuses each change of what was approved.
    for (did, change) in [
        ("another runtime", json!({"runtime": {"uid": "0b5c1f7e-5f2f-4c0e-9d5e-000000000099"}})),
        ("another inventory", json!({"inventory": []})),
        ("the steps in another order", json!({"steps": [rollout["spec"]["steps"][1], rollout["spec"]["steps"][0]]})),
        ("another deadline", json!({"deadline": hours(20)})),
        ("another target", json!({"targetPlanDigest": digest('c'), "target": "c".repeat(16)})),
    ] {
        let words = stage.acting_as(aicr_tests::stage::OPERATOR).patch(&what, &json!({"spec": change}));
        told.note(&format!("{did}, by the operator"), &words.refused("is invalid"));
    }
    told.check();
    remove(stage, 2);
}

/// Leaves nothing.
pub(crate) fn revocations_and_acknowledgements_have_their_time(stage: &Stage) {
    let told = Transcript::new("revocations");
    let alice = stage.person("alice", &[APPROVERS]);
    let revoke = json!({"spec": {"revocation": {"reason": "a job has no checkpoint"}}});
    let acknowledge = json!({"spec": {"acknowledgements": [{"release": "release-0", "reason": "drained"}]}});
    let target = |number: u8| name(number);
    let (three, four) = (create(stage, 3, "AwaitingApproval"), create(stage, 4, "AwaitingApproval"));
    let (first, second) = (target(3), target(4));
    let (what, other) = (["runtimerollout", first.as_str()], ["runtimerollout", second.as_str()]);

    told.note("a revocation of nothing", &alice.patch(&what, &revoke).denied("rollouts", "approval"));
    told.note(
        "an acknowledgement of what was not applied",
        &alice.patch(&what, &acknowledge).denied("rollouts", "not applied"),
    );
    let nothing = json!({"spec": {"acknowledgements": [{"release": "forged", "reason": "drained"}]}});
    told.note("an acknowledgement that no step asks for", &alice.patch(&what, &nothing).denied("rollouts", "no step"));
    told.note(
        "the same by the plugin",
        &alice.aicr(&["acknowledge", &first, "forged", "--reason", "r"]).refused("no recorded steps"),
    );
    alice.patch(&what, &approve(&approval(&three))).passed();
    // B48: who acts as alice is alice, with the groups they act with.
    stage.acting_as_one_of("alice", APPROVERS).patch(&other, &approve(&approval(&four))).passed();
    let recorded = stage.rollout(&second)["spec"]["approval"]["approvedBy"].clone();
    assert!(recorded["username"] == "alice" && recorded["groups"].to_string().contains(APPROVERS), "{recorded}");
    let written = json!({"metadata": {"annotations": {
        "operator.aicr.run/written": r#"{"release-0":{"uid":"u","ready":true}}"#,
    }}});
    forged::operator(stage).patch(&what, &written).passed();
    // B49: what is only tried is judged and not stored.
    let tried = ["acknowledge", &first, "release-0", "--reason", "r", "--dry-run=server"];
    told.note("an acknowledgement tried", &alice.aicr(&tried).passed());
    let tried = ["revoke", &first, "--yes", "--reason", "r", "--dry-run=server"];
    told.note("a revocation tried", &alice.aicr(&tried).passed());
    let spec = stage.rollout(&first)["spec"].clone();
    assert!(spec["acknowledgements"].is_null() && spec["revocation"].is_null(), "{spec}");
    told.note("an acknowledgement that is waited for", &alice.patch(&what, &acknowledge).passed());
    let stored = stage.rollout(&first)["spec"]["acknowledgements"][0].clone();
    assert_eq!(stored["acknowledgedBy"]["username"], "alice", "{stored}");
    told.note(
        "the acknowledgement removed",
        &alice.patch(&what, &json!({"spec": {"acknowledgements": []}})).refused("invalid"),
    );
    told.note("revoked by the plugin", &alice.aicr(&["revoke", &first, "--yes", "--reason", "no checkpoint"]).passed());
    told.note(
        "revoked again",
        &alice.patch(&what, &json!({"spec": {"revocation": {"reason": "twice"}}})).refused("invalid"),
    );
    alice.aicr(&["revoke", &first, "--yes", "--reason", "r"]).refused("already revoked by alice");
    let phase = json!({"status": {"phase": "Validating"}});
    forged::put_status(stage, &second, &phase);
    told.note("revoked while validating", &alice.patch(&other, &revoke).denied("rollouts", "alidat"));
    told.check();
    remove(stage, 3);
    remove(stage, 4);
}

/// Leaves nothing.
pub(crate) fn what_is_the_operators_is_written_by_nobody_else(stage: &Stage) {
    let told = Transcript::new("operators");
    create(stage, 5, "AwaitingApproval");
    let forged = name(5);
    let what = ["runtimerollout", forged.as_str()];
    let admin = stage.administrator();
    let denied = |did: &str, said: aicr_tests::people::Said| told.note(did, &said.denied("rollouts", ""));
    denied("a person creates a rollout", admin.send(&["create"], &forged::rollout(9)));
    denied(
        "a person writes status",
        admin.patch(&[what[0], what[1], "--subresource", "status"], &json!({"status": {"step": "2/2"}})),
    );
    let annotated = |key: &str| json!({"metadata": {"annotations": {format!("operator.aicr.run/{key}"): "{}"}}});
    denied(
        "a person ends it",
        admin.patch(&what, &json!({"metadata": {"labels": {"operator.aicr.run/outcome": "Succeeded"}}})),
    );
    for key in ["evidence", "finished-at", "retry-spent", "written"] {
        denied(&format!("a person writes {key}"), admin.patch(&what, &annotated(key)));
    }
    let owner = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "gone"}]);
    denied("a person gives it an owner", admin.patch(&what, &json!({"metadata": {"ownerReferences": owner}})));
    denied("a person deletes it", admin.kubectl(&["delete", what[0], what[1], "--wait=false"]));
    let account = forged::operator(stage);
    let approval = approve(&approval(&stage.rollout(&forged)));
    denied("the operator approves", account.patch(&what, &approval));
    let twin = with_uid_of(forged::rollout(6), &stage.rollout(&forged));
    told.note("the operator makes a second one", &account.send(&["create"], &twin).denied("rollouts", "has not ended"));
    told.note(
        "other annotations are free",
        &admin.patch(&what, &json!({"metadata": {"annotations": {"a": "b"}}})).passed(),
    );
    told.check();
    remove(stage, 5);
}

fn with_uid_of(mut rollout: Value, other: &Value) -> Value {
    rollout["spec"]["runtime"] = other["spec"]["runtime"].clone();
    rollout
}

/// An ended one is deleted by whoever may.
fn remove(stage: &Stage, number: u8) {
    forged::end(stage, number, "Superseded");
    stage.kubectl(&["delete", "runtimerollout", &name(number)]);
}
