//! kubectl aicr: where the runtime is, rollouts, and decisions about them; talks to the API server only.

mod acknowledge;
mod answer;
mod approve;
mod args;
mod ask;
mod change;
mod client;
mod describe;
mod failure;
#[cfg(test)]
mod fixture;
mod page;
mod revoke;
mod run;
mod status;
mod text;
mod time;
mod view;
mod warnings;

use std::process::ExitCode;

use clap::Parser;

use crate::{args::Cli, failure::Failure};

fn main() -> ExitCode {
    match rustls::crypto::aws_lc_rs::default_provider().install_default() {
        Ok(()) => failure::exit(start(Cli::parse())),
        Err(_) => failure::exit(Err(Failure::TlsProvider)),
    }
}

fn start(cli: Cli) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    runtime.block_on(run::run(cli))
}
