//! From nothing to a rollout on real parts, step by step.

mod install;
mod rollout;

use aicr_lab::{Lab, Options, preflight};

use crate::error::XtaskError;
use crate::{images, setup};

/// Who approves the demo's rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approval {
    /// The demo, as the sample approver.
    Given,
    /// The person at the terminal.
    LeftToThePerson,
}

/// Brings everything up, installs the operator, applies the sample and either follows the rollout to its end or says
/// how to go on. The cluster stays until `cargo xtask down`.
pub(crate) fn run(approval: Approval) -> Result<(), XtaskError> {
    preflight::no_lab()?;
    setup::parts()?;
    let lab = Lab::up(&Options::whole().detached())?;
    let pushed = images::push_all(&lab)?;
    install::operator(&lab, &pushed)?;
    install::sample(&lab)?;
    let name = rollout::wait_for_one(&lab)?;
    match approval {
        Approval::LeftToThePerson => rollout::tell_how_to_go_on(&lab, &name)?,
        Approval::Given => {
            rollout::approve(&lab, &name)?;
            rollout::follow(&lab, &name)?;
        }
    }
    Ok(())
}
