//! The command line: every command, every flag with its unit and default.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::SignedDuration;

/// The longest reason, in characters, as the CRD bounds it.
pub(crate) const REASON_LIMIT: usize = 1024;

/// Look at rollouts of the AICR operator and decide about them.
#[derive(Debug, Parser)]
#[command(name = "kubectl-aicr", bin_name = "kubectl aicr", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Flags before or after the name; every command takes every flag.
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// What to do with a rollout.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
    /// Format of describe.
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
}

/// Format of describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// The rollout, its binding digest and AICR's report, as JSON.
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
    #[case::unknown_format("describe r-1 -o xml", "possible values")]
    fn a_bad_line_is_a_usage_error(#[case] line: &str, #[case] says: &str) {
        let error = parse(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        assert!(error.to_string().contains(says), "{error}");
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
