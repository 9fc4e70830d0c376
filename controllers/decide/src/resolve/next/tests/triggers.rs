//! What takes a snapshot, how often, and what takes none.

use aicr_crds::Digest;
use jiff::SignedDuration;
use rstest::rstest;

use crate::resolve::{Verdict, next::play::Play};

/// B79: two tokens within a second, and the daily run: one winner, each run with an ID of its own.
#[test]
fn overlapping_triggers_make_one_snapshot() {
    let mut play = Play::new();
    play.annotate("1");
    play.settle();
    let first = play.jobs[0].clone();
    play.annotate("2");
    assert_eq!(play.next(), Verdict::DeleteJobs(vec![first.name.clone()]), "the first is cancelled");
    play.settle();
    play.now += SignedDuration::from_hours(14);
    play.types.push("p6");
    play.settle();
    assert_eq!(play.active().len(), 1);
    assert_ne!(play.jobs[0].run, first.run);
    play.succeed();
    play.settle();
    assert_eq!(play.snapshots.len(), 1);
    let record = &play.snapshots[0].record;
    assert_eq!((record.token.as_deref(), record.day.as_str(), record.node_types.len()), (Some("2"), "2026-11-30", 2));
    play.resolve();
    assert_eq!(play.snapshots.len(), 1, "and no trigger acts again");
}

#[rstest]
#[case::day(|play: &mut Play| play.now += SignedDuration::from_hours(24), "first resolution of the day")]
#[case::placement(|play: &mut Play| {
    let more = ("node.kubernetes.io/instance-type".to_owned(), "p5".to_owned());
    play.runtime.spec.placement.accelerated.node_selector.extend([more]);
}, "accelerated placement changed")]
#[case::image(|play: &mut Play| play.install.aicr.image = "r/aicr:2".into(), "AICR image changed")]
#[case::types(|play: &mut Play| play.types.push("p6"), "accelerated node types changed")]
#[case::release(|play: &mut Play| play.gpu_operator = Some(Digest::of(b"g")), "gpu-operator release of the active plan changed")]
#[case::token(|play: &mut Play| play.annotate("1"), "requested")]
fn each_of_the_six_triggers_takes_one_snapshot(#[case] change: fn(&mut Play), #[case] cause: &str) {
    let mut play = Play::new();
    play.resolve();
    change(&mut play);
    play.resolve();
    assert_eq!(play.snapshots.len(), 2);
    assert_eq!(play.snapshots[1].record.cause, cause);
    // Status, Jobs and process are lost; the record beside the snapshot is not.
    play.jobs.clear();
    play.resolve();
    assert_eq!(play.snapshots.len(), 2);
}

#[test]
fn nothing_else_takes_a_snapshot() {
    let mut play = Play::new();
    play.resolve();
    play.overrides("1");
    play.install.aicr.version = "1.1.2".into();
    play.runtime.spec.paused = true;
    play.types.push("p5");
    play.resolve();
    assert_eq!(play.snapshots.len(), 1);
}
