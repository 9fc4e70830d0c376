//! Cluster to values: what decisions are made of, gathered once for each.

mod asked;
mod credentials;
mod documents;
mod engine;
mod groups;
mod live;
mod lookups;
mod pins;
mod rights;
mod runs;
mod trouble;
mod validation;

use std::{collections::BTreeSet, future::Future, sync::Arc};

use aicr_crds::{ClusterRuntime, RuntimeRollout, application::Application};
use aicr_decide::{
    facts::{Facts, Refusals, ValidationSeen},
    resolve::{Credentials, Installation, JobSeen, MirrorSeen, RunRecord, Seen},
    rollout::{Position, validation_input},
    seen::{Resolution, ResolutionState, RolloutSeen, RuntimeSeen, Settings, TargetSeen, World, age_key, outcome},
};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{Client, ResourceExt as _};

pub(crate) use aicr_decide::resolve::Namespaces;
pub(crate) use credentials::Access;
pub(crate) use runs::{Finished, Jobs};
pub(crate) use trouble::Troubles;

use self::{
    credentials::CredentialsReader,
    groups::Counted,
    live::LiveReader,
    lookups::Lookups,
    rights::{MayWrite, Rights},
    runs::Runs,
    trouble::Reading,
    validation::ValidationReader,
};
use crate::{
    credentials::Held,
    error::{DriveError, chain},
    settings::DriveSettings,
    watch::{Document, Watches},
    write::CALL_LIMIT,
};

/// The world, and how much of it could be seen.
pub(crate) struct Sight {
    pub(crate) world: World,
    /// Why Applications that are not watched could not be looked up; then some may be there that this world lacks.
    pub(crate) lacks: Option<DriveError>,
}

/// How much could be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Everything.
    Whole,
    /// Applications may be there that could not be looked up.
    Partial,
}

impl Sight {
    /// How much could be seen.
    pub(crate) fn view(&self) -> View {
        if self.lacks.is_none() { View::Whole } else { View::Partial }
    }
}

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
    live: LiveReader,
    validation: ValidationReader,
    /// Writes that were refused for good, as long as this process lives.
    pub(crate) refusals: Refusals,
    /// What could not be read or written for a step.
    pub(crate) troubles: Troubles,
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
            live: LiveReader::new(client, &settings.gates),
            validation: ValidationReader::new(client, &settings),
            decide: Arc::new(settings.decide.clone()),
            install: Arc::new(settings.install.clone()),
            settings,
            refusals: Refusals::default(),
            troubles: Troubles::default(),
        }
    }

    /// The runtime, as far as it can be read.
    pub(crate) fn runtime(&self) -> Option<Result<Arc<ClusterRuntime>, String>> {
        let guard = self.watches.runtimes.get(aicr_crds::runtime::NAME)?;
        Some(guard.0.clone().map(Arc::new).map_err(|invalid| invalid.error))
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

    /// Everything around the runtime, as far as it can be read.
    pub(crate) async fn world(
        &mut self,
        runtime: Arc<ClusterRuntime>,
        resolution: Resolution,
        jobs: &[JobSeen],
    ) -> Sight {
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
            engine: engine::state(&self.watches, rights, self.settings.clock.now()),
            runtime,
            resolution,
            plans,
            unreadable,
            rollouts,
            rollout_names,
            applications: Arc::new(self.stored_applications()),
            jobs: jobs.to_vec(),
            assessments: documents::assessments(&documents),
            facts: Arc::default(),
        };
        let lacks = self.complete(&mut world).await.err();
        self.troubles.read(Reading::Applications, lacks.as_ref());
        let live = Box::pin(self.live.look(&world, &mut self.troubles)).await;
        let validation = self.validation(&world).await;
        let trouble = world.unfinished().and_then(|rollout| self.troubles.of(&rollout.name_any()));
        world.facts = Arc::new(Facts { live, validation, refusals: self.refusals.clone(), trouble });
        Sight { world, lacks }
    }

    /// What validation needs, as far as it is asked about now; its Jobs are among the world's.
    async fn validation(&mut self, world: &World) -> ValidationSeen {
        let mut seen = ValidationSeen {
            place: self.validation.place(world),
            lacks: None,
            jobs: Vec::new(),
            reports: self.runs.reports().clone(),
        };
        if validation::is_due(world) {
            let access = self.credentials.read(self.settings.clock.now()).await;
            let credentials =
                access.map_or_else(|error| Credentials::Unavailable(chain(&error)), |one| one.credentials());
            seen.lacks = self.validation.lacks(&credentials).await;
        } else {
            self.validation.forget();
        }
        seen
    }

    /// When to look again by itself.
    pub(crate) fn again(&self, now: Timestamp) -> Option<Timestamp> {
        [self.token_turns_stale(now), self.validation.again(now)].into_iter().flatten().min()
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
            jobs: resolving(world),
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
            engine: engine::state(&self.watches, MayWrite::Yes, self.settings.clock.now()),
            resolution: ResolutionState::Unknown,
            target: TargetSeen::None,
            applications: Arc::new(self.stored_applications()),
            unreadable: None,
            unfinished: Vec::new(),
            facts: Arc::default(),
        }
    }

    /// Whether an Application is marked for a Remove of this rollout that did not delete it.
    pub(crate) fn is_marked(&self, rollout: &RuntimeRollout) -> bool {
        let all = self.watches.applications.all();
        all.iter().any(|application| crate::rollout::is_marked(application, rollout))
    }

    /// AICR Jobs, with what of them has just finished.
    pub(crate) async fn jobs(&mut self, now: Timestamp) -> Jobs {
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
    fn token_turns_stale(&self, now: Timestamp) -> Option<Timestamp> {
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

/// The Jobs of resolution: a rollout's validation takes a snapshot of its own, which is none of its inputs.
fn resolving(world: &World) -> Vec<JobSeen> {
    let validations: BTreeSet<String> = world.rollouts.iter().map(|rollout| validation_input(rollout)).collect();
    world.jobs.iter().filter(|job| !validations.contains(&job.input)).cloned().collect()
}

/// Releases whose Applications matter, whoever's they are.
fn wanted(world: &World) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rollout in world.rollouts.iter().filter(|rollout| outcome(rollout).is_none()) {
        let position = Position::find(rollout, &world.applications);
        // The one after the next, too: it begins in the same breath as the next is recorded as ready.
        let ahead = position.next.into_iter().flat_map(|index| position.steps().iter().skip(index).take(2));
        names.extend(ahead.map(|step| step.release.clone()));
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
