//! The lease made free, only as it was read: once its time is over, and when it is given back.
//!
//! The library takes an expired lease off its holder without a precondition. Of two replicas that both wait, the slower
//! one would so wipe what the faster one had just taken, and both would lead until the next renewal. So that never
//! comes to the library: it is shown a lease that is free.
//!
//! And it goes by the times in the lease, which another replica's clock wrote. Here a lease is over when it stood
//! unchanged before our own eyes for as long as it holds, whatever its times say (as client-go has it).

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{CALL, HOLDS, LEASE};

/// Between two attempts to give a lease back that changed meanwhile.
const AGAIN: Duration = Duration::from_millis(50);

/// The lease, and who we are to it.
pub(super) struct Ours<'c> {
    api: Api<Lease>,
    identity: &'c str,
}

/// A lease as it was last seen, and since when it has not changed.
#[derive(Debug, Default)]
pub(super) struct Watched {
    seen: Option<(LeaseSpec, Instant)>,
    /// When it was read last.
    read: Option<Instant>,
    /// The read before the one that found it changed.
    changed_after: Option<Instant>,
}

/// Whose a lease is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Nobody's.
    Free,
    /// Under our name: of this process, or of one before it in the same pod.
    Ours,
    /// Another's, which may be renewed yet.
    Anothers,
    /// Another's, who has not renewed it in its time.
    Over,
}

/// What the one who leads finds when it looks at its own lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Ours, and renewed.
    Ours,
    /// Another's, or nobody's.
    Gone,
    /// Ours, and not renewed for so long.
    Unrenewed(Duration),
}

impl Watched {
    /// For how long it has stood like this.
    fn unchanged(&mut self, spec: &LeaseSpec, now: Instant) -> Duration {
        let before = self.read.replace(now);
        match &self.seen {
            Some((seen, since)) if seen == spec => now.duration_since(*since),
            Some(_) | None => {
                self.changed_after = before;
                self.seen = Some((spec.clone(), now));
                Duration::ZERO
            }
        }
    }

    /// A time before its last change: the read that found it as it was before. Absent where it was first seen as it is.
    pub(super) fn changed_after(&self) -> Option<Instant> {
        self.changed_after
    }

    /// For how long nothing else was seen, also where it could not be read.
    fn age(&self, now: Instant) -> Duration {
        self.seen.as_ref().map_or(Duration::ZERO, |(_, since)| now.duration_since(*since))
    }
}

impl<'c> Ours<'c> {
    /// The lease in this namespace.
    pub(super) fn new(client: &Client, namespace: &str, identity: &'c str) -> Self {
        Self { api: Api::namespaced(client.clone(), namespace), identity }
    }

    /// Whether the library may take it up: it is absent or free. One that is over, or of an earlier process of ours, is
    /// made free first.
    pub(super) async fn is_to_be_had(&self, watched: &mut Watched, now: Instant) -> Result<bool, kube::Error> {
        let Some(lease) = self.api.get_opt(LEASE).await? else { return Ok(true) };
        match self.held(&lease, watched, now) {
            Held::Free => Ok(true),
            Held::Anothers => Ok(false),
            Held::Ours | Held::Over => self.free(&lease).await,
        }
    }

    /// How the one who leads stands, by its own eyes: a clock that was set back would keep the library from renewing.
    pub(super) async fn is_kept(&self, watched: &mut Watched, now: Instant) -> Kept {
        let unrenewed = match timeout(CALL, self.api.get_opt(LEASE)).await {
            Err(_) | Ok(Err(_)) => watched.age(now),
            Ok(Ok(lease)) => match lease.and_then(|lease| lease.spec) {
                Some(spec) if spec.holder_identity.as_deref() == Some(self.identity) => watched.unchanged(&spec, now),
                Some(_) | None => return Kept::Gone,
            },
        };
        if unrenewed.is_zero() { Kept::Ours } else { Kept::Unrenewed(unrenewed) }
    }

