//! Reconciles the ClusterRuntime, plan to rollout: decide, carry out, say so.

use aicr_decide::{
    report,
    resolve::JobPhase,
    runtime::{self, Verdict, Write},
    seen::World,
};
use jiff::Timestamp;

use crate::{
    controller::{Hands, Look},
    error::DriveError,
    events::About,
    metrics::metrics,
    resolver,
    watch::Content,
    write::{Written, assessment_map},
};

/// One reconcile.
#[tracing::instrument(name = "reconcile", skip_all, fields(controller = "runtime", runtime = aicr_crds::runtime::NAME))]
pub(crate) async fn step(hands: &mut Hands, world: &World, now: Timestamp) -> Result<Look, DriveError> {
    let verdict = runtime::next(world, now);
    let look = match &verdict {
        Verdict::Do(write, _) => carry_out(hands, world, write).await?,
        Verdict::Wait(_, at) => at.map_or(Look::OnEvent, Look::At),
    };
    let status = report::runtime_status(world, &verdict, now);
    metrics().conditions(&status.conditions);
    match hands.write.runtime_status(&world.runtime, &status).await? {
        Written::Stale => Ok(Look::Soon),
        Written::Done(()) => {
            if let Some(note) = report::stalled_event(&world.runtime, &status.conditions) {
                tracing::warn!(note = note.note, "the runtime stalls");
                hands.write.announce(&About::Runtime(&world.runtime), &note).await;
            }
            Ok(look)
        }
    }
}

async fn carry_out(hands: &mut Hands, world: &World, write: &Write) -> Result<Look, DriveError> {
    match write {
        Write::CreateRollout(rollout) => {
            let name = rollout.metadata.name.as_deref().unwrap_or_default();
            let written = hands.write.create_rollout(rollout).await?;
            tracing::info!(rollout = name, steps = rollout.spec.steps.len(), "a rollout is created");
            let note = report::created_event(&world.runtime, rollout);
            hands.write.announce(&About::Runtime(&world.runtime), &note).await;
            Ok(Look::after(&written))
        }
        Write::RunAssessment(plan) => resolver::run(hands, plan).await,
        Write::StoreAssessment { job, input } => store_assessment(hands, world, job, input).await,
        Write::Follow { on, plan } => {
            tracing::info!(release = on.name, plan = %plan, "an unchanged release follows the active plan");
            let written = hands.write.follow(on, *plan).await?;
            Ok(hands.after(&written))
        }
    }
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
