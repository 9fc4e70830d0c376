//! What a fresh machine needs before anything else: packages, the musl target, the real parts.

use std::process::Command;
use std::time::Instant;

use aicr_lab::parts::{self, Parts};
use aicr_lab::{command, preflight};

use crate::error::XtaskError;

/// The target of all that is shipped or tested.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-musl";

/// Installs and builds what is missing; seconds when nothing is.
pub(crate) fn parts() -> Result<Parts, XtaskError> {
    let start = Instant::now();
    preflight::machine()?;
    let parts = Parts::read()?;
    preflight::disk(&parts)?;
    parts::install_missing(&parts)?;
    add_target()?;
    let built = parts::build_missing(&parts)?;
    eprintln!("parts: ready, {built} built ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(parts)
}

/// Prints each part, its version, and where it lies or will lie.
pub(crate) fn list_parts() -> Result<(), XtaskError> {
    for part in Parts::read()?.all() {
        let built = if part.is_built() { "built" } else { "missing" };
        eprintln!("{:<24} {:<8} {built:<8} {}", part.name, part.version, part.binary().display());
    }
    Ok(())
}

/// rustup installs nothing by itself where automatic installation is off, so it is asked.
fn add_target() -> Result<(), XtaskError> {
    let installed = command::output(Command::new("rustup").args(["target", "list", "--installed"]));
    let installed = installed.map_err(XtaskError::command("ask rustup for its targets"))?;
    if installed.lines().any(|target| target == TARGET) {
        return Ok(());
    }
    let added = command::output(Command::new("rustup").args(["target", "add", TARGET]));
    added.map(drop).map_err(XtaskError::command("add the musl target"))
}
