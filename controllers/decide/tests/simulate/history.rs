//! Histories: where one starts, what happens in it, and how it is brought to rest at its end.

use std::sync::Arc;

use aicr_crds::{ClusterRuntime, application::Application, keys::finalizer::CLEANUP, rollout::SCHEMA_VERSION};
use aicr_decide::{
    resolve::{AicrInstall, Installation},
    seen::{EngineState, Resolution, Settings, World},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    chance::Chance,
    cluster::Cluster,
    draw::Mood,
    event::{Event, Hand, Policy, Run, Turn},
    family::{Family, UID, engine},
    mutants::Mutant,
    promises::{Broken, at_rest, must, told_once},
    store::Store,
    themes::Theme,
};

/// Families that histories choose from.
const FAMILIES: u64 = 48;
/// A history goes on for so many events at least.
const SHORTEST: usize = 40;
/// With no rollout by then none will be, but for more trouble.
const STILL: usize = 60;
/// And for so many at most.
const LONGEST: usize = 200;
/// Turns after which an operator that still writes runs away.
const RUNAWAY: usize = 120;

/// Where histories start: nothing there, a plan rolled out, a rollout under way.
pub(crate) struct Starts(Vec<Cluster>);

/// One history, as it can be played again.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) seed: u64,
    pub(crate) events: Vec<Event>,
}

/// What came of a history.
pub(crate) struct Outcome {
    pub(crate) events: usize,
    pub(crate) broken: Option<Broken>,
    pub(crate) transcript: Vec<String>,
}

/// Everything about a history that its seed alone decides.
struct Setting {
    chance: Chance,
    mood: Mood,
    cluster: Cluster,
}

impl Starts {
    /// Plays families without trouble and keeps what they come by.
    pub(crate) fn new() -> Self {
        let calm = Mood { themes: Vec::new(), is_prompt: true, trouble: 1 };
        let mut all = Vec::new();
        for seed in 0..FAMILIES {
            Mutant::None.set();
            let mut chance = Chance::new(seed);
            let mut cluster = beginning(Arc::new(Family::new(seed)));
            all.push(cluster.clone());
            cluster.play_to_rest(&calm, &mut chance);
            all.push(cluster.clone());
            all.push(cluster.clone().taken_over());
            cluster.happens(Event::Hand(Hand::Candidate(1)), true);
            all.push(cluster.clone());
            for _ in 0..10 + chance.below(30) {
                let event = calm.draw(&mut chance, &cluster);
                cluster.happens(event, true);
            }
            all.push(cluster.clone());
            all.push(cluster.clone().taken_over());
            cluster.happens(Event::Hand(Hand::Revoke), true);
            for _ in 0..10 {
                let event = calm.draw(&mut chance, &cluster);
                cluster.happens(event, true);
            }
            all.push(cluster);
        }
        Self(all.into_iter().map(Cluster::into_start).collect())
    }

    /// Which of them the history of a seed starts at.
    pub(crate) fn place(&self, seed: u64) -> usize {
        Chance::new(seed).below(self.0.len())
    }

    fn setting(&self, seed: u64, mutant: Mutant) -> Setting {
        let mut chance = Chance::new(seed);
        let mut cluster = self.0[chance.below(self.0.len())].clone();
        let mood = Mood::of(&mut chance);
        cluster.mutant = mutant;
        cluster.reports = chance.one_in(8);
        cluster.forgets = chance.one_in(8);
        cluster.ends_well = chance.one_in(4);
        cluster.argo_behind = chance.weighted(&[(8, 0), (1, 2), (1, 600)]);
        // Argo CD's clock does not go back where the history begins.
        cluster.now += SignedDuration::from_secs(cluster.argo_behind);
        if mood.themes.contains(&Theme::Leaders) {
            cluster.operators[1].ahead = chance.pick(&[0, 3, -3]);
            cluster.tolerance = 3;
        }
        if mood.themes.contains(&Theme::Clock) {
            cluster.tolerance += 90;
        }
        Setting { chance, mood, cluster }
    }

    /// Plays the history of a seed.
    pub(crate) fn play(&self, seed: u64, mutant: Mutant) -> (Outcome, History) {
        let Setting { mut chance, mood, mut cluster } = self.setting(seed, mutant);
        mutant.set();
        let mut events = Vec::with_capacity(80);
        while events.len() < LONGEST && cluster.broken.is_none() && !cluster.is_over(events.len()) {
            let event = mood.draw(&mut chance, &cluster);
            events.push(event);
            cluster.happens(event, mood.is_prompt);
        }
        (cluster.outcome(events.len()), History { seed, events })
    }

