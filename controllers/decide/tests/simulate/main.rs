//! The simulator: whole histories of the decision loop by the thousand, with the nine promises held against each event.
//!
//! `cargo xtask simulate` runs it; so does `cargo test -p aicr-decide --features simulation --test simulate -- --help`.

#![allow(clippy::unwrap_used, reason = "test code: a broken invariant is a failed test")]
#![allow(clippy::print_stdout, reason = "it is a program, and its answer is what it prints")]

mod aicr;
mod argo;
mod args;
mod chance;
mod cluster;
mod draw;
mod event;
mod family;
mod ghost;
mod hands;
mod history;
mod linear;
mod live;
mod look;
mod mutants;
mod operator;
mod people;
mod promises;
mod run;
mod store;
mod themes;
mod upkeep;

use std::process::ExitCode;

use crate::args::{Args, Work};

/// Most of a history's time goes into memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            println!("{message}");
            return ExitCode::from(2);
        }
    };
    let fine = match args.work {
        Work::Histories => run::histories(&args),
        Work::Replay { shrinks } => run::replay(args.seed, shrinks),
        Work::Mutants => run::mutants(&args),
        Work::Linear => linear::run(),
    };
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
