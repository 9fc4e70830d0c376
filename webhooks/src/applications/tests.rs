//! A table of cases for each rule on Applications.

use rstest::rstest;
use serde_json::{Value, json};

use aicr_crds::keys::finalizer::ARGO_CASCADE;

use crate::{
    Known, KnownRollout, RolloutState, Rule, Verdict, Webhook,
    sample::{OPERATOR, UID, application, ask, assert_forbidden, live, now, review, with, word},
};

const MARK: &str = "operator.aicr.run/delete-rollout";
const HOOK: &str = "post-delete-finalizer.argocd.argoproj.io";
const NAMESPACES: &str = "system:serviceaccount:kube-system:namespace-controller";

fn later() -> RolloutState {
    RolloutState::Approved(now() + jiff::SignedDuration::from_mins(1))
}

fn known(state: RolloutState) -> Known {
    Known::from_rollouts(vec![KnownRollout {
        name: "r-1".into(),
        runtime_uid: UID.into(),
        state,
        removes: vec!["old".into()],
        frees: vec![],
    }])
}

fn update(old: &Value, new: &Value, known: &Known) -> Verdict {
    ask(Webhook::Applications, &review(OPERATOR, Some(old), Some(new)), known)
}

fn delete(old: &Value, known: &Known) -> String {
    word(&ask(Webhook::Applications, &review(OPERATOR, Some(old), None), known))
}

fn create(new: &Value) -> Verdict {
    ask(Webhook::Applications, &review(OPERATOR, None, Some(new)), &Known::default())
}

fn marked() -> Value {
    with(&live(), |app| {
        app["metadata"]["annotations"][MARK] = json!("r-1");
        app["metadata"]["finalizers"] = json!([HOOK, ARGO_CASCADE[0]]);
    })
}

#[test]
fn what_the_operator_writes_day_by_day_passes() {
    let none = Known::default();
    assert_eq!(create(&application()), Verdict::ALLOW);
    for change in [
        (|app: &mut Value| app["metadata"]["annotations"]["argocd.argoproj.io/refresh"] = json!("hard"))
            as fn(&mut Value),
        |app| app["spec"]["syncPolicy"]["automated"]["enabled"] = json!(false),
        |app| app["metadata"]["annotations"]["operator.aicr.run/orphaned-from"] = json!(UID),
        |app| app["spec"]["source"]["helm"]["values"] = json!("a: 2\n"),
        |app| app["status"]["operationState"]["phase"] = json!("Terminating"),
        |app| {
            app["operation"] = json!({ "initiatedBy": { "username": "aicr-operator" }, "info": [], "retry": { "limit": 5 },
            "sync": { "source": app["spec"]["source"], "prune": true, "syncOptions": ["PruneLast=true"] } });
        },
    ] {
        assert_eq!(update(&live(), &with(&live(), change), &none), Verdict::ALLOW);
    }
}

/// A03: Argo CD and people never wait for the door.
#[test]
fn what_others_write_is_none_of_the_doors_business() {
    let foreign = with(&application(), |app| app["metadata"]["finalizers"] = json!([ARGO_CASCADE[0]]));
    for (old, new) in [(Some(&foreign), None), (None, Some(&foreign)), (Some(&application()), Some(&foreign))] {
        let asked = review("system:serviceaccount:argocd:argocd-application-controller", old, new);
        assert_eq!(ask(Webhook::Applications, &asked, &Known::default()), Verdict::ALLOW);
    }
}

#[test]
fn a_foreign_application_is_never_taken_over_or_deleted() {
    let foreign = with(&live(), |app| {
        app["metadata"]["labels"] = json!({});
        app["metadata"]["annotations"] = json!({ MARK: "r-1" });
    });
    assert_forbidden(&update(&foreign, &live(), &known(later())), Rule::Ownership);
    assert_eq!(delete(&foreign, &known(later())), "Ownership 403");
    let unlabelled = with(&live(), |app| app["metadata"]["labels"] = json!({}));
    assert_eq!(update(&unlabelled, &live(), &Known::default()), Verdict::ALLOW, "it lost only its label");
}

