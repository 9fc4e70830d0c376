//! Single rules on whole worlds: what no transcript shows at a glance.

use std::sync::Arc;

use aicr_crds::{
    Digest,
    keys::annotation,
    reason::{ConditionType, EventReason, Outcome},
    rollout::RolloutKind,
};
use aicr_decide::{
    report::{runtime_status, stalled_event},
    rollout::{self, Change, Verdict, Why, Write, validation_input},
    runtime,
    seen::{TargetSeen, World},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use rstest::rstest;
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

pub(crate) fn next(story: &mut Story) -> Verdict {
    let rollout = story.unfinished().clone();
    rollout::next(&rollout, &story.world().around(&rollout), story.now)
}

pub(crate) fn runtime_next(story: &Story) -> runtime::Verdict {
    runtime::next(&story.world(), story.now)
}

#[rstest]
#[case::appeared("given extra", "appeared")]
#[case::disappeared("delete nfd", "disappeared")]
#[case::recreated("recreate nfd", "was recreated")]
#[case::at_plan("note nfd plan-digest sha256:00", "is at plan")]
#[case::edited("edit nfd", "was edited")]
fn each_difference_has_its_word(#[case] what: &str, #[case] word: &str) {
    let (mut story, _) = played(APPROVED);
    match what {
        "given extra" => {
            let mut extra = story.applications["nfd"].clone();
            (extra["metadata"]["name"], extra["metadata"]["uid"]) = (json!("extra"), json!("uid-extra"));
            story.applications.insert("extra".into(), extra);
        }
        "recreate nfd" => story.applications.get_mut("nfd").unwrap()["metadata"]["uid"] = json!("uid-again"),
        "delete nfd" => drop(story.applications.remove("nfd")),
        "edit nfd" => story.applications.get_mut("nfd").unwrap()["spec"]["source"]["helm"]["values"] = json!("x: 1\n"),
        _ => {
            story.applications.get_mut("nfd").unwrap()["metadata"]["annotations"][annotation::PLAN_DIGEST] =
                json!(Digest::of(b"other"));
        }
    }
    let Verdict::Wait(Why::Drift(differences), _) = next(&mut story) else { panic!("no drift") };
    assert_eq!(differences.len(), 1);
    assert!(differences[0].to_string().contains(word), "{}", differences[0]);
}

#[test]
fn all_differences_are_listed_up_to_ten_and_then_counted() {
    let (mut story, _) = played(APPROVED);
    for index in 0..12 {
        let mut extra = story.applications["nfd"].clone();
        (extra["metadata"]["name"], extra["metadata"]["uid"]) = (json!(format!("x{index:02}")), json!("uid-x"));
        story.applications.insert(format!("x{index:02}"), extra);
    }
    let verdict = next(&mut story);
    let Why::Drift(differences) = verdict.why() else { panic!("no drift") };
    assert_eq!(differences.len(), 12);
    assert!(differences.iter().all(|difference| difference.change == Change::Appeared));
    assert!(verdict.why().to_string().contains("x09 appeared and 2 more"), "{}", verdict.why());
}

#[test]
fn a_step_whose_release_the_target_lacks_stalls() {
    let (mut story, names) = played(APPROVED);
    let rollout = story.unfinished().clone();
    let mut seen = story.world().around(&rollout);
    let one = story.plans[&names["one"]].1.clone();
    let mut other = one.clone();
    other.plan = crate::story::plans::plan("gpu-operator=2", "r", story.now).plan;
    seen.target = TargetSeen::Plan(Arc::new(other));
    let Verdict::Wait(Why::StepUnknown(release), _) = rollout::next(&rollout, &seen, story.now) else {
        panic!("it goes on")
    };
    assert_eq!(release, "nfd");
}

#[test]
fn status_names_the_active_and_candidate_plans_and_the_rollout_in_progress() {
    let (story, names) = played(APPROVED);
    let world = story.world();
    let status = runtime_status(&world, &runtime_next(&story), story.now);
    assert_eq!(status.active_plan_digest, Some(names["one"]));
    assert_eq!(status.candidate_plan_digest, Some(names["two"]));
    assert_eq!(status.rollout.unwrap().name, format!("rollout-{}-1", names["two"].short()));
}

#[test]
fn a_rollout_names_the_plan_that_it_replaces() {
    let (mut story, names) = played(APPROVED);
    let spec = &story.unfinished().spec;
    assert_eq!((spec.from_plan_digest, spec.target_plan_digest), (Some(names["one"]), Some(names["two"])));
    assert_eq!(spec.kind, RolloutKind::Change);
}

fn stalled(reason: &str) -> Vec<Condition> {
    let condition = json!({
        "type": ConditionType::Stalled.as_str(), "status": "True", "reason": reason, "message": "m",
        "lastTransitionTime": "2026-11-29T12:00:00Z",
    });
    vec![serde_json::from_value(condition).unwrap()]
}

#[test]
fn a_second_stall_for_an_earlier_reason_is_another_event() {
    let mut runtime = Story::new().runtime;
    let mut told = Vec::new();
    for (version, before, now) in
        [("1", None, "A"), ("2", Some("A"), "A"), ("3", Some("A"), "B"), ("4", Some("B"), "A")]
    {
        runtime.metadata.resource_version = Some(version.into());
        runtime.status =
            before.map(|before| aicr_crds::ClusterRuntimeStatus { conditions: stalled(before), ..Default::default() });
        told.extend(stalled_event(&runtime, &stalled(now)));
    }
    assert!(told.iter().all(|note| note.reason == EventReason::Stalled));
    let names: std::collections::BTreeSet<_> = told.iter().map(|note| &note.name).collect();
    assert_eq!((told.len(), names.len()), (3, 3), "A, B, A; the second look at A is no Event");
}

/// B95: retention counts what never ran apart from what runs or may be gone back to.
#[test]
fn what_runs_or_may_be_gone_back_to_is_never_forgotten() {
    let mut script = APPROVED.to_owned() + "operator\nsettle nfd\nsettle gpu-operator\n";
    let draft = |index: usize| format!("plan p{index}: nfd=1 gpu-operator={}\nlater 1m\n", 10 + index);
    script.extend((0..30).map(draft));
    let kept = |story: &Story, names: &std::collections::BTreeMap<String, Digest>| -> Vec<String> {
        names.iter().filter(|(_, digest)| story.plans.contains_key(digest)).map(|(name, _)| name.clone()).collect()
    };
    let recent = ["p25", "p26", "p27", "p28", "p29"];
    let (story, names) = played(&(script.clone() + "operator\n"));
    // Active, what it replaced, and the five most recent others.
    assert_eq!(kept(&story, &names), ["one", "p25", "p26", "p27", "p28", "p29", "two"]);
    // A rollout that nobody has approved keeps its plan, however many drafts are newer.
    let waiting = "assessment two p3: nfd unknown; gpu-operator unknown\npin p3\nlater 10m\noperator\n";
    let (mut story, names) = played(&(script + waiting));
    assert_eq!(story.unfinished().spec.target_plan_digest, Some(names["p3"]));
    let kept = kept(&story, &names);
    assert!(["one", "two", "p3"].iter().chain(&recent).all(|name| kept.contains(&(*name).to_owned())), "{kept:?}");
}

#[test]
fn validation_runs_on_the_recipe_of_the_target_and_names_its_phase() {
    let (mut story, _) = played(
        "
        validation Required
        installed true
        plan one: nfd=1
        candidate one
        later 10m
        operator
        approve
        operator
        settle
        job snapshot succeeds
    ",
    );
    let rollout = story.unfinished().clone();
    let Verdict::Do(Write::RunValidation(plan), _) = next(&mut story) else { panic!("no validation") };
    assert_eq!(plan.inputs["recipe.yaml"], "one", "stories name a plan's recipe after it");
    assert_eq!(plan.inputs["snapshot.yaml"], "snapshot");
    assert_eq!(plan.input, validation_input(&rollout));
    let phase = plan.args.iter().position(|arg| arg == "--phase").unwrap();
    assert_eq!(plan.args[phase + 1], "deployment");
    assert!(plan.args.contains(&"--push".to_owned()) && plan.args.contains(&"--emit-attestation".to_owned()));
}

#[test]
fn an_unreadable_plan_keeps_the_runtime_from_being_orphaned() {
    let (story, _) = played(
        "
        given one: nfd=1
        unreadable one: unsupported plan schema version label \"2\"
        deleted
    ",
    );
    assert!(matches!(runtime_next(&story), runtime::Verdict::Wait(runtime::Why::Unreadable(_), None)));
}

#[rstest]
#[case::edited("values", "source, values or destination were edited")]
#[case::annotation("annotation", "annotation operator.aicr.run/order is absent")]
#[case::dependency("dependency", "release gpu-operator depends on nfd")]
#[case::source("source", "spec.source.repoURL is not below")]
fn what_does_not_rebuild_is_named(#[case] what: &str, #[case] words: &str) {
    let (mut story, _) = played(
        "
        given one: nfd=1 gpu-operator=1
        deleted
        operator
        lose plans
        reborn 11111111-1111-4111-8111-111111111111
        adoption uid-runtime
    ",
    );
    let application = story.applications.get_mut("gpu-operator").unwrap();
    match what {
        "values" => application["spec"]["source"]["helm"]["values"] = json!("x: 1\n"),
        "annotation" => {
            application["metadata"]["annotations"].as_object_mut().unwrap().remove(annotation::ORDER);
        }
        "dependency" => drop(story.applications.remove("nfd")),
        _ => {
            application["spec"]["source"]["repoURL"] = json!("oci://elsewhere.test/aicr/charts/gpu-operator");
            let fingerprint = aicr_crds::application::fingerprint(
                Some(&application["spec"]["source"]),
                None,
                None,
                Some(&application["spec"]["destination"]),
            );
            application["metadata"]["annotations"][annotation::FINGERPRINT] = json!(fingerprint.unwrap());
        }
    }
    let runtime::Verdict::Wait(runtime::Why::AdoptionBlocked(message), _) = runtime_next(&story) else {
        panic!("it is adopted")
    };
    assert!(message.contains(words), "{message}");
}

/// B13: a destination by another cluster, server or name, is a migration.
#[rstest]
#[case::server("server", "https://elsewhere.test")]
#[case::name("name", "elsewhere")]
fn another_cluster_is_a_blocked_transition(#[case] key: &str, #[case] value: &str) {
    let (mut story, _) = played(
        "
        given one: nfd=1
        plan two: nfd=2
        assessment one two: nfd safe
        candidate two
        later 10m
        suspendEngine true
        operator
    ",
    );
    // Suspended, nothing is forced back; the transition is looked at as it stands.
    story.runtime.spec.suspend_engine = false;
    let mut world = story.world();
    for application in Arc::make_mut(&mut world.applications).iter_mut().map(Arc::make_mut) {
        application.automated = aicr_crds::application::AutomatedSync::Enabled;
        if key == "server" {
            application.destination.server = value.into();
        } else {
            application.destination.name = value.into();
        }
    }
    let verdict = runtime::next(&world, story.now);
    let runtime::Why::Blocked(message) = verdict.why() else { panic!("{verdict:?}") };
    assert!(message.contains(value), "{message}");
}

/// A15: `reconciledAt` has whole seconds. Content that was compared before the step is not to be taken for what it wrote.
#[test]
fn a_step_does_not_begin_in_the_second_of_a_comparison_of_its_very_content() {
    let (mut story, _) = played(APPROVED);
    let (written, _) = played(&format!("{APPROVED}    operator\n"));
    let spec = &written.applications["nfd"]["spec"];
    let compared = json!({ "source": spec["source"], "destination": spec["destination"] });
    let now = story.now;
    let mut compared_at = |at: jiff::Timestamp, compared_to: &serde_json::Value| {
        let status = &mut story.applications.get_mut("nfd").unwrap()["status"];
        status["sync"]["comparedTo"] = compared_to.clone();
        status["reconciledAt"] = json!(at);
        next(&mut story)
    };
    let Verdict::Wait(Why::Starting { release, .. }, Some(until)) = compared_at(now, &compared) else {
        panic!("it does not wait")
    };
    assert_eq!((release.as_str(), until.as_second()), ("nfd", now.as_second() + 1));
    let begins = |verdict: Verdict| matches!(verdict, Verdict::Do(Write::Begin { index: 0 }, _));
    let second = jiff::SignedDuration::from_secs(1);
    assert!(begins(compared_at(now - second, &compared)), "what is older is told from what is newer");
    assert!(begins(compared_at(now + second, &compared)), "an engine whose clock is ahead is not waited for");
    assert!(begins(compared_at(now, &json!({}))), "other content proves nothing either way");
}

/// B92: what is decided twice on the same old view is the same write with the same precondition, under the same name.
#[test]
fn a_stale_view_decides_the_same_write_with_the_same_precondition() {
    let (mut story, _) = played(APPROVED);
    story.rounds(1);
    let (first, again) = (next(&mut story), next(&mut story));
    assert_eq!(first, again);
    let Verdict::Do(Write::Apply { desired, on }, _) = first else { panic!("{first:?}") };
    assert_eq!(on.uid, story.application("nfd").uid());
    assert_eq!(Some(on.resource_version), story.application("nfd").metadata.resource_version);
    assert_eq!(desired.name, "nfd");
    // The rollout's name comes from its target and the names that exist: two leaders make one.
    let named = |world: &World| {
        let verdict = runtime::next(world, story.now);
        let runtime::Verdict::Do(runtime::Write::CreateRollout(rollout), _) = verdict else { panic!("{verdict:?}") };
        rollout.metadata.name
    };
    let mut world = story.world();
    world.rollouts.retain(|rollout| aicr_decide::seen::outcome(rollout).is_some());
    assert_eq!(named(&world), named(&world));
}

/// B94 and B96, as far as the judgment goes: an approval that does not bind this very spec starts nothing.
#[rstest]
#[case::steps(|spec: &mut aicr_crds::RuntimeRolloutSpec| spec.steps.reverse())]
#[case::target(|spec: &mut aicr_crds::RuntimeRolloutSpec| spec.target_plan_digest = Some(Digest::of(b"other")))]
#[case::inventory(|spec: &mut aicr_crds::RuntimeRolloutSpec| drop(spec.inventory.pop()))]
#[case::deadline(|spec: &mut aicr_crds::RuntimeRolloutSpec| spec.deadline.0 += jiff::SignedDuration::from_secs(1))]
fn an_approval_of_anything_else_starts_nothing(#[case] change: fn(&mut aicr_crds::RuntimeRolloutSpec)) {
    let (mut story, _) = played(APPROVED);
    change(&mut story.unfinished().spec);
    // The target of the runtime follows, so that nothing but the approval stands against it.
    let rollout = story.unfinished().clone();
    let mut world = story.world();
    world.resolution.candidate = rollout.spec.target_plan_digest;
    let verdict = rollout::next(&rollout, &world.around(&rollout), story.now);
    assert_eq!(verdict.why(), &Why::ApprovalMismatch);
}

/// Orphan: the unfinished rollout ends first, then the Event, then the finalizer.
#[test]
fn the_runtime_is_released_only_once_its_rollout_has_ended() {
    let (mut story, _) = played(APPROVED);
    let uid = story.runtime.metadata.uid.clone();
    for application in story.applications.values_mut() {
        application["metadata"]["annotations"][annotation::ORPHANED_FROM] = json!(uid);
    }
    story.runtime.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(story.now));
    let waits = runtime_next(&story);
    assert!(matches!(waits, runtime::Verdict::Wait(runtime::Why::Deleting(_), _)), "{waits:?}");
    let ended = story.rollouts.pop();
    assert!(ended.is_some());
    let released = runtime_next(&story);
    assert!(matches!(released, runtime::Verdict::Do(runtime::Write::Release { .. }, _)), "{released:?}");
}

