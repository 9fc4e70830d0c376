//! Promises 8 and 9: a wait has an end and the right name, and what is decided does not rest on status.

use std::mem::discriminant;

use aicr_crds::{
    RuntimeRolloutStatus,
    reason::{Outcome, StepReason},
    rollout::{Need, Phase},
};
use aicr_decide::{
    rollout::{Verdict, Why, Write},
    seen::outcome,
};
use jiff::SignedDuration;

use super::{
    Broken, Context, Progress, must,
    starts::{drifted, held, owed, step_of, target_unfit, unfit},
    validation::{self, Run},
};
use crate::operator::forgetful;

/// What a rollout waits for, in the order of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    Step,
    Acknowledgement,
    Approval,
    OtherApproval,
    Held,
    Drift,
    Unfit,
    Start,
    Nothing,
    Validation,
}

/// Promise 9.
pub(super) fn waits(context: &Context<'_>, progress: &Progress<'_>, verdict: &Verdict) -> Option<Broken> {
    let Verdict::Wait(why, until) = verdict else { return None };
    let spec = &context.rollout.spec;
    let newer = spec.schema_version != aicr_crds::rollout::SCHEMA_VERSION;
    if outcome(context.rollout).is_some() {
        return must(matches!(why, Why::Ended(_)), 9, || "an ended rollout waits".to_owned());
    }
    if newer {
        return must(matches!(why, Why::NewerOperator(_)), 9, || "it does not say that it is newer".to_owned());
    }
    let needed = spec.steps.iter().any(|step| step.approval.need == Need::Required);
    let runs_out = needed && progress.flying.is_none() && validation::run(context) == Run::None;
    let expiry = spec.approval.as_ref().filter(|_| runs_out).map(|one| one.expires_at.0);
    let latest = expiry.map_or(spec.deadline.0, |expiry| expiry.min(spec.deadline.0));
    must(until.is_some_and(|until| until <= latest), 9, || {
        format!("it waits until {until:?}, and has to end at {latest}: {why}")
    })
    .or_else(|| must(until.is_some_and(|until| until > context.now), 9, || format!("it waits for what is past: {why}")))
    .or_else(|| {
        let expected = awaited(context, progress);
        let named = named(why);
        let same = named == Some(expected) || (expected == For::Start && named == Some(For::Step));
        must(same, 9, || format!("it waits for {expected:?} and says {why}"))
    })
    .or_else(|| {
        // For the next second, which tells a comparison before the step from one after it.
        let soon = until.is_none_or(|until| until <= context.now + SignedDuration::from_secs(1));
        must(soon || !matches!(why, Why::Starting { .. }), 9, || format!("it waits until {until:?} although {why}"))
    })
    .or_else(|| refused(context, progress, why))
}

/// What Argo CD refuses or cannot compare is named as such.
fn refused(context: &Context<'_>, progress: &Progress<'_>, why: &Why) -> Option<Broken> {
    let (Why::Step { reason, .. }, Some(place)) = (why, progress.flying) else { return None };
    let application = context.application(&context.steps()[place].release)?;
    let troubled = context.seen.facts.trouble.is_some();
    if troubled != (*reason == StepReason::ReconcileFailed) && target_unfit(context).is_none() {
        return Some(Broken { promise: 9, how: format!("it says {reason}, with trouble: {troubled}") });
    }
    let ignored = application.annotations.skip_reconcile.is_some();
    let has = |kind: &str| application.status.conditions.iter().any(|condition| condition.kind == kind);
    let named = match reason {
        StepReason::EngineWedged if ignored => true,
        StepReason::Deleting | StepReason::SpecDrifted | StepReason::ReconcileFailed => true,
        StepReason::SpecRefused => !ignored && has("InvalidSpecError"),
        StepReason::ComparisonError | StepReason::RegistryCredentials | StepReason::DiffSchema => {
            has("ComparisonError")
        }
        StepReason::WaitingForComparison
        | StepReason::OutOfSync
        | StepReason::SyncRunning
        | StepReason::SyncRetrying
        | StepReason::SyncFailed
        | StepReason::OtherOperation
        | StepReason::EngineWedged
        | StepReason::SyncWindow
        | StepReason::HookFailed
        | StepReason::NotAllApplied
        | StepReason::SharedResource
        | StepReason::HealthProgressing
        | StepReason::HealthDegraded
        | StepReason::HealthSuspended
        | StepReason::HealthMissing
        | StepReason::HealthUnknown
        | StepReason::GateNotReady => !ignored && !has("InvalidSpecError") && !has("ComparisonError"),
    };
    must(named, 9, || format!("it says {reason} of an Application with {:?}", application.status.conditions))
}

/// What is waited for, worked out from the page.
fn awaited(context: &Context<'_>, progress: &Progress<'_>) -> For {
    let spec = &context.rollout.spec;
    if progress.flying.is_some() {
        return For::Step;
    }
    let run = validation::run(context);
    if run == Run::Runs {
        return For::Validation;
    }
    if owed(context, progress).is_some() {
        return For::Acknowledgement;
    }
    let needed = spec.steps.iter().any(|step| step.approval.need == Need::Required);
    if needed && spec.approval.is_none() {
        return For::Approval;
    }
    if needed && !context.cluster.is_bound(context.id) {
        return For::OtherApproval;
    }
    if progress.open.is_none() && (!validation::is_required(context) || run == Run::Passed) {
        return if drifted(context, progress, None).is_some() { For::Drift } else { For::Nothing };
    }
    if held(context).is_some() {
        return For::Held;
    }
    if drifted(context, progress, None).is_some() {
        return For::Drift;
    }
    match progress.open {
        Some(place) if unfit(context, place).is_some() => For::Unfit,
        Some(_) => For::Start,
        None if target_unfit(context).is_some() => For::Unfit,
        None => For::Validation,
    }
}

