//! Reconciles inputs to a plan: gather, decide, carry out; and says how far the inputs have come.

use aicr_crds::{
    ClusterRuntimeSpec, Digest,
    plan::Plan,
    runtime::{Aicr, Discovery, SnapshotRef},
};
use aicr_decide::{
    resolve::{
        self, JobPhase, JobPlan, MirrorPlan, MirrorSeen, Output, RunRecord, Seen, Verdict, input_label,
        snapshot::Record,
    },
    seen::{Resolution, ResolutionState, World},
};
use aicr_mirror::{MirrorFailure, RegistryConfig};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    controller::{Hands, Look},
    error::DriveError,
    gather::Access,
    mirror::{Mirror, Request},
    settings::DriveSettings,
    watch::{Content, ResolvedEntry, Watches},
    write::{RUNS, Written, snapshot_map},
};

/// Snapshots that are kept.
const SNAPSHOTS: usize = 5;
/// Entries that a snapshot keeps of what was resolved from it.
const ENTRIES: usize = 20;

/// Resolves; holds what the last mirror run came to.
pub(crate) struct Resolver {
    mirror: Mirror,
    seen: MirrorSeen,
    /// What of it never changes.
    registry: RegistryConfig,
}

impl Resolver {
    /// A resolver that mirrors with this.
    pub(crate) fn new(mirror: Mirror, settings: &DriveSettings) -> Self {
        let registry = RegistryConfig {
            repository: settings.install.repository.clone(),
            plain_http: settings.install.plain_http.clone(),
            ca_bundle: settings.registry_ca_bundle.clone().into_bytes(),
            sources: settings.chart_sources.clone(),
            ..RegistryConfig::default()
        };
        Self { mirror, seen: MirrorSeen::None, registry }
    }

    /// One reconcile.
    #[tracing::instrument(name = "reconcile", skip_all, fields(controller = "resolver", runtime = aicr_crds::runtime::NAME))]
    pub(crate) async fn step(
        &mut self,
        hands: &mut Hands,
        world: &mut World,
        now: Timestamp,
    ) -> Result<Look, DriveError> {
        let looked = {
            let world = &*world;
            let mut seen = hands.gather.resolution(world, self.seen.clone());
            let mut access = Access::Ready(None);
            let mut verdict = resolve::next(&seen, now);
            if let Verdict::DeleteJobs(names) = &verdict {
                delete_jobs(hands, names).await?;
                seen.jobs.retain(|job| !names.contains(&job.name));
                verdict = resolve::next(&seen, now);
            }
            if needs_registry(&verdict) {
                access = hands.gather.access(now).await?;
                seen.credentials = access.credentials();
                verdict = resolve::next(&seen, now);
            }
            let resolution = resolution(hands, world, &seen, &verdict);
            tracing::debug!(state = ?resolution.state, "resolved so far");
            let at = Pass { hands, world, seen: &seen, now };
            (resolution, self.carry_out(at, verdict, access).await)
        };
        world.resolution = looked.0;
        looked.1
    }

    async fn carry_out(&mut self, pass: Pass<'_>, verdict: Verdict, access: Access) -> Result<Look, DriveError> {
        match verdict {
            Verdict::Run(plan) => run(pass.hands, &plan).await,
            Verdict::Record(record) => remember(&pass, *record).await,
            Verdict::StoreSnapshot { job, record } => store_snapshot(pass, &job, &record).await,
            Verdict::Mirror(plan) => self.mirror(pass, *plan, access).await,
            Verdict::DeleteJobs(_) => Ok(Look::Soon),
            Verdict::Resolved(digest) => {
                self.seen = MirrorSeen::None;
                make_newest(&pass, digest).await?;
                tracing::debug!(plan = %digest, "the inputs have a plan");
                Ok(Look::OnEvent)
            }
            Verdict::Wait(_, at) => Ok(at.map_or(Look::OnEvent, Look::At)),
            Verdict::Stall(reason, message) => {
                tracing::debug!(%reason, why = message, "resolution stalls");
                // What stalls for the registry's sake goes by itself and tells nobody.
                Ok(match access {
                    Access::Unavailable(_, again) => Look::At(again),
                    Access::Ready(_) | Access::Pending => Look::OnEvent,
                })
            }
        }
    }

