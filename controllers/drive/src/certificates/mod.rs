//! The door's certificates: a leaf in every replica, the authority and its bundle by the one that leads.

mod seen;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use aicr_certs::{
    Authority, Bundle, CertificateResolver, Found, LOOK_EVERY, Leader, Leaf, LeafLife, Rotation, ServiceNames, Step,
    Stored,
};
use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;

use self::seen::{Seen, SeenFeeds};
use crate::{
    controller::Running,
    error::{DriveError, chain},
    metrics,
    write::{AuthorityWriter, Written},
};

/// How long to rest after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How long a write may take to come back by the watch before it is looked at again.
const ECHO: Duration = Duration::from_secs(1);

/// What an installation says about its certificates.
#[derive(Clone, Debug)]
pub struct CertificateSettings {
    /// The operator's namespace.
    pub namespace: String,
    /// Secret of the authority, in that namespace; the chart makes its shell.
    pub secret: String,
    /// Name of both webhook configurations.
    pub configuration: String,
    /// How the API server calls the Service.
    pub names: ServiceNames,
    /// How long a leaf holds.
    pub life: LeafLife,
}

/// Keeps a certificate in the resolver, and while leading the authority and its bundle.
pub struct Certificates {
    feeds: SeenFeeds,
    keeper: Keeper,
    leading: watch::Receiver<bool>,
}

/// Tells whether the leader has found authority and bundle as they should be.
#[derive(Clone, Debug, Default)]
pub struct Standing(Arc<AtomicBool>);

impl Standing {
    /// Whether they stood at the last look; false in a replica that does not lead.
    pub fn stands(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, stands: bool) {
        self.0.store(stands, Ordering::Relaxed);
    }
}

impl Certificates {
    /// Certificates of this installation, for `resolver`; nothing is asked of the API server yet.
    pub fn new(
        client: &Client,
        settings: CertificateSettings,
        resolver: Arc<CertificateResolver>,
        leading: watch::Receiver<bool>,
    ) -> Self {
        let (seen, feeds) = seen::watches(client, &settings);
        let write = AuthorityWriter::new(client.clone(), &settings.namespace);
        let leader = Leader::new(settings.life);
        let keeper = Keeper {
            seen,
            write,
            settings,
            resolver,
            leader,
            leaf: None,
            standing: Standing::default(),
            missed: false,
        };
        Self { feeds, keeper, leading }
    }

    /// To be asked while it runs.
    pub fn standing(&self) -> Standing {
        self.keeper.standing.clone()
    }

    /// Runs for as long as it is polled.
    ///
    /// # Errors
    /// The watches ended, which none does.
    pub fn run(self) -> Running {
        let Self { feeds, keeper, leading } = self;
        Box::pin(async move {
            tokio::select! {
                () = Box::pin(feeds.run()) => {}
                () = Box::pin(keeper.run(leading)) => {}
            }
            Err(DriveError::WatchesEnded)
        })
    }
}

struct Keeper {
    seen: Seen,
    write: AuthorityWriter,
    settings: CertificateSettings,
    resolver: Arc<CertificateResolver>,
    leader: Leader,
    leaf: Option<Leaf>,
    standing: Standing,
    missed: bool,
}

