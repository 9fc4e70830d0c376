//! Removals: their order, what they hang on, and the marks that they leave.

use aicr_crds::{keys::annotation, reason::StepReason, rollout::Operation};
use aicr_decide::{
    report,
    rollout::{self, Expected, Outlook, Readiness, Verdict, Why, Write},
    runtime,
};
use serde_json::json;

use crate::{
    readiness::{expected, judge, settled},
    rules::{next, runtime_next},
    story::script::played,
};

/// An approved rollout to plan two, which lacks gpu-operator: its Remove has begun.
const REMOVING: &str = "
    given one: nfd=1 gpu-operator=1
    plan two: nfd=1
    assessment one two: nothing unknown
    candidate two
    later 10m
    operator
    approve
    operator
";

/// B24: the last finalizer of Argo CD's own clean-up is named at the time-out, and never stripped.
#[test]
fn a_removal_that_hangs_on_argo_cds_own_cleanup_names_it_and_strips_nothing() {
    let (mut story, _) = played(REMOVING);
    let cleanup = "post-delete-finalizer.argocd.argoproj.io/cleanup";
    story.applications.get_mut("gpu-operator").unwrap()["metadata"]["finalizers"] = json!([cleanup]);
    story.facts.live.stuck = vec!["Job gpu/cleanup: Running".into()];
    story.later(jiff::SignedDuration::from_mins(31));
    let Verdict::End(outcome, why) = next(&mut story) else { panic!("it goes on") };
    assert_eq!(outcome.as_str(), "Failed");
    assert!(why.to_string().contains(cleanup) && why.to_string().contains("Job gpu/cleanup"), "{why}");
}

/// B53: a removal that hangs on a webhook whose Service went first names object, finalizer and webhook at the time-out.
#[test]
fn a_removal_that_hangs_on_a_webhook_without_its_service_names_both() {
    let (mut story, _) = played(REMOVING);
    let object = "ClusterPolicy cluster-policy: held by nvidia.com/cleanup";
    let webhook = "ValidatingWebhookConfiguration gpu-operator: service gpu-operator/webhook not found";
    story.facts.live.stuck = vec![object.into(), webhook.into()];
    let Verdict::Wait(why, _) = next(&mut story) else { panic!("it does not wait") };
    assert!(why.to_string().contains(object), "{why}");
    story.later(jiff::SignedDuration::from_mins(31));
    let Verdict::End(outcome, why) = next(&mut story) else { panic!("it goes on") };
    assert_eq!(outcome.as_str(), "Failed");
    assert!(why.to_string().contains(object) && why.to_string().contains(webhook), "{why}");
}

/// B81: what has custom resources of its own is named from the first look on, before anything hangs.
#[test]
fn a_removal_of_custom_resources_along_with_their_operator_says_so() {
    let (mut story, _) = played(REMOVING);
    story.facts.live.own_customs = vec!["ClusterPolicy cluster-policy".into()];
    let Verdict::Wait(why, _) = next(&mut story) else { panic!("it does not wait") };
    let said = "custom resources are deleted along with what finalizes them: ClusterPolicy cluster-policy";
    assert!(why.to_string().contains(said), "{why}");
    story.facts.live.own_customs.clear();
    let Verdict::Wait(why, _) = next(&mut story) else { panic!("it does not wait") };
    assert!(!why.to_string().contains("custom resources"), "{why}");
}

/// B54: what guards the others by its webhooks was installed first and goes last; approvers read this order in the rollout.
#[test]
fn releases_are_removed_in_the_reverse_of_their_order_of_installation() {
    let (mut story, _) = played(
        "
        given one: nfd=1 policies=1 gpu-operator=1 kai-scheduler=1
        plan two: nfd=1
        assessment one two: nothing unknown
        candidate two
        later 10m
        operator
    ",
    );
    let steps = &story.unfinished().spec.steps;
    assert!(steps.iter().all(|step| step.operation == Operation::Remove), "{steps:?}");
    let order: Vec<&str> = steps.iter().map(|step| step.release.as_str()).collect();
    assert_eq!(order, ["kai-scheduler", "gpu-operator", "policies"]);
}

/// What names an ended rollout loses the marks of a Remove whenever it is seen, by whichever reconcile comes first.
#[test]
fn marks_that_an_ended_rollout_left_are_taken_off() {
    let (mut story, _) = played(
        "
        given one: nfd=1 gpu-operator=1
        plan two: nfd=1
        assessment one two: nothing unknown
        candidate two
        later 10m
        operator
        approve
        revoke
        operator
    ",
    );
    let ended = story.rollouts.last().unwrap().clone();
    let name = ended.metadata.name.clone();
    story.applications.get_mut("gpu-operator").unwrap()["metadata"]["annotations"][annotation::DELETE_ROLLOUT] =
        json!(name);
    let runtime::Verdict::Do(runtime::Write::WithdrawRemove { on, .. }, _) = runtime_next(&story) else {
        panic!("left")
    };
    assert_eq!(on.name, "gpu-operator");
    let mut seen = story.world().around(&ended);
    seen.runtime = aicr_decide::seen::RuntimeSeen::Gone;
    let verdict = rollout::next(&ended, &seen, story.now);
    assert!(matches!(verdict, Verdict::Do(Write::WithdrawRemove { .. }, Why::Ended(_))), "{verdict:?}");
    // A process that died before it told of the end left no status: shown now, nobody would ask whether it was told.
    let position = rollout::Position::find(&ended, &seen.applications).without_status();
    assert_eq!(report::rollout_status(&position, &seen, &verdict, story.now), None);
}

/// A152: objects that a release to be removed shares are taken over; any other sharing fails the step.
#[test]
fn objects_may_be_shared_only_with_a_release_that_the_rollout_removes() {
    let mut application = settled();
    application["status"]["conditions"] = json!([{"type": "SharedResourceWarning", "message": "Deployment/x is part of applications argocd/gpu-operator and gpu-old"}]);
    let Readiness::NotReady(shared) = judge(&application, &expected(), 4) else { panic!("ready") };
    assert_eq!((shared.reason, shared.outlook), (StepReason::SharedResource, Outlook::Hopeless));
    let removes = Expected { removes: vec!["gpu-old"], ..expected() };
    assert_eq!(judge(&application, &removes, 4), Readiness::Ready);
}
