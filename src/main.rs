//! The AICR operator: parses flags, installs the TLS provider, runs, and says with its exit code how it ended.

mod args;
mod door;
mod drain;
mod lead;
mod listen;
mod run;
mod serve;
mod telemetry;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{args::Args, run::RunError};

/// Worker threads: what the operator does is waiting.
const THREADS: usize = 2;
fn main() -> ExitCode {
    let args = Args::parse();
    telemetry::install(args.log_level, args.log_format);
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = told(&error), "the operator ends");
            ExitCode::FAILURE
        }
    }
}

fn start(args: &Args) -> Result<(), RunError> {
    rustls::crypto::aws_lc_rs::default_provider().install_default().map_err(|_| RunError::Provider)?;
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    threads.map_err(RunError::Threads)?.block_on(run::run(args))
}

/// An error with its causes, in one line.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
