//! The lease: who may write. Lost once, this process never writes again; another one may.

mod lease;
mod trouble;

use std::time::Duration;

use aicr_drive::{Fence, metrics::registry};
use kube::{Client, Config};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError, LeaseParams};
use prometheus::IntGauge;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use self::{
    lease::{Kept, Ours, Watched},
    trouble::{Trouble, Unread, Verdict},
};

/// Name of the Lease, in the operator's namespace.
const LEASE: &str = "aicr-operator";
/// For a connection without traffic.
const REST: Duration = Duration::from_mins(1);
/// Seconds for which a lease holds: after a crash, nobody writes for so long at most.
const HOLDS: u64 = 30;
/// Seconds before its end at which it is renewed.
const GRACE: u64 = 20;
/// For one call: with [`trouble::ENDURED`], a leader that cannot renew stops before its lease ends.
const CALL: Duration = Duration::from_secs(2);
/// How often the one who leads looks at its own lease.
const WITNESS: Duration = Duration::from_secs(5);
/// For how long it may find the lease not renewed, which it is every 10 s. Renewed right after a look, that is seen 5 s
/// later, endured in the look 15 s after that, and not in the next: 27 s with the call, and the lease holds 30.
const UNRENEWED: Duration = Duration::from_secs(17);
/// How soon one who waits looks again: a lease given back is taken up after so long.
const LOOK: Duration = Duration::from_secs(2);

/// Why a campaign ends before it is told to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeadError {
    /// Another holds it, or it could not be renewed in time.
    #[error("the lease is lost")]
    Lost,
}

/// Why a look at the lease came to nothing.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error("read the lease")]
    Read(#[source] kube::Error),
    #[error("take the lease up")]
    TakeUp(#[from] LeaseManagerError),
}

/// The client for the lease alone: an answer that comes late is none.
pub(crate) fn client(mut config: Config) -> Result<Client, kube::Error> {
    config.connect_timeout = Some(CALL);
    // Longer than any rest between two looks: it also ends a connection that rests. Each call has its own bound.
    config.read_timeout = Some(REST);
    config.write_timeout = Some(REST);
    aicr_drive::client(config)
}

/// One who wants to lead.
pub(crate) struct Candidate {
    client: Client,
    namespace: String,
    identity: String,
    leading: watch::Sender<bool>,
    fence: Fence,
    gauge: IntGauge,
}

impl Candidate {
    /// Wants to lead under this name, tells `leading`, and opens the fence for as long as the lease holds.
    pub(crate) fn new(
        client: Client,
        namespace: &str,
        identity: &str,
        leading: watch::Sender<bool>,
        fence: Fence,
    ) -> Self {
        let (namespace, identity) = (namespace.to_owned(), identity.to_owned());
        Self { client, namespace, identity, leading, fence, gauge: gauge() }
    }

    /// Waits for the lease and keeps it until `stop` is ready, then gives it back.
    pub(crate) async fn campaign(self, stop: impl Future<Output = ()>) -> Result<(), LeadError> {
        let mut stop = std::pin::pin!(stop);
        let manager = tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            manager = self.won() => manager,
        };
        tracing::info!(identity = self.identity, "this replica leads");
        self.tell(true);
        tokio::select! {
            biased;
            () = &mut stop => {}
            () = lost(&manager) => return Err(self.lost()),
            () = self.slipped_away() => return Err(self.lost()),
        }
        self.tell(false);
        drop(manager);
        match timeout(CALL * 2, self.lease().give_back()).await {
            Ok(Ok(())) => tracing::info!("the lease is given back"),
            Ok(Err(error)) => {
                tracing::warn!(error = crate::told(&error), "the lease could not be given back and runs out");
            }
            Err(_) => tracing::warn!("the lease could not be given back in time and runs out"),
        }
        Ok(())
    }

    fn lost(&self) -> LeadError {
        self.tell(false);
        LeadError::Lost
    }

    /// Returns when the lease is another's, or is not renewed although the library says nothing.
    async fn slipped_away(&self) {
        let mut watched = Watched::default();
        loop {
            tokio::time::sleep(WITNESS).await;
            match self.lease().is_kept(&mut watched, Instant::now()).await {
                // It was renewed after the read that found it unrenewed.
                Kept::Ours => watched.changed_after().into_iter().for_each(|after| self.fence.open_until(over(after))),
                Kept::Unrenewed(since) if since < UNRENEWED => {}
                Kept::Unrenewed(since) => {
                    let seconds = since.as_secs();
                    return tracing::error!(seconds, "the lease is not renewed; has the clock been set?");
                }
                Kept::Gone => return tracing::error!("the lease is another replica's"),
            }
        }
    }

    fn tell(&self, leads: bool) {
        if !leads {
            self.fence.close();
        }
        self.gauge.set(i64::from(leads));
        self.leading.send_replace(leads);
    }

    /// Returns with the lease.
    async fn won(&self) -> LeaseManager {
        let (mut unread, mut watched) = (Unread::default(), Watched::default());
        loop {
            let begun = Instant::now();
            match self.look(&mut watched).await {
                Ok(Some(manager)) => {
                    self.fence.open_until(over(begun));
                    return manager;
                }
                Ok(None) => unread = Unread::default(),
                Err(error) if unread.is_worth_telling() => {
                    tracing::warn!(error = crate::told(&error), "the lease cannot be read");
                }
                // An API server closes connections that rest; the next call has a new one.
                Err(error) => tracing::debug!(error = crate::told(&error), "the lease could not be read once"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn look(&self, watched: &mut Watched) -> Result<Option<LeaseManager>, LookError> {
        if !self.lease().is_to_be_had(watched, Instant::now()).await.map_err(LookError::Read)? {
            return Ok(None);
        }
        // A manager that found another holder after all would sleep until that one's time ends.
        match timeout(LOOK, self.take_up()).await {
            Ok(taken) => Ok(taken?),
            Err(_) => Ok(None),
        }
    }

    async fn take_up(&self) -> Result<Option<LeaseManager>, LeaseManagerError> {
        let params = LeaseParams::new(&self.identity, HOLDS, GRACE).with_field_manager(&self.identity);
        let builder = LeaseManagerBuilder::new(self.client.clone(), LEASE);
        let manager = builder.with_namespace(&self.namespace).with_parameters(params).build().await?;
        Ok(manager.changed().await?.then_some(manager))
    }

    fn lease(&self) -> Ours<'_> {
        Ours::new(&self.client, &self.namespace, &self.identity)
    }
}

/// When a lease that was taken up or renewed after this time is over at the earliest.
fn over(after: Instant) -> Instant {
    after + Duration::from_secs(HOLDS)
}

/// Keeps the lease renewed; returns when it is lost.
async fn lost(manager: &LeaseManager) {
    let mut trouble = Trouble::default();
    loop {
        let begun = Instant::now();
        match manager.changed().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%error, "the lease could not be renewed");
                match trouble.failed(begun, Instant::now()) {
                    Verdict::Endure => tokio::time::sleep(trouble::AGAIN).await,
                    Verdict::GiveUp => return,
                }
            }
        }
    }
}

fn gauge() -> IntGauge {
    #[expect(clippy::expect_used, reason = "the name is a literal")]
    let gauge = IntGauge::new("aicr_operator_leader", "1 in the replica that leads, else 0.").expect("a valid name");
    if let Err(error) = registry().register(Box::new(gauge.clone())) {
        tracing::warn!(%error, "a metric is not exported");
    }
    gauge
}

#[cfg(test)]
mod tests;
