//! Reconciles the ClusterRuntime, plan to rollout: decide, carry out, say so.

use aicr_crds::{application::AutomatedSync, plan::StoredPlan};
use aicr_decide::{
    facts::Refusal,
    report,
    resolve::JobPhase,
    rollout::ObjectRef,
    runtime::{self, Verdict, Write},
    seen::World,
};
use jiff::Timestamp;

use crate::{
    controller::{Hands, Look},
    error::{DriveError, chain, is_answer},
    events::About,
    metrics::metrics,
    resolver,
    watch::Content,
    write::{Written, assessment_map},
};

/// One reconcile.
#[tracing::instrument(
    name = "reconcile",
    skip_all,
    fields(controller = "runtime", runtime = world.uid(), plan = world.target().map(tracing::field::display))
)]
pub(crate) async fn step(hands: &mut Hands, world: &World, now: Timestamp) -> Result<Look, DriveError> {
    let verdict = runtime::next(world, now);
    let carried = match &verdict {
        Verdict::Do(write, _) => carry_out(hands, world, write).await,
        Verdict::Wait(_, at) => Ok(at.map_or(Look::OnEvent, Look::At)),
    };
    // What passes is tried again, and conditions keep their last values until then (Troubleshooting). What is refused until
    // somebody changes something keeps nothing from being said.
    if carried.as_ref().is_err_and(|error| !error.is_denial()) {
        return carried;
    }
    let status = report::runtime_status(world, &verdict, now);
    metrics().conditions(&status.conditions);
    match hands.write.runtime_status(&world.runtime, &status).await? {
        Written::Stale => carried.map(|_| Look::Soon),
        Written::Done(()) => {
            if let Some(note) = report::stalled_event(&world.runtime, &status.conditions) {
                tracing::warn!(note = note.note, "the runtime stalls");
                hands.write.announce(&About::Runtime(&world.runtime), &note).await;
            }
            carried
        }
    }
}

async fn carry_out(hands: &mut Hands, world: &World, write: &Write) -> Result<Look, DriveError> {
    if let Write::Release { .. } = write {
        // Told first: once the finalizer is off there is nobody left who would.
        tell(hands, world, write, "").await;
        return write_one(hands, world, write, &mut String::new()).await;
    }
    let mut made = String::new();
    let look = write_one(hands, world, write, &mut made).await?;
    if look != Look::Soon {
        tell(hands, world, write, &made).await;
    }
    Ok(look)
}

/// The Events of a write; `made` is the UID of what it made.
async fn tell(hands: &Hands, world: &World, write: &Write, made: &str) {
    for (subject, note) in report::carried_out(world, write, made) {
        let live = |name: &str| world.applications.iter().find(|application| application.name() == name);
        match subject {
            report::Subject::Runtime => hands.write.announce(&About::Runtime(&world.runtime), &note).await,
            report::Subject::Application(name) => {
                let namespace = &world.settings.engine.namespace;
                let uid = live(&name).map_or(made, |application| application.uid());
                hands.write.announce(&About::Application { namespace, name: &name, uid }, &note).await
            }
        };
    }
}

/// The one write; `made` becomes the UID of what it made.
async fn write_one(hands: &mut Hands, world: &World, write: &Write, made: &mut String) -> Result<Look, DriveError> {
    match write {
        Write::CreateRollout(rollout) => {
            let name = rollout.metadata.name.as_deref().unwrap_or_default();
            let written = hands.write.create_rollout(rollout).await?;
            tracing::info!(rollout = name, steps = rollout.spec.steps.len(), "a rollout is created");
            Ok(Look::after(&written))
        }
        Write::RunAssessment(plan) => resolver::run(hands, plan).await,
        Write::StoreAssessment { job, input } => store_assessment(hands, world, job, input).await,
        Write::RebuildPlan(stored) | Write::StorePlan(stored) => store_plan(hands, world, stored, made).await,
        Write::DeletePlan(name) => {
            let Some(document) = hands.gather.document(name) else { return Ok(Look::Soon) };
            let written = hands.write.delete_document(&document).await?;
            Ok(Look::after(&written))
        }
        Write::DeleteRollout(on) => Ok(Look::after(&hands.write.delete_rollout(on).await?)),
        Write::AddFinalizer => Ok(Look::after(&hands.write.cleanup(&world.runtime, true).await?)),
        Write::Release { note } => {
            tracing::info!(note, "the runtime is released");
            Ok(Look::after(&hands.write.cleanup(&world.runtime, false).await?))
        }
        Write::Follow { .. }
        | Write::Orphan { .. }
        | Write::SetAutomated { .. }
        | Write::Repair { .. }
        | Write::Recreate(_)
        | Write::WithdrawRemove { .. } => to_argo_cd(hands, world, write, made).await,
    }
}

