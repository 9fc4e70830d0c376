//! Everything CI runs, in order of price, with the time of each stage.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use std::{fs, io};

use aicr_crds::Digest;

use aicr_lab::parts::Parts;
use aicr_lab::{command, interrupt, parts_cache, preflight, workspace};
use clap::ValueEnum;

use crate::binaries::{self, Crds};
use crate::chart;
use crate::error::{self, XtaskError};
use crate::setup;

/// How much a test needs around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Floor {
    /// Nothing: style, lints, generated files, licences, the chart, unit tests.
    Unit,
    /// A real API server.
    Api,
    /// All real parts.
    Whole,
}

/// One thing that is run.
struct Stage {
    name: &'static str,
    floor: Floor,
    run: fn(&Parts) -> Result<(), XtaskError>,
}

/// The stage that every later one needs.
const BUILD: &str = "binaries and tests";

/// The list, cheapest first. To add a stage, add a row.
const STAGES: [Stage; 13] = [
    Stage { name: "fmt", floor: Floor::Unit, run: fmt },
    Stage { name: "clippy", floor: Floor::Unit, run: clippy },
    Stage { name: "cargo-deny", floor: Floor::Unit, run: deny },
    Stage { name: "rooms", floor: Floor::Unit, run: rooms },
    Stage { name: "chart", floor: Floor::Unit, run: chart::check },
    Stage { name: BUILD, floor: Floor::Unit, run: build },
    Stage { name: "generated files", floor: Floor::Unit, run: generated },
    Stage { name: "unit tests", floor: Floor::Unit, run: unit },
    Stage { name: "registry tokens", floor: Floor::Unit, run: tokens },
    Stage { name: "simulation", floor: Floor::Unit, run: simulation },
    Stage { name: "API floor", floor: Floor::Api, run: api },
    Stage { name: "engine floor", floor: Floor::Api, run: engine },
    Stage { name: "whole floor", floor: Floor::Whole, run: whole },
];

/// Runs the stages of a floor, or all. After a failed one the others of its floor still run, the dearer floors do not;
/// the last line names what failed.
pub(crate) fn run(floor: Option<Floor>) -> Result<(), XtaskError> {
    preflight::no_lab()?;
    let parts = setup::parts()?;
    let mut failed = Vec::new();
    let mut times = Vec::new();
    let mut failed_floor = None;
    for stage in STAGES.iter().filter(|stage| floor.is_none_or(|floor| is_wanted(stage, floor))) {
        if failed_floor.is_some_and(|failed| failed != stage.floor) {
            times.push(format!("{:>16}          -    not run", stage.name));
            continue;
        }
        eprintln!("\n=== {}", stage.name);
        let start = Instant::now();
        let outcome = (stage.run)(&parts);
        let seconds = start.elapsed().as_secs_f64();
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        eprintln!("=== {}: {word} ({seconds:.1} s)", stage.name);
        times.push(format!("{:>16} {seconds:>8.1} s  {word}", stage.name));
        if let Err(error) = outcome {
            error::tell(&error);
            failed.push(stage.name.to_owned());
            failed_floor = Some(stage.floor);
        }
        if interrupt::requested() {
            failed.push("interrupted".to_owned());
            break;
        }
    }
    // Also after an interruption: a test's lab outlives a test process that was killed.
    if let Err(error) = aicr_lab::down() {
        error::tell(&error);
        failed.push("down".to_owned());
    }
    eprintln!("\n{}", times.join("\n"));
    if failed.is_empty() {
        eprintln!("all stages passed");
        return Ok(());
    }
    Err(XtaskError::Stages { stages: failed })
}

/// Every floor needs what is built.
fn is_wanted(stage: &Stage, floor: Floor) -> bool {
    stage.floor == floor || stage.name == BUILD
}

fn fmt(_: &Parts) -> Result<(), XtaskError> {
    let mut cargo = Command::new("cargo");
    cargo.args(["fmt", "--all", "--check"]).current_dir(workspace());
    command::shown(&mut cargo).map_err(XtaskError::command("cargo fmt --check"))
}

fn clippy(_: &Parts) -> Result<(), XtaskError> {
    let mut cargo = binaries::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    command::shown(&mut cargo).map_err(XtaskError::command("cargo clippy"))?;
    // All targets are those that plain `cargo test` runs.
    let floors = ["--test", "api", "--test", "engine", "--test", "soak", "--test", "whole"];
    let mut cargo = binaries::cargo(&["clippy", "--workspace"]);
    cargo.args(floors).args(["--", "-D", "warnings"]);
    command::shown(&mut cargo).map_err(XtaskError::command("cargo clippy of the floors"))
}

fn generated(_: &Parts) -> Result<(), XtaskError> {
    binaries::crds(Crds::Check)
}