impl Keeper {
    async fn run(mut self, mut leading: watch::Receiver<bool>) {
        let mut changes = self.seen.changes.listen();
        loop {
            changes.mark_unchanged();
            let leads = *leading.borrow_and_update();
            let rest = match self.look(leads).await {
                Ok(rest) => rest,
                Err(error) => {
                    tracing::warn!(error = chain(&error), "the certificates are looked at again");
                    self.standing.set(false);
                    AFTER_FAILURE
                }
            };
            tokio::select! {
                _ = changes.changed() => {}
                // Whoever campaigned has ended, and so does the process: nothing more comes.
                Ok(()) = leading.changed() => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    /// The replica's own part, and one step of the leader's; how long to rest.
    async fn look(&mut self, leads: bool) -> Result<Duration, DriveError> {
        let now = Timestamp::now();
        let Some(stored) = self.seen.stored() else {
            self.miss();
            return Ok(whole(LOOK_EVERY));
        };
        self.missed = false;
        self.renew(&stored, now).await?;
        if !leads {
            self.standing.set(false);
            return Ok(whole(LOOK_EVERY));
        }
        self.lead(&stored, now).await
    }

    /// The Secret is gone. What is served goes on being served, and standing stays as it is: the API servers trust it
    /// still. Said once, since only a person can bring the Secret back.
    fn miss(&mut self) {
        if self.seen.is_synced() && !std::mem::replace(&mut self.missed, true) {
            let secret = &self.settings.secret;
            tracing::error!(
                secret,
                "the Secret of the webhooks' authority is gone, so no certificate can be renewed; helm upgrade makes it again"
            );
        }
    }

    /// A new leaf where one is due.
    async fn renew(&mut self, stored: &Stored, now: Timestamp) -> Result<(), DriveError> {
        let found = Found::read(stored, now);
        let leaf = self.leaf.as_ref();
        let due = |authority: &Authority| leaf.is_none_or(|leaf| leaf.reissue(authority, now).is_some());
        if !found.authority().is_some_and(due) {
            return Ok(());
        }
        let (names, life) = (self.settings.names.clone(), self.settings.life);
        let issue = move || found.authority().map(|authority| Leaf::issue(authority, &names, life, now)).transpose();
        if let Some(leaf) = blocking("issue the serving certificate", issue).await? {
            self.resolver.serve(leaf.served());
            let until = leaf.served().validity().not_after;
            metrics::certificate_ends(until);
            tracing::info!(%until, "a new serving certificate");
            self.leaf = Some(leaf);
        }
        Ok(())
    }

    async fn lead(&mut self, stored: &Stored, now: Timestamp) -> Result<Duration, DriveError> {
        let Some(bundles) = self.seen.bundles() else {
            return Ok(whole(LOOK_EVERY));
        };
        let bundles: Vec<&[u8]> = bundles.iter().map(Vec::as_slice).collect();
        match self.leader.next(stored, &bundles, now) {
            Step::Rotate(found) => {
                tracing::info!(why = %found, "a new authority is made");
                let in_use = self.leaf.as_ref().map(|leaf| leaf.authority().clone());
                let replaces = stored.clone();
                let prepare = move || Rotation::prepare(replaces, in_use.as_ref(), now);
                self.leader.stage(blocking("create an authority", prepare).await?);
                Ok(Duration::ZERO)
            }
            Step::Publish(bundle) => {
                self.standing.set(false);
                self.publish(&bundle).await
            }
            Step::Store(stored) => self.store(&stored).await,
            Step::Rest { until, ready } => {
                self.standing.set(ready);
                Ok(Duration::try_from(until.duration_since(now)).unwrap_or_default().max(Duration::from_millis(100)))
            }
        }
    }

    async fn publish(&self, bundle: &Bundle) -> Result<Duration, DriveError> {
        let name = &self.settings.configuration;
        let (mutating, validating) = (self.seen.mutating(), self.seen.validating());
        if let Some(names) = strays(&mutating, bundle) {
            stale(&self.write.publish_mutating(name, &names, bundle).await?);
        }
        if let Some(names) = strays(&validating, bundle) {
            stale(&self.write.publish_validating(name, &names, bundle).await?);
        }
        tracing::info!("the caBundle is written into the webhook configurations");
        Ok(ECHO)
    }

    async fn store(&self, stored: &Stored) -> Result<Duration, DriveError> {
        if let Some(on) = self.seen.secret_ref() {
            stale(&self.write.store(&on, stored).await?);
            tracing::info!(secret = on.name, "the authority is stored");
        }
        Ok(ECHO)
    }
}

/// What changed meanwhile comes by the watch.
fn stale(written: &Written<()>) {
    match written {
        Written::Done(()) => {}
        Written::Stale => tracing::debug!("the authority's objects changed meanwhile"),
    }
}

/// Names of the entries that do not carry the bundle; `None` where all do.
fn strays<'a>(entries: &'a [(String, Vec<u8>)], bundle: &Bundle) -> Option<Vec<&'a str>> {
    let names: Vec<&str> = entries
        .iter()
        .filter(|(_, carried)| !bundle.stands_in(&[carried.as_slice()]))
        .map(|(name, _)| name.as_str())
        .collect();
    (!names.is_empty()).then_some(names)
}

async fn blocking<T, E>(
    act: &'static str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, DriveError>
where
    T: Send + 'static,
    E: std::error::Error + Send + 'static,
{
    let content = |problem: String| DriveError::Content { act: act.to_owned(), problem };
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| content(error.to_string()))?;
    done.map_err(|error| content(chain(&error)))
}

fn whole(duration: jiff::SignedDuration) -> Duration {
    Duration::try_from(duration).unwrap_or(AFTER_FAILURE)
}

#[cfg(test)]
mod tests;
