//! The lease made free, only as it was read: once its time is over, and when it is given back.
//!
//! The library takes an expired lease off its holder without a precondition. Of two replicas that both wait, the slower
//! one would so wipe what the faster one had just taken, and both would lead until the next renewal. So that never
//! comes to the library: it is shown a lease that is free, or its own.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::LEASE;

/// Between two attempts to give a lease back that changed meanwhile.
const AGAIN: Duration = Duration::from_millis(50);

/// The lease, and who we are to it.
pub(super) struct Ours<'c> {
    api: Api<Lease>,
    identity: &'c str,
}

/// Whose a lease is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Nobody's.
    Free,
    /// Ours, and its time is not over.
    Ours,
    /// Another's, and its time is not over.
    Anothers,
    /// Somebody's whose time is over, ours included.
    Expired,
}

impl<'c> Ours<'c> {
    /// The lease in this namespace.
    pub(super) fn new(client: &Client, namespace: &str, identity: &'c str) -> Self {
        Self { api: Api::namespaced(client.clone(), namespace), identity }
    }

    /// Whether the library may take it up: it is absent, free or ours. One whose time is over is made free first.
    pub(super) async fn is_to_be_had(&self, now: Timestamp) -> Result<bool, kube::Error> {
        let Some(lease) = self.api.get_opt(LEASE).await? else { return Ok(true) };
        match self.held(&lease, now) {
            Held::Free | Held::Ours => Ok(true),
            Held::Anothers => Ok(false),
            Held::Expired => self.free(&lease).await,
        }
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

    fn held(&self, lease: &Lease, now: Timestamp) -> Held {
        let Some(spec) = &lease.spec else { return Held::Free };
        if spec.holder_identity.is_none() && spec.renew_time.is_none() && spec.acquire_time.is_none() {
            return Held::Free;
        }
        match (ends(spec), holder(lease)) {
            (Some(end), Some(holder)) if end >= now => {
                if holder == self.identity {
                    Held::Ours
                } else {
                    Held::Anothers
                }
            }
            (Some(_) | None, _) => Held::Expired,
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

/// When its time is over; one that does not say so is over.
fn ends(spec: &LeaseSpec) -> Option<Timestamp> {
    let holds = SignedDuration::from_secs(spec.lease_duration_seconds?.into());
    spec.renew_time.as_ref()?.0.checked_add(holds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lead::tests::{Server, Shared, client};

    fn now() -> Timestamp {
        Timestamp::now()
    }

    fn server(holder: &str, renewed_seconds_ago: i64) -> Shared {
        let renewed = now() - SignedDuration::from_secs(renewed_seconds_ago);
        let spec = json!({ "holderIdentity": holder, "renewTime": renewed.to_string(), "acquireTime": renewed.to_string(),
            "leaseDurationSeconds": 30, "leaseTransitions": 1 });
        let server = Shared::default();
        *server.lock().unwrap() = Server::holding(json!({ "metadata": { "name": LEASE }, "spec": spec }));
        server
    }

    #[tokio::test]
    async fn a_lease_is_to_be_had_when_it_is_absent_free_ours_or_over() {
        for (name, server, expected, left) in [
            ("absent", Shared::default(), true, None),
            ("another's", server("b", 20), false, Some("b")),
            ("ours", server("a", 20), true, Some("a")),
            ("over", server("b", 31), true, None),
            ("ours and over", server("a", 31), true, None),
        ] {
            let client = client(&server);
            let ours = Ours::new(&client, "ns", "a");
            assert_eq!(ours.is_to_be_had(now()).await.unwrap(), expected, "{name}");
            assert_eq!(server.lock().unwrap().holder(), left, "{name}");
        }
    }

    /// Two wait, and both have read the lease as over.
    #[tokio::test]
    async fn the_slower_one_of_two_does_not_take_off_what_the_faster_one_took() {
        let server = server("gone", 31);
        let client = client(&server);
        let slow = Ours::new(&client, "ns", "slow");
        let read = slow.api.get(LEASE).await.unwrap();
        assert_eq!(slow.held(&read, now()), Held::Expired);
        server.lock().unwrap().sets(&json!({ "holderIdentity": "fast", "renewTime": now().to_string() }));
        assert!(!slow.free(&read).await.unwrap());
        assert_eq!(server.lock().unwrap().holder(), Some("fast"));
        assert!(!slow.is_to_be_had(now()).await.unwrap());
    }

    #[tokio::test]
    async fn a_lease_is_given_back_by_its_holder_alone() {
        for (identity, left) in [("a", None), ("b", Some("a"))] {
            let server = server("a", 1);
            let client = client(&server);
            Ours::new(&client, "ns", identity).give_back().await.unwrap();
            assert_eq!(server.lock().unwrap().holder(), left);
        }
    }
}
