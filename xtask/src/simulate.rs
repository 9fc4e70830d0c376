//! The simulator of the decision loop: histories by the thousand, one again, or each rule broken in turn.

use aicr_lab::command;
use clap::Args;

use crate::binaries;
use crate::error::XtaskError;

/// Histories that CI plays, unless its time is over before.
const CI: u64 = 1_000_000;
/// Seconds that CI plays them for.
const CI_SECONDS: u64 = 240;
/// Threads that CI plays them on.
const CI_THREADS: u64 = 2;

/// What to simulate.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// How many histories, at most.
    #[arg(long, default_value_t = 100_000)]
    histories: u64,
    /// Seed of the first.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// On how many threads.
    #[arg(long, default_value_t = 1)]
    threads: u64,
    /// Play one history of this seed again, made shorter where it breaks a promise, and show it.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["mutants", "linear"])]
    replay: Option<u64>,
    /// Break each rule in turn: how many histories until a promise notices.
    #[arg(long, conflicts_with = "linear")]
    mutants: bool,
    /// The time of one decision at 18, 100, 256 and 1,000 releases.
    #[arg(long)]
    linear: bool,
}

/// Runs the simulator.
pub(crate) fn run(simulate: &Simulate) -> Result<(), XtaskError> {
    let Simulate { histories, seed, threads, replay, mutants, linear } = simulate;
    let numbers = [("--histories", histories), ("--seed", seed), ("--threads", threads)];
    let mut args: Vec<String> =
        numbers.iter().flat_map(|(key, number)| [(*key).to_owned(), number.to_string()]).collect();
    if let Some(seed) = replay {
        args.extend(["--replay".to_owned(), seed.to_string()]);
    }
    args.extend(mutants.then(|| "--mutants".to_owned()));
    args.extend(linear.then(|| "--linear".to_owned()));
    simulator(&args)
}

/// A million histories, or as many as there is time for; none may break a promise.
pub(crate) fn ci() -> Result<(), XtaskError> {
    let numbers = [("--histories", CI), ("--seconds", CI_SECONDS), ("--threads", CI_THREADS)];
    let args: Vec<String> = numbers.iter().flat_map(|(key, number)| [(*key).to_owned(), number.to_string()]).collect();
    simulator(&args)
}

/// Of the build that all stages share: a build for the machine's own target plays half as many more in the same time, and takes
/// longer to be made than that gains. Its words: `cargo test --release -p aicr-decide --features simulation --test simulate`.
fn simulator(args: &[String]) -> Result<(), XtaskError> {
    let mut cargo =
        binaries::cargo(&["test", "--workspace", "--features", "aicr-decide/simulation", "--test", "simulate", "--"]);
    command::shown(cargo.args(args)).map_err(XtaskError::command("the simulator"))
}
