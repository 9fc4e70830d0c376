//! Why a command of the workspace failed.

use std::error::Error;
use std::path::{Path, PathBuf};

use aicr_lab::LabError;
use aicr_lab::command::CommandError;
use aicr_lab::parts::PartsError;
use aicr_lab::preflight::PreflightError;
use thiserror::Error;

/// A command of the workspace that failed.
#[derive(Debug, Error)]
pub(crate) enum XtaskError {
    #[error("watch for Ctrl-C")]
    Handler(#[source] ctrlc::Error),
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Parts(#[from] PartsError),
    #[error("{act}")]
    Command {
        act: &'static str,
        #[source]
        source: CommandError,
    },
    #[error("{} is missing", path.display())]
    Missing { path: PathBuf },
    #[error("write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "{} line {line} is not what the chart renders (UPDATE_GOLDEN=1 cargo xtask chart writes it)\n  file:  {agreed}\n  chart: {rendered}",
        path.display()
    )]
    Differs { path: PathBuf, line: usize, agreed: String, rendered: String },
    #[error("with {values} the chart should be refused with {words:?}, and was not: {said}")]
    Refusal { values: String, words: String, said: String },
    #[error("there is no AICR output in that folder")]
    NothingToCompare,
    #[error("{wrong} findings are wrong")]
    Compared { wrong: usize },
    #[error(transparent)]
    Wait(#[from] aicr_lab::wait::WaitError),
    #[error("failed: {}", stages.join(", "))]
    Stages { stages: Vec<String> },
}

impl XtaskError {
    pub(crate) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Read { path, source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Write { path, source }
    }

    pub(crate) fn command(act: &'static str) -> impl FnOnce(CommandError) -> Self {
        move |source| Self::Command { act, source }
    }
}

/// Prints the error and its causes, one a line.
pub(crate) fn tell(error: &dyn Error) {
    eprintln!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
}
