//! Everything CI runs, in order of price, with the time of each stage.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use std::{fs, io, thread};

use aicr_crds::Digest;

use aicr_lab::parts::Parts;
use aicr_lab::{command, interrupt, parts_cache, preflight, workspace};
use clap::ValueEnum;

use crate::binaries::{self, Crds};
use crate::chart;
use crate::error::{self, XtaskError};
use crate::floors::{self, Place};
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
    run: Run,
}

/// What a stage runs.
enum Run {
    /// This.
    Check(fn(&Parts) -> Result<(), XtaskError>),
    /// The tests of this name, on real parts.
    Tests(&'static str),
}

/// The stage that every later one needs.
const BUILD: &str = "binaries and tests";

/// The list, cheapest first. To add a stage, add a row.
const STAGES: [Stage; 13] = [
    Stage { name: "fmt", floor: Floor::Unit, run: Run::Check(fmt) },
    Stage { name: "clippy", floor: Floor::Unit, run: Run::Check(clippy) },
    Stage { name: "cargo-deny", floor: Floor::Unit, run: Run::Check(deny) },
    Stage { name: "rooms", floor: Floor::Unit, run: Run::Check(rooms) },
    Stage { name: "chart", floor: Floor::Unit, run: Run::Check(chart::check) },
    Stage { name: BUILD, floor: Floor::Unit, run: Run::Check(build) },
    Stage { name: "generated files", floor: Floor::Unit, run: Run::Check(generated) },
    Stage { name: "unit tests", floor: Floor::Unit, run: Run::Check(unit) },
    Stage { name: "registry tokens", floor: Floor::Unit, run: Run::Check(tokens) },
    Stage { name: "simulation", floor: Floor::Unit, run: Run::Check(simulation) },
    Stage { name: "API floor", floor: Floor::Api, run: Run::Tests("api") },
    Stage { name: "engine floor", floor: Floor::Api, run: Run::Tests("engine") },
    Stage { name: "whole floor", floor: Floor::Whole, run: Run::Tests("whole") },
];

/// Runs the stages of a floor, or all; of all, those on an API server run beside the whole floor. After a failed one the others
/// of its floor still run, the dearer floors do not; the last line names what failed.
pub(crate) fn run(floor: Option<Floor>) -> Result<(), XtaskError> {
    preflight::no_lab()?;
    let parts = setup::parts()?;
    let stages = |of: Floor| {
        let wanted = move |stage: &&Stage| stage.floor == of && floor.is_none_or(|floor| is_wanted(stage, floor));
        STAGES.iter().filter(wanted).collect::<Vec<_>>()
    };
    let (api, whole) = (stages(Floor::Api), stages(Floor::Whole));
    let mut report = Report::default();
    report.run(&stages(Floor::Unit), &parts, Place::Here);
    if !report.failed.is_empty() {
        report.skip(&[api, whole].concat());
    } else if whole.is_empty() {
        report.run(&api, &parts, Place::Here);
    } else {
        report.run_beside(&api, &whole, &parts);
    }
    // Also after an interruption: a test's lab outlives a test process that was killed.
    if let Err(error) = aicr_lab::down() {
        error::tell(&error);
        report.failed.push("down".to_owned());
    }
    eprintln!("\n{}", report.lines.join("\n"));
    if report.failed.is_empty() {
        eprintln!("all stages passed");
        return Ok(());
    }
    Err(XtaskError::Stages { stages: report.failed })
}

/// What has come of some stages.
#[derive(Default)]
struct Report {
    /// One line a stage.
    lines: Vec<String>,
    /// Names of those that failed.
    failed: Vec<String>,
}

impl Report {
    fn of(stages: &[&Stage], parts: &Parts, place: Place) -> Self {
        let mut report = Self::default();
        report.run(stages, parts, place);
        report
    }

    /// Runs them one after the other, until a person asks to stop.
    fn run(&mut self, stages: &[&Stage], parts: &Parts, place: Place) {
        for stage in stages {
            eprintln!("\n=== {}", stage.name);
            let start = Instant::now();
            let outcome = match stage.run {
                Run::Check(check) => check(parts),
                Run::Tests(binary) => floors::tests(binary, place),
            };
            let seconds = start.elapsed().as_secs_f64();
            let word = if outcome.is_ok() { "ok" } else { "FAILED" };
            eprintln!("=== {}: {word} ({seconds:.1} s)", stage.name);
            self.lines.push(format!("{:>16} {seconds:>8.1} s  {word}", stage.name));
            if let Err(error) = outcome {
                error::tell(&error);
                self.failed.push(stage.name.to_owned());
            }
            if interrupt::requested() {
                self.failed.push("interrupted".to_owned());
                return;
            }
        }
    }

    /// The first of them apart, while the others run here.
    fn run_beside(&mut self, apart: &[&Stage], here: &[&Stage], parts: &Parts) {
        thread::scope(|scope| {
            let beside = scope.spawn(|| Self::of(apart, parts, Place::Apart));
            let here = Self::of(here, parts, Place::Here);
            self.add(beside.join().unwrap_or_else(|panic| resume_unwind(panic)));
            self.add(here);
        });
        floors::tell();
    }

    fn skip(&mut self, stages: &[&Stage]) {
        self.lines.extend(stages.iter().map(|stage| format!("{:>16}          -    not run", stage.name)));
    }

    fn add(&mut self, more: Self) {
        self.lines.extend(more.lines);
        self.failed.extend(more.failed);
    }
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
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(XtaskError::write(&folder)(error)),
        Err(_) | Ok(()) => {}
    }
    let act = XtaskError::command("install moto");
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(&folder);
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&pins);
    command::shown(&mut venv).and_then(|()| command::shown(&mut pip)).map_err(act)?;
    fs::write(&complete, key).map_err(XtaskError::write(&complete))?;
    Ok(folder)
}

/// A million random histories of the decision loop.
fn simulation(_: &Parts) -> Result<(), XtaskError> {
    crate::simulate::ci()
}

fn build(_: &Parts) -> Result<(), XtaskError> {
    binaries::build_all()
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
