//! At a rollout that waits for approval: four eyes on the real authors, and the stored plan.

use std::collections::BTreeSet;

use aicr_lab::product::APPROVERS;
use aicr_tests::Stage;
use aicr_tests::people::Person;
use aicr_tests::stage::OPERATOR;
use serde_json::json;

use super::down::{labelled, plan};
use super::forged::{EDITORS, approval};

/// An approver who also edits.
pub(crate) fn editor<'a>(stage: &'a Stage, name: &str) -> Person<'a> {
    stage.person(name, &[APPROVERS, EDITORS])
}

/// Finds a rollout whose runtime admin wrote, and bob and carol edited; leaves it waiting.
pub(crate) fn no_author_of_the_change_approves_it(stage: &Stage) {
    let name = stage.until_a_rollout(1);
    let rollout = stage.rollout(&name);
    let authors = rollout["spec"]["requestedBy"].as_array().unwrap().iter();
    let authors: BTreeSet<_> = authors.filter_map(|author| author["user"].as_str()).collect();
    assert_eq!(authors, BTreeSet::from(["admin", "bob", "carol"]));
    let approve = json!({"spec": {"approval": approval(&rollout)}});
    for author in ["bob", "carol"] {
        let person = stage.person(author, &[APPROVERS]);
        person.patch(&["runtimerollout", &name], &approve).denied("rollouts", "(spec.requestedBy)");
        person.aicr(&["approve", &name, "--yes", "--reason", "r"]).refused("(spec.requestedBy)");
    }
    stage.administrator().patch(&["runtimerollout", &name], &approve).denied("rollouts", "not an approver");
    assert!(stage.rollout(&name)["spec"]["approval"].is_null());
    // B96: nothing says that it is approved.
    assert!(stage.events(&name).iter().all(|(reason, _)| !reason.contains("Approved")), "{:?}", stage.events(&name));
}

/// Finds a stored plan; leaves it as it is.
pub(crate) fn a_stored_plan_is_changed_by_nobody(stage: &Stage) {
    let plan = plan(stage);
    let what = ["configmap", plan.as_str(), "-n", "aicr-system"];
    for person in [stage.administrator(), stage.acting_as(OPERATOR)] {
        let data = person.patch(&what, &json!({"binaryData": {"plan.json.gz": "AAAA"}, "data": {"a": "b"}}));
        data.refused("field is immutable when `immutable` is set");
        let annotated = json!({"metadata": {"annotations": {"operator.aicr.run/plan-digest": "sha256:00"}}});
        person.patch(&what, &annotated).denied("plans", "a plan is never changed");
    }
    let admin = stage.administrator();
    admin.send(&["create"], &labelled("aicr-system")).denied("plans", "stored by the operator alone");
    admin.kubectl(&["delete", "configmap", &plan, "-n", "aicr-system", "--dry-run=server"]).passed();
}