#[test]
fn label_and_ownership_annotations_are_complete_and_stay() {
    assert_forbidden(&create(&with(&application(), |app| app["metadata"]["labels"] = json!({}))), Rule::Ownership);
    for key in super::ownership::KEYS {
        let without = |app: &Value| {
            with(app, |app| {
                app["metadata"]["annotations"].as_object_mut().unwrap().remove(key);
            })
        };
        assert_forbidden(&create(&without(&application())), Rule::Ownership);
        assert_forbidden(&update(&live(), &without(&live()), &Known::default()), Rule::Ownership);
        let suspended = with(&without(&live()), |app| app["spec"]["syncPolicy"]["automated"]["enabled"] = json!(false));
        assert_eq!(
            update(&without(&live()), &suspended, &Known::default()),
            Verdict::ALLOW,
            "{key} was taken off before"
        );
    }
    let other = with(&application(), |app| app["metadata"]["annotations"]["operator.aicr.run/release"] = json!("x"));
    assert_forbidden(&create(&other), Rule::Ownership);
}

/// Every annotation that `crds` writes is asked for.
#[test]
fn the_list_of_ownership_annotations_is_that_of_the_kinds() {
    let digest = aicr_crds::Digest::of(b"");
    let ownership = aicr_crds::application::Ownership {
        runtime_uid: String::new(),
        plan_digest: digest,
        rollout: String::new(),
        release: String::new(),
        component: String::new(),
        depends_on: vec![],
        order: 0,
        chart_version: String::new(),
        chart_content: digest,
        readiness_gate: false,
        fingerprint: digest,
    };
    let mut keys = super::ownership::KEYS.to_vec();
    keys.sort_unstable();
    assert_eq!(keys, ownership.annotations().keys().collect::<Vec<_>>());
}

#[test]
fn another_namespace_is_not_written() {
    let asked = review(OPERATOR, None, Some(&with(&application(), |app| app["metadata"]["namespace"] = json!("team"))));
    assert_forbidden(&ask(Webhook::Applications, &asked, &Known::default()), Rule::Ownership);
}

#[rstest]
#[case::project("/spec/project", json!("default"), 409)]
#[case::server("/spec/destination/server", json!("https://elsewhere"), 403)]
#[case::no_namespace("/spec/destination/namespace", json!(""), 403)]
#[case::registry("/spec/source/repoURL", json!("oci://elsewhere/charts/old"), 409)]
#[case::a_longer_prefix("/spec/source/repoURL", json!("oci://registry.example:5000/aicr/labs/charts/old"), 409)]
#[case::upwards("/spec/source/repoURL", json!("oci://registry.example:5000/aicr/lab/../other/old"), 409)]
#[case::a_tag("/spec/source/targetRevision", json!("1.0.0"), 409)]
fn project_destination_and_source_are_the_charts(#[case] path: &str, #[case] value: Value, #[case] code: u16) {
    let odd = |app: &Value| with(app, |app| *app.pointer_mut(path).unwrap() = value.clone());
    let refused = format!("Placement {code}");
    assert_eq!(word(&create(&odd(&application()))), refused);
    assert_eq!(word(&update(&live(), &odd(&live()), &Known::default())), refused);
    let suspended = with(&odd(&live()), |app| app["spec"]["syncPolicy"]["automated"]["enabled"] = json!(false));
    assert_eq!(update(&odd(&live()), &suspended, &Known::default()), Verdict::ALLOW, "somebody else edited it");
    assert_eq!(update(&odd(&live()), &live(), &Known::default()), Verdict::ALLOW, "and it is put back");
}

#[test]
fn more_than_one_source_is_refused() {
    for field in ["sources", "sourceHydrator"] {
        let odd = with(&application(), |app| app["spec"][field] = json!([{}]));
        assert_forbidden(&create(&odd), Rule::Placement);
    }
}

#[test]
fn a_removal_is_prepared_withdrawn_and_done_for_an_approved_step() {
    assert_eq!(update(&live(), &marked(), &known(later())), Verdict::ALLOW);
    assert_eq!(delete(&marked(), &known(later())), "allow");
    for state in [later(), RolloutState::Ended, RolloutState::Revoked] {
        assert_eq!(update(&marked(), &live(), &known(state)), Verdict::ALLOW, "taking both off always");
    }
    assert_eq!(update(&marked(), &live(), &Known::default()), Verdict::ALLOW);
}

