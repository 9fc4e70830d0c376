//! The end of a rollout: decided by label and time, told once, and told late where whoever ended it stopped before.

use aicr_crds::{RuntimeRollout, keys::annotation, reason::Outcome};
use aicr_decide::{
    report,
    rollout::{ObjectRef, Why},
    seen::outcome,
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

use super::{Carried, is_open};
use crate::{
    controller::{Hands, Look},
    error::{DriveError, chain},
    events::About,
    metrics::metrics,
    watch::Watches,
    write::{Announced, Written, seen_ref},
};

/// An end that is younger may still be told by whoever wrote it.
const UNTOLD_AFTER: SignedDuration = SignedDuration::from_mins(2);
/// Events live an hour: an older end that has lost its status was told, and could not be found out to have been.
const TOLD_AFTER: SignedDuration = SignedDuration::from_mins(55);

/// Label and time first, which decide; then whoever is to know. It is waited for in the watch that decisions use, so that
/// nothing is decided any more on a rollout that has ended. One that could not be told stays without its status, which is how
/// it is told late.
pub(super) async fn end(
    hands: &mut Hands,
    rollout: &RuntimeRollout,
    outcome: Outcome,
    why: &Why,
    now: Timestamp,
) -> Result<Carried, DriveError> {
    let on = match hands.write.end(rollout, outcome, evidence(why), now).await? {
        Written::Done(on) => on,
        Written::Stale => return Ok(Carried::Later(hands.after(&Written::<()>::Stale))),
    };
    tracing::info!(%outcome, %why, "the rollout has ended");
    let told = tell(hands, rollout, outcome, &why.to_string()).await;
    let name = rollout.name_any();
    let seen = hands.gather.until(&format!("see the end of {name}"), |watches| is_over(watches, &name)).await;
    if let Err(error) = seen {
        tracing::warn!(rollout = name, error = chain(&error), "its end is not seen yet");
    }
    Ok(after_telling(told, on, now))
}

/// The Event of an end; it is counted by whoever told it.
async fn tell(hands: &Hands, rollout: &RuntimeRollout, outcome: Outcome, message: &str) -> Announced {
    let note = report::outcome_event(rollout, outcome, message);
    let told = hands.write.announce(&About::Rollout(rollout), &note).await;
    if told == Announced::Now {
        metrics().ended(outcome);
    }
    told
}

/// The status, once it is told; until then it is tried again.
fn after_telling(told: Announced, on: ObjectRef, now: Timestamp) -> Carried {
    match told {
        Announced::Now | Announced::Before => Carried::Now(on),
        Announced::Failed => Carried::Later(Look::At(now + UNTOLD_AFTER)),
    }
}

/// Whether the rollout is seen to have ended, or is gone.
fn is_over(watches: &Watches, name: &str) -> bool {
    let there = watches.rollouts.get(name);
    there.is_none_or(|guard| guard.0.as_ref().is_ok_and(|rollout| outcome(rollout).is_some()))
}

/// The evidence reference of a validated success.
fn evidence(why: &Why) -> Option<&str> {
    if let Why::Validated { evidence, .. } = why { evidence.as_deref() } else { None }
}

/// An ended rollout whose status does not say so: whoever ended it may have stopped before telling.
pub(super) async fn late(
    hands: &mut Hands,
    rollout: &RuntimeRollout,
    outcome: Outcome,
    now: Timestamp,
) -> Result<Carried, DriveError> {
    if !is_open(rollout) {
        return Ok(Carried::Later(Look::OnEvent));
    }
    let finished = rollout.metadata.annotations.as_ref().and_then(|all| all.get(annotation::FINISHED_AT));
    let finished: Timestamp = finished.and_then(|text| text.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH);
    match telling(finished, now) {
        Telling::Wait(at) => return Ok(Carried::Later(Look::At(at))),
        Telling::Over => {}
        Telling::Now => {
            let stored = rollout.status.as_ref().and_then(|status| status.message.clone());
            let message = stored.unwrap_or_else(|| outcome.to_string());
            let told = tell(hands, rollout, outcome, &message).await;
            return Ok(after_telling(told, seen_ref(rollout), now));
        }
    }
    Ok(Carried::Now(seen_ref(rollout)))
}

/// Whether an end without status is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Telling {
    Wait(Timestamp),
    Now,
    Over,
}

fn telling(finished: Timestamp, now: Timestamp) -> Telling {
    if now < finished + UNTOLD_AFTER {
        Telling::Wait(finished + UNTOLD_AFTER)
    } else if now < finished + TOLD_AFTER {
        Telling::Now
    } else {
        Telling::Over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_without_status_is_told_when_minutes_old_and_not_after_its_event_may_be_gone() {
        let finished: Timestamp = "2026-11-29T10:00:00Z".parse().unwrap();
        let after = |minutes| telling(finished, finished + SignedDuration::from_mins(minutes));
        assert_eq!(after(1), Telling::Wait(finished + UNTOLD_AFTER));
        assert_eq!(after(2), Telling::Now);
        assert_eq!(after(54), Telling::Now);
        assert_eq!(after(60), Telling::Over);
    }
}