    /// Gives it back, if it is still ours.
    pub(super) async fn give_back(&self) -> Result<(), kube::Error> {
        loop {
            let lease = self.api.get_opt(LEASE).await?;
            let Some(lease) = lease.filter(|lease| holder(lease) == Some(self.identity)) else { return Ok(()) };
            if self.free(&lease).await? {
                return Ok(());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    fn held(&self, lease: &Lease, watched: &mut Watched, now: Instant) -> Held {
        let Some(spec) = &lease.spec else { return Held::Free };
        if spec.holder_identity.is_none() && spec.renew_time.is_none() && spec.acquire_time.is_none() {
            return Held::Free;
        }
        let unchanged = watched.unchanged(spec, now);
        if holder(lease) == Some(self.identity) {
            Held::Ours
        } else if unchanged >= holds(spec) {
            Held::Over
        } else {
            Held::Anothers
        }
    }

    /// Takes the holder off exactly what was read; whether it was still that.
    async fn free(&self, lease: &Lease) -> Result<bool, kube::Error> {
        let freed = json!({
            "metadata": { "resourceVersion": lease.metadata.resource_version },
            "spec": { "holderIdentity": null, "acquireTime": null, "renewTime": null, "leaseDurationSeconds": null },
        });
        let params = PatchParams { field_manager: Some(self.identity.to_owned()), ..PatchParams::default() };
        match self.api.patch(LEASE, &params, &Patch::Merge(freed)).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref()
}

/// For how long it holds; one that does not say so is taken for ours.
fn holds(spec: &LeaseSpec) -> Duration {
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Duration::from_secs(seconds.unwrap_or(HOLDS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lead::tests::{Server, Shared, client};

    /// Times by a clock that is so many minutes off.
    fn server(holder: &str, minutes_off: i64) -> Shared {
        let renewed = (jiff::Timestamp::now() + jiff::SignedDuration::from_mins(minutes_off)).to_string();
        let spec = json!({ "holderIdentity": holder, "renewTime": renewed, "acquireTime": renewed,
            "leaseDurationSeconds": 30, "leaseTransitions": 1 });
        let server = Shared::default();
        *server.lock().unwrap() = Server::holding(json!({ "metadata": { "name": LEASE }, "spec": spec }));
        server
    }

    async fn is_to_be_had(ours: &Ours<'_>, watched: &mut Watched, now: Instant) -> bool {
        ours.is_to_be_had(watched, now).await.unwrap()
    }

    #[tokio::test]
    async fn a_lease_is_to_be_had_when_it_is_absent_free_or_of_our_name() {
        for (name, server, expected, left) in [
            ("absent", Shared::default(), true, None),
            ("another's", server("b", 0), false, Some("b")),
            ("ours", server("a", 0), true, None),
        ] {
            let client = client(&server);
            let ours = Ours::new(&client, "ns", "a");
            assert_eq!(is_to_be_had(&ours, &mut Watched::default(), Instant::now()).await, expected, "{name}");
            assert_eq!(server.lock().unwrap().holder(), left, "{name}");
        }
    }

    /// B89: what counts is how long nobody renewed it before our eyes.
    #[tokio::test]
    async fn another_clock_neither_hastens_nor_hinders_who_waits() {
        for minutes_off in [-10, 0, 10] {
            let server = server("b", minutes_off);
            let client = client(&server);
            let (ours, mut watched, begun) = (Ours::new(&client, "ns", "a"), Watched::default(), Instant::now());
            let after = |seconds| begun + Duration::from_secs(seconds);
            assert!(!is_to_be_had(&ours, &mut watched, after(0)).await);
            assert!(!is_to_be_had(&ours, &mut watched, after(29)).await);
            server.lock().unwrap().sets(&json!({ "renewTime": "2026-11-29T00:00:00.000000Z" }));
            assert!(!is_to_be_had(&ours, &mut watched, after(30)).await, "renewed");
            assert!(!is_to_be_had(&ours, &mut watched, after(59)).await);
            assert!(is_to_be_had(&ours, &mut watched, after(60)).await);
            assert_eq!(server.lock().unwrap().holder(), None);
        }
    }

    /// Two wait, and both have read the lease as over.
    #[tokio::test]
    async fn the_slower_one_of_two_does_not_take_off_what_the_faster_one_took() {
        let server = server("gone", 0);
        let client = client(&server);
        let (slow, mut watched, begun) = (Ours::new(&client, "ns", "slow"), Watched::default(), Instant::now());
        let read = slow.api.get(LEASE).await.unwrap();
        assert_eq!(slow.held(&read, &mut watched, begun), Held::Anothers);
        assert_eq!(slow.held(&read, &mut watched, begun + Duration::from_secs(30)), Held::Over);
        server.lock().unwrap().sets(&json!({ "holderIdentity": "fast", "renewTime": "2026-11-29T00:00:00.000000Z" }));
        assert!(!slow.free(&read).await.unwrap());
        assert_eq!(server.lock().unwrap().holder(), Some("fast"));
        assert!(!is_to_be_had(&slow, &mut watched, begun + Duration::from_secs(31)).await);
    }

    #[tokio::test]
    async fn a_leader_sees_that_its_lease_is_another_s_or_is_not_renewed() {
        let server = server("a", 0);
        let client = client(&server);
        let (ours, mut watched, begun) = (Ours::new(&client, "ns", "a"), Watched::default(), Instant::now());
        let ten = Duration::from_secs(10);
        assert_eq!(ours.is_kept(&mut watched, begun).await, Kept::Ours);
        assert_eq!(ours.is_kept(&mut watched, begun + ten).await, Kept::Unrenewed(ten));
        server.lock().unwrap().breaks_off();
        assert_eq!(ours.is_kept(&mut watched, begun + 2 * ten).await, Kept::Unrenewed(2 * ten));
        server.lock().unwrap().sets(&json!({ "renewTime": "2026-11-29T00:00:00.000000Z" }));
        assert_eq!(watched.changed_after(), None, "it may have been renewed long before it was first seen");
        assert_eq!(ours.is_kept(&mut watched, begun + 2 * ten).await, Kept::Ours);
        assert_eq!(watched.changed_after(), Some(begun + ten), "a read that failed has found nothing");
        server.lock().unwrap().sets(&json!({ "holderIdentity": "b" }));
        assert_eq!(ours.is_kept(&mut watched, begun + 2 * ten).await, Kept::Gone);
    }

    #[tokio::test]
    async fn a_lease_is_given_back_by_its_holder_alone() {
        for (identity, left) in [("a", None), ("b", Some("a"))] {
            let server = server("a", 0);
            let client = client(&server);
            Ours::new(&client, "ns", identity).give_back().await.unwrap();
            assert_eq!(server.lock().unwrap().holder(), left);
        }
    }
}
