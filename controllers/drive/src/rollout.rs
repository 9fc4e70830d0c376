//! Reconciles one RuntimeRollout: decide, carry out, say so.

mod end;

use std::sync::Arc;

use aicr_crds::{
    RuntimeRollout,
    application::Application,
    reason::StepReason,
    rollout::{Phase, WrittenEntry},
};
use aicr_decide::{
    report,
    rollout::{self, ObjectRef, Position, Verdict, Why, Write},
    seen::{RolloutSeen, outcome},
};
use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::{
    controller::{Hands, Look},
    error::DriveError,
    gather::View,
    metrics::{Progress, metrics},
    watch::Watches,
    write::{Written, seen_ref},
};

/// Whether there is anything left to do: it is unfinished, or its end is not in its status.
pub(crate) fn is_open(rollout: &RuntimeRollout) -> bool {
    let shown = rollout.status.as_ref().and_then(|status| status.phase);
    outcome(rollout).is_none_or(|outcome| shown != Some(Phase::from(outcome)))
}

/// Whether this Application is marked for a Remove of the rollout that did not delete it.
pub(crate) fn is_marked(application: &Application, rollout: &RuntimeRollout) -> bool {
    application.annotations.delete_rollout.as_deref() == rollout.metadata.name.as_deref() && !application.is_deleting()
}

/// One reconcile.
#[tracing::instrument(
    name = "reconcile",
    skip_all,
    fields(
        controller = "rollout",
        runtime = rollout.spec.runtime.uid,
        plan = rollout.spec.target_plan_digest.map(tracing::field::display),
        rollout = rollout.metadata.name,
    )
)]
pub(crate) async fn step(
    hands: &mut Hands,
    rollout: &RuntimeRollout,
    mut seen: RolloutSeen,
    view: View,
    now: Timestamp,
) -> Result<Look, DriveError> {
    let applications = seen.applications.iter().map(|application| ObjectRef::of(application));
    if hands.overtaken.holds(&seen_ref(rollout)) || hands.applied.holds_any(applications) {
        // What follows it is on its way here.
        return Ok(Look::Soon);
    }
    // What could not be written is tried again each time.
    Arc::make_mut(&mut seen.facts).trouble = hands.gather.troubles.reads();
    decided(hands, rollout, seen, view, now).await
}

/// Decides and carries out; what was recorded is decided on at once, where nothing but status follows: one status tells
/// that a release is ready and that the next one begins.
async fn decided(
    hands: &mut Hands,
    rollout: &RuntimeRollout,
    seen: RolloutSeen,
    view: View,
    now: Timestamp,
) -> Result<Look, DriveError> {
    let verdict = rollout::next(rollout, &seen, now);
    if !is_certain(&verdict, view) {
        return Ok(Look::OnEvent);
    }
    let carried = carry_out(hands, rollout, &seen, &verdict, now).await;
    let failure = carried.as_ref().err().filter(|_| matches!(verdict, Verdict::Do(..)));
    hands.gather.troubles.wrote(&rollout.name_any(), failure);
    match (carried, &verdict) {
        (Err(error), Verdict::Do(..)) => hindered(hands, rollout, seen, error, now).await,
        (Ok(Carried::Recorded(recorded)), _) if is_told_at_once(&rollout::next(&recorded, &seen, now)) => {
            Box::pin(decided(hands, &recorded, seen, view, now)).await
        }
        (carried, _) => say(hands, rollout, &seen, &verdict, carried?, now).await,
    }
}

/// Whether this changes nothing but the rollout itself.
fn is_told_at_once(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Wait(..) | Verdict::Do(Write::Begin { .. } | Write::Record { .. }, _))
}

/// Where Applications could not be looked up, only what time alone decides is certain, and that they could not.
fn is_certain(verdict: &Verdict, view: View) -> bool {
    let timed = matches!(
        verdict.why(),
        Why::Step { reason: StepReason::ReconcileFailed, .. } | Why::StepFailed { .. } | Why::DeadlinePassed { .. }
    );
    match view {
        View::Whole => true,
        View::Partial => timed,
    }
}

/// What could not be written is observed of the step, and said; its time-out fires all the same.
async fn hindered(
    hands: &mut Hands,
    rollout: &RuntimeRollout,
    mut seen: RolloutSeen,
    error: DriveError,
    now: Timestamp,
) -> Result<Look, DriveError> {
    Arc::make_mut(&mut seen.facts).trouble = hands.gather.troubles.of(&rollout.name_any());
    let verdict = rollout::next(rollout, &seen, now);
    let carried = match &verdict {
        Verdict::Do(..) => return Err(error),
        Verdict::Wait(..) => Carried::Now(seen_ref(rollout)),
        Verdict::End(..) => carry_out(hands, rollout, &seen, &verdict, now).await?,
    };
    let look = say(hands, rollout, &seen, &verdict, carried, now).await?;
    if let Verdict::End(..) = verdict { Ok(look) } else { Err(error) }
}

