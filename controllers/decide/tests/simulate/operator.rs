//! One replica of the operator at work: it looks, decides, and carries out as the hands of the product do.

use std::sync::Arc;

use aicr_crds::{RuntimeRollout, keys::annotation, reason::Outcome, rollout::Phase};
use aicr_decide::{
    facts::Refusal,
    report,
    rollout::{Position, Verdict, Why, Write},
    runtime,
    seen::{EngineState, ResolutionState, RolloutSeen, RuntimeSeen, TargetSeen, outcome},
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    cluster::{Answer, Cluster, Pending},
    event::{Stream, Turn},
    hands::Landed,
    live,
    look::Look,
    mutants::Mutant,
    promises,
    store::{Id, OfRollout, Store},
};

/// An end that is younger may still be told by whoever wrote it.
const UNTOLD_AFTER: SignedDuration = SignedDuration::from_mins(2);
/// Events live an hour: an older end that has lost its status was told.
const TOLD_AFTER: SignedDuration = SignedDuration::from_mins(55);
/// How long a call may take.
const CALL_LIMIT: SignedDuration = SignedDuration::from_secs(30);

impl Cluster {
    /// A turn over all rollouts that are open.
    pub(crate) fn rollouts_turn(&mut self, operator: usize, turn: Turn) {
        if !self.is_at_work(operator) || self.rests_still(operator, self.operators[operator].quiet.rollouts) {
            return;
        }
        let Some(view) = self.operators[operator].view.take() else { return };
        let (before, mut look) = (self.version(), self.look(turn));
        let open: Vec<Id> = view.ids().filter(|id| view.rollout(*id).is_some_and(is_open)).collect();
        for id in open {
            if !self.one_rollout(operator, &view, id, turn, &mut look) {
                break;
            }
        }
        self.operators[operator].view = Some(view);
        self.operators[operator].quiet.rollouts = self.rest(operator, &look);
        self.reads_back(operator);
        self.operators[operator].idle = (self.version() == before).then_some(before);
    }

    /// What has to be seen of its own writes before it goes on is seen.
    fn reads_back(&mut self, operator: usize) {
        if std::mem::take(&mut self.operators[operator].reads_back) {
            self.deliver(operator, Stream::Applications, usize::MAX);
            self.deliver(operator, Stream::Rollouts, usize::MAX);
        }
    }

    /// Whether the process is there and not in the middle of something; one that died starts anew.
    fn is_at_work(&mut self, operator: usize) -> bool {
        if self.operators[operator].is_dead {
            self.restart(operator);
        }
        self.operators[operator].pending.is_none()
    }

    /// Whether the turn goes on.
    fn one_rollout(&mut self, operator: usize, view: &Store, id: Id, turn: Turn, look: &mut Look) -> bool {
        let Some(rollout) = view.rollout(id) else { return true };
        let mut seen = if view.is_own(id) { view.world.around(rollout) } else { without_runtime(view) };
        let position = view.position(id, rollout);
        let release = live::looks(view, &position, &mut seen);
        let now = self.clock(operator);
        let verdict = self.mutant.decide(&position, &seen, now);
        self.say(|| format!("{}: {}", rollout.metadata.name.as_deref().unwrap_or_default(), word(&verdict)));
        let context = promises::Context { view, id, rollout, position: &position, seen: &seen, now, cluster: self };
        let broken = promises::decided(&context, &verdict);
        self.check(broken);
        let writes = !matches!(verdict, Verdict::Wait(..));
        if turn == Turn::Hold && writes {
            let (rollout, at) = (rollout.clone(), self.now);
            self.operators[operator].pending = Some(Box::new(Pending { id, rollout, seen, verdict, at }));
            self.moves();
            return false;
        }
        let lives = self.carry_out(operator, id, &position, &seen, &verdict, look);
        if lives && let Some(release) = release {
            self.has_looked_at(id, view, release);
        }
        lives
    }

    /// What was on its way lands, where the lease is still held and the call has not timed out.
    pub(crate) fn land(&mut self, operator: usize) {
        let Some(pending) = self.operators[operator].pending.take() else { return };
        let Pending { id, rollout, seen, verdict, at } = *pending;
        if operator == self.leader && self.now.duration_since(at) < CALL_LIMIT && self.now >= at {
            let position = Position::find(&rollout, &seen.applications);
            self.carry_out(operator, id, &position, &seen, &verdict, &mut self.look(Turn::Whole));
            self.reads_back(operator);
        }
    }

