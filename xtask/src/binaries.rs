//! Building the workspace's own binaries, the one way that all stages share.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use aicr_lab::product::Product;
use aicr_lab::{command, workspace};

use crate::error::XtaskError;
use crate::setup::TARGET;

/// The operator's package and its binary.
const OPERATOR: &str = "aicr-operator";
/// The product's other binaries, and those that play AICR.
const OTHERS: [&str; 3] = ["aicr", "aicr-standin-charts", "kubectl-aicr"];

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
    command::shown(&mut cargo(&["build", "--workspace", "--bins"]))
        .map_err(XtaskError::command("build the binaries"))?;
    assemble()
}

/// Builds every binary and every test, with the features that all of them together ask for: built once for all stages.
pub(crate) fn build_all() -> Result<(), XtaskError> {
    let mut build = cargo(&["build", "--workspace", "--all-targets"]);
    command::shown(&mut build).map_err(XtaskError::command("build binaries and tests"))?;
    assemble()
}

/// Where the product's binaries lie: the operator as its image has it, the others as they were built.
pub(crate) fn product_folder() -> PathBuf {
    folder().join("product")
}

/// The product of these binaries.
pub(crate) fn product() -> Product {
    Product::new(product_folder())
}

/// Builds the operator as its image has it, and puts the product together.
fn assemble() -> Result<(), XtaskError> {
    let mut build = Command::new("cargo");
    build.args(["build", "--profile", "image", "--target", TARGET, "--package", OPERATOR, "--bin", OPERATOR]);
    command::shown(build.current_dir(workspace())).map_err(XtaskError::command("build the operator of the image"))?;
    let product = product_folder();
    fs::create_dir_all(&product).map_err(XtaskError::write(&product))?;
    let image = folder().with_file_name("image");
    let pieces = OTHERS.into_iter().map(|name| (folder().join(name), name)).chain([(image.join(OPERATOR), OPERATOR)]);
    for (from, name) in pieces {
        // Renamed over what is there: a program that runs is not written to.
        let (new, place) = (product.join(format!("{name}.new")), product.join(name));
        fs::copy(&from, &new).and_then(|_| fs::rename(&new, &place)).map_err(XtaskError::write(&place))?;
    }
    Ok(())
}

/// The built binary of that name.
pub(crate) fn binary(name: &str) -> Result<PathBuf, XtaskError> {
    let path = folder().join(name);
    if path.is_file() { Ok(path) } else { Err(XtaskError::Missing { path }) }
}

/// Runs the generator of CRDs and tables, built already.
pub(crate) fn crds(how: Crds) -> Result<(), XtaskError> {
    let mut crdgen = Command::new(binary("crdgen")?);
    crdgen.current_dir(workspace());
    match how {
        Crds::Write => {}
        Crds::Check => {
            crdgen.arg("--check");
        }
    }
    command::shown(&mut crdgen).map_err(XtaskError::command("run crdgen"))
}