fn named(why: &Why) -> Option<For> {
    match why {
        Why::Step { .. } => Some(For::Step),
        Why::AcknowledgementOwed { .. } => Some(For::Acknowledgement),
        Why::AwaitingApproval(_) => Some(For::Approval),
        Why::ApprovalMismatch => Some(For::OtherApproval),
        Why::Held(_) => Some(For::Held),
        Why::Drift(_) => Some(For::Drift),
        Why::Unfit(..) | Why::StepUnknown(_) => Some(For::Unfit),
        Why::ValidationUnavailable(_) | Why::Validating { .. } => Some(For::Validation),
        Why::Starting { .. } => Some(For::Start),
        Why::Ended(_)
        | Why::NewerOperator(_)
        | Why::RuntimeGone
        | Why::DeadlinePassed { .. }
        | Why::Revoked { .. }
        | Why::Superseded(_)
        | Why::ApprovalExpired(_)
        | Why::StepFailed { .. }
        | Why::StepReady { .. }
        | Why::Foreign(_)
        | Why::TokenSpent
        | Why::ValidationFailed(_)
        | Why::Validated { .. }
        | Why::Complete => None,
    }
}

/// What a verdict comes to, where clocks do not count.
#[derive(Debug, PartialEq, Eq)]
enum Gist {
    Ends(Outcome),
    Starts(usize),
    Flies,
    Spends,
    Withdraws,
    Waits(std::mem::Discriminant<Why>),
}

/// Promise 8: the same without status, but that the clocks of a step start anew.
pub(super) fn forgets(context: &Context<'_>, progress: &Progress<'_>, verdict: &Verdict) -> Option<Broken> {
    if !context.cluster.forgets || context.rollout.status.is_none() {
        return None;
    }
    let without = forgetful(context.cluster.mutant, context.position, context.seen, context.now);
    let (one, other) = (gist(context, progress, verdict), gist(context, progress, &without));
    must(one == other, 8, || format!("with status it {one:?}, without it {other:?}: {}", without.why()))
}

#[expect(clippy::match_same_arms, reason = "each arm is a rule of its own, with its reason")]
fn gist(context: &Context<'_>, progress: &Progress<'_>, verdict: &Verdict) -> Gist {
    let flies = progress.flying.is_some();
    match verdict {
        // A step in flight that has run out of time has it once more.
        Verdict::End(Outcome::Failed, Why::StepFailed { .. }) if flies => Gist::Flies,
        // One that could not be written is begun once more, as is one before which a stranger is met.
        Verdict::End(Outcome::Failed, Why::StepFailed { .. } | Why::Foreign(_)) => {
            Gist::Starts(progress.open.unwrap_or_default())
        }
        Verdict::End(Outcome::Expired | Outcome::Revoked | Outcome::Superseded, why)
            if flies && !matches!(why, Why::DeadlinePassed { .. }) =>
        {
            Gist::Flies
        }
        Verdict::End(outcome, _) => Gist::Ends(*outcome),
        Verdict::Do(Write::SpendToken { .. }, _) => Gist::Spends,
        // Its marks come off before it fails.
        Verdict::Do(Write::WithdrawRemove { .. }, Why::StepFailed { .. }) => {
            Gist::Starts(progress.open.unwrap_or_default())
        }
        Verdict::Do(Write::WithdrawRemove { .. }, _) => Gist::Withdraws,
        Verdict::Do(write, _) => match step_of(write, context.steps()) {
            Some(place) => Gist::Starts(place),
            None if flies => Gist::Flies,
            // The entry of a Remove, which stands between its begin and its delete.
            None => Gist::Starts(progress.open.unwrap_or_default()),
        },
        Verdict::Wait(Why::Step { .. }, _) if flies => Gist::Flies,
        Verdict::Wait(Why::Step { .. } | Why::Starting { .. } | Why::StepUnknown(_), _) => {
            Gist::Starts(progress.open.unwrap_or_default())
        }
        Verdict::Wait(why, _) => Gist::Waits(discriminant(why)),
    }
}

/// Promise 9: what is written for people is what was decided.
pub(crate) fn says(verdict: &Verdict, status: &RuntimeRolloutStatus) -> Option<Broken> {
    let said = status.message.as_deref().is_some_and(|message| !message.is_empty());
    must(said, 9, || "status says nothing".to_owned()).or_else(|| {
        let fitting = match verdict {
            Verdict::End(outcome, _) => status.phase == Some(Phase::from(*outcome)) && status.current.is_none(),
            Verdict::Wait(Why::AwaitingApproval(_) | Why::ApprovalMismatch, _) => {
                status.phase == Some(Phase::AwaitingApproval)
            }
            Verdict::Wait(Why::AcknowledgementOwed { .. }, _) => status.phase == Some(Phase::AwaitingAcknowledgement),
            Verdict::Wait(Why::Drift(_) | Why::Unfit(..) | Why::StepUnknown(_), _) => {
                status.phase == Some(Phase::Stalled)
            }
            Verdict::Wait(Why::Validating { .. } | Why::ValidationUnavailable(_), _) => {
                status.phase == Some(Phase::Validating)
            }
            Verdict::Do(Write::Begin { .. }, _) => status.current.is_some(),
            Verdict::Do(..) | Verdict::Wait(..) => true,
        };
        must(fitting, 9, || format!("status says {:?} of: {}", status.phase, verdict.why()))
    })
}
