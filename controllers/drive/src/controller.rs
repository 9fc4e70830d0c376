//! The loop: wait for an event or a time, then reconcile inputs, runtime and rollouts, one after the other.

mod begun;
mod earliest;
mod hands;
mod overtaken;
mod patience;
mod rollouts;

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use aicr_crds::{ClusterRuntime, reason::EventReason};
use aicr_decide::{
    report::{self, EventNote},
    resolve::JobSeen,
    seen::{EngineState, Resolution, ResolutionState},
};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use kube::Client;

pub(crate) use self::hands::{Hands, Look};
use self::{
    begun::Begun,
    earliest::{Earliest, until},
    patience::Patience,
};
use crate::{
    credentials::{Held, Keeper},
    error::{DriveError, chain},
    events::About,
    gather::{Finished, Sight},
    metrics::metrics,
    mirror::{self, Worker},
    resolver::Resolver,
    runtime,
    settings::DriveSettings,
    upkeep::Upkeep,
    watch::{Feeds, Rollouts, Watches},
};

/// A new UTC day is an event that no watch delivers: nothing waits longer.
const LONGEST: Duration = Duration::from_mins(5);
/// How soon refused rights are asked for again.
const RIGHTS: SignedDuration = SignedDuration::from_secs(30);
/// A failed run is told for as long as its Event would be found.
const TOLD: SignedDuration = SignedDuration::from_mins(55);

/// The operator's controllers.
pub struct Drive {
    hands: Hands,
    resolver: Resolver,
    feeds: Feeds,
    worker: Worker,
    keeper: Option<Keeper>,
    ready: Readiness,
}

/// Tells whether every watch has delivered its first list.
#[derive(Clone)]
pub struct Readiness(Arc<Watches>);

impl Readiness {
    /// Whether every watch has delivered its first list.
    pub fn is_ready(&self) -> bool {
        self.0.are_ready()
    }
}

impl Drive {
    /// Controllers of this installation; nothing is asked of the API server yet.
    pub fn new(client: &Client, settings: DriveSettings) -> Self {
        let settings = Arc::new(settings);
        let (watches, feeds) = Watches::new(client, &settings);
        let watches = Arc::new(watches);
        let (mirror, worker) = mirror::mirror(&watches.changes);
        let held = Held::default();
        let hands = Hands::new(client, Arc::clone(&watches), Arc::clone(&settings), held.clone());
        let keeper = settings.tokens.clone().map(|tokens| {
            Keeper::new(tokens, &settings.decide.engine.namespace, Arc::clone(&watches), hands.write.clone(), held)
        });
        let resolver = Resolver::new(mirror, &settings);
        Self { hands, resolver, feeds, worker, keeper, ready: Readiness(watches) }
    }

    /// Whether every watch has delivered its first list.
    pub fn ready(&self) -> bool {
        self.ready.is_ready()
    }

    /// The same question, to be asked while it runs.
    pub fn readiness(&self) -> Readiness {
        self.ready.clone()
    }

    /// The rollouts as the watch sees them, for whoever judges reviews.
    pub fn rollouts(&self) -> Rollouts {
        Rollouts::new(Arc::clone(&self.ready.0))
    }

    /// The watches, which every replica runs, and the hands, which only the leader moves.
    pub fn split(self) -> (Watching, Driving) {
        let Self { hands, resolver, feeds, worker, keeper, ready } = self;
        (Watching(feeds), Driving { hands, resolver, worker, keeper, ready })
    }
}

/// A part of the operator that runs for as long as it is polled. Boxed here, so that it is compiled here, once, and not in
/// each program that polls it.
pub type Running = BoxFuture<'static, Result<(), DriveError>>;

/// Every watch.
pub struct Watching(Feeds);

impl Watching {
    /// Watches for as long as it is polled.
    ///
    /// # Errors
    /// The watches ended, which none does.
    pub fn run(self) -> Running {
        Box::pin(async move {
            Box::pin(self.0.run()).await;
            Err(DriveError::WatchesEnded)
        })
    }
}

/// The reconciles, the mirror and the token: all that writes.
pub struct Driving {
    hands: Hands,
    resolver: Resolver,
    worker: Worker,
    keeper: Option<Keeper>,
    ready: Readiness,
}

impl Driving {
    /// Waits for `lead`, then runs until `shutdown` is ready; a reconcile that is on its way is finished first.
    ///
    /// # Errors
    /// The mirror or the token's keeper ended, which neither does.
    pub fn run(
        self,
        lead: impl Future<Output = ()> + Send + 'static,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Running {
        self.running(Box::pin(lead), Box::pin(shutdown))
    }

