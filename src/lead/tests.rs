//! Campaigns against an API server in memory, in a time that runs by itself.

use std::sync::{Arc, Mutex};

use axum::http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;
use crate::drain::Drain;

/// The Lease, once it was made.
#[derive(Default)]
pub(super) struct Server {
    lease: Option<Value>,
    version: u64,
    once: Once,
    /// Calls that break off before they come to it.
    broken: u32,
}

/// How often a lease can be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Once {
    /// As often as anybody wants.
    #[default]
    Always,
    /// Once, and it is due at once (the library looks at the wall clock, which does not run here); then all is refused.
    Won,
}

pub(super) type Shared = Arc<Mutex<Server>>;

fn failure(code: StatusCode, reason: &str) -> (StatusCode, Value) {
    (code, json!({ "kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason, "message": "no" }))
}

impl Server {
    pub(super) fn holding(lease: Value) -> Self {
        Self { lease: Some(lease), ..Self::default() }
    }

    /// Members of the spec, as some other client writes them.
    pub(super) fn sets(&mut self, spec: &Value) {
        self.version += 1;
        for (key, value) in spec.as_object().unwrap() {
            self.lease.as_mut().unwrap()["spec"][key] = value.clone();
        }
    }

    /// The next call does.
    pub(super) fn breaks_off(&mut self) {
        self.broken += 1;
    }

    fn answer(&mut self, method: &Method, body: &[u8]) -> (StatusCode, Value) {
        if *method == Method::POST {
            self.version += 1;
            self.lease = Some(serde_json::from_slice(body).unwrap());
        } else if *method == Method::PATCH {
            let won = self.lease.as_ref().is_some_and(|lease| !lease["spec"]["leaseTransitions"].is_null());
            if self.once == Once::Won && won {
                return failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
            }
            let patch: Value = serde_json::from_slice(body).unwrap();
            if self.lease.is_none() {
                return failure(StatusCode::NOT_FOUND, "NotFound");
            }
            let asked = &patch["metadata"]["resourceVersion"];
            if !asked.is_null() && *asked != json!(self.version.to_string()) {
                return failure(StatusCode::CONFLICT, "Conflict");
            }
            self.sets(&patch["spec"]);
            if self.once == Once::Won && patch["spec"]["renewTime"].is_string() {
                let past = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(11);
                self.sets(&json!({ "renewTime": past.to_string() }));
            }
        }
        if let Some(lease) = &mut self.lease {
            lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        }
        self.lease.clone().map_or_else(|| failure(StatusCode::NOT_FOUND, "NotFound"), |lease| (StatusCode::OK, lease))
    }

    /// Server-side apply without force: what another manager has set is a conflict.
    fn apply(&mut self, body: &[u8]) -> (StatusCode, Value) {
        let asked: Value = serde_json::from_slice(body).unwrap();
        let asked = asked["spec"]["holderIdentity"].as_str();
        if self.holder().is_some() && self.holder() != asked {
            return failure(StatusCode::CONFLICT, "Conflict");
        }
        self.answer(&Method::PATCH, body)
    }

    pub(super) fn holder(&self) -> Option<&str> {
        self.lease.as_ref().and_then(|lease| lease["spec"]["holderIdentity"].as_str())
    }
}

pub(super) fn client(server: &Shared) -> Client {
    let server = Arc::clone(server);
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = Arc::clone(&server);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let mut server = server.lock().unwrap();
            if server.broken > 0 {
                server.broken -= 1;
                return Err(std::io::Error::other("the connection had rested too long"));
            }
            let applies = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/apply-patch+yaml");
            let (status, answer) = if applies { server.apply(&body) } else { server.answer(&head.method, &body) };
            let response = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()));
            response.map_err(std::io::Error::other)
        }
    });
    Client::new(service, "ns")
}

struct Replica {
    leading: watch::Receiver<bool>,
    fence: Fence,
    stop: Drain,
    campaign: JoinHandle<Result<(), LeadError>>,
}

