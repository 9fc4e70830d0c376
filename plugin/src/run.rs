//! Each command from the first read to the last line printed.

use std::io::Write;

use aicr_crds::{
    RuntimeRollout,
    rollout::{Approval, Person},
};
use jiff::Timestamp;

use crate::{
    acknowledge,
    approve::{self, Expiry},
    args::{Cli, Command, Flags, Format},
    ask::Consent,
    change::{Author, Change, to_the_second},
    client::{ClientError, Cluster},
    describe::{self, Assessment},
    failure::Failure,
    revoke,
    text::clean,
    time::{relative, stamp},
};

/// How often a change is prepared anew because the operator wrote the rollout's status in between.
const ATTEMPTS: usize = 5;

/// Runs one command.
pub(crate) async fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { command, flags } = cli;
    match command {
        Command::Describe { rollout } => describe(&rollout, &flags).await,
        Command::Approve { rollout } => approve(&rollout, &flags).await,
        Command::Acknowledge { rollout, release } => acknowledge(&rollout, release.as_deref(), &flags).await,
        Command::Revoke { rollout } => revoke(&rollout, &flags).await,
    }
}

async fn connect(flags: &Flags) -> Result<Cluster, Failure> {
    Ok(Cluster::connect(flags.kubeconfig.as_deref(), flags.context.as_deref()).await?)
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
    let consent = Consent::new(flags.yes)?;
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
    let patched = carry_out(&cluster, name, prepare).await?;
    print(&approved(name, patched.spec.approval.as_ref()))
}

fn approved(name: &str, approval: Option<&Approval>) -> String {
    match approval {
        Some(approval) => {
            let (until, by) = (approval.expires_at.0, &approval.approved_by);
            let away = relative(until, approval.approved_at.0);
            format!("{name} approved by {} until {} ({away})\n", who(by), stamp(until))
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
    let patched = carry_out(&cluster, name, prepare).await?;
    let written = patched.spec.acknowledgements.iter().find(|known| known.release == release);
    let by = written.map_or_else(|| "nobody; describe the rollout".to_owned(), |known| who(&known.acknowledged_by));
    print(&format!("{name}: {release} acknowledged by {by}\n"))
}

async fn revoke(name: &str, flags: &Flags) -> Result<(), Failure> {
    let reason = reason(flags)?;
    let cluster = connect(flags).await?;
    let author = Author { person: cluster.whoami().await?, reason };
    let prepare = |rollout: &RuntimeRollout, now| Ok(revoke::prepare(rollout, now, &author)?);
    let patched = carry_out(&cluster, name, prepare).await?;
    let by = patched
        .spec
        .revocation
        .map_or_else(|| "nobody; describe the rollout".to_owned(), |revocation| who(&revocation.revoked_by));
    print(&format!("{name} revoked by {by}; the step in flight finishes, no further step starts\n"))
}

/// Reads, prepares and patches, again from the start when the object changed in between.
async fn carry_out(
    cluster: &Cluster,
    name: &str,
    prepare: impl Fn(&RuntimeRollout, Timestamp) -> Result<Change, Failure>,
) -> Result<RuntimeRollout, Failure> {
    let mut attempt = 1;
    loop {
        let change = prepare(&cluster.rollout(name).await?, Timestamp::now())?;
        match cluster.patch(name, &change).await {
            Err(ClientError::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
            other => return Ok(other?),
        }
    }
}

fn reason(flags: &Flags) -> Result<String, Failure> {
    flags.reason.clone().ok_or_else(|| Failure::Usage("--reason is required".into()))
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
    use super::*;
    use crate::fixture;

    #[test]
    fn who_approved_is_what_the_api_server_returned() {
        let text = approved("rollout-1", fixture::in_flight().spec.approval.as_ref());
        assert_eq!(text, "rollout-1 approved by bob@example.com until 2026-07-01T12:00:00Z (in 3h 10m)\n");
        assert!(approved("rollout-1", None).contains("returned no approval"));
    }
}