/// The status that follows.
async fn say(
    hands: &mut Hands,
    rollout: &RuntimeRollout,
    seen: &RolloutSeen,
    verdict: &Verdict,
    carried: Carried,
    now: Timestamp,
) -> Result<Look, DriveError> {
    let on = match carried {
        Carried::Now(on) => on,
        Carried::Recorded(recorded) => seen_ref(&recorded),
        Carried::Later(look) => return Ok(look),
    };
    if let Some(status) = report::rollout_status(&Position::find(rollout, &seen.applications), seen, verdict, now) {
        match hands.write.rollout_status(rollout, &on, &status).await? {
            Written::Done(after) => hands.overtaken.note(&on, &after),
            Written::Stale => return Ok(hands.after(&Written::<()>::Stale)),
        }
        tracing::debug!(phase = ?status.phase, why = status.message, "said");
    }
    Ok(match verdict {
        Verdict::Wait(_, Some(at)) => Look::At(*at),
        Verdict::Wait(_, None) | Verdict::Do(..) | Verdict::End(..) => Look::OnEvent,
    })
}

/// What to do after the write.
enum Carried {
    /// Write the status, on the rollout as it is now.
    Now(ObjectRef),
    /// The same; what was recorded on it may be all that the next decision waited for.
    Recorded(Box<RuntimeRollout>),
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
        Verdict::Wait(Why::Ended(outcome), _) => return end::late(hands, rollout, *outcome, now).await,
        Verdict::Wait(..) => Written::Done(seen_ref(rollout)),
        Verdict::Do(write, why) => {
            tracing::info!(%why, write = word(write), "the rollout goes on");
            if let Write::Record { release, entry } = write {
                return record(hands, rollout, release, entry).await;
            }
            write_one(hands, rollout, seen, write).await?
        }
        Verdict::End(outcome, why) => return end::end(hands, rollout, *outcome, why, now).await,
    };
    Ok(match written {
        Written::Done(on) => Carried::Now(on),
        Written::Stale => Carried::Later(hands.after(&Written::<()>::Stale)),
    })
}

/// Records what was done for a release.
async fn record(
    hands: &mut Hands,
    rollout: &RuntimeRollout,
    release: &str,
    entry: &WrittenEntry,
) -> Result<Carried, DriveError> {
    Ok(match hands.write.record(rollout, release, entry).await? {
        Written::Done(recorded) => {
            hands.overtaken.note(&seen_ref(rollout), &seen_ref(&recorded));
            Carried::Recorded(Box::new(recorded))
        }
        Written::Stale => Carried::Later(hands.after(&Written::<()>::Stale)),
    })
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
        // The status that follows is the write; a record is carried out before this is asked.
        Write::Begin { .. } | Write::Record { .. } => Written::Done(()),
        Write::SpendToken { token } => return to.spend_token(rollout, token).await,
        Write::Create(desired) => to.create_application(desired).await?,
        Write::Apply { desired, on } => {
            let written = to.apply_application(desired, on).await?;
            if let Written::Done(after) = &written {
                hands.applied.note(on, after);
            }
            written.forget()
        }
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
        Write::WithdrawRemove { on, enabled } => match live(on) {
            Some(application) => to.withdraw_remove(application, on, *enabled).await?,
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
    use aicr_crds::{keys::annotation, reason::Outcome};
    use serde_json::json;

    use super::*;

    fn rollout() -> RuntimeRollout {
        let digest = format!("sha256:{}", "0".repeat(64));
        serde_json::from_value(json!({
            "apiVersion": "operator.aicr.run/v1alpha1", "kind": "RuntimeRollout", "metadata": { "name": "rollout-1" },
            "spec": { "schemaVersion": "1", "kind": "Change", "runtime": { "name": "cluster", "uid": "u" },
                "targetPlanDigest": digest, "attempt": 1, "steps": [], "inventory": [], "selection": "Automatic", "validation": "Disabled",
                "actionTimeout": "30m", "deadline": "2026-11-30T00:00:00Z", "requestedBy": [] },
        }))
        .unwrap()
    }

    #[test]
    fn what_a_remove_marked_and_did_not_delete_is_told_by_the_rollout_s_name() {
        let application = |by: &str, deleted: Option<&str>| -> Application {
            let metadata = json!({ "name": "gpu", "annotations": { annotation::DELETE_ROLLOUT: by },
                "deletionTimestamp": deleted });
            serde_json::from_value(json!({ "metadata": metadata })).unwrap()
        };
        assert!(is_marked(&application("rollout-1", None), &rollout()));
        assert!(!is_marked(&application("rollout-2", None), &rollout()));
        assert!(!is_marked(&application("rollout-1", Some("2026-11-29T00:00:00Z")), &rollout()));
    }

    #[test]
    fn where_applications_could_not_be_looked_up_only_time_is_certain() {
        let failed = Why::StepFailed {
            release: "gpu".into(),
            reason: StepReason::ReconcileFailed,
            detail: "get Application nfd: 500".into(),
        };
        let ends = Verdict::End(Outcome::Failed, failed);
        let succeeds = Verdict::End(Outcome::Succeeded, Why::Complete);
        let drifts = Verdict::Wait(Why::Drift(Vec::new()), None);
        let begins = Verdict::Do(Write::Begin { index: 0 }, Why::Complete);
        let certain = |verdict: &Verdict| (is_certain(verdict, View::Partial), is_certain(verdict, View::Whole));
        assert_eq!(certain(&ends), (true, true));
        for other in [&succeeds, &drifts, &begins] {
            assert_eq!(certain(other), (false, true), "{other:?}");
        }
    }
}
