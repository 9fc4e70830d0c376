//! One look of a replica, and when it looks again: something that it knows has become different, or the time has come that it
//! asked for. As in the product nothing else makes it look, so that a wait for too late a time is not found out by chance.

use jiff::Timestamp;

use crate::{cluster::Cluster, event::Turn};

/// One look: how many writes are left until the process dies, and what came of it.
pub(crate) struct Look {
    left: Option<u8>,
    /// Whether a write was asked for.
    has_written: bool,
    /// How many changes there were of anything when it began.
    moved: u64,
    /// The earliest time that was asked for.
    until: Option<Timestamp>,
}

impl Look {
    /// Whether one more write is made.
    pub(crate) fn burns(&mut self) -> bool {
        self.has_written = true;
        match &mut self.left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Another look is asked for, at this time.
    pub(crate) fn again(&mut self, at: Option<Timestamp>) {
        self.until = self.until.into_iter().chain(at).min();
    }
}

/// A replica's last looks, where nothing came of them.
#[derive(Clone, Default)]
pub(crate) struct Quiet {
    /// At its rollouts.
    pub(crate) rollouts: Option<Rest>,
    /// At the runtime.
    pub(crate) runtime: Option<Rest>,
}

/// Why there is no reason to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// How many changes the replica knew.
    known: u64,
    /// When it looked, by its own clock.
    at: Timestamp,
    /// When it looks again, by the same, whatever happens.
    until: Option<Timestamp>,
}

impl Cluster {
    /// A look begins.
    pub(crate) fn look(&self, turn: Turn) -> Look {
        let left = match turn {
            Turn::Whole | Turn::Hold => None,
            Turn::Crash(writes) => Some(writes),
        };
        Look { left, has_written: false, moved: self.moved(), until: None }
    }

    /// What a look has left behind, where nothing came of it.
    pub(crate) fn rest(&self, operator: usize, look: &Look) -> Option<Rest> {
        let rest = Rest { known: self.operators[operator].known, at: self.clock(operator), until: look.until };
        (!look.has_written && self.moved() == look.moved).then_some(rest)
    }

    /// Whether there is no reason to look yet.
    pub(crate) fn rests_still(&self, operator: usize, rest: Option<Rest>) -> bool {
        let (now, known) = (self.clock(operator), self.operators[operator].known);
        let holds = |rest: Rest| rest.known == known && rest.at <= now && rest.until.is_none_or(|until| now < until);
        rest.is_some_and(holds)
    }

    /// Whether the replica at work has looked at its rollouts since anything changed, and none of them waits for this time.
    pub(crate) fn has_looked(&self) -> bool {
        let replica = &self.operators[self.leader];
        replica.idle == Some(self.version()) && self.rests_still(self.leader, replica.quiet.rollouts)
    }
}
