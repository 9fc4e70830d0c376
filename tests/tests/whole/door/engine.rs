//! What the operator's own account may not do to Applications and runtimes, even by mistake.

use aicr_lab::product::APPROVERS;
use aicr_tests::Stage;
use aicr_tests::people::Transcript;
use serde_json::{Value, json};

use super::forged::{self, approval, create, name};

const FORGED: [&str; 4] = ["application", "forged", "-n", "argocd"];
const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";

fn removal(rollout: Option<&str>) -> Value {
    json!({"metadata": {
        "finalizers": [CASCADE],
        "annotations": {"operator.aicr.run/delete-rollout": rollout},
    }})
}

/// Leaves nothing.
pub(crate) fn the_operator_removes_only_what_an_approved_step_names(stage: &Stage) {
    let told = Transcript::new("applications");
    let account = forged::operator(stage);
    let denied =
        |did: &str, said: aicr_tests::people::Said, text: &str| told.note(did, &said.denied("applications", text));
    let cascading = {
        let mut application = forged::application();
        application["metadata"]["finalizers"] = json!([CASCADE]);
        application
    };
    denied("a new Application with the finalizer", account.send(&["create"], &cascading), "");
    let elsewhere = {
        let mut application = forged::application();
        application["spec"]["project"] = json!("default");
        application
    };
    denied("another project", account.send(&["create"], &elsewhere), "project");
    account.send(&["create"], &forged::application()).passed();
    denied(
        "the finalizer alone",
        account.patch(&FORGED, &json!({"metadata": {"finalizers": [CASCADE]}})),
        "delete-rollout",
    );
    denied(
        "deleted without the mark",
        account.kubectl(&["delete", "application", "forged", "-n", "argocd"]),
        "delete-rollout",
    );
    create(stage, 7, "AwaitingApproval");
    let seven = name(7);
    stage.until("the door to know the rollout", 1, || {
        let words = account.patch(&FORGED, &removal(Some(&seven))).err;
        if words.contains("not approved") { Ok(()) } else { Err(words) }
    });
    denied("a rollout that nobody approved", account.patch(&FORGED, &removal(Some(&seven))), "not approved");
    denied("a rollout that is not there", account.patch(&FORGED, &removal(Some("rollout-none"))), "try again");
    let approve = json!({"spec": {"approval": approval(&stage.rollout(&seven))}});
    stage.person("alice", &[APPROVERS]).patch(&["runtimerollout", &seven], &approve).passed();
    other_application(stage, &told, &seven);
    told.note(
        "both, for an approved step",
        &stage.until("the approval to be known", 1, || {
            let said = account.patch(&FORGED, &removal(Some(&seven)));
            if said.code == 0 { Ok(said.out) } else { Err(said.err) }
        }),
    );
    denied(
        "the mark alone taken off",
        account.patch(&FORGED, &json!({"metadata": {"annotations": {"operator.aicr.run/delete-rollout": null}}})),
        "",
    );
    told.note(
        "both taken off",
        &account
            .patch(
                &FORGED,
                &json!({"metadata": {"finalizers": null, "annotations": {"operator.aicr.run/delete-rollout": null}}}),
            )
            .passed(),
    );
    account.patch(&FORGED, &removal(Some(&seven))).passed();
    told.note("deleted with both", &account.kubectl(&["delete", "application", "forged", "-n", "argocd"]).passed());
    told.check();
    forged::end(stage, 7, "Succeeded");
    stage.kubectl(&["delete", "runtimerollout", &seven]);
}

/// An approved rollout that has no step for it.
fn other_application(stage: &Stage, told: &Transcript, rollout: &str) {
    let mut other = forged::application();
    other["metadata"]["name"] = json!("other");
    other["metadata"]["annotations"]["operator.aicr.run/release"] = json!("other");
    let account = forged::operator(stage);
    account.send(&["create"], &other).passed();
    let other = ["application", "other", "-n", "argocd"];
    let said = account.patch(&other, &removal(Some(rollout)));
    told.note("a rollout without a Remove step for it", &said.denied("applications", "no Remove step"));
    stage.kubectl(&["delete", "application", "other", "-n", "argocd"]);
}

/// Leaves nothing.
pub(crate) fn the_operator_touches_nothing_foreign(stage: &Stage) {
    let told = Transcript::new("foreign");
    let (account, admin) = (forged::operator(stage), stage.administrator());
    let mut foreign = forged::application();
    foreign["metadata"] = json!({"name": "foreign", "namespace": "argocd"});
    admin.send(&["create"], &foreign).passed();
    let what = ["application", "foreign", "-n", "argocd"];
    let ours = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "aicr-operator"}}});
    told.note(
        "a foreign Application labelled",
        &account.patch(&what, &ours).denied("applications", "not the operator's"),
    );
    let said = account.kubectl(&["delete", "application", "foreign", "-n", "argocd"]);
    told.note("a foreign Application deleted", &said.denied("applications", ""));
    stage.kubectl(&["delete", "application", "foreign", "-n", "argocd"]);
    told.check();
}

/// Finds the sample runtime; changes nothing.
pub(crate) fn the_operator_and_people_keep_to_their_part_of_the_runtime(stage: &Stage) {
    let told = Transcript::new("runtimes");
    let (account, admin) = (forged::operator(stage), stage.administrator());
    let what = ["clusterruntime", "cluster"];
    let note = |did: &str, said: aicr_tests::people::Said| told.note(did, &said.refused(""));
    note("the operator changes spec", account.patch(&what, &json!({"spec": {"intent": "inference"}})));
    note("the operator pauses", account.patch(&what, &json!({"spec": {"paused": true}})));
    note("the operator labels", account.patch(&what, &json!({"metadata": {"labels": {"a": "b"}}})));
    note(
        "a person writes status",
        admin.patch(
            &["clusterruntime", "cluster", "--subresource", "status"],
            &json!({"status": {"activePlanDigest": aicr_tests::samples::digest('a')}}),
        ),
    );
    let authors = |stage: &Stage| {
        stage.json(&["get", "clusterruntime", "cluster"])["metadata"]["annotations"]["operator.aicr.run/spec-changed-by"].clone()
    };
    let before = authors(stage);
    let forged = json!({"metadata": {"annotations": {"operator.aicr.run/spec-changed-by": "[]"}}});
    admin.patch(&what, &forged).passed();
    assert_eq!(authors(stage), before, "what a person writes there is put back");
    told.check();
}
