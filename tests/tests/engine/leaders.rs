//! Two replicas that both believe they lead, as in the seconds around a lost lease: each step is written once.

use aicr_drive::{Clock, DriveSettings};
use aicr_tests::engine::plans::Which;
use aicr_tests::engine::player::Manner;
use aicr_tests::engine::story::End;
use aicr_tests::engine::wire::{Crash, Keep, Refuse, Stream, Trouble, Wire};
use aicr_tests::engine::{BOUND, Engine, Operator, operator};
use jiff::SignedDuration;
use serde_json::json;

fn replica(engine: &Engine) -> Operator {
    engine.operator(Wire::with(Crash::Never, Keep::Writes, Trouble::none()))
}

pub(crate) fn two_leaders_write_each_step_once(engine: &Engine) {
    engine.clear();
    engine.runtime(&[Which::A.plan(), Which::B.plan()]);
    let mut before = engine.before();
    let (one, other) = (replica(engine), replica(engine));
    for to in [Which::A, Which::B, Which::A] {
        engine.pin(to.digest());
        assert_eq!(engine.run(&one, &to.plan(), BOUND), End::Settled, "{to:?}");
        assert_eq!(engine.complaints(&before, to.digest()), Vec::<String>::new(), "{to:?}");
        before = engine.before();
    }
    let writes = [&one, &other].map(|replica| replica.wire.writes().len());
    assert!(other.is_alive() && writes.iter().all(|count| *count > 0), "only one of them did anything: {writes:?}");
}

/// Both are cut off from the API server in turn, each in the middle of a step that the other goes on with.
pub(crate) fn replicas_that_are_cut_off_in_turn_come_to_the_same_end(engine: &Engine) {
    cut_off_in_turn(engine, Clock::default());
}

/// The same where one's clock is ten minutes ahead of the other's, or behind: a step that began in the other's future or
/// long past is neither timed out nor begun again.
pub(crate) fn replicas_whose_clocks_are_ten_minutes_apart_come_to_the_same_end(engine: &Engine) {
    for ahead in [OFF, -OFF] {
        cut_off_in_turn(engine, Clock::ahead(ahead));
    }
}

/// How far one replica's clock is off.
const OFF: SignedDuration = SignedDuration::from_mins(10);

fn cut_off_in_turn(engine: &Engine, clock: Clock) {
    engine.clear();
    engine.runtime(&[Which::A.plan(), Which::B.plan()]);
    let settings = DriveSettings { clock, ..operator::settings() };
    let way = Wire::with(Crash::Never, Keep::Writes, Trouble::none());
    let (one, other) = (replica(engine), engine.operator_with(settings, way));
    assert_eq!(engine.run(&one, &Which::A.plan(), BOUND), End::Settled);
    let before = engine.before();
    engine.player.treat("nodewright", Manner::Idle);
    engine.pin(Which::B.digest());
    engine.until("the step of nodewright", BOUND, |sight| sight.application("nodewright").map(drop));
    cut_off(&one);
    engine.player.treat("nodewright", Manner::Prompt);
    engine.change_application("nodewright", &json!({ "metadata": { "annotations": { "somebody/woke": "it" } } }));
    engine.until("the step to be recorded as ready", BOUND, |sight| {
        let rollouts = sight.rollouts();
        let written = aicr_decide::rollout::written(rollouts.last()?);
        written.get("nodewright").filter(|entry| entry.ready).map(drop)
    });
    cut_off(&other);
    one.wire.trouble().refuse(Refuse::Nothing);
    assert_eq!(engine.run(&one, &Which::B.plan(), BOUND * 2), End::Settled);
    other.wire.trouble().refuse(Refuse::Nothing);
    assert_eq!(engine.run(&other, &Which::B.plan(), BOUND), End::Settled);
    let complaints = engine.complaints(&before, Which::B.digest());
    // An Event is tried once; the replica whose create of it was refused does not try again.
    let twice: Vec<_> = complaints.iter().filter(|complaint| !complaint.starts_with("0 Events of ")).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

fn cut_off(replica: &Operator) {
    replica.wire.trouble().refuse(Refuse::Everything);
    replica.wire.trouble().befall(Stream::Cut);
}
