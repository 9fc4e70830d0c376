//! The cluster: the truth, the API server's preconditions, every watch's log, and two replicas of the operator.

use std::{fmt::Display, sync::Arc};

use aicr_crds::{ClusterRuntime, ClusterRuntimeStatus, RuntimeRollout, application::Application, reason::Outcome};
use aicr_decide::{
    report::EventNote,
    rollout::Verdict,
    seen::{Resolution, ResolutionState},
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    event::Stream,
    family::Family,
    ghost::Ghost,
    look::Quiet,
    mutants::Mutant,
    promises::Broken,
    store::{Change, Id, OfRollout, Store},
};

/// How long an Event is kept.
const EVENT_LIFE: SignedDuration = SignedDuration::from_hours(1);

/// Everything.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) family: Arc<Family>,
    pub(crate) now: Timestamp,
    pub(crate) truth: Store,
    pub(crate) operators: [Operator; 2],
    /// Which of them holds the lease.
    pub(crate) leader: usize,
    /// Whether an approval binds the rollout that it stands on.
    pub(crate) bound: Vec<(Id, bool)>,
    /// Events that exist: name and when.
    pub(crate) events: Vec<(String, Timestamp)>,
    /// What was ever announced of a rollout's end, whether or not the Event still exists.
    pub(crate) announced: Vec<(Id, Outcome)>,
    /// What the counters counted.
    pub(crate) counted: Vec<(Id, Outcome)>,
    /// Rollouts whose end was first seen without its status when no Event of it could be there any more.
    pub(crate) too_late: Vec<Id>,
    /// Every outcome that was ever written.
    pub(crate) outcomes: Vec<(Id, Outcome)>,
    /// By how many seconds Argo CD's clock is behind.
    pub(crate) argo_behind: i64,
    /// How far clocks may be apart, in seconds.
    pub(crate) tolerance: i64,
    /// Whether conditions are written too.
    pub(crate) reports: bool,
    /// Whether verdicts are compared with those without status.
    pub(crate) forgets: bool,
    /// Whether the end of the history is brought to rest and judged too.
    pub(crate) ends_well: bool,
    pub(crate) mutant: Mutant,
    /// Applications of which the API server refuses what is no step.
    pub(crate) refusing: Vec<&'static str>,
    /// Since when each look at a rollout's release in flight found its gate passing.
    pub(crate) passing: Vec<(Id, String, Timestamp)>,
    /// The first promise that was broken.
    pub(crate) broken: Option<Broken>,
    /// What happened, where somebody wants to read it.
    pub(crate) transcript: Option<Vec<String>>,
    version: u64,
    /// Counts whatever becomes different, in the truth, in what a replica knows, or in what is remembered of the history.
    moved: u64,
    logs: [Vec<Change>; 4],
}

/// One replica of the operator.
#[derive(Clone)]
pub(crate) struct Operator {
    /// What it knows; `None` while it is at work.
    pub(crate) view: Option<Box<Store>>,
    /// How far it has read each watch.
    read: [usize; 4],
    /// What it decided and has not carried out.
    pub(crate) pending: Option<Box<Pending>>,
    /// Whether its process is to be started anew.
    pub(crate) is_dead: bool,
    /// By how many seconds its clock is ahead.
    pub(crate) ahead: i64,
    /// The newest resourceVersion when it looked at its rollouts and had nothing to do.
    pub(crate) idle: Option<u64>,
    /// Counts whatever becomes different of what it knows.
    pub(crate) known: u64,
    /// What its last turns rest on.
    pub(crate) quiet: Quiet,
    /// Whether what it wrote to an Application has to be seen before it goes on.
    pub(crate) reads_back: bool,
    /// Writes that were refused, or taken again, in this turn: whether of orphaning, and the Application.
    pub(crate) answers: Vec<Answer>,
    knows_resolution: bool,
}

/// What the API server said to a write that it may refuse.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Automated sync stays as it is.
    AutomationRefused(String),
    /// It took the change.
    AutomationTaken(String),
    /// The annotation is not written.
    OrphaningRefused(String),
}