    async fn mirror(&mut self, pass: Pass<'_>, plan: MirrorPlan, access: Access) -> Result<Look, DriveError> {
        match self.mirror.take(plan.inputs) {
            Some(Ok(stored)) => match stored.to_config_map(pass.hands.namespace()) {
                Ok(map) => {
                    store_plan(&pass, &map, stored.plan.digest()).await?;
                    record(&pass, &plan, stored.plan.digest()).await?;
                    self.seen = MirrorSeen::None;
                }
                Err(error) => {
                    let message = crate::error::chain(&error);
                    let failure = MirrorFailure { reason: Some(aicr_crds::reason::Reason::ContentTooLarge), message };
                    self.seen = failed(&self.seen, plan.inputs, failure, pass.now);
                }
            },
            Some(Err(failure)) => self.seen = failed(&self.seen, plan.inputs, failure, pass.now),
            None => {
                if let Access::Ready(auth) = access {
                    self.mirror.start(request(&pass, plan, RegistryConfig { auth, ..self.registry.clone() }));
                }
                return Ok(Look::OnEvent);
            }
        }
        Ok(Look::Soon)
    }
}

/// What one reconcile works with.
struct Pass<'a> {
    hands: &'a mut Hands,
    world: &'a World,
    seen: &'a Seen<'a>,
    now: Timestamp,
}

fn needs_registry(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Run(plan) => plan.output == Output::Registry,
        Verdict::Mirror(_) => true,
        Verdict::StoreSnapshot { .. }
        | Verdict::Record(_)
        | Verdict::DeleteJobs(_)
        | Verdict::Resolved(_)
        | Verdict::Wait(..)
        | Verdict::Stall(..) => false,
    }
}

fn request(pass: &Pass<'_>, plan: MirrorPlan, registry: RegistryConfig) -> Request {
    let world = pass.world;
    let active = world.active().and_then(|digest| world.plans.get(&digest));
    Request {
        plan,
        active: active.map(|(_, stored)| Plan::clone(&stored.plan)),
        runtime_uid: world.uid().to_owned(),
        aicr: world.install.aicr.clone(),
        namespaces: pass.hands.gather.namespaces(),
        registry,
        at: pass.now,
    }
}

/// A failure is counted on for as long as it is for the same inputs.
fn failed(before: &MirrorSeen, inputs: Digest, failure: MirrorFailure, at: Timestamp) -> MirrorSeen {
    let times = match before {
        MirrorSeen::Failed { inputs: earlier, times, .. } if *earlier == inputs => times.saturating_add(1),
        MirrorSeen::Failed { .. } | MirrorSeen::None => 1,
    };
    MirrorSeen::Failed { inputs, reason: failure.reason, message: failure.message, at, times }
}

/// Makes one AICR Job; also what assessments use.
pub(crate) async fn run(hands: &mut Hands, plan: &JobPlan) -> Result<Look, DriveError> {
    tracing::info!(run = plan.name, stage = %plan.stage, "an AICR Job is made");
    Ok(Look::after(&hands.run_job(plan).await?))
}

async fn delete_jobs(hands: &mut Hands, names: &[String]) -> Result<(), DriveError> {
    for name in names {
        hands.delete_job(name).await?;
    }
    Ok(())
}

/// Keeps what a failed run says where it outlives its Job, and reads it back before the next run is decided on.
async fn remember(pass: &Pass<'_>, record: RunRecord) -> Result<Look, DriveError> {
    let act = format!("remember attempt {} of stage {}", record.attempt, record.stage);
    let there = pass.hands.gather.document(RUNS);
    let records = resolve::with_record(pass.seen.records.clone(), record.clone());
    if let Written::Stale = pass.hands.write.remember(there.as_deref(), &records).await? {
        return Ok(Look::Soon);
    }
    let kept = |watches: &Watches| {
        watches.documents.get(RUNS).is_some_and(|document| match &document.content {
            Content::Runs(records) => records.contains(&record),
            Content::Plan(_) | Content::Snapshot(_) | Content::Assessment(_) | Content::Other => false,
        })
    };
    pass.hands.gather.until(&act, kept).await?;
    tracing::info!(stage = %record.stage, attempt = record.attempt, counted = record.bounded, "a failed run is remembered");
    Ok(Look::Soon)
}

/// Stores, reads back, and only then deletes the Job that holds the only copy.
async fn store_snapshot(pass: Pass<'_>, job: &str, record: &Record) -> Result<Look, DriveError> {
    let act = || format!("store the snapshot of Job {job}");
    let done = pass.seen.jobs.iter().find(|seen| seen.name == job);
    let Some((run, JobPhase::Succeeded { output: Some(text), .. })) = done.map(|seen| (&seen.run, &seen.phase)) else {
        return Err(DriveError::Content { act: act(), problem: "it has no output".to_owned() });
    };
    let map = snapshot_map(pass.hands.namespace(), run, record, text);
    let name = map.metadata.name.clone().unwrap_or_default();
    let _ = pass.hands.write.create_document(&map).await?;
    pass.hands.gather.until(&act(), |watches| watches.documents.get(&name).is_some()).await?;
    let kept = pass.hands.gather.document(&name).is_some_and(|document| match &document.content {
        Content::Snapshot(snapshot) => snapshot.text == *text,
        Content::Plan(_) | Content::Assessment(_) | Content::Runs(_) | Content::Other => false,
    });
    if !kept {
        return Err(DriveError::Content { act: act(), problem: format!("ConfigMap {name} holds something else") });
    }
    tracing::info!(run, snapshot = name, cause = record.cause, "a snapshot is stored");
    pass.hands.delete_job(job).await?;
    retain(&pass, &name).await?;
    Ok(Look::Soon)
}

