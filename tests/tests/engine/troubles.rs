//! Trouble on the way to the API server (B90, B91, B92): the loop lives, the end is the same, and nothing is done twice.

use std::time::{Duration, Instant};

use aicr_crds::rollout::Phase;
use aicr_tests::engine::plans::Which;
use aicr_tests::engine::player::Manner;
use aicr_tests::engine::story::End;
use aicr_tests::engine::wire::{Crash, Keep, Refuse, Stream, Trouble, Wire};
use aicr_tests::engine::{Approver, BOUND, Engine, Operator, operator};
use serde_json::json;

/// Seconds for which watches are asked for where their death is waited for; kube gives five more.
const WATCH_SECONDS: u32 = 3;

/// An operator on a way with these troubles, at plan A.
fn at_plan_a(engine: &Engine, trouble: Trouble) -> Operator {
    engine.clear();
    engine.runtime(&[Which::A.plan(), Which::B.plan()]);
    let operator = engine.operator(Wire::with(Crash::Never, Keep::Writes, trouble));
    assert_eq!(engine.run(&operator, &Which::A.plan(), BOUND), End::Settled);
    operator
}

/// Pins the plan, and stops in the middle of the step that installs this release.
fn begin_step(engine: &Engine, to: Which, release: &str) {
    engine.player.treat(release, Manner::Idle);
    engine.pin(to.digest());
    engine.until(&format!("the step of {release}"), BOUND, |sight| sight.application(release).map(drop));
}

/// Argo CD goes on with it.
fn end_step(engine: &Engine, release: &str) {
    engine.player.treat(release, Manner::Prompt);
    engine.change_application(release, &json!({ "metadata": { "annotations": { "somebody/woke": "it" } } }));
}

pub(crate) fn an_approval_given_while_every_watch_is_dead_is_seen(engine: &Engine) {
    engine.clear();
    engine.approver_is(Approver::Away);
    let plan = Which::A.plan();
    engine.runtime(&[plan.clone(), Which::B.plan()]);
    let before = engine.before();
    let settings = aicr_drive::DriveSettings { watch_seconds: WATCH_SECONDS, ..operator::settings() };
    let operator = engine.operator_with(settings, Wire::new(Crash::Never));
    engine.until("a rollout that waits for approval", BOUND, |sight| {
        let status = sight.unfinished()?.status.clone()?;
        (status.phase == Some(Phase::AwaitingApproval)).then_some(())
    });
    let dead = Instant::now();
    operator.wire.trouble().befall(Stream::Silent);
    engine.approver_is(Approver::There);
    assert_eq!(engine.run(&operator, &plan, BOUND), End::Settled);
    let noticed = dead.elapsed();
    assert!(noticed > Duration::from_secs(u64::from(WATCH_SECONDS)), "the watches were not dead: {noticed:?}");
    assert_eq!(engine.complaints(&before, plan.digest()), Vec::<String>::new());
}

pub(crate) fn a_step_goes_on_after_410_garbage_and_resets_of_every_watch(engine: &Engine) {
    let operator = at_plan_a(engine, Trouble::none());
    let (mut to, mut own) = (Which::B, "nodewright");
    for how in [Stream::Gone, Stream::Garbage, Stream::Cut] {
        let before = engine.before();
        begin_step(engine, to, own);
        operator.wire.trouble().befall(how);
        end_step(engine, own);
        assert_eq!(engine.run(&operator, &to.plan(), BOUND), End::Settled, "{how:?}");
        assert_eq!(engine.complaints(&before, to.digest()), Vec::<String>::new(), "{how:?}");
        (to, own) = (to.other(), if own == "nodewright" { "kai-scheduler" } else { "nodewright" });
    }
}

pub(crate) fn a_rollout_comes_through_429_5xx_and_answers_that_are_lost(engine: &Engine) {
    let operator = at_plan_a(engine, Trouble::none());
    let before = engine.before();
    operator.wire.trouble().refuse(Refuse::EachAfter(9));
    engine.pin(Which::B.digest());
    assert_eq!(engine.run(&operator, &Which::B.plan(), BOUND * 3), End::Settled);
    let refused = operator.wire.trouble().refused();
    assert!(refused > 4, "only {refused} requests were refused");
    assert_eq!(unexpected(engine.complaints(&before, Which::B.digest())), Vec::<String>::new());
}

pub(crate) fn a_step_goes_on_when_the_api_server_comes_back(engine: &Engine) {
    let operator = at_plan_a(engine, Trouble::none());
    let before = engine.before();
    begin_step(engine, Which::B, "nodewright");
    let trouble = operator.wire.trouble();
    trouble.refuse(Refuse::Everything);
    trouble.befall(Stream::Cut);
    end_step(engine, "nodewright");
    let refused = trouble.refused();
    // Every watch is begun again and refused, with back-off: twice and more it has been told no.
    engine.poll("requests that are refused", BOUND, || (trouble.refused() > refused + 30).then_some(()));
    trouble.refuse(Refuse::Nothing);
    assert_eq!(engine.run(&operator, &Which::B.plan(), BOUND * 2), End::Settled);
    assert_eq!(unexpected(engine.complaints(&before, Which::B.digest())), Vec::<String>::new());
}

/// Between rollouts, where no step's own condition would say it.
pub(crate) fn a_reconcile_that_fails_is_told_and_conditions_keep_what_was_seen(engine: &Engine) {
    let operator = at_plan_a(engine, Trouble::none());
    let conditions =
        || engine.sight.runtime().and_then(|runtime| runtime.status.clone()).map(|status| status.conditions);
    let before = conditions();
    operator.wire.trouble().refuse(Refuse::WritesOf("applications"));
    engine.delete_application("prometheus");
    let told = engine.poll("a failed reconcile to be told", BOUND, || {
        engine.events().into_iter().find(|event| event.reason.as_deref() == Some("ReconcileFailed"))
    });
    let note = told.note.unwrap_or_default();
    assert!(note.contains("prometheus") && note.contains("504"), "{note}");
    assert_eq!(told.type_.as_deref(), Some("Warning"));
    assert_eq!(told.regarding.and_then(|about| about.kind).as_deref(), Some("ClusterRuntime"));
    let refused = operator.wire.trouble().refused();
    engine.poll("another try", BOUND, || (operator.wire.trouble().refused() > refused).then_some(()));
    assert_eq!(conditions(), before, "what was last observed");
    assert!(engine.sight.application("prometheus").is_none());
    operator.wire.trouble().refuse(Refuse::Nothing);
    engine.until("the Application to be written again", BOUND, |sight| sight.application("prometheus").map(drop));
    drop(operator);
}

pub(crate) fn nothing_is_done_twice_when_watches_tell_late(engine: &Engine) {
    let late = Duration::from_millis(400);
    let operator = at_plan_a(engine, Trouble::late(late));
    let before = engine.before();
    engine.pin(Which::B.digest());
    assert_eq!(engine.run(&operator, &Which::B.plan(), BOUND), End::Settled);
    assert_eq!(engine.complaints(&before, Which::B.digest()), Vec::<String>::new());
}

/// An Event is tried once and fails nothing: where its own create was refused it is missing, and that is all.
fn unexpected(mut complaints: Vec<String>) -> Vec<String> {
    complaints.retain(|complaint| !complaint.starts_with("0 Events of "));
    complaints
}
