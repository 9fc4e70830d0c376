//! Cluster to values: what decisions are made of, gathered once for each.

mod credentials;
mod documents;
mod engine;
mod lookups;
mod runs;

use std::{collections::BTreeSet, future::Future, sync::Arc};

use aicr_crds::{ClusterRuntime, RuntimeRollout, application::Application};
use aicr_decide::{
    resolve::{Credentials, Groups, JobSeen, MirrorSeen, NodeSeen, Seen},
    rollout::Position,
    seen::{Resolution, ResolutionState, RolloutSeen, RuntimeSeen, TargetSeen, World, outcome},
};
use kube::Client;

pub(crate) use aicr_decide::resolve::Namespaces;
pub(crate) use credentials::Access;
pub(crate) use runs::{Finished, Jobs};

use self::{credentials::CredentialsReader, lookups::Lookups, runs::Runs};
use crate::{
    error::DriveError,
    settings::DriveSettings,
    watch::{Document, Watches},
    write::CALL_LIMIT,
};

/// Gathers; holds what was asked of the API server beside the watches, each for a while.
pub(crate) struct Gatherer {
    pub(crate) watches: Arc<Watches>,
    settings: Arc<DriveSettings>,
    lookups: Lookups,
    runs: Runs,
    credentials: CredentialsReader,
}

impl Gatherer {
    /// A gatherer over these stores.
    pub(crate) fn new(client: &Client, watches: Arc<Watches>, settings: Arc<DriveSettings>) -> Self {
        Self {
            watches,
            lookups: Lookups::new(client, &settings),
            runs: Runs::new(client.clone()),
            credentials: CredentialsReader::new(client, &settings),
            settings,
        }
    }

    /// The runtime, as far as it can be read.
    pub(crate) fn runtime(&self) -> Option<Result<ClusterRuntime, String>> {
        let guard = self.watches.runtimes.get(aicr_crds::runtime::NAME)?;
        Some(guard.0.clone().map_err(|invalid| invalid.error))
    }

    /// Rollouts that can be read; and names, with why, of those that cannot.
    fn rollouts(&self) -> (Vec<RuntimeRollout>, Vec<(String, String)>) {
        let (mut read, mut unreadable) = (Vec::new(), Vec::new());
        for guard in self.watches.rollouts.all() {
            match &guard.0 {
                Ok(rollout) => read.push(rollout.clone()),
                Err(invalid) => {
                    let name = invalid.metadata.name.clone().unwrap_or_default();
                    unreadable.push((name.clone(), format!("rollout {name}: {}", invalid.error)));
                }
            }
        }
        read.sort_by_key(aicr_decide::seen::age_key);
        (read, unreadable)
    }

    /// Every rollout that can be read, of any runtime, oldest first.
    pub(crate) fn all_rollouts(&self) -> Vec<RuntimeRollout> {
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
        let mut world = World {
            settings: self.settings.decide.clone(),
            install: self.settings.install.clone(),
            engine: engine::state(&self.watches),
            runtime,
            resolution,
            plans,
            unreadable,
            rollouts,
            rollout_names,
            applications: self.stored_applications(),
            jobs: jobs.to_vec(),
            assessments: documents::assessments(&documents),
        };
        self.complete(&mut world).await?;
        Ok(world)
    }

    fn stored_applications(&self) -> Vec<Application> {
        let mut all: Vec<Application> =
            self.watches.applications.all().iter().map(|application| Application::clone(application)).collect();
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
            world.applications.extend(self.lookups.get(name).await?);
        }
        Ok(())
    }

    /// Everything around resolution.
    pub(crate) fn resolution<'a>(&self, world: &'a World, mirror: MirrorSeen) -> Seen<'a> {
        let nodes = self.watches.nodes.all();
        let labels = std::collections::BTreeMap::new();
        let seen = nodes.iter().map(|node| NodeSeen {
            name: node.metadata.name.as_deref().unwrap_or_default(),
            labels: node.metadata.labels.as_ref().unwrap_or(&labels),
            os_image: node.os_image(),
            architecture: node.architecture(),
        });
        let own = world.plans.iter().filter(|(_, (_, stored))| stored.context.runtime_uid == world.uid());
        Seen {
            runtime: &world.runtime,
            install: &world.install,
            groups: Groups::count(&world.runtime.spec.placement, seen),
            snapshots: documents::snapshots(&self.watches.documents.all()),
            jobs: world.jobs.clone(),
            plans: own.map(|(digest, _)| *digest).collect(),
            gpu_operator: documents::gpu_operator(world),
            credentials: Credentials::Ready,
            mirror,
        }
    }

    /// What is seen around a rollout whose runtime is gone.
    pub(crate) fn without_runtime(&self) -> RolloutSeen {
        RolloutSeen {
            settings: self.settings.decide.clone(),
            runtime: RuntimeSeen::Gone,
            engine: engine::state(&self.watches),
            resolution: ResolutionState::Unknown,
            target: TargetSeen::None,
            applications: self.stored_applications(),
            unreadable: None,
            unfinished: Vec::new(),
        }
    }

    /// AICR Jobs, with what of them has just finished.
    pub(crate) async fn jobs(&mut self, now: jiff::Timestamp) -> Result<Jobs, DriveError> {
        self.runs.look(&self.watches, now).await
    }

    /// How the registry can be spoken to.
    pub(crate) async fn access(&mut self) -> Result<Access, DriveError> {
        self.credentials.read().await
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
