//! A crash at one write after the other of a whole rollout: the next operator goes on from what it finds.

use std::time::Instant;

use aicr_crds::plan::Plan;

use super::plans::Which;
use super::story::End;
use super::wire::{Crash, Wire};
use super::{BOUND, Engine};

/// On which side of a write the operator dies.
///
/// For the API server, before a write is after the one before it; for the operator it is not: it may have read between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It is not sent any more.
    Before,
    /// It is answered.
    After,
}

impl Side {
    fn of(self, write: usize) -> Crash {
        match self {
            Self::Before => Crash::Before(write),
            Self::After => Crash::After(write),
        }
    }
}

impl Engine {
    /// Installs plan A as often as it has writes, and crashes at another one each time.
    pub fn crash_installs(&self, side: Side) {
        let plan = Which::A.plan();
        self.crash_at_each(side, || {
            self.clear();
            self.runtime(&[plan.clone(), Which::B.plan()]);
            plan.clone()
        });
    }

    /// The same with rollouts to and fro between the plans, each of which upgrades, verifies, installs and removes.
    pub fn crash_upgrades(&self, side: Side) {
        self.clear();
        let mut which = Which::A;
        self.runtime(&[which.plan(), which.other().plan()]);
        self.attempt(Crash::Never, &which.plan());
        self.crash_at_each(side, || {
            which = which.other();
            self.pin(which.digest());
            which.plan()
        });
    }

    /// Until a rollout has no more writes.
    fn crash_at_each(&self, side: Side, mut begin: impl FnMut() -> Plan) {
        let (started, mut wrong, mut writes) = (Instant::now(), Vec::new(), 0);
        loop {
            let crash = side.of(writes + 1);
            let target = begin();
            let before = self.before();
            let end = self.attempt(crash, &target);
            if end == End::Dead {
                self.age_untold_ends();
                assert_eq!(self.attempt(Crash::Never, &target), End::Settled, "after {crash:?}");
            }
            for complaint in self.complaints(&before, target.digest()) {
                eprintln!("{crash:?}: {complaint}");
                wrong.push(format!("{crash:?}: {complaint}"));
            }
            if end == End::Settled {
                break;
            }
            writes += 1;
        }
        eprintln!("{writes} crashes in {:.0} s", started.elapsed().as_secs_f64());
        assert!(writes > 30, "only {writes} crashes: does the operator write past the wire?");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn attempt(&self, crash: Crash, target: &Plan) -> End {
        let operator = self.operator(Wire::new(crash));
        self.run(&operator, target, BOUND)
    }
}