    fn carry_out(
        &mut self,
        operator: usize,
        id: Id,
        position: &Position<'_>,
        seen: &RolloutSeen,
        verdict: &Verdict,
        look: &mut Look,
    ) -> bool {
        let (rollout, now) = (position.rollout, self.clock(operator));
        let version = rollout.metadata.resource_version.clone();
        let landed = match verdict {
            Verdict::Wait(Why::Ended(outcome), _) => {
                if !self.tell_late(id, rollout, *outcome, now, look) {
                    return true;
                }
                Landed::Done(version)
            }
            Verdict::Wait(_, until) => {
                look.again(*until);
                Landed::Done(version)
            }
            Verdict::Do(write, _) => self.write(operator, id, position, write, look),
            Verdict::End(outcome, why) => self.end(operator, id, rollout, (*outcome, why), now, look),
        };
        let on = match landed {
            Landed::Done(on) => on,
            Landed::Stale => return true,
            Landed::Died => return self.dies(operator),
        };
        let Some(status) = report::rollout_status(position, seen, verdict, now) else { return true };
        let broken = promises::says(verdict, &status);
        self.check(broken);
        if rollout.status.as_ref() == Some(&status) {
            return true;
        }
        if !look.burns() {
            return self.dies(operator);
        }
        let on = self.mutant.status_version(on);
        let written = self.change_rollout(id, on.as_deref(), OfRollout::Status(Some(Box::new(status))));
        if written.is_some() && matches!(verdict, Verdict::Do(Write::Begin { .. }, _)) {
            let broken = promises::begun(self, id);
            self.check(broken);
        }
        true
    }

    fn dies(&mut self, operator: usize) -> bool {
        self.say(|| "the process dies");
        self.operators[operator].is_dead = true;
        false
    }

    fn end(
        &mut self,
        operator: usize,
        id: Id,
        rollout: &RuntimeRollout,
        (outcome, why): (Outcome, &Why),
        now: Timestamp,
        look: &mut Look,
    ) -> Landed {
        if !look.burns() {
            return Landed::Died;
        }
        let version = self.mutant.end_version(rollout.metadata.resource_version.as_deref());
        let Some(on) = self.change_rollout(id, version, OfRollout::Ended(outcome, now)) else { return Landed::Stale };
        self.outcomes.push((id, outcome));
        self.operators[operator].reads_back |= self.mutant != Mutant::EndNotReadBack;
        if operator != self.leader {
            // What it had sent when its lease was over has landed before the other one lists: its fence lets nothing out later.
            self.deliver(self.leader, Stream::Rollouts, usize::MAX);
        }
        let broken = promises::ended_once(self, id);
        self.check(broken);
        if !look.burns() {
            return Landed::Died;
        }
        let note = report::outcome_event(rollout, outcome, &why.to_string());
        if self.announce(&note) {
            self.announced.push((id, outcome));
            self.counted.push((id, outcome));
        }
        Landed::Done(Some(on.to_string()))
    }

    /// An ended rollout whose status does not say so; whether the status may be written.
    fn tell_late(
        &mut self,
        id: Id,
        rollout: &RuntimeRollout,
        outcome: Outcome,
        now: Timestamp,
        look: &mut Look,
    ) -> bool {
        let finished = rollout.metadata.annotations.as_ref().and_then(|all| all.get(annotation::FINISHED_AT));
        let finished: Timestamp = finished.and_then(|text| text.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH);
        if now < finished + UNTOLD_AFTER {
            look.again(Some(finished + UNTOLD_AFTER));
            return false;
        }
        if now < finished + TOLD_AFTER {
            let stored = rollout.status.as_ref().and_then(|status| status.message.clone());
            let note = report::outcome_event(rollout, outcome, &stored.unwrap_or_else(|| outcome.to_string()));
            if self.announce(&note) {
                self.announced.push((id, outcome));
                self.counted.push((id, outcome));
            }
        } else {
            self.too_late.push(id);
        }
        true
    }

