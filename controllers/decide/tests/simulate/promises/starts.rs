//! Promises 1, 2, 3 and 6: what a step may be started on, and what may be done for one.

use aicr_crds::{
    application::{Application, AutomatedSync, OperationPhase},
    keys::{finalizer, label},
    plan::Plan,
    rollout::{Operation, RolloutKind, Step},
    runtime::DeploymentValidation,
};
use aicr_decide::{
    rollout::{ObjectRef, Verdict, Write},
    seen::{ResolutionState, RuntimeSeen, World, outcome},
};

use super::{Broken, Context, Progress, must, validation::Run};

/// The step that a write is of, where it changes desired state or prepares to.
pub(super) fn step_of(write: &Write, steps: &[Step]) -> Option<usize> {
    let of = |name: &str| steps.iter().position(|step| step.release == name);
    match write {
        Write::Begin { index } => Some(*index),
        Write::Create(desired) => of(&desired.name),
        Write::Apply { on, .. }
        | Write::Annotate { on, .. }
        | Write::PrepareRemove { on }
        | Write::ClaimRemove { on }
        | Write::Delete { on } => of(&on.name),
        Write::Refresh { .. }
        | Write::Sync { .. }
        | Write::Terminate { .. }
        | Write::WithdrawRemove { .. }
        | Write::RunValidation(_)
        | Write::Record { .. }
        | Write::SpendToken { .. } => None,
    }
}

/// Whether this starts a step, and may.
pub(super) fn starts(context: &Context<'_>, progress: &Progress<'_>, verdict: &Verdict) -> Option<Broken> {
    let Verdict::Do(write, _) = verdict else { return None };
    let place = step_of(write, context.steps())?;
    over(context)
        .or_else(|| consent(context))
        .or_else(|| alone(context, progress, place))
        .or_else(|| free(context, progress, place))
        .or_else(|| drifted(context, progress, Some(place)).map(|how| Broken { promise: 1, how }))
        .or_else(|| prepared(context, progress, place, write))
}

/// Promise 6.
pub(super) fn over(context: &Context<'_>) -> Option<Broken> {
    let spec = &context.rollout.spec;
    must(outcome(context.rollout).is_none(), 6, || "an ended rollout starts a step".to_owned())
        .or_else(|| must(context.now < spec.deadline.0, 6, || "a step starts after the deadline".to_owned()))
        .or_else(|| must(spec.revocation.is_none(), 6, || "a revoked rollout starts a step".to_owned()))
        .or_else(|| match &context.seen.runtime {
            RuntimeSeen::Gone => Some(Broken { promise: 6, how: "a step starts without runtime".to_owned() }),
            RuntimeSeen::There(facts) => must(facts.deleting.is_none() || spec.kind == RolloutKind::Remove, 6, || {
                "a step starts while the runtime is deleted".to_owned()
            }),
        })
        .or_else(|| {
            must(!super::ends::has_older(context), 6, || "a step starts beside an older unfinished rollout".to_owned())
        })
}

/// Promise 1.
pub(super) fn consent(context: &Context<'_>) -> Option<Broken> {
    let spec = &context.rollout.spec;
    let needed = spec.steps.iter().any(|step| step.approval.need == aicr_crds::rollout::Need::Required);
    if !needed {
        return None;
    }
    let Some(approval) = &spec.approval else {
        return Some(Broken { promise: 1, how: "a step starts without approval".to_owned() });
    };
    // An approval that ran out after validation has begun does not end the rollout.
    let begun = super::validation::run(context) != Run::None;
    must(context.cluster.is_bound(context.id), 1, || "the approval is of another rollout".to_owned())
        .or_else(|| must(begun || context.now < approval.expires_at.0, 1, || "the approval has expired".to_owned()))
}

/// Promise 2.
fn alone(context: &Context<'_>, progress: &Progress<'_>, place: usize) -> Option<Broken> {
    let release = &context.steps()[place].release;
    must(progress.flying.is_none(), 2, || {
        let flying = progress.flying.map(|place| context.steps()[place].release.clone()).unwrap_or_default();
        format!("the step of {release} starts while that of {flying} is in flight")
    })
    .or_else(|| must(progress.open == Some(place), 2, || format!("the step of {release} starts out of turn")))
}

/// Promise 3.
fn free(context: &Context<'_>, progress: &Progress<'_>, place: usize) -> Option<Broken> {
    held(context)
        .map(str::to_owned)
        .or_else(|| owed(context, progress).map(|release| format!("{release} is owed an acknowledgement")))
        .or_else(|| unfit(context, place).map(str::to_owned))
        .map(|what| Broken { promise: 3, how: format!("a step starts although {what}") })
}

