//! Each command from the first read to the last line printed.

use std::{io::Write, process::ExitCode, time::Duration};

use aicr_crds::{
    RuntimeRollout,
    rollout::{Approval, Person},
};
use backon::{ExponentialBuilder, Retryable};
use clap::CommandFactory;
use clap_complete::Shell;
use jiff::Timestamp;

use crate::{
    acknowledge,
    approve::{self, Expiry},
    args::{Cli, Command, DryRun, Flags, Format},
    ask::Consent,
    change::{Author, Change, to_the_second},
    client::{ClientError, Cluster, Effect},
    describe::{self, Assessment},
    failure::Failure,
    revoke,
    status::{self, Seen, logins},
    text::clean,
    time::{relative, stamp},
};

/// How long a change is tried again: the operator may write status in between, and a webhook answers 409 while its watch
/// has not seen what was just written.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs one command; the exit code is that of a command which did what was asked.
pub(crate) async fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let Cli { command, flags } = cli;
    match command {
        Command::Status => return status(&flags).await,
        Command::Describe { rollout } => describe(&rollout, &flags).await,
        Command::Approve { rollout } => approve(&rollout, &flags).await,
        Command::Acknowledge { rollout, release } => acknowledge(&rollout, release.as_deref(), &flags).await,
        Command::Revoke { rollout } => revoke(&rollout, &flags).await,
        Command::Completion { shell } => completion(shell),
    }?;
    Ok(ExitCode::SUCCESS)
}

async fn connect(flags: &Flags) -> Result<Cluster, Failure> {
    Ok(Cluster::connect(flags.kubeconfig.as_deref(), flags.context.as_deref()).await?)
}

async fn status(flags: &Flags) -> Result<ExitCode, Failure> {
    let cluster = connect(flags).await?;
    let rollouts = cluster.rollouts().await?;
    let mut seen = Seen::new(cluster.runtime().await?, rollouts).map_err(Failure::Unreadable)?;
    seen.warnings = match second_logins(&cluster).await {
        Ok(lines) => lines,
        Err(error) => vec![format!("Argo CD's logins were not looked at: {}", crate::failure::chain(&error))],
    };
    let (now, namespace) = (Timestamp::now(), &flags.operator_namespace);
    let text = match flags.output {
        Format::Table => status::render(&seen, namespace, now),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&status::document(&seen, namespace, now))?),
        Format::Yaml => serde_saphyr::to_string(&status::document(&seen, namespace, now))?,
    };
    print(&text)?;
    let code = status::state(&seen, namespace, now).code();
    Ok(if flags.exit_code { ExitCode::from(code) } else { ExitCode::SUCCESS })
}

/// Logins of Argo CD that go before the operator's, as far as the person may read them: the operator itself may not, since
/// that would show it every login of Argo CD.
async fn second_logins(cluster: &Cluster) -> Result<Vec<String>, ClientError> {
    let mut lines = Vec::new();
    for place in logins::places(&cluster.applications().await?) {
        let secrets = cluster.secrets(&place.namespace, logins::REPOSITORY_SECRETS).await?;
        lines.extend(logins::warnings(&place, &secrets));
    }
    Ok(lines)
}

fn completion(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kubectl-aicr", &mut script);
    let mut out = anstream::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}

async fn describe(name: &str, flags: &Flags) -> Result<(), Failure> {
    let cluster = connect(flags).await?;
    let rollout = cluster.rollout(name).await?;
    let assessment = assessment(&cluster, &rollout, &flags.operator_namespace).await;
    let text = match flags.output {
        Format::Table => describe::render(&rollout, &assessment, Timestamp::now()),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&describe::document(&rollout, &assessment))?),
        Format::Yaml => serde_saphyr::to_string(&describe::document(&rollout, &assessment))?,
    };
    print(&text)
}

/// What is stored of AICR's report; that it cannot be had is said in its place, and does not hide the rollout.
async fn assessment(cluster: &Cluster, rollout: &RuntimeRollout, namespace: &str) -> Assessment {
    let Some(reference) = &rollout.spec.assessment else { return Assessment::None };
    match cluster.config_map(namespace, &reference.config_map).await {
        Ok(Some(stored)) => Assessment::read(stored.data.unwrap_or_default(), reference),
        Ok(None) => Assessment::Unavailable(format!("ConfigMap {namespace}/{} is gone", reference.config_map)),
        Err(error) => Assessment::Unavailable(crate::failure::chain(&error)),
    }
}

