//! Mirror runs that fail: for a while, or until a person has done something.

use aicr_crds::{Digest, reason::Reason};
use jiff::SignedDuration;

use crate::resolve::{MirrorSeen, Stage, Verdict, next::play::Play};

const DOWN: &str = "[SERVICE_UNAVAILABLE] push r/p/charts/nfd: connection refused";
const NOT_CREATED: &str = "[NOT_FOUND] r/p/charts/nfd is not created";

#[test]
fn a_mirror_run_that_fails_for_a_while_is_tried_again_later_each_time_and_without_end() {
    let mut play = Play::new();
    play.registry = Some((None, DOWN));
    play.rendered();
    for (times, seconds) in [10, 20, 40, 80, 160, 300, 300].into_iter().enumerate() {
        let again = play.now + SignedDuration::from_secs(seconds);
        assert_eq!(play.settle(), Verdict::Wait(DOWN.into(), Some(again)));
        play.now = again - SignedDuration::from_secs(1);
        assert_eq!(play.settle(), Verdict::Wait(DOWN.into(), Some(again)));
        assert_eq!(play.mirrored, times + 1);
        play.now = again;
    }
    play.registry = None;
    assert!(matches!(play.settle(), Verdict::Resolved(_)));
    assert_eq!((play.runs, play.snapshots.len()), (3, 1), "no Job is run again for it");
}

/// B34: what a person must create is not asked for again and again; once it is there, a snapshot request resolves.
#[test]
fn b34_a_stall_of_the_mirror_ends_with_a_snapshot_and_is_not_tried_before() {
    let mut play = Play::new();
    play.registry = Some((Some(Reason::NotFound), NOT_CREATED));
    play.rendered();
    let stalled = Verdict::Stall(Reason::NotFound, NOT_CREATED.into());
    assert_eq!(play.settle(), stalled);
    play.now += SignedDuration::from_hours(10);
    play.registry = None;
    assert_eq!(play.settle(), stalled, "nobody tells that it was created");
    assert_eq!(play.mirrored, 1);
    play.annotate("1");
    play.settle();
    assert_eq!(play.jobs[0].stage, Stage::Snapshot);
    play.resolve();
    assert_eq!((play.mirrored, play.snapshots.len()), (2, 2));
}

#[test]
fn a_mirror_run_that_failed_for_other_inputs_or_in_another_process_stands_in_nobodys_way() {
    let mut play = Play::new();
    play.registry = Some((Some(Reason::Conflict), "other content"));
    play.rendered();
    assert!(matches!(play.settle(), Verdict::Stall(Reason::Conflict, _)));
    let MirrorSeen::Failed { reason, message, at, times, .. } = play.mirror.clone() else { panic!() };
    let stalled = play.mirror.clone();
    play.mirror = MirrorSeen::Failed { inputs: Digest::of(b"other"), reason, message, at, times };
    assert!(matches!(play.next(), Verdict::Mirror(_)));
    // A new process knows nothing of it, and finds out the same.
    play.mirror = MirrorSeen::None;
    assert!(matches!(play.settle(), Verdict::Stall(Reason::Conflict, _)));
    assert_eq!((play.mirror.clone(), play.mirrored), (stalled, 2));
}
