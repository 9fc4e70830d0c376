//! Promises 6, 7 and 9: which outcome a rollout may have, and when it must end.

use aicr_crds::{
    RuntimeRollout,
    application::Application,
    reason::Outcome,
    rollout::{Need, Operation, RolloutKind},
    runtime::DeletionPolicy,
};
use aicr_decide::{
    rollout::{Verdict, Why, Write},
    seen::{RuntimeFacts, RuntimeSeen, outcome},
};

use super::{
    Broken, Context, Progress, must,
    starts::{drifted, is_ours, owed},
    validation::{self, Run},
};
use crate::{cluster::Cluster, store::Id};

/// Whether a rollout may end so.
pub(super) fn ends(context: &Context<'_>, progress: &Progress<'_>, verdict: &Verdict) -> Option<Broken> {
    let Verdict::End(as_what, why) = verdict else { return None };
    let broken = |how: &str| Broken { promise: 7, how: format!("it ends {as_what}: {how}") };
    if outcome(context.rollout).is_some() {
        return Some(broken("it has ended before"));
    }
    let spec = &context.rollout.spec;
    let past = context.now >= spec.deadline.0;
    let flying = progress.flying.is_some() && !past;
    let how = match as_what {
        Outcome::Succeeded => success(context, progress),
        Outcome::Failed => failure(context, progress, why),
        Outcome::Expired => (!(past || expired(context))).then(|| "its time is not over".to_owned()),
        Outcome::Revoked => spec.revocation.is_none().then(|| "nobody revoked it".to_owned()),
        Outcome::Superseded => (!superseded(context)).then(|| "nothing takes its place".to_owned()),
        Outcome::Orphaned => (!orphaned(context)).then(|| "its runtime is there".to_owned()),
    };
    let waits_for_step = match as_what {
        Outcome::Expired | Outcome::Revoked | Outcome::Superseded | Outcome::Succeeded => true,
        Outcome::Failed | Outcome::Orphaned => false,
    };
    how.map(|how| broken(&how)).or_else(|| marked(context, progress)).or_else(|| {
        let left = flying && waits_for_step && !timed_out(context);
        must(!left, 6, || format!("it ends {as_what} with a step in flight"))
    })
}

/// Promise 3: what was prepared for a Remove that will not happen would cascade at anybody's plain delete.
fn marked(context: &Context<'_>, progress: &Progress<'_>) -> Option<Broken> {
    let marked = context.view.world.applications.iter().find(|application| {
        application.annotations.delete_rollout.as_deref() == Some(progress.name) && !application.is_deleting()
    });
    must(marked.is_none(), 3, || format!("it ends and leaves its marks on {}", marked.map_or("", |one| one.name())))
}

fn success(context: &Context<'_>, progress: &Progress<'_>) -> Option<String> {
    let spec = &context.rollout.spec;
    if progress.open.is_some() {
        return Some("not every step is done".to_owned());
    }
    if spec.steps.iter().any(|step| step.approval.need == Need::Required) && !context.cluster.is_bound(context.id) {
        return Some("nobody approved it".to_owned());
    }
    if validation::is_required(context) && validation::run(context) != Run::Passed {
        return Some("it was not validated".to_owned());
    }
    owed(context, progress)
        .map(|release| format!("{release} is owed an acknowledgement"))
        .or_else(|| drifted(context, progress, None))
}

/// Whether a release was removed here, and another object has its name now.
fn is_taken(context: &Context<'_>, progress: &Progress<'_>, place: usize) -> bool {
    let step = &context.steps()[place];
    let removed = progress.written.get(&step.release).filter(|_| step.operation == Operation::Remove);
    let there = context.application(&step.release);
    removed.zip(there).is_some_and(|(entry, application)| application.uid() != entry.uid)
}

fn failure(context: &Context<'_>, progress: &Progress<'_>, why: &Why) -> Option<String> {
    if let Why::Foreign(name) = why {
        let uid = &context.rollout.spec.runtime.uid;
        let is_foreign = |application: &Application| application.project != "aicr" || !is_ours(application, uid);
        let foreign = context.application(name).is_some_and(is_foreign);
        return (!foreign).then(|| format!("{name} is ours"));
    }
    if let Why::ValidationFailed(_) = why {
        // Somebody's object may stand by now where a release was removed: what has been found stays found.
        let done = progress.open.is_none_or(|place| is_taken(context, progress, place));
        let failed = validation::run(context) == Run::Failed && done;
        return (!failed).then(|| "its validation has not failed".to_owned());
    }
    // One that has begun and cannot be written has its time as well; so has a Remove that something keeps back.
    let hindered = progress.open.is_some_and(|place| {
        context.seen.facts.trouble.is_some() || context.steps()[place].operation == Operation::Remove
    });
    if progress.flying.is_none() && !hindered {
        return Some("no step is in flight".to_owned());
    }
    let spec = &context.view.world.runtime.spec;
    if spec.paused || spec.suspend_engine || context.view.world.engine.is_absent() {
        return Some("the step stands still".to_owned());
    }
    (!timed_out(context)).then(|| "the step had time".to_owned())
}

