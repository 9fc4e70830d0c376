//! The product on the lab: its images, its chart, its sample; the same way for the demo and for the tests.

mod images;
mod install;

use std::path::{Path, PathBuf};

pub use images::{CHARTS, Pushed};
pub use install::{FORCE_CONFLICTS, Helm, NAMESPACE, Release, this_chart};

use crate::LabError;

/// Group that the lab's values make approvers.
pub const APPROVERS: &str = "aicr-approvers";
/// A user of that group.
pub const APPROVER: &str = "alice";

/// The workspace's binaries, built already.
#[derive(Debug, Clone)]
pub struct Product {
    folder: PathBuf,
}

impl Product {
    /// The binaries of this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The binaries of the folder that `AICR_BIN_DIR` names, as `cargo xtask test` sets it.
    pub fn from_env() -> Result<Self, LabError> {
        let folder = std::env::var_os("AICR_BIN_DIR").ok_or(LabError::NoBinaries)?;
        Ok(Self::new(folder))
    }

    /// Where they lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// One of them.
    pub fn binary(&self, name: &str) -> Result<PathBuf, LabError> {
        let path = self.folder.join(name);
        if path.is_file() { Ok(path) } else { Err(LabError::Missing { path }) }
    }
}