    /// Plays these events of a history again, with a transcript where it is read.
    pub(crate) fn replay(&self, history: &History, mutant: Mutant, is_read: bool) -> Outcome {
        let Setting { mood, mut cluster, .. } = self.setting(history.seed, mutant);
        mutant.set();
        cluster.transcript = is_read.then(Vec::new);
        if is_read {
            let behind = cluster.argo_behind;
            cluster.say(|| format!("seed {}, {:?}, Argo CD's clock {behind} s behind", history.seed, mood));
        }
        for event in &history.events {
            if cluster.broken.is_some() {
                break;
            }
            cluster.happens(*event, mood.is_prompt);
        }
        cluster.outcome(history.events.len())
    }

    /// The same break of the same promise with as few events as can be found.
    pub(crate) fn shrink(&self, history: &History, broken: &Broken, mutant: Mutant) -> History {
        let breaks = |events: &[Event]| {
            let shorter = History { seed: history.seed, events: events.to_vec() };
            let outcome = self.replay(&shorter, mutant, false);
            outcome.broken.is_some_and(|other| other.promise == broken.promise)
        };
        let mut events = history.events.clone();
        let mut piece = events.len().div_ceil(2);
        while piece > 0 {
            let mut at = 0;
            while at < events.len() {
                let end = (at + piece).min(events.len());
                let without: Vec<Event> = events[..at].iter().chain(&events[end..]).copied().collect();
                if breaks(&without) {
                    events = without;
                } else {
                    at = end;
                }
            }
            piece /= 2;
        }
        History { seed: history.seed, events }
    }
}

impl Cluster {
    /// One event happens. Where watches are prompt, the replica at work has seen everything before it acts.
    pub(crate) fn happens(&mut self, event: Event, is_prompt: bool) {
        if self.transcript.is_some() {
            let (now, place) = (self.now, event);
            self.say(|| format!("{now} {place}"));
        }
        let leader = self.leader;
        if is_prompt && matches!(event, Event::Rollouts(_) | Event::Runtime(_)) {
            self.deliver_all(leader);
        }
        match event {
            Event::Rollouts(turn) => self.rollouts_turn(leader, turn),
            Event::Runtime(turn) => self.runtime_turn(leader, turn),
            Event::Land => self.land(leader),
            Event::Deliver(stream, count) => self.deliver(leader, stream, usize::from(count)),
            Event::Relist => self.relist(leader),
            Event::Handover => self.handover(),
            Event::Ghostly(turn) => {
                self.rollouts_turn(1 - leader, turn);
                self.runtime_turn(1 - leader, turn);
            }
            Event::Argo(release, act) => {
                // Argo CD needs its time, so that its second tells before from after.
                self.now += SignedDuration::from_secs(1);
                self.argo(release, act);
            }
            Event::Later(seconds) => {
                self.now += SignedDuration::from_secs(i64::from(seconds));
                // A clock that went back makes what is newer look older.
                self.tolerance += i64::from((-seconds).max(0));
            }
            Event::Aicr(run) => self.aicr(run),
            Event::Hand(hand) => self.hand(hand),
        }
    }

    fn handover(&mut self) {
        self.leader = 1 - self.leader;
        self.restart(self.leader);
    }

    /// A terminal outcome, after long enough.
    fn is_over(&self, events: usize) -> bool {
        let nothing_due = events >= STILL && self.unfinished().is_none();
        events >= SHORTEST && (!self.outcomes.is_empty() || nothing_due)
    }

    /// Without trouble, until nothing is left to do.
    fn play_to_rest(&mut self, calm: &Mood, chance: &mut Chance) {
        for _ in 0..2 * LONGEST {
            let event = calm.draw(chance, self);
            let idle = matches!(event, Event::Hand(Hand::Candidate(_) | Hand::Retry));
            if idle && !self.outcomes.is_empty() {
                return;
            }
            if !idle {
                self.happens(event, true);
            }
        }
    }

    /// Orphaned, and named by another runtime, which has not looked yet.
    fn taken_over(mut self) -> Self {
        self.happens(Event::Hand(Hand::DeleteRuntime(Policy::Orphan)), true);
        for _ in 0..20 {
            self.happens(Event::Rollouts(Turn::Whole), true);
            self.happens(Event::Runtime(Turn::Whole), true);
        }
        for hand in [Hand::RuntimeReborn, Hand::Adopt, Hand::Candidate(0)] {
            self.happens(Event::Hand(hand), true);
        }
        self
    }