/// The advisories' database lies on a host that a sandbox does not reach; a public CI asks it.
fn deny(parts: &Parts) -> Result<(), XtaskError> {
    let root = parts_cache().join(format!("cargo-deny-{}", parts.cargo_deny()));
    let program = root.join("bin/cargo-deny");
    if !program.is_file() {
        let mut install = Command::new("cargo");
        install
            .args([
                "install",
                "--debug",
                "--locked",
                "--quiet",
                &format!("cargo-deny@{}", parts.cargo_deny()),
                "--root",
            ])
            .arg(&root);
        // Not the checkout's target folder, and not its flags; a build that is quick matters more than a check that is.
        install.current_dir(parts_cache()).env_remove("CARGO_TARGET_DIR").env("CARGO_INCREMENTAL", "0");
        command::shown(&mut install).map_err(XtaskError::command("install cargo-deny"))?;
    }
    let mut deny = Command::new(program);
    deny.args(["--log-level", "error", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    deny.current_dir(workspace());
    command::shown(&mut deny).map_err(XtaskError::command("cargo-deny check bans licenses sources"))
}

/// The judgment and the eyes have no runtime, no server and no client.
fn rooms(_: &Parts) -> Result<(), XtaskError> {
    for package in ["aicr-decide", "aicr-read"] {
        let mut tree = Command::new("cargo");
        tree.args(["tree", "-p", package, "-e", "normal", "--prefix", "none", "--target", setup::TARGET]);
        let text = command::output(tree.current_dir(workspace())).map_err(XtaskError::command("cargo tree"))?;
        let refused = ["tokio ", "hyper ", "kube-client "];
        if let Some(line) = text.lines().find(|line| refused.iter().any(|refused| line.starts_with(refused))) {
            return Err(XtaskError::Stages { stages: vec![format!("{package} depends on {line}")] });
        }
    }
    Ok(())
}

fn unit(_: &Parts) -> Result<(), XtaskError> {
    let mut cargo = binaries::cargo(&["test", "--workspace"]);
    command::shown(&mut cargo).map_err(XtaskError::command("unit tests"))
}

/// The tests of registry tokens against moto, which plays ECR: by name, since they need what plain unit tests do not.
fn tokens(_: &Parts) -> Result<(), XtaskError> {
    let environment = moto()?;
    let mut cargo = binaries::cargo(&["test", "--workspace", "--test", "moto"]);
    cargo.args(["--", "--ignored", "--skip", "as_a_child", "--test-threads=1"]);
    cargo.env("AICR_MOTO_ENV", environment);
    command::shown(&mut cargo).map_err(XtaskError::command("tests of registry tokens"))
}

/// The Python environment with moto in the parts cache, named after its pins; one that was cut is made anew.
fn moto() -> Result<PathBuf, XtaskError> {
    let pins = workspace().join("tests/parts/moto/requirements.txt");
    let key = Digest::of(&fs::read(&pins).map_err(XtaskError::read(&pins))?).short();
    let folder = parts_cache().join(format!("moto-{key}"));
    let complete = folder.join("complete");
    if complete.is_file() {
        return Ok(folder);
    }
    let write = |path: PathBuf| move |source: io::Error| XtaskError::Write { path, source };
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(write(folder)(error)),
        Err(_) | Ok(()) => {}
    }
    let act = XtaskError::command("install moto");
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(&folder);
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&pins);
    command::shown(&mut venv).and_then(|()| command::shown(&mut pip)).map_err(act)?;
    fs::write(&complete, key).map_err(write(complete.clone()))?;
    Ok(folder)
}

/// A million random histories of the decision loop.
fn simulation(_: &Parts) -> Result<(), XtaskError> {
    crate::simulate::ci()
}

fn build(_: &Parts) -> Result<(), XtaskError> {
    binaries::build_all()
}

fn api(_: &Parts) -> Result<(), XtaskError> {
    floor_tests("api")
}

/// The drive loop in the test's own process, against an Argo CD that the test plays.
fn engine(_: &Parts) -> Result<(), XtaskError> {
    floor_tests("engine")
}

fn whole(_: &Parts) -> Result<(), XtaskError> {
    floor_tests("whole")
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
    cargo.env("AICR_BIN_DIR", binaries::folder()).env("AICR_PEER", peer()?);
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

/// One lab at a time, so one test at a time.
fn floor_tests(binary: &str) -> Result<(), XtaskError> {
    let mut cargo = binaries::cargo(&["test", "--workspace", "--test", binary, "--", "--test-threads=1"]);
    cargo.env("AICR_BIN_DIR", binaries::folder());
    command::shown(&mut cargo).map_err(XtaskError::command("tests on real parts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_stand_in_order_of_price() {
        let rank = |floor: Floor| match floor {
            Floor::Unit => 0,
            Floor::Api => 1,
            Floor::Whole => 2,
        };
        assert!(STAGES.windows(2).all(|pair| rank(pair[0].floor) <= rank(pair[1].floor)));
    }

    #[test]
    fn each_floor_on_real_parts_builds_the_binaries_first() {
        for floor in [Floor::Api, Floor::Whole] {
            let wanted: Vec<_> =
                STAGES.iter().filter(|stage| is_wanted(stage, floor)).map(|stage| stage.name).collect();
            assert!(wanted.len() >= 2, "{floor:?} has {wanted:?}");
            assert_eq!(wanted[0], BUILD);
        }
    }
}
