//! Why a lab could not do what was asked.

use std::path::PathBuf;

use thiserror::Error;

use crate::command::CommandError;
use crate::files::FileError;
use crate::parts::PartsError;
use crate::preflight::PreflightError;
use crate::wait::WaitError;

/// An act of the lab that failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// The machine is not fit, or another lab is alive.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// A part is not there or could not be built.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// A command failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A state did not come.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The state file is not one of ours.
    #[error("read the lab's state {}; `cargo xtask down` removes the lab", path.display())]
    State {
        /// The state file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A part could not be started.
    #[error("start {name}")]
    Start {
        /// The part.
        name: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// No part of that name was started in this lab.
    #[error("the lab has no part {name}; it has: {known}")]
    NoSuchPart {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A file or image that should be there is not.
    #[error("{} is missing", path.display())]
    Missing {
        /// What.
        path: PathBuf,
    },
    /// The folder of the binaries is not known.
    #[error("AICR_BIN_DIR is not set; run the tests with `cargo xtask test`")]
    NoBinaries,
    /// There is no lab to attach to.
    #[error("no lab is up; start one with `cargo xtask up`")]
    NoLab,
    /// The lab's folder is held by another process that brings a lab up or down.
    #[error("another process is bringing a lab up or down right now")]
    Busy,
    /// A person asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// Something of the lab could not be ended.
    #[error("still there after the lab was taken down: {what}")]
    Left {
        /// What is left.
        what: String,
    },
    /// An image could not be packed.
    #[error("pack the image {name}")]
    Pack {
        /// The image.
        name: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}