/// What is written to Argo CD between rollouts.
async fn to_argo_cd(hands: &mut Hands, world: &World, write: &Write, made: &mut String) -> Result<Look, DriveError> {
    let to = &hands.write;
    let written = match write {
        Write::SetAutomated { on, enabled } => return automate(hands, world, on, *enabled).await,
        Write::Orphan { on } => match to.orphan(on, world.uid()).await {
            Err(error) if is_for_good(&error) => {
                hands.gather.refusals.orphaning.insert(on.name.clone(), refusal(&error, hands.now()));
                return Ok(Look::Soon);
            }
            answer => answer?,
        },
        Write::Follow { on, ownership } => to.annotate_ownership(on, ownership).await?,
        Write::Repair { desired, on, .. } => to.apply_application(desired, on).await?.forget(),
        Write::Recreate(desired) => {
            let written = to.create_application(desired).await?;
            let name = desired.name.clone();
            hands
                .gather
                .until(&format!("see Application {name}"), |watches| watches.applications.get(&name).is_some())
                .await?;
            let seen = hands.gather.watches.applications.get(&name);
            *made = seen.and_then(|application| application.metadata.uid.clone()).unwrap_or_default();
            written
        }
        Write::WithdrawRemove { on, enabled } => match world.applications.iter().find(|one| one.name() == on.name) {
            Some(application) => to.withdraw_remove(application, on, *enabled).await?,
            None => Written::Stale,
        },
        Write::CreateRollout(_)
        | Write::RunAssessment(_)
        | Write::StoreAssessment { .. }
        | Write::AddFinalizer
        | Write::Release { .. }
        | Write::RebuildPlan(_)
        | Write::StorePlan(_)
        | Write::DeletePlan(_)
        | Write::DeleteRollout(_) => Written::Stale,
    };
    Ok(hands.after(&written))
}

/// Switches automated sync, and remembers what the API server refuses for good: 403, 422, or a field that reads back
/// unchanged since Argo CD's CRD lacks it.
async fn automate(hands: &mut Hands, world: &World, on: &ObjectRef, enabled: bool) -> Result<Look, DriveError> {
    let wanted = if enabled { AutomatedSync::Enabled } else { AutomatedSync::Disabled };
    let refused = match hands.write.automate(on, enabled).await {
        Ok(Written::Done(application)) if application.automated == wanted => {
            hands.gather.refusals.automation.remove(&on.name);
            return Ok(Look::OnEvent);
        }
        Ok(Written::Done(_)) => Refusal {
            why: "it reads back unchanged: Argo CD's CRD does not know the field".to_owned(),
            at: hands.now(),
        },
        Ok(Written::Stale) => return Ok(hands.after(&Written::<()>::Stale)),
        Err(error) if is_for_good(&error) => refusal(&error, hands.now()),
        Err(error) => return Err(error),
    };
    let notes = report::suspension_refused(world, &on.name, &refused.why);
    hands.gather.refusals.automation.insert(on.name.clone(), refused);
    for note in notes {
        hands.write.announce(&About::Runtime(&world.runtime), &note).await;
    }
    Ok(Look::Soon)
}

fn refusal(error: &DriveError, at: Timestamp) -> Refusal {
    Refusal { why: chain(error), at }
}

fn is_for_good(error: &DriveError) -> bool {
    if let DriveError::Api { source, .. } = error { is_answer(source, &[403, 422]) } else { false }
}

/// Stores a rebuilt plan; one of another runtime under its name goes first.
async fn store_plan(
    hands: &mut Hands,
    world: &World,
    stored: &StoredPlan,
    made: &mut String,
) -> Result<Look, DriveError> {
    let act = "store a rebuilt plan";
    let map = stored
        .to_config_map(hands.namespace())
        .map_err(|error| DriveError::Content { act: act.to_owned(), problem: error.to_string() })?;
    let name = map.metadata.name.clone().unwrap_or_default();
    if let Some(there) = hands.gather.document(&name) {
        let ours =
            world.plans.get(&stored.plan.digest()).is_some_and(|(_, plan)| plan.context.runtime_uid == world.uid());
        return if ours { Ok(Look::Soon) } else { Ok(Look::after(&hands.write.delete_document(&there).await?)) };
    }
    let written = hands.write.create_document(&map).await?;
    hands.gather.until(act, |watches| watches.documents.get(&name).is_some()).await?;
    *made = hands.gather.document(&name).and_then(|document| document.metadata.uid.clone()).unwrap_or_default();
    Ok(Look::after(&written))
}

/// Stores, reads back, and only then deletes the Job that holds the only copy.
async fn store_assessment(hands: &mut Hands, world: &World, job: &str, input: &str) -> Result<Look, DriveError> {
    let act = format!("store the report of Job {job}");
    let done = world.jobs.iter().find(|seen| seen.name == job).map(|seen| &seen.phase);
    let Some(JobPhase::Succeeded { output: Some(text), .. }) = done else {
        return Err(DriveError::Content { act, problem: "it has no output".to_owned() });
    };
    let map = assessment_map(hands.namespace(), input, text);
    let name = map.metadata.name.clone().unwrap_or_default();
    let _ = hands.write.create_document(&map).await?;
    hands.gather.until(&act, |watches| watches.documents.get(&name).is_some()).await?;
    let read = hands.gather.document(&name).is_some_and(|document| match &document.content {
        Content::Assessment(report) => report.is_ok(),
        Content::Plan(_) | Content::Snapshot(_) | Content::Runs(_) | Content::Other => false,
    });
    if !read {
        return Err(DriveError::Content { act, problem: format!("ConfigMap {name} cannot be read back") });
    }
    tracing::info!(config_map = name, "an assessment is stored");
    hands.delete_job(job).await?;
    Ok(Look::Soon)
}