/// What holds the next step.
pub(super) fn held(context: &Context<'_>) -> Option<&'static str> {
    let world = &context.view.world;
    let spec = &world.runtime.spec;
    let newer = |rollout: &aicr_crds::RuntimeRollout| rollout.spec.schema_version != aicr_crds::rollout::SCHEMA_VERSION;
    let resolution_stalls = matches!(world.resolution.state, ResolutionState::Stalled { .. });
    [
        (!world.unreadable.is_empty(), "a plan is unreadable"),
        (world.rollouts.iter().any(|rollout| newer(rollout)), "a rollout is a newer operator's"),
        (spec.suspend_engine, "the engine is suspended"),
        (spec.paused, "the runtime is paused"),
        (world.engine.reason().is_some(), "Argo CD cannot be driven"),
        (resume_refused(world), "Argo CD's automation cannot be changed"),
        (resolution_stalls && context.rollout.spec.kind == RolloutKind::Change, "resolution stalls"),
    ]
    .into_iter()
    .find_map(|(holds, what)| holds.then_some(what))
}

/// An Application whose automated sync could not be switched on again.
pub(super) fn resume_refused(world: &World) -> bool {
    let told = ["EngineSuspended", "EngineSuspensionRefused"];
    let hidden = ["EngineMissing", "ProjectMissing", "Unauthorized", "RegistryCredentialsStale"];
    let suspended = world.runtime.status.as_ref().is_none_or(|status| {
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
        ready.is_some_and(|ready| told.iter().chain(&hidden).any(|reason| ready.reason == *reason))
    });
    let wrong = if world.runtime.spec.suspend_engine { AutomatedSync::Enabled } else { AutomatedSync::Disabled };
    let refused = |application: &Application| {
        // What a Remove has marked stays off.
        let marked = application.annotations.delete_rollout.is_some();
        application.automated == wrong
            && (wrong == AutomatedSync::Enabled || !marked)
            && !application.is_deleting()
            && is_ours(application, world.uid())
            && world.facts.refusals.automation.contains_key(application.name())
    };
    (suspended || world.runtime.spec.suspend_engine)
        && world.applications.iter().any(|application| refused(application))
}

/// By owner, or by label where no owner is named.
pub(super) fn is_ours(application: &Application, uid: &str) -> bool {
    match application.annotations.runtime_uid.as_deref() {
        Some(owner) => owner == uid,
        None => application.label(label::MANAGED_BY).is_some(),
    }
}

/// The first release whose recorded steps are owed.
pub(super) fn owed<'a>(context: &Context<'a>, progress: &Progress<'_>) -> Option<&'a str> {
    let spec = &context.rollout.spec;
    let given = |step: &Step| spec.acknowledgements.iter().any(|entry| entry.release == step.release);
    let owing = context.steps().iter().find(|step| step.acknowledge && context.is_done(progress, step) && !given(step));
    owing.map(|step| step.release.as_str())
}

/// Why the target cannot be rolled out.
pub(super) fn target_unfit(context: &Context<'_>) -> Option<&'static str> {
    let world = &context.view.world;
    let digest = context.rollout.spec.target_plan_digest?;
    if world.unreadable.iter().any(|(unreadable, _)| *unreadable == Plan::config_map_name(digest)) {
        return Some("the target is unreadable");
    }
    let Some((_, stored)) = world.plans.get(&digest) else { return Some("the target is missing") };
    if stored.context.runtime_uid != world.uid() {
        return Some("the target is another runtime's");
    }
    if context.rollout.spec.validation == DeploymentValidation::Required && !world.settings.validation_installed {
        return Some("validation is required and not installed");
    }
    if context.rollout.spec.validation == DeploymentValidation::Required && stored.recipe.is_none() {
        return Some("validation is required and the target has no recipe");
    }
    None
}

/// Why the step at this place cannot be made.
pub(super) fn unfit(context: &Context<'_>, place: usize) -> Option<&'static str> {
    if let Some(what) = target_unfit(context) {
        return Some(what);
    }
    let digest = context.rollout.spec.target_plan_digest?;
    let (_, stored) = context.view.world.plans.get(&digest)?;
    let step = &context.steps()[place];
    let known = stored.plan.releases().any(|release| release.content.id == step.release);
    (!known && step.operation != Operation::Remove).then_some("the target has no such release")
}

/// Promise 1 again, as the approval binds the inventory: the first Application that is not as approved.
pub(super) fn drifted(context: &Context<'_>, progress: &Progress<'_>, except: Option<usize>) -> Option<String> {
    let spec = &context.rollout.spec;
    let steps = context.steps();
    let except = except.or(progress.flying).map(|place| steps[place].release.as_str());
    let step = |name: &str| steps.iter().find(|step| step.release == name);
    for item in spec.inventory.iter().filter(|item| Some(item.application.as_str()) != except) {
        let entry = progress.written.get(&item.application);
        let operation = step(&item.application).map(|step| step.operation);
        let there = context.application(&item.application);
        let as_listed = |application: &Application| {
            application.uid() == item.uid
                && application.fingerprint == item.fingerprint
                && application.annotations.plan_digest == item.plan_digest
                && application.label(label::MANAGED_BY).is_some()
        };
        let may_go = item.removed_by.is_some() && entry.is_none_or(|entry| entry.uid == item.uid);
        let fine = match (entry, operation, there) {
            (_, _, None) if may_go => true,
            (None, _, Some(application)) => as_listed(application),
            (Some(_), Some(Operation::Remove), there) => there.is_none_or(as_listed),
            (Some(entry), _, Some(application)) => as_written(context, application, &entry.uid),
            (_, _, None) => false,
        };
        if !fine {
            return Some(format!("{} is not as approved", item.application));
        }
    }
    strangers(context, progress, except)
}

fn as_written(context: &Context<'_>, application: &Application, uid: &str) -> bool {
    let Some(target) = context.rollout.spec.target_plan_digest else { return true };
    // What cannot be read cannot be compared; that the target is unfit is said instead.
    let print = context.print(application.name()).filter(|_| target_unfit(context).is_none());
    application.uid() == uid
        && print.is_none_or(|print| print == application.fingerprint)
        && application.annotations.plan_digest == Some(target)
        && application.label(label::MANAGED_BY).is_some()
}

/// Applications that are ours and not in the inventory: made by this rollout, or not there.
fn strangers(context: &Context<'_>, progress: &Progress<'_>, except: Option<&str>) -> Option<String> {
    let spec = &context.rollout.spec;
    let listed = |name: &str| spec.inventory.iter().any(|item| item.application == name);
    for (name, entry) in progress.written {
        let removed = context.steps().iter().any(|step| step.release == *name && step.operation == Operation::Remove);
        if listed(name) || removed || Some(name.as_str()) == except {
            continue;
        }
        let fine = context.application(name).is_some_and(|application| as_written(context, application, &entry.uid));
        if !fine {
            return Some(format!("{name} is not as this rollout left it"));
        }
    }
    let uid = &spec.runtime.uid;
    let mut all = context.view.world.applications.iter().filter(|application| is_ours(application, uid));
    all.find(|application| {
        let name = application.name();
        Some(name) != except && !listed(name) && !progress.written.contains_key(name)
    })
    .map(|application| format!("{} appeared", application.name()))
}

/// Promise 3: what has to stand before the write.
fn prepared(context: &Context<'_>, progress: &Progress<'_>, place: usize, write: &Write) -> Option<Broken> {
    if let Write::Begin { .. } = write {
        return None;
    }
    let step = &context.steps()[place];
    let current = context.rollout.status.as_ref().and_then(|status| status.current.as_ref());
    let begun = current.is_some_and(|current| usize::try_from(current.index) == Ok(place));
    must(begun, 3, || format!("the step of {} is written without being begun", step.release)).or_else(|| {
        let Write::Delete { on } = write else { return None };
        let application = context.application(&on.name);
        let marked = application.is_some_and(|application| {
            let finalizers = application.metadata.finalizers.as_deref().unwrap_or_default();
            application.annotations.delete_rollout.as_deref() == Some(progress.name)
                && finalizers.iter().any(|one| finalizer::ARGO_CASCADE.contains(&one.as_str()))
        });
        must(marked, 3, || format!("{} is deleted without its marks", on.name))
            .or_else(|| {
                must(progress.written.contains_key(&on.name), 3, || {
                    format!("{} is deleted before it is written down", on.name)
                })
            })
            .or_else(|| taken_over(context, progress, application?))
    })
}

/// Promise 3: what is deleted syncs no more, and was compared since; what the rollout installed was compared after that, so
/// that an object which both render would have been seen to be shared.
fn taken_over(context: &Context<'_>, progress: &Progress<'_>, leaving: &Application) -> Option<Broken> {
    let quiet = leaving.automated != AutomatedSync::Enabled && leaving.annotations.refresh.is_none();
    let installs = context.steps().iter().filter(|step| step.operation == Operation::Install);
    let stays = |step: &&Step| {
        let removed =
            context.steps().iter().any(|one| one.operation == Operation::Remove && one.release == step.release);
        progress.written.contains_key(&step.release) && !removed
    };
    let compared = |name: &str| {
        context.application(name).is_none_or(|one| {
            one.is_deleting()
                || !is_ours(one, &context.rollout.spec.runtime.uid)
                || one.status.reconciled_at > leaving.status.reconciled_at
        })
    };
    let old = installs.filter(stays).find(|step| !compared(&step.release));
    must(quiet, 3, || format!("{} is deleted while it may sync", leaving.name())).or_else(|| {
        old.map(|step| Broken {
            promise: 3,
            how: format!("{} is deleted before {} was compared", leaving.name(), step.release),
        })
    })
}

/// Promise 3: what may be done beside a step's one write.
pub(super) fn helps(context: &Context<'_>, progress: &Progress<'_>, verdict: &Verdict) -> Option<Broken> {
    let Verdict::Do(write, _) = verdict else { return None };
    match write {
        Write::Refresh { on, .. } if takes_over(context, progress, on) => None,
        Write::Refresh { on, hard: true } if keeps_back(context, progress, on) => None,
        Write::Terminate { on } if keeps_back(context, progress, on) => has_waited(context, on),
        Write::Refresh { on, .. } | Write::Sync { on, .. } => helped(context, progress, on),
        Write::Terminate { on } => helped(context, progress, on).or_else(|| foreign_operation(context, on)),
        Write::ClaimRemove { on } => {
            let left = context.view.application(&on.name).is_some_and(|(_, ghost)| ghost.is_left);
            must(!left, 3, || format!("{} is taken over, which somebody deleted without its resources", on.name))
        }
        Write::WithdrawRemove { on, .. } => {
            let application = context.application(&on.name);
            let marked = application.is_some_and(|application| {
                application.annotations.delete_rollout.as_deref() == Some(progress.name) && !application.is_deleting()
            });
            must(marked, 3, || format!("marks are taken off {}, which has none", on.name))
        }
        Write::Begin { .. }
        | Write::Create(_)
        | Write::Apply { .. }
        | Write::Annotate { .. }
        | Write::PrepareRemove { .. }
        | Write::Delete { .. }
        | Write::RunValidation(_)
        | Write::Record { .. }
        | Write::SpendToken { .. } => None,
    }
}

fn helped(context: &Context<'_>, progress: &Progress<'_>, on: &ObjectRef) -> Option<Broken> {
    let flying = progress.flying.map(|place| context.steps()[place].release.as_str());
    let spec = &context.view.world.runtime.spec;
    let world = &context.view.world;
    let unreadable = held(context).is_some_and(|what| what.contains("unreadable") || what.contains("newer"));
    let halted = spec.paused || spec.suspend_engine || world.engine.is_absent() || resume_refused(world) || unreadable;
    must(flying == Some(&on.name), 3, || format!("{} is helped, whose step is not in flight", on.name))
        .or_else(|| must(!halted, 3, || format!("{} is helped while the step stands still", on.name)))
}

/// A release that the rollout installed is looked at once more before another one is deleted.
fn takes_over(context: &Context<'_>, progress: &Progress<'_>, on: &ObjectRef) -> bool {
    let installed = context.steps().iter().any(|step| step.operation == Operation::Install && step.release == on.name);
    let removes = |place: usize| context.steps()[place].operation == Operation::Remove;
    let open = progress.open.filter(|place| removes(*place));
    let marked =
        open.and_then(|place| context.application(&context.steps()[place].release)).is_some_and(|application| {
            application.annotations.delete_rollout.as_deref() == Some(progress.name) && !application.is_deleting()
        });
    installed && marked && progress.flying.is_none() && held(context).is_none()
}

/// What keeps a Remove back that has begun and is not yet in flight.
fn keeps_back(context: &Context<'_>, progress: &Progress<'_>, on: &ObjectRef) -> bool {
    let open = progress.open.map(|place| &context.steps()[place]);
    let removes = open.is_some_and(|step| step.operation == Operation::Remove && step.release == on.name);
    removes && progress.flying.is_none() && held(context).is_none()
}

/// What runs on an Application that is to be removed has had half of the step's time.
fn has_waited(context: &Context<'_>, on: &ObjectRef) -> Option<Broken> {
    let current = context.rollout.status.as_ref().and_then(|status| status.current.as_ref());
    let limit = aicr_crds::duration::parse(&context.rollout.spec.action_timeout).unwrap_or_default();
    let half = current.is_some_and(|step| context.now >= step.timeout_from.0 + limit / 2);
    let operation = context.application(&on.name).and_then(|application| application.status.operation.as_ref());
    let runs = operation.is_some_and(|state| state.phase == OperationPhase::Running);
    must(half && runs, 3, || format!("the operation of {} is terminated too early", on.name))
}

fn foreign_operation(context: &Context<'_>, on: &ObjectRef) -> Option<Broken> {
    let application = context.application(&on.name)?;
    let other = application
        .status
        .operation
        .as_ref()
        .is_some_and(|state| state.phase == OperationPhase::Running && state.source_id != application.source_id);
    must(other, 3, || format!("an operation for the very content of {} is terminated", on.name))
}