/// A decision on its way.
#[derive(Clone)]
pub(crate) struct Pending {
    pub(crate) id: Id,
    pub(crate) rollout: RuntimeRollout,
    pub(crate) seen: aicr_decide::seen::RolloutSeen,
    pub(crate) verdict: Verdict,
    pub(crate) at: Timestamp,
}

impl Cluster {
    /// A runtime without plans, at the beginning.
    pub(crate) fn new(family: Arc<Family>, truth: Store, now: Timestamp) -> Self {
        let operator = |view: Option<Box<Store>>| Operator {
            view,
            read: [0; 4],
            pending: None,
            is_dead: false,
            ahead: 0,
            idle: None,
            known: 0,
            quiet: Quiet::default(),
            reads_back: false,
            answers: Vec::new(),
            knows_resolution: true,
        };
        let first = operator(Some(Box::new(truth.clone())));
        Self {
            family,
            now,
            operators: [first, operator(None)],
            truth,
            leader: 0,
            bound: Vec::new(),
            events: Vec::new(),
            announced: Vec::new(),
            counted: Vec::new(),
            too_late: Vec::new(),
            outcomes: Vec::new(),
            argo_behind: 0,
            tolerance: 0,
            reports: false,
            forgets: false,
            ends_well: false,
            mutant: Mutant::None,
            refusing: Vec::new(),
            passing: Vec::new(),
            broken: None,
            transcript: None,
            version: 1,
            moved: 0,
            logs: [const { Vec::new() }; 4],
        }
    }

    /// Adds a line to the transcript, where there is one.
    pub(crate) fn say<T: Display>(&mut self, line: impl FnOnce() -> T) {
        if let Some(transcript) = &mut self.transcript {
            transcript.push(format!("    {}", line()));
        }
    }

    /// The first broken promise counts.
    pub(crate) fn check(&mut self, broken: Option<Broken>) {
        if self.broken.is_none() {
            self.broken = broken;
        }
    }

    /// A new resourceVersion.
    pub(crate) fn tick(&mut self) -> u64 {
        self.moves();
        self.version += 1;
        self.version
    }

    /// The newest resourceVersion: it moves with every write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Something becomes different, so that every turn has to be played anew.
    pub(crate) fn moves(&mut self) {
        self.moved += 1;
    }

    /// How many changes there were of anything.
    pub(crate) fn moved(&self) -> u64 {
        self.moved
    }

    /// Goes on from this resourceVersion.
    pub(crate) fn begin_at(&mut self, version: u64) {
        self.version = version;
    }

    /// A change that the API server has accepted.
    pub(crate) fn commit(&mut self, change: Change) {
        self.moves();
        self.truth.apply(&change);
        self.logs[change.stream() as usize].push(change);
    }

    /// Changes a rollout that is still at this version; its new version.
    pub(crate) fn change_rollout(&mut self, id: Id, version: Option<&str>, change: OfRollout) -> Option<u64> {
        let there = self.truth.rollout(id)?;
        if version.is_some_and(|version| there.metadata.resource_version.as_deref() != Some(version)) {
            return None;
        }
        let version = self.tick();
        self.commit(Change::OfRollout(id, version, change));
        Some(version)
    }

    /// Changes the runtime's status, where there is a runtime.
    pub(crate) fn runtime_status(&mut self, status: Option<ClusterRuntimeStatus>) {
        let version = self.tick();
        if self.truth.has_runtime {
            let ClusterRuntime { metadata, spec, .. } = self.truth.world.runtime.as_ref();
            let mut runtime = ClusterRuntime { metadata: metadata.clone(), spec: spec.clone(), status };
            runtime.metadata.resource_version = Some(version.to_string());
            self.commit(Change::Runtime(Arc::new(runtime)));
        }
    }

