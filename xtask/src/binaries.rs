//! Building the workspace's own binaries, the one way that all stages share.

use std::path::PathBuf;
use std::process::Command;

use aicr_lab::{command, workspace};

use crate::error::XtaskError;
use crate::setup::TARGET;

/// Whether generated files are written or only compared.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Crds {
    Write,
    Check,
}

/// cargo with the one profile and target of all stages, so that every stage finds what the one before has built.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    let (subcommand, rest) = words.split_at(1);
    cargo.args(subcommand).args(["--release", "--target", TARGET]).args(rest);
    cargo.current_dir(workspace()).env("CARGO_INCREMENTAL", "1");
    cargo
}

/// Where the built binaries lie.
pub(crate) fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    target.join(TARGET).join("release")
}

/// Builds every binary of the workspace.
pub(crate) fn build() -> Result<(), XtaskError> {
    command::shown(&mut cargo(&["build", "--workspace", "--bins"])).map_err(XtaskError::command("build the binaries"))
}

/// The built binary of that name.
pub(crate) fn binary(name: &str) -> Result<PathBuf, XtaskError> {
    let path = folder().join(name);
    if path.is_file() { Ok(path) } else { Err(XtaskError::Missing { path }) }
}

/// Runs the generator of CRDs and tables.
pub(crate) fn crds(how: Crds) -> Result<(), XtaskError> {
    let mut words = vec!["run", "--bin", "crdgen"];
    match how {
        Crds::Write => {}
        Crds::Check => words.extend(["--", "--check"]),
    }
    command::shown(&mut cargo(&words)).map_err(XtaskError::command("run crdgen"))
}