/// Four eyes: what an earlier spec resolved to carries no later edit, and its success would free that edit's author.
#[test]
fn a_candidate_of_an_earlier_spec_makes_no_rollout() {
    let (story, _) = played("given one: nfd=1\n plan two: nfd=2\n candidate two\n later 10m");
    let mut world = story.world();
    let due = runtime::next(&world, story.now);
    assert!(matches!(due, runtime::Verdict::Do(runtime::Write::RunAssessment(_), _)), "{due:?}");
    world.resolution.generation = Some(0);
    let earlier = runtime::next(&world, story.now);
    assert!(matches!(earlier, runtime::Verdict::Wait(runtime::Why::Unresolved, _)), "{earlier:?}");
}

/// Whoever deletes the newest success makes an older plan the active one: what runs is not taken back to that without approval.
#[test]
fn a_success_that_is_deleted_takes_nothing_back() {
    let (mut story, _) = played(
        "
        given one: nfd=1
        plan two: nfd=2
        assessment one two: nfd safe
        candidate two
        later 10m
        operator
        settle nfd
        operator
    ",
    );
    let newest = story.rollouts.pop().unwrap();
    assert_eq!(aicr_decide::seen::outcome(&newest), Some(Outcome::Succeeded));
    assert_ne!(story.world().active(), newest.spec.target_plan_digest);
    let verdict = runtime_next(&story);
    assert!(!matches!(verdict, runtime::Verdict::Do(runtime::Write::Repair { .. }, _)), "{verdict:?}");
}