async fn approve(name: &str, flags: &Flags) -> Result<(), Failure> {
    let reason = reason(flags)?;
    // What is not stored needs nobody's consent.
    let consent = match flags.dry_run {
        DryRun::None => Consent::new(flags.yes)?,
        DryRun::Server => Consent::Given,
    };
    let cluster = connect(flags).await?;
    let rollout = cluster.rollout(name).await?;
    let author = Author { person: cluster.whoami().await?, reason };
    let now = to_the_second(Timestamp::now());
    let expiry = Expiry::new(flags.expires, now);
    let approval = approve::prepare(&rollout, now, expiry, &author)?;
    let shown = approval.binding_digest;
    eprint(&describe::request(&rollout, &approval, &cluster.target, now))?;
    consent.obtain(&format!("Approve {name}?"))?;
    let prepare = |rollout: &RuntimeRollout, now| {
        let approval = approve::prepare(rollout, now, expiry, &author)?;
        Ok(approve::change(rollout, &approval, shown)?)
    };
    let patched = carry_out(&cluster, name, flags.effect(), prepare).await?;
    print(&approved(name, patched.spec.approval.as_ref(), flags))
}

fn approved(name: &str, approval: Option<&Approval>, flags: &Flags) -> String {
    match approval {
        Some(approval) => {
            let (until, by) = (approval.expires_at.0, &approval.approved_by);
            let away = relative(until, approval.approved_at.0);
            format!("{name} approved by {} until {} ({away}){}\n", who(by), stamp(until), note(flags))
        }
        None => format!("{name}: the API server returned no approval; describe the rollout\n"),
    }
}

async fn acknowledge(name: &str, release: Option<&str>, flags: &Flags) -> Result<(), Failure> {
    let reason = reason(flags)?;
    let cluster = connect(flags).await?;
    let rollout = cluster.rollout(name).await?;
    let author = Author { person: cluster.whoami().await?, reason };
    // Fixed here, so that a second try never means another release.
    let (release, _) = acknowledge::prepare(&rollout, Timestamp::now(), release, &author)?;
    let prepare = |rollout: &RuntimeRollout, now| {
        let (_, change) = acknowledge::prepare(rollout, now, Some(&release), &author)?;
        Ok(change)
    };
    let patched = carry_out(&cluster, name, flags.effect(), prepare).await?;
    let written = patched.spec.acknowledgements.iter().find(|known| known.release == release);
    let by = written.map_or_else(|| "nobody; describe the rollout".to_owned(), |known| who(&known.acknowledged_by));
    print(&format!("{name}: {release} acknowledged by {by}{}\n", note(flags)))
}

async fn revoke(name: &str, flags: &Flags) -> Result<(), Failure> {
    let reason = reason(flags)?;
    let cluster = connect(flags).await?;
    let author = Author { person: cluster.whoami().await?, reason };
    let prepare = |rollout: &RuntimeRollout, now| Ok(revoke::prepare(rollout, now, &author)?);
    let patched = carry_out(&cluster, name, flags.effect(), prepare).await?;
    let by = patched
        .spec
        .revocation
        .map_or_else(|| "nobody; describe the rollout".to_owned(), |revocation| who(&revocation.revoked_by));
    let note = note(flags);
    print(&format!("{name} revoked by {by}; the step in flight finishes, no further step starts{note}\n"))
}

/// Reads, prepares and patches, again from the start while the answer is a conflict and patience lasts.
async fn carry_out(
    cluster: &Cluster,
    name: &str,
    effect: Effect,
    prepare: impl Fn(&RuntimeRollout, Timestamp) -> Result<Change, Failure>,
) -> Result<RuntimeRollout, Failure> {
    let attempt = || async {
        let change = prepare(&cluster.rollout(name).await?, Timestamp::now())?;
        Ok(cluster.patch(name, &change, effect).await?)
    };
    let pauses = ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(Duration::from_secs(1))
        .with_total_delay(Some(PATIENCE))
        .without_max_times();
    attempt.retry(pauses).when(may_pass).await
}

fn may_pass(failure: &Failure) -> bool {
    matches!(failure, Failure::Client(ClientError::Conflict(_)))
}

fn reason(flags: &Flags) -> Result<String, Failure> {
    flags.reason.clone().ok_or_else(|| Failure::Usage("--reason is required".into()))
}

/// What kubectl adds to a line about something that was not stored.
fn note(flags: &Flags) -> &'static str {
    match flags.dry_run {
        DryRun::None => "",
        DryRun::Server => " (server dry run)",
    }
}

fn who(person: &Person) -> String {
    clean(&person.username)
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn eprint(text: &str) -> Result<(), Failure> {
    Ok(anstream::stderr().write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::fixture;

    #[test]
    fn who_approved_is_what_the_api_server_returned() {
        let line = |args: &[&str], approval: Option<&Approval>| {
            let all = ["kubectl-aicr", "approve", "rollout-1"].iter().chain(args);
            approved("rollout-1", approval, &Cli::try_parse_from(all).unwrap().flags)
        };
        let given = fixture::in_flight().spec.approval;
        let text = "rollout-1 approved by bob@example.com until 2026-07-01T12:00:00Z (in 3h 10m)";
        assert_eq!(line(&[], given.as_ref()), format!("{text}\n"));
        assert_eq!(line(&["--dry-run=server"], given.as_ref()), format!("{text} (server dry run)\n"));
        assert!(line(&[], None).contains("returned no approval"));
    }
}
