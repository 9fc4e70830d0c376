//! The images of the operator and of the stand-in for AICR, made without a daemon.

use std::process::Command;

use aicr_lab::{Entry, Image, Lab, command};

use crate::binaries;
use crate::error::XtaskError;

/// Versions of the stand-in that tests use: one binary, told by its environment which version it plays.
const STAND_IN_VERSIONS: [&str; 4] = ["v1.0.0", "v1.1.2", "v1.1.3", "v1.1.4"];
/// Where the stand-in's charts are pushed and read from.
pub(crate) const CHARTS: &str = "10.245.0.1:5000/upstream";

/// References by digest of what was pushed.
#[derive(Debug)]
pub(crate) struct Pushed {
    pub(crate) operator: String,
    /// Version and reference of each stand-in.
    pub(crate) aicr: Vec<(String, String)>,
}

/// Builds the binaries, pushes images and the stand-in's charts, and prints the references.
pub(crate) fn push_all(lab: &Lab) -> Result<Pushed, XtaskError> {
    binaries::build()?;
    let operator = lab.image_from_binary(
        &binaries::binary("aicr-operator")?,
        concat!("aicr-operator:", env!("CARGO_PKG_VERSION")),
        &[],
    )?;
    eprintln!("images: {operator}");
    let mut aicr = Vec::new();
    for version in STAND_IN_VERSIONS {
        let reference = lab.push_image(&stand_in(version)?)?;
        eprintln!("images: {reference} ({version})");
        aicr.push((version.to_owned(), reference));
    }
    push_charts(lab)?;
    Ok(Pushed { operator, aicr })
}

fn stand_in(version: &str) -> Result<Image, XtaskError> {
    let binary = binaries::binary("aicr")?;
    let image = Image::new(&format!("aicr:{version}"));
    let image = image.entry("/usr/bin/aicr", Entry::Program(binary)).entrypoint(&["/usr/bin/aicr"]);
    Ok(image.env("AICR_STANDIN_VERSION", version).env("AICR_STANDIN_CHARTS", CHARTS))
}

fn push_charts(lab: &Lab) -> Result<(), XtaskError> {
    let mut charts: Command = lab.in_ns(binaries::binary("aicr-standin-charts")?);
    charts.args(["--push", CHARTS, "--plain-http"]);
    command::output(&mut charts).map(drop).map_err(XtaskError::command("push the stand-in's charts"))
}