/// Keeps the newest snapshots, the one just stored included.
async fn retain(pass: &Pass<'_>, newest: &str) -> Result<(), DriveError> {
    // The one that says what the candidate is stays too, however old.
    let says =
        pass.seen.snapshots.iter().rev().find(|stored| !stored.resolved.is_empty()).map(|stored| stored.name.as_str());
    let mortal = |name: &&str| *name != newest && Some(*name) != says;
    let older: Vec<&str> = pass.seen.snapshots.iter().map(|stored| stored.name.as_str()).filter(mortal).collect();
    for name in older.iter().take((older.len() + 1).saturating_sub(SNAPSHOTS)) {
        if let Some(document) = pass.hands.gather.document(name) {
            let _ = pass.hands.write.delete_document(&document).await?;
        }
    }
    Ok(())
}

/// Stores a plan; one of another runtime, or one without a recipe, is replaced.
async fn store_plan(
    pass: &Pass<'_>,
    map: &k8s_openapi::api::core::v1::ConfigMap,
    digest: Digest,
) -> Result<(), DriveError> {
    let name = map.metadata.name.clone().unwrap_or_default();
    let act = format!("store plan {name}");
    let uid = pass.world.uid().to_owned();
    if let Some(there) = pass.hands.gather.document(&name).filter(|there| !holds(&there.content, &uid)) {
        let _ = pass.hands.write.delete_document(&there).await?;
    }
    let _ = pass.hands.write.create_document(map).await?;
    let is_there =
        |watches: &Watches| watches.documents.get(&name).is_some_and(|document| holds(&document.content, &uid));
    pass.hands.gather.until(&act, is_there).await?;
    tracing::info!(plan = %digest, "a plan is stored");
    Ok(())
}

/// Whether this is a plan of that runtime, resolved with a recipe.
fn holds(content: &Content, uid: &str) -> bool {
    match content {
        Content::Plan(plan) => {
            plan.as_ref().as_ref().is_ok_and(|stored| stored.context.runtime_uid == uid && stored.recipe.is_some())
        }
        Content::Snapshot(_) | Content::Assessment(_) | Content::Runs(_) | Content::Other => false,
    }
}

/// Writes on the snapshot which plan its inputs came to.
async fn record(pass: &Pass<'_>, mirror: &MirrorPlan, plan: Digest) -> Result<(), DriveError> {
    let act = format!("record plan {plan} on {}", mirror.snapshot);
    let Some(document) = pass.hands.gather.document(&mirror.snapshot) else { return Ok(()) };
    let Content::Snapshot(snapshot) = &document.content else { return Ok(()) };
    let entry = ResolvedEntry {
        input: input_label(mirror.inputs),
        spec: spec_label(&pass.world.runtime.spec, pass.seen),
        plan,
    };
    let entries = with_entry(snapshot.resolved.clone(), entry.clone());
    let _ = pass.hands.write.resolved(&document, &entries).await?;
    let has = |watches: &Watches| {
        watches.documents.get(&mirror.snapshot).is_some_and(|document| match &document.content {
            Content::Snapshot(snapshot) => snapshot.resolved.contains(&entry),
            Content::Plan(_) | Content::Assessment(_) | Content::Runs(_) | Content::Other => false,
        })
    };
    pass.hands.gather.until(&act, has).await
}

/// What the present inputs came to stands last, so that it stays the candidate when the inputs can not be resolved.
async fn make_newest(pass: &Pass<'_>, plan: Digest) -> Result<(), DriveError> {
    let Some(stored) = pass.seen.snapshots.last() else { return Ok(()) };
    let Some(document) = pass.hands.gather.document(&stored.name) else { return Ok(()) };
    let Content::Snapshot(snapshot) = &document.content else { return Ok(()) };
    if snapshot.resolved.last().is_none_or(|last| last.plan == plan) {
        return Ok(());
    }
    let Some(entry) = snapshot.resolved.iter().rev().find(|entry| entry.plan == plan) else { return Ok(()) };
    let _ = pass.hands.write.resolved(&document, &with_entry(snapshot.resolved.clone(), entry.clone())).await?;
    Ok(())
}

fn with_entry(mut entries: Vec<ResolvedEntry>, entry: ResolvedEntry) -> Vec<ResolvedEntry> {
    entries.retain(|known| known.input != entry.input);
    entries.push(entry);
    let surplus = entries.len().saturating_sub(ENTRIES);
    entries.drain(..surplus);
    entries
}

