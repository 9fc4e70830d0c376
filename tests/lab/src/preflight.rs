//! Whether this machine is fit: said before anything is changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use crate::addresses::NETWORK_NAMESPACE;
use crate::command;
use crate::error::LabError;
use crate::layout::{self, Layout};
use crate::network;
use crate::parts::{self, Parts};
use crate::state::State;

/// Free bytes needed when the parts must be built: Go's and Cargo's caches, build folders, images.
const DISK_COLD: u64 = 25 << 30;
/// Free bytes needed when they are cached.
const DISK_WARM: u64 = 8 << 30;

/// What stands in the way.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PreflightError {
    /// The caller is not root.
    #[error("this needs root: it makes network namespaces, mounts and cgroups; run it with sudo or as root")]
    NotRoot,
    /// A program that we cannot install is not there.
    #[error("{program} is not on the PATH: {advice}")]
    NoProgram {
        /// The program.
        program: String,
        /// What to do.
        advice: String,
    },
    /// Debian packages are missing.
    #[error("not installed: {}; run `cargo xtask parts`", packages.join(" "))]
    NoPackages {
        /// The packages.
        packages: Vec<String>,
    },
    /// Not enough disk.
    #[error("{} GB free at {}, {} GB needed; free some, or point $AICR_PARTS_CACHE elsewhere", free >> 30, path.display(), needed >> 30)]
    Disk {
        /// Where.
        path: PathBuf,
        /// Bytes there are.
        free: u64,
        /// Bytes needed.
        needed: u64,
    },
    /// Another lab is alive.
    #[error("another lab is up ({whose}); `cargo xtask down` removes it")]
    AlreadyUp {
        /// Whose it is.
        whose: String,
    },
    /// The namespace is there and we do not know whose it is.
    #[error(
        "the network namespace {NETWORK_NAMESPACE} exists, but {} says nothing of it: another lab with another \
         $AICR_LAB_DIR, or a leftover; `cargo xtask down` removes it",
        state.display()
    )]
    NameTaken {
        /// The state file that is not there.
        state: PathBuf,
    },
    /// The port asked for is taken.
    #[error("port {port} of 127.0.0.1 ($AICR_LAB_PORT) is taken; choose another or leave it unset")]
    PortTaken {
        /// The port.
        port: String,
    },
    /// The lab's folder would be hidden by the node's own mounts.
    #[error("the lab's folder {} lies under {hidden}, which the node covers; set $AICR_LAB_DIR elsewhere", path.display())]
    Hidden {
        /// The folder.
        path: PathBuf,
        /// The covered folder.
        hidden: String,
    },
}

/// Root, and what only a person can install: apt, git, Go, rustup.
///
/// # Errors
/// The first thing that is missing.
pub fn machine() -> Result<(), PreflightError> {
    root()?;
    let programs = [
        ("apt-get", "this works on Debian 12"),
        ("git", "install git"),
        ("go", "install Go 1.26 or later, see https://go.dev/doc/install"),
        ("rustup", "install Rust with rustup, see https://rustup.rs"),
    ];
    for (program, advice) in programs {
        if !is_on_path(program) {
            return Err(PreflightError::NoProgram { program: program.to_owned(), advice: advice.to_owned() });
        }
    }
    Ok(())
}

/// Whether the caller is root.
///
/// # Errors
/// When it is not.
pub fn root() -> Result<(), PreflightError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(PreflightError::NotRoot) }
}

/// Disk for what is still to be built: 25 GB when parts are missing, 8 GB when all are cached.
///
/// # Errors
/// When there is less.
pub fn disk(parts: &Parts) -> Result<(), PreflightError> {
    let needed = if parts.missing().is_empty() { DISK_WARM } else { DISK_COLD };
    for path in [layout::parts_cache(), layout::workspace()] {
        let Some(there) = path.ancestors().find(|path| path.exists()) else { continue };
        let Ok(disk) = rustix::fs::statvfs(there) else { continue };
        let free = disk.f_bavail * disk.f_frsize;
        if free < needed {
            return Err(PreflightError::Disk { path, free, needed });
        }
    }
    Ok(())
}

/// That no lab is alive.
///
/// # Errors
/// When one is, or the namespace's name is taken.
pub fn no_lab() -> Result<(), LabError> {
    no_live_lab(&Layout::of_this_machine())
}

pub(crate) fn no_live_lab(layout: &Layout) -> Result<(), LabError> {
    let path = layout.state();
    match State::read(&path)? {
        Some(state) if state.is_live() => Err(PreflightError::AlreadyUp { whose: whose(&state) }.into()),
        None if network::exists() => Err(PreflightError::NameTaken { state: path }.into()),
        Some(_) | None => Ok(()),
    }
}

fn whose(state: &State) -> String {
    match &state.owner {
        Some(owner) => format!("of process {}: {}", owner.pid, owner.command()),
        None => "started by `cargo xtask up` or `demo`".to_owned(),
    }
}

/// What must be so before a lab is brought up.
pub(crate) fn for_up(layout: &Layout, parts: &Parts) -> Result<(), LabError> {
    root()?;
    not_hidden(layout.root())?;
    let packages = parts::missing_packages(parts)?;
    if !packages.is_empty() {
        return Err(PreflightError::NoPackages { packages }.into());
    }
    Ok(())
}

fn not_hidden(path: &Path) -> Result<(), PreflightError> {
    let hidden =
        ["/run", "/var/run", "/var/log", "/var/lib", "/opt"].into_iter().find(|hidden| path.starts_with(hidden));
    match hidden {
        Some(hidden) => Err(PreflightError::Hidden { path: path.to_path_buf(), hidden: hidden.to_owned() }),
        None => Ok(()),
    }
}

fn is_on_path(program: &str) -> bool {
    command::output(Command::new("sh").args(["-c", "command -v \"$0\"", program])).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_under_a_folder_that_the_node_covers_is_refused() {
        let text = not_hidden(Path::new("/var/lib/lab")).unwrap_err().to_string();
        assert!(text.contains("/var/lib/lab") && text.contains("$AICR_LAB_DIR"), "{text}");
        assert_eq!(not_hidden(Path::new("/var/library/lab")), Ok(()));
    }

    #[test]
    fn a_program_is_found_only_if_it_is_there() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("no-such-program-here"));
    }

    #[test]
    fn too_little_disk_says_how_much_is_needed_where() {
        let error = PreflightError::Disk { path: "/cache".into(), free: 3 << 30, needed: DISK_COLD };
        assert!(error.to_string().starts_with("3 GB free at /cache, 25 GB needed"));
    }
}