    /// Changes an Application, whatever its version.
    pub(crate) fn change_application(&mut self, name: &str, change: impl FnOnce(&mut Application, &mut Ghost)) -> bool {
        let Some((application, ghost)) = self.truth.application(name) else { return false };
        let (mut application, mut ghost) = (application.clone(), ghost.clone());
        change(&mut application, &mut ghost);
        application.metadata.resource_version = Some(self.tick().to_string());
        self.commit(Change::Application(Arc::new(application), Arc::new(ghost)));
        true
    }

    /// Creates an Application that is not there.
    pub(crate) fn create_application(&mut self, mut application: Application, ghost: Ghost) {
        let version = self.tick();
        application.metadata.uid = Some(format!("uid-{version}"));
        application.metadata.resource_version = Some(version.to_string());
        self.commit(Change::Application(Arc::new(application), Arc::new(ghost)));
    }

    /// Creates an Event unless one of its name is there; whether it did.
    pub(crate) fn announce(&mut self, note: &EventNote) -> bool {
        let now = self.now;
        self.events.retain(|(_, at)| now < *at + EVENT_LIFE);
        if self.events.iter().any(|(name, _)| *name == note.name) {
            return false;
        }
        self.say(|| format!("Event {}: {}", note.reason, note.note));
        self.events.push((note.name.clone(), now));
        self.moves();
        true
    }

    /// Lets up to `count` events of one watch arrive at a replica.
    pub(crate) fn deliver(&mut self, operator: usize, stream: Stream, count: usize) {
        let replica = &mut self.operators[operator];
        let Some(view) = &mut replica.view else { return };
        let log = &self.logs[stream as usize];
        let read = &mut replica.read[stream as usize];
        for change in log[*read..].iter().take(count) {
            view.apply(change);
            *read += 1;
            replica.known += 1;
            self.moved += 1;
        }
        if stream == Stream::Documents && !replica.knows_resolution {
            replica.knows_resolution = true;
            replica.known += 1;
            self.moved += 1;
            view.world.resolution = self.truth.world.resolution.clone();
        }
    }

    /// Lets everything arrive.
    pub(crate) fn deliver_all(&mut self, operator: usize) {
        for stream in Stream::ALL {
            self.deliver(operator, stream, usize::MAX);
        }
    }

    /// Whether something is on its way to this replica.
    pub(crate) fn is_behind(&self, operator: usize) -> bool {
        let replica = &self.operators[operator];
        !replica.knows_resolution || self.logs.iter().zip(replica.read).any(|(log, read)| read < log.len())
    }

    /// A replica's watches list everything anew.
    pub(crate) fn relist(&mut self, operator: usize) {
        self.moves();
        let lengths = [0, 1, 2, 3].map(|stream: usize| self.logs[stream].len());
        let knows = self.operators[operator].knows_resolution;
        let mut view = self.truth.clone();
        if !knows {
            view.world.resolution = Resolution { state: ResolutionState::Unknown, ..Resolution::default() };
        }
        let replica = &mut self.operators[operator];
        replica.view = Some(Box::new(view));
        replica.read = lengths;
        replica.known += 1;
    }

    /// A replica's process starts: it knows what its lists say, and nothing of resolution yet.
    pub(crate) fn restart(&mut self, operator: usize) {
        let replica = &mut self.operators[operator];
        replica.is_dead = false;
        replica.pending = None;
        replica.knows_resolution = false;
        self.relist(operator);
    }

    /// What a replica's clock shows.
    pub(crate) fn clock(&self, operator: usize) -> Timestamp {
        self.now + SignedDuration::from_secs(self.operators[operator].ahead)
    }

    /// The unfinished rollout of the present runtime; of several the oldest.
    pub(crate) fn unfinished(&self) -> Option<Id> {
        self.truth.ids().find(|id| self.truth.is_own(*id) && self.truth.is_unfinished(*id))
    }

    /// Whether the approval of this rollout is for it.
    pub(crate) fn is_bound(&self, id: Id) -> bool {
        self.bound.iter().rev().find(|(other, _)| *other == id).is_some_and(|(_, bound)| *bound)
    }
}