/// The action timeout has passed, or what is of no use has been seen for a minute.
fn timed_out(context: &Context<'_>) -> bool {
    let Some(current) = context.rollout.status.as_ref().and_then(|status| status.current.as_ref()) else {
        return false;
    };
    let limit = aicr_crds::duration::parse(&context.rollout.spec.action_timeout).unwrap_or_default();
    let minute = jiff::SignedDuration::from_mins(1);
    context.now >= current.timeout_from.0 + limit
        || current.failing_since.as_ref().is_some_and(|since| context.now >= since.0 + minute)
}

fn expired(context: &Context<'_>) -> bool {
    let spec = &context.rollout.spec;
    let needed = spec.steps.iter().any(|step| step.approval.need == Need::Required);
    let runs_out = needed && validation::run(context) == Run::None;
    runs_out && spec.approval.as_ref().is_some_and(|approval| context.now >= approval.expires_at.0)
}

fn facts<'a>(context: &Context<'a>) -> Option<&'a RuntimeFacts> {
    match &context.seen.runtime {
        RuntimeSeen::Gone => None,
        RuntimeSeen::There(facts) => Some(facts),
    }
}

/// Whether an older rollout is unfinished; the name decides within one second.
pub(super) fn has_older(context: &Context<'_>) -> bool {
    let age = |rollout: &RuntimeRollout| {
        (rollout.metadata.creation_timestamp.as_ref().map(|at| at.0), rollout.metadata.name.clone())
    };
    let own = age(context.rollout);
    context.view.ids().filter(|other| *other != context.id && context.view.is_own(*other)).any(|other| {
        context.view.rollout(other).is_some_and(|rollout| outcome(rollout).is_none() && age(rollout) < own)
    })
}

fn superseded(context: &Context<'_>) -> bool {
    let Some(facts) = facts(context) else { return false };
    let spec = &context.rollout.spec;
    facts.deleting == Some(DeletionPolicy::Delete)
        || facts.new_token.is_some()
        || has_older(context)
        || (facts.target.is_some() && facts.target != spec.target_plan_digest)
}

fn orphaned(context: &Context<'_>) -> bool {
    facts(context).is_none_or(|facts| facts.deleting == Some(DeletionPolicy::Orphan))
}

/// Promise 9: when it must end, it does, or takes off its marks first.
pub(super) fn must_end(context: &Context<'_>, progress: &Progress<'_>, verdict: &Verdict) -> Option<Broken> {
    let spec = &context.rollout.spec;
    if outcome(context.rollout).is_some() || spec.schema_version != aicr_crds::rollout::SCHEMA_VERSION {
        return None;
    }
    let idle = progress.flying.is_none();
    let deleted = facts(context).is_some_and(|facts| facts.deleting == Some(DeletionPolicy::Delete));
    let retry = facts(context).is_some_and(|facts| facts.new_token.is_some()) && spec.revocation.is_none();
    let moved = facts(context).is_some_and(|facts| facts.target.is_some() && facts.target != spec.target_plan_digest);
    let unbegun = idle && progress.written.is_empty() && spec.kind == RolloutKind::Change;
    let because = [
        (retry && !deleted && !(idle && expired(context)), "a retry token was set"),
        (moved && unbegun, "its target is no longer the target"),
        (orphaned(context), "its runtime is gone"),
        (context.now >= spec.deadline.0, "its deadline has passed"),
        (idle && spec.revocation.is_some(), "it is revoked"),
        (idle && deleted && spec.kind != RolloutKind::Remove, "its runtime is deleted"),
        (idle && has_older(context), "an older one is unfinished"),
        (idle && expired(context), "its approval has expired"),
    ]
    .into_iter()
    .find_map(|(ends, because)| ends.then_some(because))?;
    let ending = match verdict {
        Verdict::End(..) | Verdict::Do(Write::WithdrawRemove { .. } | Write::SpendToken { .. }, _) => true,
        Verdict::Do(..) | Verdict::Wait(..) => false,
    };
    must(ending, 9, || format!("it goes on although {because}"))
}

/// Promise 7: an outcome is written once.
pub(crate) fn ended_once(cluster: &Cluster, id: Id) -> Option<Broken> {
    let times = cluster.outcomes.iter().filter(|(other, _)| *other == id).count();
    must(times == 1, 7, || format!("rollout {id} has ended {times} times"))
}

/// Promise 7, at the end of a history: every end was told, and counted, once; at most once where nobody was there to tell it
/// for as long as Events live, or somebody deleted the rollout before.
pub(crate) fn told_once(cluster: &Cluster) -> Option<Broken> {
    let times = |all: &[(Id, Outcome)], one: &(Id, Outcome)| all.iter().filter(|other| *other == one).count();
    cluster.outcomes.iter().find_map(|one| {
        let (told, counted) = (times(&cluster.announced, one), times(&cluster.counted, one));
        let is_there = cluster.truth.rollout(one.0).is_some() && !cluster.too_late.contains(&one.0);
        let least = usize::from(is_there);
        must((least..=1).contains(&told) && (least..=1).contains(&counted), 7, || {
            format!("the end of rollout {} ({}) was told {told} times and counted {counted} times", one.0, one.1)
        })
    })
}
