//! Reconciles one RuntimeRollout: decide, carry out, say so.

use aicr_crds::{RuntimeRollout, keys::annotation, reason::Outcome, rollout::Phase};
use aicr_decide::{
    report,
    rollout::{self, ObjectRef, Position, Verdict, Why, Write},
    seen::{RolloutSeen, outcome},
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    controller::{Hands, Look},
    error::DriveError,
    events::About,
    metrics::{Progress, metrics},
    watch::Watches,
    write::{Announced, Written, seen_ref},
};

/// An end that is younger may still be told by whoever wrote it.
const UNTOLD_AFTER: SignedDuration = SignedDuration::from_mins(2);
/// Events live an hour: an older end that has lost its status was told, and could not be found out to have been.
const TOLD_AFTER: SignedDuration = SignedDuration::from_mins(55);

/// Whether there is anything left to do: it is unfinished, or its end is not in its status.
pub(crate) fn is_open(rollout: &RuntimeRollout) -> bool {
    let shown = rollout.status.as_ref().and_then(|status| status.phase);
    outcome(rollout).is_none_or(|outcome| shown != Some(Phase::from(outcome)))
}

/// One reconcile.
#[tracing::instrument(
    name = "reconcile",
    skip_all,
    fields(controller = "rollout", runtime = rollout.spec.runtime.name, rollout = rollout.metadata.name)
)]
pub(crate) async fn step(
    hands: &mut Hands,
    rollout: &RuntimeRollout,
    seen: &RolloutSeen,
    now: Timestamp,
) -> Result<Look, DriveError> {
    let verdict = rollout::next(rollout, seen, now);
    let on = match carry_out(hands, rollout, seen, &verdict, now).await? {
        Carried::Now(on) => on,
        Carried::Later(look) => return Ok(look),
    };
    if let Some(status) = report::rollout_status(rollout, seen, &verdict, now) {
        if hands.write.rollout_status(rollout, &on, &status).await? == Written::Stale {
            return Ok(hands.after(&Written::<()>::Stale));
        }
        tracing::debug!(phase = ?status.phase, why = status.message, "said");
    }
    Ok(match verdict {
        Verdict::Wait(_, Some(at)) => Look::At(at),
        Verdict::Wait(_, None) | Verdict::Do(..) | Verdict::End(..) => Look::OnEvent,
    })
}

/// What to do after the write.
enum Carried {
    /// Write the status, on the rollout as it is now.
    Now(ObjectRef),
    /// Nothing more.
    Later(Look),
}

async fn carry_out(
    hands: &mut Hands,
    rollout: &RuntimeRollout,
    seen: &RolloutSeen,
    verdict: &Verdict,
    now: Timestamp,
) -> Result<Carried, DriveError> {
    let written = match verdict {
        Verdict::Wait(Why::Ended(outcome), _) => return late(hands, rollout, *outcome, now).await,
        Verdict::Wait(..) => Written::Done(seen_ref(rollout)),
        Verdict::Do(write, why) => {
            tracing::info!(%why, write = word(write), "the rollout goes on");
            write_one(hands, rollout, seen, write).await?
        }
        Verdict::End(outcome, why) => {
            let written = hands.write.end(rollout, *outcome, evidence(why), now).await?;
            if let Written::Done(_) = written {
                tracing::info!(%outcome, %why, "the rollout has ended");
                let note = report::outcome_event(rollout, *outcome, &why.to_string());
                hands.write.announce(&About::Rollout(rollout), &note).await;
                metrics().ended(*outcome);
            }
            written
        }
    };
    Ok(match written {
        Written::Done(on) => Carried::Now(on),
        Written::Stale => Carried::Later(hands.after(&Written::<()>::Stale)),
    })
}

/// The evidence reference of a validated success.
fn evidence(why: &Why) -> Option<&str> {
    if let Why::Validated { evidence, .. } = why { evidence.as_deref() } else { None }
}

/// An ended rollout whose status does not say so: whoever ended it may have stopped before telling.
async fn late(
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
            let note = report::outcome_event(rollout, outcome, &message);
            if hands.write.announce(&About::Rollout(rollout), &note).await == Announced::Now {
                metrics().ended(outcome);
            }
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

/// The one write; the rollout as it is after it.
async fn write_one(
    hands: &mut Hands,
    rollout: &RuntimeRollout,
    seen: &RolloutSeen,
    write: &Write,
) -> Result<Written<ObjectRef>, DriveError> {
    let to = &hands.write;
    let name = rollout.metadata.name.as_deref().unwrap_or_default();
    let live = |on: &ObjectRef| seen.applications.iter().find(|application| application.name() == on.name);
    let written = match write {
        // The status that follows is the write.
        Write::Begin { .. } => Written::Done(()),
        Write::Record { release, entry } => return to.record(rollout, release, entry).await,
        Write::SpendToken { token } => return to.spend_token(rollout, token).await,
        Write::Create(desired) => to.create_application(desired).await?,
        Write::Apply { desired, on } => to.apply_application(desired, on).await?,
        Write::Refresh { on, hard } => {
            let written = to.refresh(on, *hard).await?;
            // Only a view that has held the request can show that it was answered.
            hands.gather.until(&format!("see the refresh of {}", on.name), |watches| is_past(watches, on)).await?;
            written
        }
        Write::Sync { on, source } => to.sync(on, source, name).await?,
        Write::Terminate { on } => to.terminate(on).await?,
        Write::PrepareRemove { on } => match live(on) {
            Some(application) => to.prepare_remove(application, on, name).await?,
            None => Written::Stale,
        },
        Write::WithdrawRemove { on } => match live(on) {
            Some(application) => to.withdraw_remove(application, on).await?,
            None => Written::Stale,
        },
        Write::ClaimRemove { on } => to.claim_remove(on, name).await?,
        Write::Annotate { on, ownership } => to.adopt(on, ownership).await?,
        Write::RunValidation(plan) => hands.run_job(plan).await?,
        Write::Delete { on } => to.delete_application(on).await?,
    };
    Ok(match written {
        Written::Done(()) => Written::Done(seen_ref(rollout)),
        Written::Stale => Written::Stale,
    })
}

fn is_past(watches: &Watches, on: &ObjectRef) -> bool {
    let there = watches.applications.get(&on.name);
    there.is_none_or(|there| there.metadata.resource_version.as_ref() != Some(&on.resource_version))
}

fn word(write: &Write) -> &'static str {
    match write {
        Write::Begin { .. } => "begin",
        Write::Create(_) => "create",
        Write::Apply { .. } => "apply",
        Write::Refresh { .. } => "refresh",
        Write::Sync { .. } => "sync",
        Write::Terminate { .. } => "terminate",
        Write::PrepareRemove { .. } => "prepare removal",
        Write::ClaimRemove { .. } => "claim removal",
        Write::Annotate { .. } => "adopt",
        Write::RunValidation(_) => "run validation",
        Write::WithdrawRemove { .. } => "withdraw removal",
        Write::Delete { .. } => "delete",
        Write::Record { .. } => "record",
        Write::SpendToken { .. } => "spend token",
    }
}

/// Says where the rollout in progress is.
pub(crate) fn measure(rollout: Option<&RuntimeRollout>, seen: &RolloutSeen) {
    let Some(rollout) = rollout else { return metrics().progress(None) };
    let position = Position::find(rollout, &seen.applications);
    let total = position.steps().len();
    let step = (position.done() + 1).min(total);
    metrics().progress(Some(&Progress { rollout: position.name(), step, total, deadline: rollout.spec.deadline.0 }));
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
