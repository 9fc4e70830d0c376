//! The command line: global flags, which command, and how a run ends.

use std::future::Future;
use std::process::ExitCode;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{self, Flag, Parsed};
use crate::failure::{Code, Failure};
use crate::log::{self, Form};
use crate::{bundle, faults, recipe, release, snapshot, upgrade_check, validate};

/// Commands that the real one has and the stand-in has not.
const ABSENT: [&str; 9] = ["query", "diff", "verify", "mirror", "trust", "skill", "evidence", "completion", "list"];

const GLOBAL: &[Flag] = &[
    Flag::switch("debug").env("AICR_DEBUG"),
    Flag::switch("log-json").env("AICR_LOG_JSON"),
    Flag::switch("version").or("v"),
    Flag::switch("help").or("h"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Snapshot,
    Agent,
    Recipe,
    Bundle,
    UpgradeCheck,
    Validate,
    Check,
}

impl Command {
    fn named(word: &str) -> Option<Self> {
        match word {
            "snapshot" if std::env::var("AICR_AGENT_MODE").is_ok_and(|mode| mode == "true") => Some(Self::Agent),
            "snapshot" => Some(Self::Snapshot),
            "recipe" => Some(Self::Recipe),
            "bundle" => Some(Self::Bundle),
            "upgrade-check" => Some(Self::UpgradeCheck),
            "validate" => Some(Self::Validate),
            "check" => Some(Self::Check),
            _ => None,
        }
    }

    /// The name by which faults mean it.
    fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Agent => "agent",
            Self::Recipe => "recipe",
            Self::Bundle => "bundle",
            Self::UpgradeCheck => "upgrade-check",
            Self::Validate => "validate",
            Self::Check => "check",
        }
    }

    fn flags(self) -> &'static [Flag] {
        match self {
            Self::Snapshot | Self::Agent => snapshot::FLAGS,
            Self::Recipe => recipe::FLAGS,
            Self::Bundle => bundle::FLAGS,
            Self::UpgradeCheck => upgrade_check::FLAGS,
            Self::Validate => validate::FLAGS,
            Self::Check => validate::check::FLAGS,
        }
    }
}

/// Runs the command whose words (without the program's name) are given.
pub fn run(words: Vec<String>) -> ExitCode {
    // Nobody else installs a provider in this process.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => ExitCode::from(runtime.block_on(root(words))),
        Err(error) => {
            log::plain(&format!("aicr stand-in: no runtime: {error}"));
            ExitCode::from(Code::Internal.exit())
        }
    }
}

async fn root(mut words: Vec<String>) -> u8 {
    let at = words.iter().position(|word| !word.starts_with('-')).unwrap_or(words.len());
    let rest = words.split_off(at);
    let global = match args::parse(GLOBAL, &words) {
        Ok(global) => global,
        Err(failure) => return usage(&failure, "", GLOBAL),
    };
    choose_form(&global);
    if global.on("version", false) {
        log::out(&format!("aicr version {} (commit: standin, date: 1970-01-01)\n", release::stamped()));
        return 0;
    }
    let Some((word, rest)) = rest.split_first() else {
        log::out(&args::help("", GLOBAL));
        return 0;
    };
    if global.on("help", false) {
        log::out(&args::help("", GLOBAL));
        return 0;
    }
    match Command::named(word) {
        Some(command) => dispatch(command, rest).await,
        None => unknown(word, rest),
    }
}

fn choose_form(global: &Parsed) {
    log::choose(match (global.on("log-json", false), global.on("debug", false)) {
        (true, _) => Form::Json,
        (false, true) => Form::Debug,
        (false, false) => Form::Text,
    });
}

fn unknown(word: &str, rest: &[String]) -> u8 {
    if ABSENT.contains(&word) {
        return failed(&Failure::invalid(format!("aicr {word} is not supported by the stand-in")));
    }
    let Some(flag) = rest.iter().find_map(|word| word.strip_prefix('-')) else {
        log::plain(&format!("No help topic for '{word}'"));
        return Code::NotFound.exit();
    };
    let flag = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
    usage(&Failure::new(Code::Usage, format!("flag provided but not defined: -{flag}")), "", GLOBAL)
}

async fn dispatch(command: Command, words: &[String]) -> u8 {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        log::out(&args::help(command.name(), command.flags()));
        return 0;
    }
    let parsed = match args::parse(command.flags(), words) {
        Ok(parsed) => parsed,
        Err(failure) if failure.code == Code::Usage => return usage(&failure, command.name(), command.flags()),
        Err(failure) => return failed(&failure),
    };
    let ended = match interruptible(faults::before(command.name())).await {
        Ok(()) => execute(command, &parsed).await,
        Err(failure) => Err(failure),
    };
    ended.map_or_else(|failure| failed(&failure), |()| 0)
}

async fn execute(command: Command, parsed: &Parsed) -> Result<(), Failure> {
    match command {
        // The launcher ends by itself when it is told to: it has things to clean up.
        Command::Snapshot => Box::pin(snapshot::launch(parsed)).await,
        Command::Agent => Box::pin(interruptible(snapshot::collect(parsed))).await,
        Command::Recipe => Box::pin(interruptible(recipe::run(parsed))).await,
        Command::Bundle => Box::pin(interruptible(bundle::run(parsed))).await,
        Command::UpgradeCheck => Box::pin(interruptible(upgrade_check::run(parsed))).await,
        Command::Validate => Box::pin(interruptible(validate::run(parsed))).await,
        Command::Check => Box::pin(interruptible(validate::check::run(parsed))).await,
    }
}

/// The work, or the failure of having been told to stop.
pub(crate) async fn interruptible<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let broken = |error: std::io::Error| Failure::internal(format!("no signal handler: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(broken)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
    let stopped = || Failure::new(Code::Cancelled, "context canceled");
    tokio::select! {
        done = work => done,
        _ = terminate.recv() => Err(stopped()),
        _ = interrupt.recv() => Err(stopped()),
    }
}

/// Usage errors come before logging is set up: plain lines, whatever the form.
fn usage(failure: &Failure, command: &str, flags: &[Flag]) -> u8 {
    log::plain(&format!("Incorrect Usage: {failure}\n"));
    log::out(&args::help(command, flags));
    let time = jiff::Zoned::now().strftime("%Y/%m/%d %H:%M:%S").to_string();
    log::plain(&format!("{time} ERROR command failed error={} exitCode=1", json!(failure.to_string())));
    failure.exit()
}

fn failed(failure: &Failure) -> u8 {
    let exit = failure.exit();
    log::error("command failed", &[("error", json!(failure.to_string())), ("exitCode", json!(exit))]);
    exit
}