fn spec_label(spec: &ClusterRuntimeSpec, seen: &Seen<'_>) -> String {
    resolve::of_spec(spec, &seen.install.aicr).short()
}

/// What the verdict says of the inputs.
fn resolution(hands: &Hands, world: &World, seen: &Seen<'_>, verdict: &Verdict) -> Resolution {
    let entries: Vec<ResolvedEntry> = snapshots(hands, seen);
    let spec = spec_label(&world.runtime.spec, seen);
    // Never an older plan than the newest that was resolved, also where that one's ConfigMap is gone.
    let last = entries.last().map(|entry| entry.plan).filter(|plan| seen.plans.contains(plan));
    let (state, candidate) = match verdict {
        Verdict::Resolved(digest) => (ResolutionState::Resolved, Some(*digest)),
        Verdict::Stall(reason, message) => {
            (ResolutionState::Stalled { reason: *reason, message: message.clone() }, last)
        }
        Verdict::Run(_)
        | Verdict::StoreSnapshot { .. }
        | Verdict::Record(_)
        | Verdict::Mirror(_)
        | Verdict::DeleteJobs(_)
        | Verdict::Wait(..) => {
            let stands = last.is_some_and(|last| entries.iter().any(|one| one.spec == spec && one.plan == last));
            (ResolutionState::Resolving { message: verdict.message().to_owned(), plan_stands: stands }, last)
        }
    };
    let context = candidate.and_then(|digest| world.plans.get(&digest)).map(|(_, stored)| &stored.context);
    Resolution { state, candidate, discovery: Some(discovery(seen, context)), aicr: aicr(seen) }
}

/// What was resolved from each snapshot, newest last.
fn snapshots(hands: &Hands, seen: &Seen<'_>) -> Vec<ResolvedEntry> {
    let documents = seen.snapshots.iter().filter_map(|stored| hands.gather.document(&stored.name));
    documents
        .flat_map(|document| match &document.content {
            Content::Snapshot(snapshot) => snapshot.resolved.clone(),
            Content::Plan(_) | Content::Assessment(_) | Content::Runs(_) | Content::Other => Vec::new(),
        })
        .collect()
}

fn discovery(seen: &Seen<'_>, context: Option<&aicr_crds::plan::PlanContext>) -> Discovery {
    let count = |nodes: usize| i32::try_from(nodes).unwrap_or(i32::MAX);
    Discovery {
        snapshot: seen.snapshots.last().map(|stored| SnapshotRef {
            config_map: stored.name.clone(),
            taken_at: Time(stored.taken_at),
            cause: stored.record.cause.clone(),
        }),
        criteria: resolve::criteria(seen)
            .or_else(|| context.map(|context| context.criteria.clone()))
            .unwrap_or_default(),
        accelerated_nodes: count(seen.groups.accelerated),
        system_nodes: count(seen.groups.system),
    }
}

/// The AICR that ran last: as the newest snapshot records it.
fn aicr(seen: &Seen<'_>) -> Option<Aicr> {
    let newest = seen.snapshots.last()?;
    let version = newest.reading.as_ref().ok()?.version.clone();
    Some(Aicr { version, image: newest.record.image.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(input: &str) -> ResolvedEntry {
        ResolvedEntry { input: input.to_owned(), spec: "s".to_owned(), plan: Digest::of(input.as_bytes()) }
    }

    #[test]
    fn a_snapshot_keeps_the_last_twenty_plans_and_each_input_once() {
        let all = (0..25).fold(Vec::new(), |all, place| with_entry(all, entry(&place.to_string())));
        assert_eq!(all.len(), ENTRIES);
        assert_eq!((all[0].input.as_str(), all[19].input.as_str()), ("5", "24"));
        let again = with_entry(all, entry("7"));
        assert_eq!(again.len(), ENTRIES);
        assert_eq!(again[19].input, "7");
    }

    #[test]
    fn mirror_failures_are_counted_for_the_same_inputs() {
        let failure = || MirrorFailure { reason: None, message: "down".to_owned() };
        let (one, other) = (Digest::of(b"1"), Digest::of(b"2"));
        let first = failed(&MirrorSeen::None, one, failure(), Timestamp::UNIX_EPOCH);
        let second = failed(&first, one, failure(), Timestamp::UNIX_EPOCH);
        let times = |seen: &MirrorSeen| match seen {
            MirrorSeen::Failed { times, .. } => *times,
            MirrorSeen::None => 0,
        };
        assert_eq!((times(&first), times(&second)), (1, 2));
        assert_eq!(times(&failed(&second, other, failure(), Timestamp::UNIX_EPOCH)), 1);
    }
}
