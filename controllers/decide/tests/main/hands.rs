//! What the hands saw or did, as it is said.

use aicr_crds::keys::annotation;
use aicr_decide::{
    report::{rollout_status, runtime_status},
    rollout::{self, Position, Verdict, Why, Write},
    runtime,
};
use jiff::SignedDuration;
use serde_json::json;

use crate::story::{Story, script::played};

/// A rollout from plan one to plan two that is approved and has not started.
const APPROVED: &str = "
    given one: nfd=1 gpu-operator=1
    plan two: nfd=2 gpu-operator=2
    assessment one two: nfd unknown; gpu-operator unknown
    candidate two
    later 10m
    operator
    approve
";

/// Taking a mark off an Application loses nothing of what an ended rollout says.
#[test]
fn an_ended_rollout_keeps_its_end_while_a_mark_of_its_is_taken_off() {
    let (mut story, _) = played(APPROVED);
    story.later(SignedDuration::from_hours(200));
    story.operator();
    let rollout = story.rollouts.last().unwrap().clone();
    assert!(rollout.status.as_ref().is_some_and(|stored| stored.finished_at.is_some()), "{:?}", rollout.status);
    let name = rollout.metadata.name.clone().unwrap();
    story.applications.get_mut("nfd").unwrap()["metadata"]["annotations"][annotation::DELETE_ROLLOUT] = json!(name);
    let seen = story.world().around(&rollout);
    let verdict = rollout::next(&rollout, &seen, story.now);
    assert!(matches!(verdict, Verdict::Do(Write::WithdrawRemove { .. }, Why::Ended(_))), "{verdict:?}");
    let position = Position::find(&rollout, &seen.applications);
    assert_eq!(rollout_status(&position, &seen, &verdict, story.now), None, "it is left as it is");
}

fn engine(story: &Story) -> (String, String) {
    let world = story.world();
    let status = runtime_status(&world, &runtime::next(&world, story.now), story.now);
    let engine = status.conditions.into_iter().find(|condition| condition.type_ == "EngineAvailable").unwrap();
    (engine.status, engine.message)
}

/// A16: a status that nobody moves any more stays green; that is said, and nothing else changes.
#[test]
fn an_engine_that_compares_nothing_any_more_is_said() {
    let (mut story, _) = played("given one: nfd=1 gpu-operator=1\noperator");
    let at = |story: &Story, name: &str| story.application(name).status.reconciled_at.unwrap();
    let newest = at(&story, "nfd").max(at(&story, "gpu-operator"));
    story.now = newest + SignedDuration::from_mins(10);
    assert_eq!(engine(&story), ("True".into(), "Argo CD's CRDs and the project are there".into()));
    story.later(SignedDuration::from_secs(1));
    let (status, message) = engine(&story);
    assert_eq!(status, "True");
    assert!(message.contains(&format!("it has compared no Application since {newest}")), "{message}");
    let again = newest + SignedDuration::from_mins(5);
    story.applications.get_mut("nfd").unwrap()["status"]["reconciledAt"] = json!(again);
    assert!(!engine(&story).1.contains("compared no"), "one fresh comparison is enough");
}

/// A run that could not be made is named, and waited for.
#[test]
fn a_validation_that_cannot_be_started_says_why() {
    let (mut story, _) = played(
        "
        validation Required
        installed true
        plan one: nfd=1
        candidate one
        later 10m
        operator
        approve 20m
        operator
        settle
        ",
    );
    story.jobs.clear();
    story.facts.trouble = Some("create Job aicr-snapshot-1: 403 Forbidden: quota".into());
    let rollout = story.unfinished().clone();
    let verdict = rollout::next(&rollout, &story.world().around(&rollout), story.now);
    let Verdict::Wait(Why::ValidationUnavailable(why), _) = verdict else { panic!("{verdict:?}") };
    assert_eq!(why, "create Job aicr-snapshot-1: 403 Forbidden: quota");
}