#[rstest]
#[case::unapproved(RolloutState::Unapproved, "Removal 409")]
#[case::expired(RolloutState::Approved(now()), "Removal 403")]
#[case::revoked(RolloutState::Revoked, "Removal 403")]
#[case::ended(RolloutState::Ended, "Removal 403")]
fn a_removal_names_an_approved_unended_rollout(#[case] state: RolloutState, #[case] expected: &str) {
    assert_eq!(word(&update(&live(), &marked(), &known(state))), expected);
    assert_eq!(delete(&marked(), &known(state)), expected);
}

#[test]
fn a_removal_names_a_known_rollout_that_removes_this_application() {
    assert_eq!(word(&update(&live(), &marked(), &Known::from_rollouts(vec![]))), "Removal 409");
    assert_eq!(delete(&marked(), &Known::default()), "Removal 409");
    let mut other = known(later());
    other = Known::from_rollouts(vec![KnownRollout {
        removes: vec!["another".into()],
        ..other.rollout("r-1").unwrap().clone()
    }]);
    assert_eq!(word(&update(&live(), &marked(), &other)), "Removal 403");
    assert_eq!(delete(&marked(), &other), "Removal 403");
    assert_eq!(delete(&live(), &known(later())), "Removal 403", "without the mark");
}

#[test]
fn each_of_the_three_cascade_finalizers_comes_with_the_mark_and_the_mark_with_one() {
    for name in ARGO_CASCADE {
        let bare = with(&live(), |app| app["metadata"]["finalizers"] = json!([name]));
        assert_forbidden(&update(&live(), &bare, &known(later())), Rule::Removal);
        assert_forbidden(
            &create(&with(&application(), |app| app["metadata"]["finalizers"] = json!([name]))),
            Rule::Removal,
        );
        let both = with(&bare, |app| app["metadata"]["annotations"][MARK] = json!("r-1"));
        assert_eq!(update(&live(), &both, &known(later())), Verdict::ALLOW);
        assert_forbidden(&update(&both, &bare, &known(later())), Rule::Removal);
        // A131: the mark of another, and one finalizer for another of the three.
        let exchanged = with(&both, |app| app["metadata"]["finalizers"] = json!([ARGO_CASCADE[0], ARGO_CASCADE[1]]));
        assert_eq!(word(&update(&both, &exchanged, &known(RolloutState::Unapproved))), "Removal 409");
    }
    let only_mark = with(&live(), |app| app["metadata"]["annotations"][MARK] = json!("r-1"));
    assert_forbidden(&update(&live(), &only_mark, &known(later())), Rule::Removal);
    let hook = with(&live(), |app| app["metadata"]["finalizers"] = json!([HOOK]));
    assert_eq!(update(&live(), &hook, &Known::default()), Verdict::ALLOW, "Argo CD's hook finalizers cascade nothing");
}

/// The page on troubleshooting: a finalizer that was added by hand keeps the operator from every write.
#[test]
fn an_application_with_a_finalizer_set_by_hand_is_not_written_until_it_is_taken_off() {
    let by_hand = with(&live(), |app| app["metadata"]["finalizers"] = json!([HOOK, ARGO_CASCADE[0]]));
    for change in [
        (|app: &mut Value| app["spec"]["syncPolicy"]["automated"]["enabled"] = json!(false)) as fn(&mut Value),
        |app| app["metadata"]["annotations"]["operator.aicr.run/orphaned-from"] = json!(UID),
        |app| app["metadata"]["annotations"]["argocd.argoproj.io/refresh"] = json!("hard"),
    ] {
        assert_forbidden(&update(&by_hand, &with(&by_hand, change), &known(later())), Rule::Removal);
        let going = with(&by_hand, |app| app["metadata"]["deletionTimestamp"] = json!("2026-11-29T21:00:00Z"));
        assert_eq!(update(&going, &with(&going, change), &Known::default()), Verdict::ALLOW);
    }
    let freed = with(&by_hand, |app| app["metadata"]["finalizers"] = json!([HOOK]));
    assert_eq!(update(&by_hand, &freed, &Known::default()), Verdict::ALLOW);
    let adopted = with(&by_hand, |app| app["metadata"]["annotations"][MARK] = json!("r-1"));
    assert_eq!(update(&by_hand, &adopted, &known(later())), Verdict::ALLOW, "an approved Remove takes it over");
    assert_eq!(delete(&by_hand, &known(later())), "Removal 403");
}