    /// The same, as the start of another history.
    fn into_start(mut self) -> Self {
        self.deliver_all(self.leader);
        let version = self.version();
        let mut start = Self::new(Arc::clone(&self.family), self.truth.clone(), self.now);
        start.bound = self.bound;
        start.begin_at(version);
        start
    }

    /// Brings the history to rest, judges what only its end can show, and gives the result.
    fn outcome(mut self, events: usize) -> Outcome {
        let marked = |application: &Arc<Application>| application.annotations.delete_rollout.is_some();
        // Whether marks go is shown only there.
        let is_marked = self.truth.world.applications.iter().any(marked);
        if self.broken.is_none() && (self.ends_well || is_marked) {
            self.say(|| "-- to rest");
            let broken = self.rests().or_else(|| self.tells()).or_else(|| self.passes_deadlines());
            self.check(broken);
        }
        Outcome { events, broken: self.broken, transcript: self.transcript.unwrap_or_default() }
    }

    /// Promise 9: with everything seen, and nothing new, the operator comes to rest.
    fn rests(&mut self) -> Option<Broken> {
        let leader = self.leader;
        self.land(leader);
        for _ in 0..RUNAWAY {
            let before = self.version();
            self.aicr(Run::Succeeds);
            self.deliver_all(leader);
            self.rollouts_turn(leader, Turn::Whole);
            self.deliver_all(leader);
            self.runtime_turn(leader, Turn::Whole);
            if self.version() == before {
                return self.broken.take().or_else(|| at_rest(self));
            }
        }
        Some(Broken { promise: 9, how: "the operator writes without end".to_owned() })
    }

    /// Promise 7: minutes later every end is told.
    fn tells(&mut self) -> Option<Broken> {
        if self.outcomes.is_empty() {
            return None;
        }
        self.now += SignedDuration::from_mins(3);
        self.rests().or_else(|| told_once(self))
    }

    /// Promise 9: past every deadline nothing is unfinished that this operator may end.
    fn passes_deadlines(&mut self) -> Option<Broken> {
        let id = self.unfinished()?;
        self.now += SignedDuration::from_hours(24 * 8);
        self.rests().or_else(|| {
            let rollout = self.truth.rollout(id)?;
            let readable = rollout.spec.schema_version == SCHEMA_VERSION;
            must(!readable || !self.truth.is_unfinished(id), 9, || "a rollout outlives its deadline".to_owned())
        })
    }
}

/// A runtime whose first plan has just been resolved.
pub(crate) fn beginning(family: Arc<Family>) -> Cluster {
    let runtime = json!({
        "metadata": {"name": "cluster", "uid": UID, "generation": 1, "resourceVersion": "1", "finalizers": [CLEANUP]},
        "spec": {
            "intent": "training",
            "placement": {"accelerated": {"nodeSelector": {"pool": "gpu"}}},
            "validation": {"deployment": family.validation},
            "rollout": {"stabilizationWindow": family.window},
        },
    });
    let runtime: ClusterRuntime = serde_json::from_value(runtime).unwrap();
    let world = World {
        settings: Arc::new(Settings { engine: engine(), validation_installed: true }),
        install: Arc::new(install()),
        runtime: Arc::new(runtime),
        engine: EngineState::Available,
        resolution: Resolution::default(),
        plans: std::collections::BTreeMap::new(),
        unreadable: Vec::new(),
        rollouts: Vec::new(),
        rollout_names: std::collections::BTreeSet::new(),
        applications: Arc::new(Vec::new()),
        jobs: Vec::new(),
        assessments: std::collections::BTreeMap::new(),
        facts: Arc::default(),
    };
    let now: Timestamp = "2026-11-29T12:00:00Z".parse().unwrap();
    let mut cluster = Cluster::new(family, Store::new(world), now);
    cluster.happens(Event::Hand(Hand::Candidate(0)), true);
    cluster
}

fn install() -> Installation {
    Installation {
        aicr: AicrInstall { version: "v1.1.2".into(), image: "registry.test/aicr@sha256:0".into() },
        repository: "registry.test/aicr".into(),
        plain_http: vec![],
        jobs_namespace: "aicr-jobs".into(),
        discovery_namespace: "aicr-discovery".into(),
        agent_service_account: "aicr-snapshot-agent".into(),
        agent_privileged: true,
        agent_requests: None,
        agent_limits: None,
    }
}
