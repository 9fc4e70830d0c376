//! The promises where the runtime is looked at: which rollout may be created, and what conditions say.

use aicr_crds::{
    ClusterRuntimeStatus, Digest, RuntimeRollout,
    keys::annotation,
    reason::{Outcome, Reason},
    rollout::{Need, Operation, RolloutKind, Verdict as Assessed},
};
use aicr_decide::{
    rollout::Why as RolloutWhy,
    runtime::{Verdict, Why, Write},
    seen::{ResolutionState, World, outcome},
};
use jiff::Timestamp;

use super::{
    Broken,
    between::between,
    must,
    starts::{is_ours, resume_refused},
};
use crate::{family::Family, store::Store};

/// Everything that one decision on the runtime must keep.
pub(crate) fn runtime_decided(view: &Store, family: &Family, verdict: &Verdict, now: Timestamp) -> Option<Broken> {
    let Verdict::Do(write, _) = verdict else { return None };
    let world = &view.world;
    match write {
        Write::CreateRollout(rollout) => allowed(world, rollout.spec.kind)
            .map(|how| Broken { promise: 3, how: format!("a rollout is created although {how}") })
            .or_else(|| created(world, rollout, now)),
        Write::RunAssessment(_)
        | Write::StoreAssessment { .. }
        | Write::Follow { .. }
        | Write::Repair { .. }
        | Write::Recreate(_)
        | Write::SetAutomated { .. }
        | Write::Orphan { .. }
        | Write::Release { .. }
        | Write::AddFinalizer
        | Write::RebuildPlan(_)
        | Write::StorePlan(_)
        | Write::WithdrawRemove { .. }
        | Write::DeletePlan(_)
        | Write::DeleteRollout(_) => between(world, family, write),
    }
}

fn allowed(world: &World, kind: RolloutKind) -> Option<&'static str> {
    let spec = &world.runtime.spec;
    let deleting = world.runtime.metadata.deletion_timestamp.is_some();
    let newer = |rollout: &RuntimeRollout| rollout.spec.schema_version != aicr_crds::rollout::SCHEMA_VERSION;
    let resolved = match &world.resolution.state {
        ResolutionState::Resolved => true,
        ResolutionState::Resolving { plan_stands, .. } => *plan_stands,
        ResolutionState::Unknown | ResolutionState::Stalled { .. } => false,
    };
    [
        (deleting != (kind == RolloutKind::Remove), "the runtime is being deleted, or is not"),
        (!world.unreadable.is_empty(), "a plan is unreadable"),
        (world.rollouts.iter().any(|rollout| newer(rollout)), "a rollout is a newer operator's"),
        (spec.paused, "the runtime is paused"),
        (spec.suspend_engine, "the engine is suspended"),
        (world.engine.reason().is_some(), "Argo CD cannot be driven"),
        (resume_refused(world), "Argo CD's automation cannot be changed"),
        (kind == RolloutKind::Change && !resolved, "the inputs are not resolved"),
        (world.rollouts.iter().any(|rollout| outcome(rollout).is_none()), "another is unfinished"),
    ]
    .into_iter()
    .find_map(|(stands, what)| stands.then_some(what))
}

fn created(world: &World, rollout: &RuntimeRollout, now: Timestamp) -> Option<Broken> {
    let spec = &rollout.spec;
    let target = world.target();
    let last = world.rollouts.iter().max_by_key(|other| aicr_decide::seen::age_key(other));
    let ended_badly = last.is_some_and(|last| {
        let badly = match outcome(last) {
            Some(Outcome::Failed | Outcome::Expired | Outcome::Revoked) => true,
            Some(Outcome::Succeeded | Outcome::Superseded | Outcome::Orphaned) | None => false,
        };
        badly && last.spec.kind == spec.kind && last.spec.target_plan_digest == spec.target_plan_digest
    });
    let known = |token: &String| {
        world.rollouts.iter().any(|other| {
            let spent = other.metadata.annotations.as_ref().and_then(|all| all.get(annotation::RETRY_SPENT));
            other.spec.retry_token.as_ref() == Some(token) || spent == Some(token)
        })
    };
    let is_retry = world.token().is_some_and(|token| !known(&token));
    kind(world, rollout, target)
        .or_else(|| must(!ended_badly || is_retry, 3, || "nobody asked for a retry".to_owned()))
        .or_else(|| must(spec.deadline.0 > now, 9, || "its deadline has passed already".to_owned()))
        .or_else(|| must(spec.retry_token == world.token(), 9, || "it does not record the token".to_owned()))
        .or_else(|| inventory(world, rollout))
        .or_else(|| approvals(world, rollout))
        .or_else(|| owing(rollout))
}

/// What each kind is for: the target, what `spec.adoption` names as it is, or everything that is there.
fn kind(world: &World, rollout: &RuntimeRollout, target: Option<Digest>) -> Option<Broken> {
    let spec = &rollout.spec;
    let all = |wanted: Operation| spec.steps.iter().all(|step| step.operation == wanted);
    match spec.kind {
        RolloutKind::Change => must(target.is_none_or(|target| spec.target_plan_digest == Some(target)), 4, || {
            "it is not for the target".to_owned()
        }),
        RolloutKind::Adopt => {
            let plan = spec.target_plan_digest.and_then(|digest| world.plans.get(&digest));
            let as_it_is = |item: &aicr_crds::rollout::InventoryItem| {
                let release = plan.and_then(|(_, stored)| stored.plan.release(&item.application));
                let print = release.and_then(|release| release.fingerprint(&world.settings.engine).ok());
                let has_step = spec.steps.iter().any(|step| step.release == item.application);
                !has_step || print == Some(item.fingerprint)
            };
            must(world.runtime.spec.adoption.is_some(), 3, || "nobody asked for an adoption".to_owned())
                .or_else(|| must(all(Operation::Adopt), 1, || "an adoption does more than adopt".to_owned()))
                .or_else(|| must(spec.inventory.iter().all(as_it_is), 4, || "an adoption moves a release".to_owned()))
        }
        RolloutKind::Remove => {
            let every =
                spec.inventory.iter().all(|item| spec.steps.iter().any(|step| step.release == item.application));
            must(all(Operation::Remove) && every, 3, || "a removal does not remove all that is there".to_owned())
        }
    }
}

