//! The AICR operator: parses flags, installs the TLS provider, runs, and says with its exit code how it ended.

mod args;
mod drain;
mod serve;
mod telemetry;

use std::{process::ExitCode, time::Duration};

use aicr_drive::Drive;
use clap::Parser as _;
use tokio::task::JoinError;

use crate::{
    args::{Args, Provider},
    drain::Drain,
};

/// Worker threads: what the operator does is waiting.
const THREADS: usize = 2;
/// How long a reconcile on its way may take once told to stop; the pod's grace is 30 s.
const LAST_RECONCILE: Duration = Duration::from_secs(20);

/// Why the process ends before it is told to.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("another TLS provider is installed already")]
    Provider,
    #[error("start the threads")]
    Threads(#[source] std::io::Error),
    #[error("find the API server")]
    Config(#[source] Box<kube::config::InferConfigError>),
    #[error("make a client of the API server")]
    Client(#[source] Box<kube::Error>),
    #[error("listen on {address}")]
    Listen {
        address: std::net::SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("serve metrics and probes")]
    Serve(#[source] std::io::Error),
    #[error("run the controllers")]
    Drive(#[from] aicr_drive::DriveError),
    #[error("{0} ended before it was told to")]
    Early(&'static str),
    #[error("{what} broke off")]
    Broken {
        what: &'static str,
        #[source]
        source: JoinError,
    },
    #[error("told to stop a second time")]
    Impatient,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match args.registry_provider {
        Provider::Static => {}
        Provider::Aws => {
            eprintln!("--registry-provider aws is not supported by this version; use static and supply the Secrets");
            return ExitCode::from(2);
        }
    }
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
    threads.map_err(RunError::Threads)?.block_on(run(args))
}

async fn run(args: &Args) -> Result<(), RunError> {
    tracing::info!(version = env!("CARGO_PKG_VERSION"), aicr = args.aicr_version, "the operator starts");
    let drain = Drain::new();
    let address = args.metrics_address;
    let listener = tokio::net::TcpListener::bind(address);
    let listener = listener.await.map_err(|source| RunError::Listen { address, source })?;
    let config = kube::Config::infer().await.map_err(|source| RunError::Config(Box::new(source)))?;
    let client = aicr_drive::client(config).map_err(|source| RunError::Client(Box::new(source)))?;
    let drive = Drive::new(&client, args.settings());
    let readiness = drive.readiness();
    let probes = serve::router(serve::Probes::new(drain.listener(), move || readiness.is_ready()));
    let mut serving = tokio::spawn(serve::plain(listener, probes, drain.listener()));
    let mut driving = tokio::spawn(drive.run(drain.listener().stopping()));
    let early = tokio::select! {
        ended = &mut serving => return Err(end("the metrics listener", ended, RunError::Serve)),
        ended = &mut driving => return Err(end("the controllers", ended, RunError::Drive)),
        signal = drain::signal() => signal,
    };
    tracing::info!(signal = early, "told to stop: unready, and the last reconcile is finished");
    drain.begin();
    let last = async {
        // Each is told to stop; how it ends no longer changes anything.
        let _ = tokio::join!(driving, serving);
    };
    tokio::select! {
        ended = tokio::time::timeout(LAST_RECONCILE, last) => {
            if ended.is_err() {
                tracing::warn!(seconds = LAST_RECONCILE.as_secs(), "the last reconcile is broken off");
            }
            Ok(())
        }
        _ = drain::signal() => Err(RunError::Impatient),
    }
}

/// What it means that a task ended early.
fn end<E>(what: &'static str, ended: Result<Result<(), E>, JoinError>, error: fn(E) -> RunError) -> RunError {
    match ended {
        Ok(Ok(())) => RunError::Early(what),
        Ok(Err(source)) => error(source),
        Err(source) => RunError::Broken { what, source },
    }
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
