//! Cluster to values: what decisions are made of, gathered once for each.

mod credentials;
mod documents;
mod engine;
mod groups;
mod lookups;
mod rights;
mod runs;

use std::{collections::BTreeSet, future::Future, sync::Arc};

use aicr_crds::{ClusterRuntime, RuntimeRollout, application::Application};
use aicr_decide::{
    facts::{Facts, Refusals},
    resolve::{Credentials, Installation, JobSeen, MirrorSeen, RunRecord, Seen},
    rollout::Position,
    seen::{Resolution, ResolutionState, RolloutSeen, RuntimeSeen, Settings, TargetSeen, World, age_key, outcome},
};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::Client;

pub(crate) use aicr_decide::resolve::Namespaces;
pub(crate) use credentials::Access;
pub(crate) use runs::{Finished, Jobs};

use self::{
    credentials::CredentialsReader,
    groups::Counted,
    lookups::Lookups,
    rights::{MayWrite, Rights},
    runs::Runs,
};
use crate::{
    credentials::Held,
    error::DriveError,
    settings::DriveSettings,
    watch::{Document, Watches},
    write::CALL_LIMIT,
};

/// Gathers; holds what was asked of the API server beside the watches, each for a while.
pub(crate) struct Gatherer {
    pub(crate) watches: Arc<Watches>,
    settings: Arc<DriveSettings>,
    decide: Arc<Settings>,
    install: Arc<Installation>,
    lookups: Lookups,
    runs: Runs,
    rights: Rights,
    credentials: CredentialsReader,
    counted: Counted,
    /// Writes that were refused for good, as long as this process lives.
    pub(crate) refusals: Refusals,
}

impl Gatherer {
    /// A gatherer over these stores, with the token that is held.
    pub(crate) fn new(client: &Client, watches: Arc<Watches>, settings: Arc<DriveSettings>, held: Held) -> Self {
        Self {
            watches,
            lookups: Lookups::new(client, &settings),
            runs: Runs::new(client.clone(), &settings),
            rights: Rights::new(client, &settings),
            credentials: CredentialsReader::new(client, &settings, held),
            counted: Counted::default(),
            decide: Arc::new(settings.decide.clone()),
            install: Arc::new(settings.install.clone()),
            settings,
            refusals: Refusals::default(),
        }
    }

    /// The runtime, as far as it can be read.
    pub(crate) fn runtime(&self) -> Option<Result<ClusterRuntime, String>> {
        let guard = self.watches.runtimes.get(aicr_crds::runtime::NAME)?;
        Some(guard.0.clone().map_err(|invalid| invalid.error))
    }

    /// Rollouts that can be read; and names, with why, of those that cannot.
    fn rollouts(&self) -> (Vec<Arc<RuntimeRollout>>, Vec<(String, String)>) {
        let (mut read, mut unreadable) = (Vec::new(), Vec::new());
        for guard in self.watches.rollouts.all() {
            match &guard.0 {
                Ok(rollout) => read.push(Arc::new(rollout.clone())),
                Err(invalid) => {
                    let name = invalid.metadata.name.clone().unwrap_or_default();
                    unreadable.push((name.clone(), format!("rollout {name}: {}", invalid.error)));
                }
            }
        }
        read.sort_by(|one, other| age_key(one).cmp(&age_key(other)));
        (read, unreadable)
    }

    /// Every rollout that can be read, of any runtime, oldest first.
    pub(crate) fn all_rollouts(&self) -> Vec<Arc<RuntimeRollout>> {
        self.rollouts().0
    }

    /// Everything around the runtime.
    pub(crate) async fn world(
        &mut self,
        runtime: ClusterRuntime,
        resolution: Resolution,
        jobs: &[JobSeen],
    ) -> Result<World, DriveError> {
        let uid = runtime.metadata.uid.clone().unwrap_or_default();
        let (mut rollouts, mut unreadable) = self.rollouts();
        let read = rollouts.iter().filter_map(|rollout| rollout.metadata.name.clone());
        let rollout_names = read.chain(unreadable.iter().map(|(name, _)| name.clone())).collect();
        rollouts.retain(|rollout| rollout.spec.runtime.uid == uid);
        let documents = self.watches.documents.all();
        let (plans, unreadable_plans) = documents::plans(&documents);
        unreadable.extend(unreadable_plans);
        let rights = if self.watches.has_engine() { self.rights.look().await } else { MayWrite::Yes };
        let mut world = World {
            settings: Arc::clone(&self.decide),
            install: Arc::clone(&self.install),
            engine: engine::state(&self.watches, rights, Timestamp::now()),
            runtime,
            resolution,
            plans,
            unreadable,
            rollouts,
            rollout_names,
            applications: Arc::new(self.stored_applications()),
            jobs: jobs.to_vec(),
            assessments: documents::assessments(&documents),
            facts: Facts { refusals: self.refusals.clone(), ..Facts::default() },
        };
        self.complete(&mut world).await?;
        Ok(world)
    }

    fn stored_applications(&self) -> Vec<Arc<Application>> {
        let mut all = self.watches.applications.all();
        all.sort_by(|one, other| one.name().cmp(other.name()));
        all
    }