fn replica(server: &Shared, name: &str) -> Replica {
    let (sender, leading) = watch::channel(false);
    let stop = Drain::new();
    let fence = Fence::default();
    let candidate = Candidate::new(client(server), "ns", name, sender, fence.clone());
    let campaign = tokio::spawn(candidate.campaign(stop.listener().stopping()));
    Replica { leading, fence, stop, campaign }
}

impl Replica {
    async fn leads(&mut self) {
        timeout(Duration::from_mins(5), self.leading.wait_for(|leads| *leads)).await.expect("never leads").unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_given_back_is_taken_up_by_the_other_replica() {
    let server = Shared::default();
    let mut first = replica(&server, "a");
    first.leads().await;
    let mut second = replica(&server, "b");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(!*second.leading.borrow() && !second.fence.is_open());
    assert_eq!(server.lock().unwrap().holder(), Some("a"));
    first.stop.begin();
    first.campaign.await.unwrap().unwrap();
    assert!(!*first.leading.borrow() && !first.fence.is_open());
    second.leads().await;
    assert_eq!(server.lock().unwrap().holder(), Some("b"));
}

/// A crash: nobody gives the lease back, and it is taken up when its time is over.
#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_is_taken_up_by_exactly_one_of_two() {
    let gone = json!({ "metadata": { "name": LEASE }, "spec": { "holderIdentity": "gone", "leaseDurationSeconds": 30,
        "renewTime": (jiff::Timestamp::now() - jiff::SignedDuration::from_secs(31)).to_string(), "leaseTransitions": 3 } });
    let server = Arc::new(Mutex::new(Server::holding(gone)));
    let (mut one, mut other) = (replica(&server, "a"), replica(&server, "b"));
    tokio::select! {
        () = one.leads() => {}
        () = other.leads() => {}
    }
    tokio::time::sleep(LOOK * 3).await;
    assert!(*one.leading.borrow() != *other.leading.borrow());
    let holder = if *one.leading.borrow() { "a" } else { "b" };
    assert_eq!(server.lock().unwrap().holder(), Some(holder));
}

#[tokio::test(start_paused = true)]
async fn calls_that_break_off_delay_one_who_waits_and_no_more() {
    let server = Arc::new(Mutex::new(Server { broken: 3, ..Server::default() }));
    replica(&server, "a").leads().await;
    assert_eq!(server.lock().unwrap().broken, 0);
}

#[tokio::test(start_paused = true)]
async fn who_cannot_renew_is_told_and_ends_before_the_lease_does() {
    let server = Arc::new(Mutex::new(Server { once: Once::Won, ..Server::default() }));
    let mut only = replica(&server, "a");
    only.leads().await;
    let begun = Instant::now();
    let ended = timeout(Duration::from_secs(HOLDS), only.campaign).await.expect("still leads");
    assert!(matches!(ended.unwrap(), Err(LeadError::Lost)));
    assert!(begun.elapsed() >= trouble::ENDURED);
}

/// B88: it writes for as long as it renews, and what it knew runs out with the lease, whatever else it does not find out.
#[tokio::test(start_paused = true)]
async fn the_fence_is_open_for_as_long_as_the_lease_is_renewed() {
    let server = Shared::default();
    let mut only = replica(&server, "a");
    only.leads().await;
    for _ in 0..60 {
        assert!(only.fence.is_open());
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert!(*only.leading.borrow());
    // Frozen: nothing of it runs, and its clock does.
    only.campaign.abort();
    tokio::time::sleep(Duration::from_secs(HOLDS)).await;
    assert!(!only.fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn who_finds_the_lease_with_another_ends() {
    let server = Shared::default();
    let mut only = replica(&server, "a");
    only.leads().await;
    server.lock().unwrap().lease.as_mut().unwrap()["spec"]["holderIdentity"] = json!("b");
    let ended = timeout(Duration::from_secs(HOLDS), only.campaign).await.expect("still leads");
    assert!(matches!(ended.unwrap(), Err(LeadError::Lost)));
}