/// Promise 1: what is bound is what is there.
fn inventory(world: &World, rollout: &RuntimeRollout) -> Option<Broken> {
    let named = world.runtime.spec.adoption.as_ref().map(|adoption| adoption.runtime_uid.as_str());
    let ours = world.applications.iter().filter(|application| {
        let adopted = rollout.spec.kind == RolloutKind::Adopt
            && named.is_some()
            && application.annotations.runtime_uid.as_deref() == named;
        adopted || is_ours(application, world.uid())
    });
    let mut count = 0;
    for application in ours {
        count += 1;
        let listed = rollout.spec.inventory.iter().any(|item| {
            item.application == application.name()
                && item.uid == application.uid()
                && item.fingerprint == application.fingerprint
        });
        if !listed {
            return Some(Broken { promise: 1, how: format!("{} is not in the inventory", application.name()) });
        }
    }
    must(count == rollout.spec.inventory.len(), 1, || "the inventory lists what is not there".to_owned())
}

/// Promise 1: which step goes without a person.
fn approvals(world: &World, rollout: &RuntimeRollout) -> Option<Broken> {
    let newest = world.newest();
    let retries = newest.is_some_and(|newest| {
        newest.spec.target_plan_digest == rollout.spec.target_plan_digest && outcome(newest) != Some(Outcome::Succeeded)
    });
    let careless = rollout.spec.steps.iter().find(|step| {
        let safe = match step.operation {
            Operation::Verify => true,
            Operation::Install | Operation::Remove | Operation::Adopt => false,
            Operation::Upgrade => {
                let moves = step.verdict == Some(Assessed::Safe) && step.crds.is_empty();
                let same = step.from.as_ref().map(|from| from.digest) == step.to.as_ref().map(|to| to.digest)
                    && !step.values_changed;
                !retries && (moves || same)
            }
        };
        step.approval.need == Need::NotRequired && !safe
    });
    must(careless.is_none(), 1, || {
        let step = careless.map(|step| format!("{} {}", step.operation, step.release)).unwrap_or_default();
        format!("{step} needs no approval: {}", careless.map(|step| step.approval.reason.as_str()).unwrap_or_default())
    })
}

/// Promise 3: a family's manual upgrades all have a recorded step after the apply.
fn owing(rollout: &RuntimeRollout) -> Option<Broken> {
    let forgotten = rollout.spec.steps.iter().find(|step| step.verdict == Some(Assessed::Manual) && !step.acknowledge);
    must(forgotten.is_none(), 3, || "a manual upgrade owes nothing".to_owned())
}

/// Promise 9: who waits for a person says so in Stalled, and nobody else does.
pub(crate) fn conditions(world: &World, verdict: &Verdict, status: &ClusterRuntimeStatus) -> Option<Broken> {
    let stalled = status.conditions.iter().find(|condition| condition.type_ == "Stalled")?;
    let says =
        |reason: Reason| stalled.status == "True" && !stalled.message.is_empty() && stalled.reason == reason.as_str();
    // Of several the weightiest is named first, the others after it.
    let refused = !world.facts.refusals.automation.is_empty();
    let stalled_too = matches!(world.resolution.state, ResolutionState::Stalled { .. });
    let others = world.engine.reason().is_some() || refused || stalled_too;
    let Why::InProgress { verdict, .. } = verdict.why() else { return None };
    let awaited = match verdict.why() {
        RolloutWhy::AwaitingApproval(_) | RolloutWhy::ApprovalMismatch => Reason::AwaitingApproval,
        RolloutWhy::AcknowledgementOwed { .. } => Reason::AwaitingAcknowledgement,
        RolloutWhy::Drift(_) => Reason::InventoryDrift,
        RolloutWhy::StepUnknown(_) => Reason::StepUnknown,
        RolloutWhy::Unfit(reason, _) => *reason,
        RolloutWhy::ValidationUnavailable(_) => Reason::ValidationUnavailable,
        RolloutWhy::Ended(_)
        | RolloutWhy::NewerOperator(_)
        | RolloutWhy::RuntimeGone
        | RolloutWhy::DeadlinePassed { .. }
        | RolloutWhy::Revoked { .. }
        | RolloutWhy::Superseded(_)
        | RolloutWhy::ApprovalExpired(_)
        | RolloutWhy::Step { .. }
        | RolloutWhy::StepFailed { .. }
        | RolloutWhy::StepReady { .. }
        | RolloutWhy::Held(_)
        | RolloutWhy::Foreign(_)
        | RolloutWhy::Starting { .. }
        | RolloutWhy::TokenSpent
        | RolloutWhy::Validating { .. }
        | RolloutWhy::ValidationFailed(_)
        | RolloutWhy::Validated { .. }
        | RolloutWhy::Complete => return None,
    };
    must(says(awaited) || (others && stalled.status == "True"), 9, || {
        format!("{awaited} is waited for, and Stalled says {} {}", stalled.status, stalled.reason)
    })
}
