//! From nothing to a rollout on real parts, step by step.

mod rollout;

use std::time::Instant;

use aicr_lab::product::Release;
use aicr_lab::{Lab, Options, preflight};
use serde_json::json;

use crate::error::XtaskError;
use crate::{binaries, setup};

/// Who approves the demo's rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approval {
    /// The demo, as the sample approver.
    Given,
    /// The person at the terminal.
    LeftToThePerson,
}

/// Says how long each part took.
struct Clock {
    start: Instant,
    lap: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { start: Instant::now(), lap: Instant::now() }
    }

    fn lap(&mut self, what: &str) {
        let (lap, all) = (self.lap.elapsed().as_secs(), self.start.elapsed().as_secs());
        eprintln!("demo: {what}: {lap} s ({all} s in all)");
        self.lap = Instant::now();
    }
}

/// Brings everything up, installs the operator, applies the sample and either follows the rollout to its end or says
/// how to go on. The cluster stays until `cargo xtask down`.
pub(crate) fn run(approval: Approval) -> Result<(), XtaskError> {
    let mut clock = Clock::start();
    preflight::no_lab()?;
    setup::parts()?;
    clock.lap("parts");
    binaries::build()?;
    clock.lap("binaries");
    let lab = Lab::up(&Options::whole().detached())?;
    clock.lap("lab");
    let product = binaries::product();
    let pushed = product.push_all(&lab)?;
    // The oldest AICR, so that there is something to upgrade to.
    product.install(&lab, &Release { pushed: &pushed, aicr: "v1.0.0", sets: &[] })?;
    clock.lap("images and chart");
    // Nothing changes meanwhile: the demo does not wait for stabilization.
    product.sample(&lab, &json!({"spec": {"rollout": {"stabilizationWindow": "0s"}}}))?;
    eprintln!("demo: sample ClusterRuntime applied");
    let name = rollout::wait_for_one(&lab)?;
    clock.lap("inputs to a rollout");
    match approval {
        Approval::LeftToThePerson => rollout::tell_how_to_go_on(&lab, &name)?,
        Approval::Given => {
            rollout::approve(&lab, &name)?;
            rollout::follow(&lab, &name)?;
            clock.lap("rollout");
            rollout::show(&lab)?;
        }
    }
    Ok(())
}