/// A failed removal must not make suspension and orphaning fail.
#[test]
fn both_marks_of_a_removal_that_came_to_nothing_may_stay() {
    for state in [RolloutState::Ended, RolloutState::Revoked, RolloutState::Approved(now())] {
        let suspended = with(&marked(), |app| app["spec"]["syncPolicy"]["automated"]["enabled"] = json!(false));
        assert_eq!(update(&marked(), &suspended, &known(state)), Verdict::ALLOW);
    }
}

/// B59, A134: Argo CD writes the whole list and may erase the finalizer. That the deletion would not cascade is the
/// operator's to see, which reads again and names the version that it saw; admission asks for the mark.
#[test]
fn a_deletion_is_judged_by_its_mark_and_marking_again_passes_with_others_entries_kept() {
    let erased = with(&marked(), |app| app["metadata"]["finalizers"] = json!([HOOK]));
    assert_eq!(delete(&erased, &known(later())), "allow");
    assert_eq!(delete(&erased, &known(RolloutState::Revoked)), "Removal 403");
    assert_eq!(update(&erased, &marked(), &known(later())), Verdict::ALLOW);
    assert_eq!(word(&update(&erased, &marked(), &known(RolloutState::Revoked))), "Removal 403");
    let without_hook = with(&marked(), |app| app["metadata"]["finalizers"] = json!([ARGO_CASCADE[0]]));
    assert_eq!(update(&marked(), &without_hook, &Known::default()), Verdict::ALLOW, "Argo CD's hooks come and go");
}

/// B57, B58: a finalizer twice is no other finalizer, and none is asked for on an object in deletion.
#[test]
fn races_for_the_finalizer_end_in_a_verdict_and_not_in_a_loop() {
    let twice = with(&marked(), |app| app["metadata"]["finalizers"] = json!([ARGO_CASCADE[0], HOOK, ARGO_CASCADE[0]]));
    assert_eq!(update(&marked(), &twice, &Known::default()), Verdict::ALLOW);
    assert_eq!(update(&twice, &marked(), &Known::default()), Verdict::ALLOW);
    let deleted_by_a_person = with(&live(), |app| {
        app["metadata"]["deletionTimestamp"] = json!("2026-11-29T21:00:00Z");
        app["metadata"]["finalizers"] = json!([HOOK]);
    });
    let marked_late = with(&deleted_by_a_person, |app| app["metadata"]["annotations"][MARK] = json!("r-1"));
    assert_eq!(update(&deleted_by_a_person, &marked_late, &known(later())), Verdict::ALLOW);
    assert_eq!(word(&update(&deleted_by_a_person, &marked_late, &known(RolloutState::Ended))), "Removal 403");
}

/// B46: on DELETE there is no object, whoever asks.
#[test]
fn a_deletion_without_an_object_is_judged_from_the_old_one() {
    for absent in [true, false] {
        for (user, expected) in [("kubernetes-admin", "allow"), (NAMESPACES, "allow"), (OPERATOR, "Removal 403")] {
            let mut asked = review(user, Some(&live()), None);
            if absent {
                asked["request"].as_object_mut().unwrap().remove("object");
            }
            assert_eq!(word(&ask(Webhook::Applications, &asked, &Known::default())), expected, "{user}");
        }
    }
}

/// B15: the engine's own writes are admitted as they are, should they ever come here.
#[test]
fn five_hundred_writes_of_the_engine_are_admitted_and_none_is_changed() {
    let engine = "system:serviceaccount:argocd:argocd-application-controller";
    for write in 0..500 {
        let new = with(&live(), |app| match write % 3 {
            0 => app["status"]["reconciledAt"] = json!(format!("2026-11-29T22:00:{:02}Z", write % 60)),
            1 => app["operation"] = json!({ "sync": { "revision": write } }),
            _ => app["metadata"]["annotations"]["argocd.argoproj.io/refresh"] = json!("normal"),
        });
        let asked = review(engine, Some(&live()), Some(&new));
        assert_eq!(ask(Webhook::Applications, &asked, &Known::default()), Verdict::ALLOW);
    }
}