    /// A turn over the runtime.
    pub(crate) fn runtime_turn(&mut self, operator: usize, turn: Turn) {
        if !self.is_at_work(operator) || self.rests_still(operator, self.operators[operator].quiet.runtime) {
            return;
        }
        let Some(mut view) = self.operators[operator].view.take() else { return };
        let mut look = self.look(turn);
        if view.has_runtime && !self.runtime(operator, &view, &mut look) {
            self.dies(operator);
        }
        self.remembers(operator, &mut view);
        self.operators[operator].view = Some(view);
        self.operators[operator].quiet.runtime = self.rest(operator, &look);
    }

    /// What the API server said; only this process knows it.
    fn remembers(&mut self, operator: usize, view: &mut Store) {
        let at = self.clock(operator);
        let answers = std::mem::take(&mut self.operators[operator].answers);
        if answers.is_empty() {
            return;
        }
        // An answer is something new, which is looked at again.
        self.operators[operator].known += 1;
        self.tick();
        let refusals = &mut Arc::make_mut(&mut view.world.facts).refusals;
        for answer in answers {
            let refusal = Refusal { why: "admission denied it".to_owned(), at };
            match answer {
                Answer::AutomationRefused(name) => drop(refusals.automation.insert(name, refusal)),
                Answer::AutomationTaken(name) => drop(refusals.automation.remove(&name)),
                Answer::OrphaningRefused(name) => drop(refusals.orphaning.insert(name, refusal)),
            }
        }
    }

    /// Whether the process lives.
    fn runtime(&mut self, operator: usize, view: &Store, look: &mut Look) -> bool {
        let now = self.clock(operator);
        let mut verdict = runtime::next(&view.world, now);
        if let runtime::Verdict::Do(runtime::Write::CreateRollout(rollout), _) = &mut verdict {
            self.mutant.created(rollout);
        }
        let broken = promises::runtime_decided(view, &self.family, &verdict, now);
        self.check(broken);
        match &verdict {
            runtime::Verdict::Wait(_, until) => look.again(*until),
            runtime::Verdict::Do(write, _) if look.burns() => self.runtime_write(operator, view, write),
            runtime::Verdict::Do(..) => return false,
        }
        if !self.reports {
            return true;
        }
        let status = report::runtime_status(&view.world, &verdict, now);
        let broken = promises::conditions(&view.world, &verdict, &status);
        self.check(broken);
        let there = &self.truth.world.runtime;
        let current = there.metadata.resource_version == view.world.runtime.metadata.resource_version
            && self.truth.has_runtime
            && there.metadata.uid == view.world.runtime.metadata.uid;
        if view.world.runtime.status.as_ref() == Some(&status) || !current {
            return true;
        }
        if !look.burns() {
            return false;
        }
        let note = report::stalled_event(&view.world.runtime, &status.conditions);
        self.runtime_status(Some(status));
        if let Some(note) = note {
            self.announce(&note);
        }
        true
    }
}

/// Whether there is anything left to do: it is unfinished, or its end is not in its status.
fn is_open(rollout: &RuntimeRollout) -> bool {
    let shown = rollout.status.as_ref().and_then(|status| status.phase);
    outcome(rollout).is_none_or(|outcome| shown != Some(Phase::from(outcome)))
}

/// What is seen around a rollout whose runtime is gone.
fn without_runtime(view: &Store) -> RolloutSeen {
    RolloutSeen {
        settings: Arc::clone(&view.world.settings),
        runtime: RuntimeSeen::Gone,
        engine: EngineState::Available,
        resolution: ResolutionState::Unknown,
        target: TargetSeen::None,
        applications: Arc::clone(&view.world.applications),
        unreadable: None,
        unfinished: Vec::new(),
        facts: Arc::default(),
    }
}

/// A verdict in one line.
pub(crate) fn word(verdict: &Verdict) -> String {
    let what = match verdict {
        Verdict::Do(write, _) => crate::hands::word(write),
        Verdict::Wait(_, Some(at)) => format!("waits until {at}"),
        Verdict::Wait(_, None) => "waits".to_owned(),
        Verdict::End(outcome, _) => format!("ends {outcome}"),
    };
    format!("{what}: {}", verdict.why())
}

/// What a verdict would be without any status.
pub(crate) fn forgetful(mutant: Mutant, position: &Position<'_>, seen: &RolloutSeen, now: Timestamp) -> Verdict {
    mutant.decide(&position.clone().without_status(), seen, now)
}
