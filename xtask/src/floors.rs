//! The tests on real parts: on this machine, or on one of their own beside it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use aicr_lab::{Layout, command, preflight, workspace};

use crate::binaries;
use crate::error::XtaskError;
use crate::setup;

/// Where tests bring their lab up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// On this machine, with what they say shown at once.
    Here,
    /// In namespaces that nobody else sees, with what they say kept for [`tell`]: two labs at a time, each the only one of its
    /// machine. For tests without a node, since cgroups have no machine of their own.
    Apart,
}

/// Takes off what this machine's lab shows, its network namespaces and its pods' cgroups. The shell stays: the first process of a
/// machine has to reap.
const APART: &str = "grep -o ' /run/netns/[^ ]*' /proc/mounts | xargs --no-run-if-empty umount; \
    mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /sys/fs/cgroup && ip link set lo up && \"$@\"; exit $?";

/// One test at a time: there is one lab.
pub(crate) fn tests(binary: &str, place: Place) -> Result<(), XtaskError> {
    let mut cargo = binaries::cargo(&["test", "--workspace", "--test", binary, "--", "--test-threads=1"]);
    cargo.env("AICR_BIN_DIR", binaries::product_folder());
    match place {
        Place::Here => shown(&mut cargo),
        Place::Apart => {
            let outcome = apart(&cargo, binary);
            // Whoever was killed left it.
            drop(fs::remove_dir_all(lab()));
            outcome
        }
    }
}

fn shown(tests: &mut Command) -> Result<(), XtaskError> {
    command::shown(tests).map_err(XtaskError::command("tests on real parts"))
}

/// The same command on a machine of its own, which ends with it.
fn apart(tests: &Command, name: &str) -> Result<(), XtaskError> {
    let log = log(name);
    let folder = log.parent().unwrap_or(&log);
    fs::create_dir_all(folder).map_err(XtaskError::write(folder))?;
    let said = File::create(&log).map_err(XtaskError::write(&log))?;
    let errors = said.try_clone().map_err(XtaskError::write(&log))?;
    let mut machine = Command::new("unshare");
    machine.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", APART, "sh"]);
    machine.arg(tests.get_program()).args(tests.get_args()).current_dir(workspace());
    machine.envs(tests.get_envs().filter_map(|(key, value)| value.map(|value| (key, value))));
    machine.env("AICR_LAB_DIR", lab()).stdout(said).stderr(errors);
    shown(&mut machine)
}

/// What was said by the tests that ran apart.
pub(crate) fn tell() {
    let mut logs: Vec<PathBuf> = fs::read_dir(folder()).into_iter().flatten().flatten().map(|log| log.path()).collect();
    logs.sort();
    for log in logs {
        eprintln!("\n=== {}\n{}", log.display(), fs::read_to_string(&log).unwrap_or_else(|error| error.to_string()));
    }
    drop(fs::remove_dir_all(folder()));
}

fn lab() -> PathBuf {
    Layout::of_this_machine().root().with_file_name("lab-apart")
}

fn folder() -> PathBuf {
    binaries::folder().join("apart")
}

fn log(name: &str) -> PathBuf {
    folder().join(format!("{name}.log"))
}

/// Whether a soak begins with the crashes that the engine floor leaves out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Crashes {
    /// It does.
    Too,
    /// It does not.
    No,
}

/// Rollouts without end, or nearly; on no list of stages, since a soak takes hours.
pub(crate) fn soak(rollouts: u64, idle: u64, crashes: Crashes) -> Result<(), XtaskError> {
    preflight::no_lab()?;
    setup::parts()?;
    binaries::build_all()?;
    let (rollouts, idle) = (rollouts.to_string(), idle.to_string());
    let words = ["test", "--workspace", "--test", "soak", "--", "--rollouts", &rollouts, "--idle", &idle];
    let more: &[&str] = match crashes {
        Crashes::Too => &["--crashes"],
        Crashes::No => &[],
    };
    let mut cargo = binaries::cargo(&[&words, more].concat());
    cargo.env("AICR_BIN_DIR", binaries::product_folder()).env("AICR_PEER", peer()?);
    command::shown(&mut cargo).map_err(XtaskError::command("the soak"))
}

/// Builds what the operator's memory is compared with.
fn peer() -> Result<PathBuf, XtaskError> {
    let program = binaries::folder().join("aicr-peer");
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o"]).arg(&program).arg(".");
    go.current_dir(workspace().join("tests/peer"));
    command::shown(&mut go).map_err(XtaskError::command("go build"))?;
    Ok(program)
}