#[test]
fn marks_on_an_application_in_deletion_may_stay_and_be_rewritten_by_a_retry() {
    let going = with(&marked(), |app| {
        app["metadata"]["deletionTimestamp"] = json!("2026-11-29T21:00:00Z");
        app["metadata"]["annotations"][MARK] = json!("r-0");
    });
    for change in [
        (|app: &mut Value| app["spec"]["syncPolicy"]["automated"]["enabled"] = json!(false)) as fn(&mut Value),
        |app| app["metadata"]["annotations"]["operator.aicr.run/orphaned-from"] = json!(UID),
        |app| {
            app["metadata"]["annotations"].as_object_mut().unwrap().remove(MARK);
        },
    ] {
        assert_eq!(update(&going, &with(&going, change), &known(RolloutState::Ended)), Verdict::ALLOW);
    }
    let retried = with(&going, |app| app["metadata"]["annotations"][MARK] = json!("r-1"));
    assert_eq!(update(&going, &retried, &known(later())), Verdict::ALLOW);
    assert_eq!(word(&update(&going, &retried, &known(RolloutState::Unapproved))), "Removal 409");
}

#[rstest]
#[case::another_source(|app: &mut Value| app["operation"] = json!({ "sync": { "source": { "repoURL": "oci://x" } } }))]
#[case::manifests(|app: &mut Value| app["operation"] = json!({ "sync": { "source": app["spec"]["source"], "manifests": ["x"] } }))]
#[case::resources(|app: &mut Value| app["operation"] = json!({ "sync": { "resources": [{}] } }))]
#[case::revision(|app: &mut Value| app["operation"] = json!({ "sync": { "revision": "sha256:0" } }))]
#[case::no_sync(|app: &mut Value| app["operation"] = json!({ "initiatedBy": {} }))]
#[case::no_object(|app: &mut Value| app["operation"] = json!("sync"))]
fn an_operation_syncs_the_applications_own_source(#[case] change: fn(&mut Value)) {
    assert_forbidden(&update(&live(), &with(&live(), change), &Known::default()), Rule::ApplicationOperation);
}

#[test]
fn an_operation_in_flight_stays_and_is_not_taken_off() {
    let busy = with(&live(), |app| app["operation"] = json!({ "sync": { "revision": "by a person" } }));
    let refreshed = with(&busy, |app| app["metadata"]["annotations"]["argocd.argoproj.io/refresh"] = json!("hard"));
    assert_eq!(update(&busy, &refreshed, &Known::default()), Verdict::ALLOW);
    assert_forbidden(&update(&busy, &live(), &Known::default()), Rule::ApplicationOperation);
}

/// Where Argo CD starts one itself it does the same (A21); what is in flight is not forgotten.
#[test]
fn with_a_sync_the_state_of_an_operation_that_has_ended_goes() {
    let ended = with(&live(), |app| app["status"]["operationState"]["phase"] = json!("Failed"));
    let sync = |app: &mut Value| {
        app["operation"] = json!({ "sync": { "source": app["spec"]["source"] } });
        app["status"].as_object_mut().unwrap().remove("operationState");
    };
    assert_eq!(update(&ended, &with(&ended, sync), &Known::default()), Verdict::ALLOW);
    assert_forbidden(&update(&live(), &with(&live(), sync), &Known::default()), Rule::ApplicationStatus);
    let more = |app: &mut Value| {
        sync(app);
        app["status"]["health"] = json!({ "status": "Healthy" });
    };
    assert_forbidden(&update(&ended, &with(&ended, more), &Known::default()), Rule::ApplicationStatus);
    let alone = |app: &mut Value| drop(app["status"].as_object_mut().unwrap().remove("operationState"));
    assert_forbidden(&update(&ended, &with(&ended, alone), &Known::default()), Rule::ApplicationStatus);
}

#[rstest]
#[case::health(|app: &mut Value| app["status"]["health"] = json!({ "status": "Healthy" }))]
#[case::phase(|app: &mut Value| app["status"]["operationState"]["phase"] = json!("Succeeded"))]
#[case::more_than_the_phase(|app: &mut Value| app["status"]["operationState"] = json!({ "phase": "Terminating", "message": "x" }))]
#[case::gone(|app: &mut Value| app["status"] = Value::Null)]
fn of_status_only_a_termination_is_written(#[case] change: fn(&mut Value)) {
    assert_forbidden(&update(&live(), &with(&live(), change), &Known::default()), Rule::ApplicationStatus);
}
