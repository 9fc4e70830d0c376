//! The workspace's own commands: parts, up, down, test, simulate, soak, demo, images, compare-real, crds, chart.

mod binaries;
mod chart;
mod compare;
mod demo;
mod error;
mod floors;
mod setup;
mod simulate;
mod test;

use std::{path::PathBuf, process::ExitCode};

use aicr_lab::{Lab, Options, interrupt};
use clap::{Parser, Subcommand, ValueEnum};

use crate::error::XtaskError;

/// Exit code after Ctrl-C or SIGTERM, as shells have it.
const INTERRUPTED: u8 = 130;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The workspace's own commands")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install packages and build the real parts that are missing (cached outside the checkout).
    Parts {
        /// Only say what there is and where.
        #[arg(long)]
        list: bool,
    },
    /// Bring up the real parts: a cluster with one node, a registry, Argo CD.
    Up {
        /// Only etcd, API server and controller manager.
        #[arg(long, value_enum, default_value_t = UpKind::Whole)]
        kind: UpKind,
    },
    /// Take down whatever is up or left over.
    Down,
    /// Run what CI runs, cheapest first.
    Test {
        /// Only this floor.
        #[arg(long, value_enum)]
        floor: Option<test::Floor>,
    },
    /// Play random histories of the decision loop, and hold the nine promises against each event.
    Simulate(simulate::Simulate),
    /// Rollouts one after the other against an engine that answers at once: what the operator takes, and whether it grows.
    Soak {
        /// How many.
        #[arg(long, default_value_t = 10_000)]
        rollouts: u64,
        /// For how many seconds it is then watched at rest, twice.
        #[arg(long, default_value_t = 600)]
        idle: u64,
        /// Before them, the crashes that the engine floor leaves out: after each write of an install, before each of an
        /// upgrade.
        #[arg(long)]
        crashes: bool,
    },
    /// From nothing to a rollout on real parts.
    Demo {
        /// Approve as the sample approver and follow the rollout to its end.
        #[arg(long)]
        yes: bool,
    },
    /// Build the operator's and the stand-in's images and push them to the registry that is up.
    Images,
    /// Read real AICR output with the operator's own code, and say what was found and what could not be checked.
    CompareReal {
        /// A folder with snapshots, recipes and bundles.
        folder: PathBuf,
    },
    /// Write the generated files (CRDs, tables).
    Crds {
        /// Change nothing; fail when a file differs from the types.
        #[arg(long)]
        check: bool,
    },
    /// Lint and render the chart, and try its alerts; `UPDATE_GOLDEN=1` writes the golden files.
    Chart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UpKind {
    Whole,
    ControlPlane,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = ctrlc::set_handler(interrupt::request).map_err(XtaskError::Handler).and_then(|()| run(&args.command));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error::tell(&error);
            if interrupt::requested() { ExitCode::from(INTERRUPTED) } else { ExitCode::FAILURE }
        }
    }
}

fn run(command: &Command) -> Result<(), XtaskError> {
    match command {
        Command::Parts { list: true } => setup::list_parts(),
        Command::Parts { list: false } => setup::parts().map(drop),
        Command::Up { kind } => up(*kind),
        Command::Down => Ok(aicr_lab::down()?),
        Command::Test { floor } => test::run(*floor),
        Command::Simulate(simulate) => simulate::run(simulate),
        Command::Soak { rollouts, idle, crashes } => {
            floors::soak(*rollouts, *idle, if *crashes { floors::Crashes::Too } else { floors::Crashes::No })
        }
        Command::Demo { yes } => demo::run(if *yes { demo::Approval::Given } else { demo::Approval::LeftToThePerson }),
        Command::Images => images(&Lab::attach()?),
        Command::CompareReal { folder } => compare::run(folder),
        Command::Crds { check } => {
            binaries::build()?;
            binaries::crds(if *check { binaries::Crds::Check } else { binaries::Crds::Write })
        }
        Command::Chart => chart::check(&aicr_lab::parts::Parts::read()?),
    }
}

fn images(lab: &Lab) -> Result<(), XtaskError> {
    binaries::build()?;
    let pushed = binaries::product().push_all(lab)?;
    eprintln!("images: {}", pushed.operator);
    pushed.aicr.iter().for_each(|(version, reference)| eprintln!("images: {reference} ({version})"));
    Ok(())
}

fn up(kind: UpKind) -> Result<(), XtaskError> {
    aicr_lab::preflight::no_lab()?;
    setup::parts()?;
    let options = match kind {
        UpKind::Whole => Options::whole(),
        UpKind::ControlPlane => Options::control_plane_only(),
    };
    let lab = Lab::up(&options.detached())?;
    eprintln!("export KUBECONFIG={}", lab.layout().admin_kubeconfig().display());
    eprintln!("export PATH={}:$PATH", lab.layout().bin().display());
    eprintln!("cargo xtask down");
    Ok(())
}
