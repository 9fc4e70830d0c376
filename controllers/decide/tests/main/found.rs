//! What simulation found, each as the shortest history that shows it.

use aicr_crds::keys::{annotation, label};
use aicr_decide::{
    rollout::{self, Verdict},
    runtime::{self, Write},
    seen::{Resolution, ResolutionState},
};
use jiff::SignedDuration;
use serde_json::json;

use crate::story::{Story, plans::plan, script::played};

/// A runtime whose first plan is due.
fn due() -> Story {
    let mut story = Story::new();
    let stored = plan("nfd=1 gpu-operator=1", "p", story.now);
    let digest = stored.plan.digest();
    story.plans.insert(digest, (story.now, stored));
    story.resolution =
        Resolution { state: ResolutionState::Resolved, candidate: Some(digest), ..Resolution::default() };
    story.later(SignedDuration::from_mins(20));
    story
}

/// An Application that names a rollout counts as begun by it: were the name given again, nothing would be written or waited
/// for, and no approval asked.
#[test]
fn the_name_of_a_lost_rollout_is_not_given_again_while_an_application_names_it() {
    let mut story = due();
    let created = |story: &Story| match runtime::next(&story.world(), story.now) {
        runtime::Verdict::Do(Write::CreateRollout(rollout), _) => rollout.metadata.name.unwrap(),
        other @ (runtime::Verdict::Do(..) | runtime::Verdict::Wait(..)) => panic!("{other:?}"),
    };
    let first = created(&story);
    assert!(first.ends_with("-1"), "{first}");
    for (mark, next) in [(annotation::ROLLOUT, "-2"), (annotation::DELETE_ROLLOUT, "-2")] {
        let named = json!({
            "metadata": {
                "name": "nfd", "uid": "uid-nfd", "resourceVersion": "1",
                "labels": {label::MANAGED_BY: label::MANAGED_BY_VALUE},
                "annotations": {mark: first, annotation::RUNTIME_UID: "uid-runtime"},
            },
            "spec": {"project": "aicr", "destination": {"server": aicr_crds::application::IN_CLUSTER, "namespace": "nfd"}, "source": {"repoURL": "oci://registry.test/aicr/charts/nfd"}},
        });
        story.applications.insert("nfd".to_owned(), named);
        let second = created(&story);
        assert!(second.ends_with(next), "{mark}: {second}");
    }
}

/// A step that stands still waits for a person, and all the same no longer than the rollout may last.
#[test]
fn every_wait_of_an_unfinished_rollout_is_over_when_it_has_to_end() {
    let mut story = due();
    story.operator();
    story.approve(Some(SignedDuration::from_mins(30)));
    let until = |story: &mut Story| {
        let rollout = story.unfinished().clone();
        match rollout::next(&rollout, &story.world().around(&rollout), story.now) {
            Verdict::Wait(_, until) => (until, rollout.spec.approval.unwrap().expires_at.0, rollout.spec.deadline.0),
            other @ (Verdict::Do(..) | Verdict::End(..)) => panic!("{other:?}"),
        }
    };
    story.runtime.spec.paused = true;
    let (held, expiry, _) = until(&mut story);
    assert_eq!(held, Some(expiry), "held before its first step");
    story.runtime.spec.paused = false;
    story.operator();
    story.runtime.spec.paused = true;
    let (halted, _, deadline) = until(&mut story);
    assert_eq!(halted, Some(deadline), "its step stands still");
}

/// An Application of ours that is beside those to be adopted stalled each adoption as having appeared, whatever was retried.
#[test]
fn an_adoption_takes_what_is_ours_already_into_its_inventory() {
    let (mut story, _) = played(
        "
        given one: nfd=1 gpu-operator=1
        deleted
        operator
        reborn 11111111-1111-4111-8111-111111111111
        adoption uid-runtime
        ",
    );
    let mut stray = story.applications["nfd"].clone();
    stray["metadata"]["name"] = json!("stray");
    stray["metadata"]["annotations"][annotation::RUNTIME_UID] = json!("11111111-1111-4111-8111-111111111111");
    story.applications.insert("stray".into(), stray);
    story.operator();
    let spec = &story.unfinished().spec;
    assert!(spec.inventory.iter().any(|item| item.application == "stray"));
    assert!(spec.steps.iter().all(|step| step.release != "stray"));
}

/// Twenty rollouts later retention takes the one that wrote what has not changed since. Its name on the Application was
/// taken for a hand edit, forced back and warned of; it follows quietly. A name that is taken off is an edit.
#[test]
fn a_release_whose_rollout_retention_took_is_not_edited_by_hand() {
    let (mut story, _) = played("given one: nfd=1 gpu-operator=1");
    let next = |story: &Story| match runtime::next(&story.world(), story.now) {
        runtime::Verdict::Do(write, _) => write,
        runtime::Verdict::Wait(why, _) => panic!("{why:?}"),
    };
    let annotations = &mut story.applications.get_mut("nfd").unwrap()["metadata"]["annotations"];
    annotations[annotation::ROLLOUT] = json!("rollout-0123456789abcdef-1");
    assert!(matches!(next(&story), Write::Follow { on, .. } if on.name == "nfd"));
    let annotations = &mut story.applications.get_mut("nfd").unwrap()["metadata"]["annotations"];
    annotations.as_object_mut().unwrap().remove(annotation::ROLLOUT);
    assert!(matches!(next(&story), Write::Repair { on, .. } if on.name == "nfd"));
}
