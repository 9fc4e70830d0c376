//! The command line: every command, every flag with its unit and default.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use jiff::SignedDuration;

use crate::client::Effect;

/// The longest reason, in characters, as the CRD bounds it.
pub(crate) const REASON_LIMIT: usize = 1024;

/// What every help ends with.
const EXIT_CODES: &str = "\
Exit codes:
  0  done; status and describe: shown, whatever they show (but see --exit-code)
  1  refused, or the API server could not be asked; a denial is printed as its message alone, on standard error
  2  the command line is wrong
  3  status --exit-code: not ready, and nobody needs to do anything: the operator works or waits
  4  status --exit-code: a person is needed";

/// See where the AICR operator's runtime is, look at its rollouts and decide about them.
#[derive(Debug, Parser)]
#[command(name = "kubectl-aicr", bin_name = "kubectl aicr", version, arg_required_else_help = true)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Flags before or after the name; every command takes every flag.
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the runtime on one page: conditions, plans, the rollout under way and what it waits for, what to do next.
    #[command(after_help = EXIT_CODES)]
    Status,
    /// Show the transition, every step with its verdict, AICR's assessment and the approval.
    Describe {
        /// Name of the RuntimeRollout.
        #[arg(value_parser = name)]
        rollout: String,
    },
    /// Agree to a rollout, until it expires; needs --reason.
    Approve {
        /// Name of the RuntimeRollout.
        #[arg(value_parser = name)]
        rollout: String,
    },
    /// State that the recorded steps of a manual release are done; needs --reason.
    Acknowledge {
        /// Name of the RuntimeRollout.
        #[arg(value_parser = name)]
        rollout: String,
        /// The release; may be left out when exactly one is owed.
        #[arg(value_parser = name)]
        release: Option<String>,
    },
    /// Withdraw an approval: the step in flight finishes, no further one starts; needs --reason.
    Revoke {
        /// Name of the RuntimeRollout.
        #[arg(value_parser = name)]
        rollout: String,
    },
    /// Print a script that completes the binary's name, kubectl-aicr, in a shell.
    Completion {
        /// Whose script.
        shell: Shell,
    },
}

/// Flags, valid before and after the name.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Kubeconfig file [default: $KUBECONFIG, then ~/.kube/config].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one].
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Namespace of the operator, where assessment reports are stored.
    #[arg(long, global = true, value_name = "NAME", default_value = "aicr-system", value_parser = name)]
    pub(crate) operator_namespace: String,
    /// Format of status and describe.
    #[arg(long, short, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
    /// Why, at most 1024 characters; approve, revoke and acknowledge need it.
    #[arg(long, global = true, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: Option<String>,
    /// How long an approval lasts from now, such as 2h or 1h30m [default: until the rollout's deadline].
    #[arg(long, global = true, value_name = "DURATION", allow_hyphen_values = true, value_parser = expires)]
    pub(crate) expires: Option<SignedDuration>,
    /// Approve without asking.
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,
    /// With `server`, approve, revoke and acknowledge are judged by the API server, admission included, and not stored.
    #[arg(long, global = true, value_enum, num_args = 0..=1, require_equals = true)]
    #[arg(default_value_t = DryRun::None, default_missing_value = "server")]
    pub(crate) dry_run: DryRun,
    /// Let status end with 3 or 4 where the runtime is not ready (see the end of its help).
    #[arg(long, global = true)]
    pub(crate) exit_code: bool,
}

impl Flags {
    /// Whether changes are stored.
    pub(crate) fn effect(&self) -> Effect {
        match self.dry_run {
            DryRun::None => Effect::Stored,
            DryRun::Server => Effect::Judged,
        }
    }
}

/// Whether changes are only tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// They are made.
    None,
    /// The API server judges them and stores nothing.
    Server,
}

/// Format of status and describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// As JSON: the objects, and what the page says beyond them, such as the binding digest.
    Json,
    /// The same as YAML.
    Yaml,
}

/// Accepts what can name an object: anything else could reach another path of the API server.
fn name(text: &str) -> Result<String, String> {
    let allowed =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || ".-".contains(character);
    let ends = |character: Option<char>| character.is_some_and(|character| character.is_ascii_alphanumeric());
    let valid =
        text.len() <= 253 && text.chars().all(allowed) && ends(text.chars().next()) && ends(text.chars().last());
    if valid { Ok(text.to_owned()) } else { Err("not a name: expected lower-case letters, digits, '-' and '.'".into()) }
}

fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err("a reason must say something".into()),
        1..=REASON_LIMIT => Ok(text.to_owned()),
        length => Err(format!("a reason has at most {REASON_LIMIT} characters, this one {length}")),
    }
}

fn expires(text: &str) -> Result<SignedDuration, String> {
    if text.starts_with('-') {
        return Err("an approval cannot expire in the past: the duration must not be negative".into());
    }
    aicr_crds::duration::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, error::ErrorKind};
    use rstest::rstest;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("kubectl-aicr").chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[rstest]
    #[case("approve r-1 --reason because --expires 2h --context staging")]
    #[case("--reason because --context staging approve --expires 2h r-1")]
    #[case("approve --context staging --reason because --expires 2h r-1")]
    fn flags_stand_before_or_after_the_name(#[case] line: &str) {
        let cli = parse(line).unwrap();
        assert!(matches!(cli.command, Command::Approve { rollout } if rollout == "r-1"));
        assert_eq!(cli.flags.reason.as_deref(), Some("because"));
        assert_eq!(cli.flags.context.as_deref(), Some("staging"));
        assert_eq!(cli.flags.expires, Some(SignedDuration::from_hours(2)));
        assert_eq!(cli.flags.operator_namespace, "aicr-system");
    }

    #[rstest]
    #[case::no_name("describe", "required")]
    #[case::another_path("describe r-1/status", "not a name")]
    #[case::negative("approve r-1 --expires -2h", "must not be negative")]
    #[case::no_unit("approve r-1 --expires 2", "is not a duration")]
    #[case::empty_reason("approve r-1 --reason=", "must say something")]
    #[case::dry_run_of_kubectl_alone("revoke r-1 --dry-run=client", "possible values")]
    #[case::no_shell("completion", "required")]
    #[case::unknown_format("describe r-1 -o xml", "possible values")]
    fn a_bad_line_is_a_usage_error(#[case] line: &str, #[case] says: &str) {
        let error = parse(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }

    #[rstest]
    #[case("revoke r-1", Effect::Stored)]
    #[case("revoke r-1 --dry-run=none", Effect::Stored)]
    #[case("revoke --dry-run r-1", Effect::Judged)]
    #[case("--dry-run=server revoke r-1", Effect::Judged)]
    fn a_dry_run_is_the_servers(#[case] line: &str, #[case] effect: Effect) {
        assert_eq!(parse(line).unwrap().flags.effect(), effect);
    }

    #[test]
    fn a_reason_is_counted_in_characters() {
        assert!(reason(&"ü".repeat(REASON_LIMIT)).is_ok());
        assert!(reason(&"ü".repeat(REASON_LIMIT + 1)).unwrap_err().contains("1025"));
    }

    #[test]
    fn help_and_version_are_no_errors() {
        assert_eq!(parse("help").unwrap_err().kind(), ErrorKind::DisplayHelp);
        assert_eq!(parse("--version").unwrap_err().exit_code(), 0);
        assert_eq!(parse("").unwrap_err().exit_code(), 2);
    }
}
