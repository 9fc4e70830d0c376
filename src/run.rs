//! The wiring: what runs in every replica, what the lease starts, and in which order all of it stops.

mod stop;

use std::{net::SocketAddr, sync::Arc};

use aicr_certs::{CertificateResolver, Mounted};
use aicr_drive::{Certificates, Drive, DriveSettings, Fence};
use jiff::Timestamp;
use kube::{Client, Config};
use tokio::{net::TcpListener, sync::watch, task::JoinError};

use self::stop::Tasks;
use crate::{
    args::{Args, CertificatesProvider},
    door::{self, Source},
    drain::Drain,
    lead::{self, Candidate, LeadError},
    listen::{self, Listening, Transport},
    serve,
};

/// Why the process ends before it is told to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("another TLS provider is installed already")]
    Provider,
    #[error("start the threads")]
    Threads(#[source] std::io::Error),
    #[error("find the API server")]
    Config(#[source] Box<kube::config::InferConfigError>),
    #[error("make a client of the API server")]
    Client(#[source] Box<kube::Error>),
    #[error("name the webhooks' Service")]
    Service(#[from] aicr_certs::NotALabel),
    #[error("listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("serve")]
    Serve(#[from] std::io::Error),
    #[error("run the controllers")]
    Drive(#[from] aicr_drive::DriveError),
    #[error("lead")]
    Lead(#[from] LeadError),
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

/// When each part is told to stop.
struct Stages {
    /// First: unready, the last reconcile, answers with `Connection: close`.
    drain: Drain,
    /// Once nothing is written any more: the lease is given back.
    handover: Drain,
    /// At the very end: metrics and probes.
    end: Drain,
}

/// Runs until told to stop, or until a part fails.
pub(crate) async fn run(args: &Args) -> Result<(), RunError> {
    tracing::info!(version = env!("CARGO_PKG_VERSION"), aicr = args.aicr_version, "the operator starts");
    if args.allow_self_approval {
        tracing::warn!("--allow-self-approval: whoever changed the runtime may approve the change");
    }
    let metrics = listen(args.metrics_address).await?;
    let webhooks = listen(args.webhook_address).await?;
    let config = Config::infer().await.map_err(|source| RunError::Config(Box::new(source)))?;
    let made = |client: Result<Client, kube::Error>| client.map_err(|source| RunError::Client(Box::new(source)));
    let fence = Fence::default();
    let client = made(aicr_drive::fenced(config.clone(), &fence))?;
    let lease = made(lead::client(config))?;
    let stages = Stages { drain: Drain::new(), handover: Drain::new(), end: Drain::new() };
    let holder = Holder { client: lease, fence };
    let (tasks, stages) = start(args, Sockets { metrics, webhooks }, &client, holder, stages)?;
    tasks.watch(stages).await
}

/// What the lease is kept with, and what it opens.
struct Holder {
    client: Client,
    fence: Fence,
}

struct Sockets {
    metrics: TcpListener,
    webhooks: TcpListener,
}

async fn listen(address: SocketAddr) -> Result<TcpListener, RunError> {
    TcpListener::bind(address).await.map_err(|source| RunError::Listen { address, source })
}

/// Starts every part.
fn start(
    args: &Args,
    sockets: Sockets,
    client: &Client,
    holder: Holder,
    stages: Stages,
) -> Result<(Tasks, Stages), RunError> {
    let settings = args.settings();
    let policy = args.policy(&settings);
    let resolver = Arc::new(CertificateResolver::default());
    let (sender, leading) = watch::channel(false);
    let Holder { client: lease, fence } = holder;
    let candidate = Candidate::new(lease, &settings.namespace, &settings.instance, sender, fence);
    let mut tasks = Tasks::default();
    let source = certificates(args, &settings, client, &resolver, &leading, &mut tasks)?;
    let drive = Drive::new(client, settings);
    let (router, refreshed) = door::open(policy, drive.rollouts());
    let readiness = drive.readiness();
    let (watching, driving) = drive.split();
    let reviews = Listening {
        listener: sockets.webhooks,
        transport: Transport::Tls(resolver.clone()),
        router,
        connections: door::CONNECTIONS,
        linger: door::LINGER,
    };

    tasks.beside("the watches", async { watching.run().await.map_err(RunError::from) });
    tasks.beside("the door's knowledge", async {
        refreshed.await;
        Ok(())
    });
    tasks.driving(driving.run(leads(leading.clone()), stages.drain.listener().stopping()));
    tasks.campaign(candidate.campaign(stages.handover.listener().stopping()));
    tasks.door(listen::serve(reviews, stages.drain.listener()));
    let missing = move || {
        let watches = (!readiness.is_ready()).then_some("a watch has not delivered its first list");
        watches.or_else(|| source.missing(&resolver, &leading, Timestamp::now()))
    };
    let probes = serve::Probes::new(stages.drain.listener(), missing);
    tasks.plain(listen::serve(serve::plain(sockets.metrics, probes), stages.end.listener()));
    Ok((tasks, stages))
}

/// Starts what keeps the certificate.
fn certificates(
    args: &Args,
    settings: &DriveSettings,
    client: &Client,
    resolver: &Arc<CertificateResolver>,
    leading: &watch::Receiver<bool>,
    tasks: &mut Tasks,
) -> Result<Source, RunError> {
    let certificates = args.certificates(settings)?;
    Ok(match args.certificates_provider {
        CertificatesProvider::Own => {
            let kept = Certificates::new(client, certificates, resolver.clone(), leading.clone());
            let standing = kept.standing();
            tasks.beside("the certificates", async { kept.run().await.map_err(RunError::from) });
            Source::Own(standing)
        }
        CertificatesProvider::CertManager => {
            let files = Mounted::new(&args.certificates_folder, certificates.names);
            let resolver = resolver.clone();
            tasks.beside("the mounted certificate", async {
                door::mounted(files, resolver).await;
                Ok(())
            });
            Source::Mounted
        }
    })
}

/// Returns once this replica leads.
async fn leads(mut leading: watch::Receiver<bool>) {
    if leading.wait_for(|leads| *leads).await.is_err() {
        std::future::pending::<()>().await;
    }
}