    fn running(self, lead: BoxFuture<'static, ()>, shutdown: BoxFuture<'static, ()>) -> Running {
        Box::pin(self.drives(lead, shutdown))
    }

    async fn drives(
        self,
        lead: BoxFuture<'static, ()>,
        mut shutdown: BoxFuture<'static, ()>,
    ) -> Result<(), DriveError> {
        let Self { hands, resolver, worker, keeper, ready } = self;
        tokio::select! {
            biased;
            () = &mut shutdown => return Ok(()),
            () = lead => {}
        }
        let control = Control {
            started: hands.now(),
            hands,
            resolver,
            resolution: Resolution::default(),
            jobs: Vec::new(),
            patience: Patience::default(),
            upkeep: Upkeep::default(),
            begun: Begun::default(),
        };
        let keeping = async {
            match keeper {
                Some(keeper) => keeper.run().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = Box::pin(worker.run()) => Err(DriveError::MirrorEnded),
            () = Box::pin(keeping) => Err(DriveError::KeeperEnded),
            () = Box::pin(control.run(ready, shutdown)) => Ok(()),
        }
    }
}

/// The loop's own state; all of it can be lost.
struct Control {
    hands: Hands,
    resolver: Resolver,
    resolution: Resolution,
    jobs: Vec<JobSeen>,
    patience: Patience,
    upkeep: Upkeep,
    begun: Begun,
    started: Timestamp,
}

impl Control {
    async fn run(mut self, ready: Readiness, mut shutdown: BoxFuture<'static, ()>) {
        let mut changes = ready.0.changes.listen();
        let mut at: Option<Timestamp> = None;
        loop {
            if ready.is_ready() {
                changes.mark_unchanged();
                at = Box::pin(self.pass()).await;
            }
            let wait = at.map_or(LONGEST, |at| until(at, self.hands.now()).min(LONGEST));
            tokio::select! {
                () = &mut shutdown => return,
                _ = changes.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Everything once; when to look again.
    async fn pass(&mut self) -> Option<Timestamp> {
        let now = self.hands.now();
        let mut next = Earliest::default();
        match self.hands.gather.runtime() {
            Some(Ok(runtime)) => Box::pin(self.around(runtime, now, &mut next)).await,
            Some(Err(why)) => tracing::error!(why, "the ClusterRuntime cannot be read"),
            None => {
                self.resolution = Resolution::default();
                metrics().no_runtime();
            }
        }
        self.orphans(now, &mut next).await;
        next.add(self.patience.next(now));
        next.add(self.hands.gather.again(now));
        next.0
    }

    /// The runtime with everything around it. What fails is tried again by itself: no trouble with a Job keeps a rollout
    /// from its time-out.
    async fn around(&mut self, runtime: Arc<ClusterRuntime>, now: Timestamp, next: &mut Earliest) {
        let jobs = self.look_at_jobs(&runtime, now, next).await;
        if jobs && self.patience.is_over("upkeep", now) {
            let begun = Instant::now();
            let looked = Box::pin(self.upkeep.step(&self.hands, &self.jobs, now)).await;
            self.settle("upkeep", begun, looked, &runtime, now, next).await;
        }
        if jobs && runtime.metadata.deletion_timestamp.is_none() && self.patience.is_over("resolver", now) {
            Box::pin(self.resolve(&runtime, now, next)).await;
        }
        // The resolver may have taken its time: the world and the clock are looked at again.
        let Some((sight, now)) = self.fresh().await else { return };
        let world = &sight.world;
        if world.engine == EngineState::Unauthorized {
            // No event tells of a Role that was restored.
            next.add(Some(now + RIGHTS));
        }
        if self.is_whole(&sight, now).await && self.patience.is_over("runtime", now) {
            let begun = Instant::now();
            let looked = runtime::step(&mut self.hands, world, now).await;
            self.settle("runtime", begun, looked, &world.runtime, now, next).await;
        }
        self.rollouts(world, next).await;
    }

    /// Whether everything could be seen; what could not is told, and tried again.
    async fn is_whole(&mut self, sight: &Sight, now: Timestamp) -> bool {
        match &sight.lacks {
            None => self.patience.forgive("world"),
            Some(error) => self.failed("world", Some(&sight.world.runtime), error, now).await,
        }
        sight.lacks.is_none()
    }

    async fn resolve(&mut self, runtime: &Arc<ClusterRuntime>, now: Timestamp, next: &mut Earliest) {
        let begun = Instant::now();
        let sight = self.hands.gather.world(Arc::clone(runtime), self.resolution.clone(), &self.jobs).await;
        let mut world = sight.world;
        let looked = self.resolver.step(&mut self.hands, &mut world, now).await;
        self.resolution = world.resolution;
        if let Err(error) = &looked {
            hindered(&mut self.resolution, error);
        }
        self.settle("resolver", begun, looked, runtime, now, next).await;
    }

    /// Looks at the Jobs; one that cannot be read counts as running. Whether all could.
    async fn look_at_jobs(&mut self, runtime: &ClusterRuntime, now: Timestamp, next: &mut Earliest) -> bool {
        if !self.patience.is_over("jobs", now) {
            return false;
        }
        let begun = Instant::now();
        let jobs = self.hands.gather.jobs(now).await;
        for finished in &jobs.finished {
            self.finished(runtime, finished, now).await;
        }
        self.jobs = jobs.all;
        let look = jobs.failure.map_or(Ok(jobs.again.map_or(Look::OnEvent, Look::At)), Err);
        let well = look.is_ok();
        self.settle("jobs", begun, look, runtime, now, next).await;
        well
    }

    /// The world and the time as they are now.
    async fn fresh(&mut self) -> Option<(Sight, Timestamp)> {
        let runtime = self.hands.gather.runtime()?.ok()?;
        let now = self.hands.now();
        Some((self.hands.gather.world(runtime, self.resolution.clone(), &self.jobs).await, now))
    }

    /// Counts and tells what happened while this process lived; tells what it may have missed.
    async fn finished(&self, runtime: &ClusterRuntime, finished: &Finished, now: Timestamp) {
        let JobSeen { stage, run, name, .. } = &finished.seen;
        let uid = runtime.metadata.uid.as_deref().unwrap_or_default();
        tracing::info!(runtime = uid, run, job = name, stage = %stage, "an AICR Job has finished");
        if finished.at >= self.started {
            metrics().ran(&finished.seen, finished.took.map(|took| took.as_secs_f64()));
        }
        if let Some(failure) = finished.seen.failure()
            && now < finished.at + TOLD
        {
            let note = report::run_failed(runtime, &finished.seen, &failure);
            self.hands.write.announce(&About::Runtime(runtime), &note).await;
        }
    }

    async fn settle(
        &mut self,
        controller: &'static str,
        begun: Instant,
        looked: Result<Look, DriveError>,
        runtime: &ClusterRuntime,
        now: Timestamp,
        next: &mut Earliest,
    ) {
        metrics().reconciled(controller, begun.elapsed().as_secs_f64());
        match looked {
            Ok(look) => {
                self.patience.forgive(controller);
                next.add(look.time(now));
            }
            Err(error) => self.failed(controller, Some(runtime), &error, now).await,
        }
    }

    async fn failed(&mut self, controller: &str, runtime: Option<&ClusterRuntime>, error: &DriveError, now: Timestamp) {
        let text = chain(error);
        let uid = runtime.and_then(|runtime| runtime.metadata.uid.as_deref());
        tracing::warn!(
            controller,
            runtime = uid,
            error = text,
            class = error.class(),
            "a reconcile failed and is tried again"
        );
        metrics().failed(kind(controller), error.class());
        self.patience.failed(controller, now);
        let Some(runtime) = runtime else { return };
        let uid = uid.unwrap_or_default();
        // The same trouble is one Event an hour.
        let occurrence = format!("{controller}/{text}/{}", now.as_second() / 3600);
        let note = EventNote::new(uid, EventReason::ReconcileFailed, &occurrence, &text);
        self.hands.write.announce(&About::Runtime(runtime), &note).await;
    }
}

/// The metrics' word for what rests under this name: rollouts rest each under its own.
fn kind(controller: &str) -> &'static str {
    ["runtime", "resolver", "jobs", "upkeep", "world"]
        .into_iter()
        .find(|known| *known == controller)
        .unwrap_or("rollout")
}

/// What the API server will not do until somebody changes something is what resolution waits for, not its Jobs.
fn hindered(resolution: &mut Resolution, error: &DriveError) {
    if let ResolutionState::Resolving { message, .. } = &mut resolution.state
        && error.is_denial()
    {
        *message = chain(error);
    }
}
