//! Draws the next event: mostly what brings a rollout on, now and then trouble.

use crate::{
    chance::Chance,
    cluster::Cluster,
    event::{Act, Approval, Event, Hand, Health, Run, Stream, Turn},
    ghost::Ghost,
    themes::Theme,
};
use aicr_crds::{RuntimeRolloutSpec, application::Application};
use aicr_decide::resolve::JobPhase;

/// How a history goes.
#[derive(Clone, Debug)]
pub(crate) struct Mood {
    /// Kinds of trouble.
    pub(crate) themes: Vec<Theme>,
    /// Whether watch events arrive at once.
    pub(crate) is_prompt: bool,
    /// One event in so many is trouble.
    pub(crate) trouble: usize,
}

impl Mood {
    /// A mood by chance.
    pub(crate) fn of(chance: &mut Chance) -> Self {
        let count = chance.weighted(&[(1, 0), (3, 1), (4, 2), (2, 3)]);
        let mut themes: Vec<Theme> = (0..count).map(|_| chance.pick(&Theme::ALL)).collect();
        // A replica without lease acts on what it saw; a call of its rival that is still under way is another story.
        if themes.contains(&Theme::Leaders) {
            themes.retain(|theme| *theme != Theme::Late);
        }
        Self { themes, is_prompt: !chance.one_in(4), trouble: chance.pick(&[4, 6, 10]) }
    }

    /// What happens next.
    pub(crate) fn draw(&self, chance: &mut Chance, cluster: &Cluster) -> Event {
        if !self.themes.is_empty() && chance.one_in(self.trouble) {
            return chance.pick(&self.themes).event(chance, cluster);
        }
        if cluster.operators[cluster.leader].pending.is_some() && chance.one_in(2) {
            return Event::Land;
        }
        if !self.is_prompt && cluster.is_behind(cluster.leader) && chance.one_in(2) {
            return delivery(chance);
        }
        match cluster.unfinished() {
            Some(id) => at_work(chance, cluster, id),
            None => at_rest(chance, cluster),
        }
    }
}

fn delivery(chance: &mut Chance) -> Event {
    if chance.one_in(30) {
        return Event::Relist;
    }
    Event::Deliver(chance.pick(&Stream::ALL), chance.pick(&[1, 2, 255]))
}

fn at_work(chance: &mut Chance, cluster: &Cluster, id: usize) -> Event {
    let Some(rollout) = cluster.truth.rollout(id) else { return Event::Rollouts(Turn::Whole) };
    let spec = &rollout.spec;
    if spec.approval.is_none() && spec.needs_approval() && chance.one_in(3) {
        return Event::Hand(Hand::Approve(Approval::Whole));
    }
    if chance.one_in(12) && spec.steps.iter().any(|step| step.acknowledge) {
        return Event::Hand(Hand::Acknowledge);
    }
    if cluster.truth.world.jobs.iter().any(|job| matches!(job.phase, JobPhase::Active(_))) && chance.one_in(4) {
        return Event::Aicr(ending(chance));
    }
    // Nothing has happened since it looked: something has to.
    if cluster.has_looked() && !chance.one_in(8) {
        return unsettled(chance, cluster).unwrap_or_else(|| idle(chance, spec));
    }
    match chance.below(16) {
        0 => Event::Runtime(Turn::Whole),
        1 => Event::Later(chance.pick(&[1, 5, 15, 60, 130])),
        2..=6 => unsettled(chance, cluster).unwrap_or(Event::Rollouts(Turn::Whole)),
        _ => Event::Rollouts(Turn::Whole),
    }
}

/// Time passes, or a person does what is waited for.
fn idle(chance: &mut Chance, spec: &RuntimeRolloutSpec) -> Event {
    if spec.approval.is_none() && spec.needs_approval() && chance.one_in(2) {
        return Event::Hand(Hand::Approve(Approval::Whole));
    }
    if spec.steps.iter().any(|step| step.acknowledge) && chance.one_in(2) {
        return Event::Hand(Hand::Acknowledge);
    }
    Event::Later(chance.pick(&[5, 60, 600, 1900]))
}

/// An Application for which Argo CD has something to do.
fn unsettled(chance: &mut Chance, cluster: &Cluster) -> Option<Event> {
    let world = &cluster.truth.world;
    let open: Vec<&Application> = world
        .applications
        .iter()
        .zip(&cluster.truth.ghosts)
        .filter(|(application, ghost)| is_open(application, ghost))
        .map(|(application, _)| application.as_ref())
        .collect();
    if open.is_empty() {
        return None;
    }
    let application = open[chance.below(open.len())];
    let place = cluster.family.releases.iter().position(|name| *name == application.name())?;
    let act = if application.is_deleting() {
        Act::Gone
    } else {
        chance.weighted(&[
            (20, Act::Settle),
            (2, Act::Unhealthy(Health::Progressing)),
            (1, Act::Unhealthy(Health::Degraded)),
            (1, Act::Unhealthy(Health::Missing)),
            (2, Act::Compare),
            (2, Act::Start),
            (2, Act::Finish),
            (1, Act::Unhealthy(Health::Suspended)),
        ])
    };
    Some(Event::Argo(u8::try_from(place).ok()?, act))
}

fn is_open(application: &Application, ghost: &Ghost) -> bool {
    application.is_deleting()
        || ghost.live != Some(application.fingerprint)
        || application.operation_requested
        || application.annotations.refresh.is_some()
        || ghost.judged.as_ref().is_none_or(|judged| judged.outdated || !judged.healthy)
        || ghost.step.is_some_and(|(_, at)| ghost.judged.as_ref().is_none_or(|judged| judged.at <= at))
}

/// How a Job ends: mostly well.
fn ending(chance: &mut Chance) -> Run {
    let all = [(16, Run::Succeeds), (4, Run::FailsOnce), (1, Run::FailsForGood), (1, Run::FailsCheck)];
    chance.weighted(&all)
}

fn at_rest(chance: &mut Chance, cluster: &Cluster) -> Event {
    if !cluster.truth.world.jobs.is_empty() && chance.one_in(3) {
        return Event::Aicr(ending(chance));
    }
    match chance.below(8) {
        0 | 1 => Event::Rollouts(Turn::Whole),
        2 => Event::Later(chance.pick(&[30, 300, 700])),
        3 if chance.one_in(3) => Event::Hand(Hand::Retry),
        4 if chance.one_in(2) => {
            let plan = u8::try_from(chance.below(cluster.family.plans.len())).unwrap_or(0);
            Event::Hand(Hand::Candidate(plan))
        }
        _ => Event::Runtime(Turn::Whole),
    }
}