    /// Adds the Applications that are named like a release that matters and do not carry our label.
    async fn complete(&mut self, world: &mut World) -> Result<(), DriveError> {
        if !self.watches.has_engine() || self.watches.applications.is_refused() {
            return Ok(());
        }
        let there: BTreeSet<String> = world.applications.iter().map(|one| one.name().to_owned()).collect();
        for name in wanted(world).difference(&there) {
            let looked_up = self.lookups.get(name).await?;
            Arc::make_mut(&mut world.applications).extend(looked_up.map(Arc::new));
        }
        Ok(())
    }

    /// Everything around resolution.
    pub(crate) fn resolution<'a>(&self, world: &'a World, mirror: MirrorSeen) -> Seen<'a> {
        let own = world.plans.iter().filter(|(_, (_, stored))| stored.context.runtime_uid == world.uid());
        let documents = self.watches.documents.all();
        Seen {
            runtime: &world.runtime,
            install: &world.install,
            groups: self.counted.groups(&self.watches.nodes, &world.runtime.spec.placement),
            snapshots: documents::snapshots(&documents),
            jobs: world.jobs.clone(),
            records: documents::records(&documents),
            plans: own.map(|(digest, _)| *digest).collect(),
            gpu_operator: documents::gpu_operator(world),
            credentials: Credentials::Ready,
            mirror,
        }
    }

    /// What is seen around a rollout whose runtime is gone.
    pub(crate) fn without_runtime(&self) -> RolloutSeen {
        RolloutSeen {
            settings: Arc::clone(&self.decide),
            runtime: RuntimeSeen::Gone,
            engine: engine::state(&self.watches, MayWrite::Yes, Timestamp::now()),
            resolution: ResolutionState::Unknown,
            target: TargetSeen::None,
            applications: Arc::new(self.stored_applications()),
            unreadable: None,
            unfinished: Vec::new(),
            facts: Facts::default(),
        }
    }

    /// AICR Jobs, with what of them has just finished.
    pub(crate) async fn jobs(&mut self, now: Timestamp) -> Result<Jobs, DriveError> {
        self.runs.look(&self.watches, now).await
    }

    /// How the registry can be spoken to.
    pub(crate) async fn access(&mut self, now: Timestamp) -> Result<Access, DriveError> {
        self.credentials.read(now).await
    }

    /// The registry's credentials as a docker configuration, where the operator fetches them itself.
    pub(crate) fn docker_config(&self, now: Timestamp) -> Option<Vec<u8>> {
        self.credentials.docker_config(now)
    }

    /// When Argo CD's token turns stale by itself.
    pub(crate) fn token_turns_stale(&self, now: Timestamp) -> Option<Timestamp> {
        self.watches.token().turns_stale(now)
    }

    /// What is remembered of failed runs.
    pub(crate) fn records(&self) -> Vec<RunRecord> {
        documents::records(&self.watches.documents.all())
    }

    /// The Jobs of our launchers' agents.
    pub(crate) async fn agents(&self) -> Result<Vec<Job>, DriveError> {
        self.runs.agents().await
    }

    /// Where releases may be installed.
    pub(crate) fn namespaces(&self) -> Namespaces {
        engine::namespaces(&self.watches, &self.settings)
    }

    /// A ConfigMap of the operator's namespace.
    pub(crate) fn document(&self, name: &str) -> Option<Arc<Document>> {
        self.watches.documents.get(name)
    }

    /// Forgets what was looked up, since a write found it old.
    pub(crate) fn forget(&mut self) {
        self.lookups.forget();
    }

    /// Waits until the stores say so: the read-back of what was written, through the watch that decisions use.
    pub(crate) fn until(
        &self,
        act: &str,
        seen: impl Fn(&Watches) -> bool,
    ) -> impl Future<Output = Result<(), DriveError>> {
        let (watches, act) = (Arc::clone(&self.watches), format!("read back {act}"));
        async move {
            let mut changes = watches.changes.listen();
            let wait = async {
                while !seen(&watches) {
                    if changes.changed().await.is_err() {
                        break;
                    }
                }
            };
            let seconds = CALL_LIMIT.as_secs();
            tokio::time::timeout(CALL_LIMIT, wait).await.map_err(|_| DriveError::Timeout { act, seconds })
        }
    }
}

/// Releases whose Applications matter, whoever's they are.
fn wanted(world: &World) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rollout in world.rollouts.iter().filter(|rollout| outcome(rollout).is_none()) {
        let position = Position::find(rollout, &world.applications);
        names.extend(position.next.map(|index| position.steps()[index].release.clone()));
        names.extend(rollout.spec.inventory.iter().map(|item| item.application.clone()));
        names.extend(position.written.keys().cloned());
    }
    if world.unfinished().is_none() {
        let plans = [world.active(), world.target()].into_iter().flatten();
        let stored = plans.filter_map(|digest| world.plans.get(&digest));
        names.extend(stored.flat_map(|(_, stored)| {
            stored.plan.releases().map(|release| release.content.id.clone()).collect::<Vec<_>>()
        }));
    }
    names
}
