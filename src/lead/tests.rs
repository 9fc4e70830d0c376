//! Campaigns against an API server in memory, in a time that runs by itself.

use std::sync::{Arc, Mutex};

use axum::http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;
use crate::drain::Drain;

/// The Lease, once it was made.
#[derive(Default)]
struct Server {
    lease: Option<Value>,
    once: Once,
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

type Shared = Arc<Mutex<Server>>;

fn failure(code: StatusCode, reason: &str) -> (StatusCode, Value) {
    (code, json!({ "kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason, "message": "no" }))
}

impl Server {
    fn answer(&mut self, method: &Method, body: &[u8]) -> (StatusCode, Value) {
        if *method == Method::POST {
            self.lease = Some(serde_json::from_slice(body).unwrap());
        } else if *method == Method::PATCH {
            let won = self.lease.as_ref().is_some_and(|lease| !lease["spec"]["leaseTransitions"].is_null());
            if self.once == Once::Won && won {
                return failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
            }
            let patch: Value = serde_json::from_slice(body).unwrap();
            let Some(lease) = &mut self.lease else { return failure(StatusCode::NOT_FOUND, "NotFound") };
            for (key, value) in patch["spec"].as_object().unwrap() {
                lease["spec"][key] = value.clone();
            }
            if self.once == Once::Won && patch["spec"]["renewTime"].is_string() {
                let past = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(11);
                lease["spec"]["renewTime"] = json!(past.to_string());
            }
        }
        self.lease.clone().map_or_else(|| failure(StatusCode::NOT_FOUND, "NotFound"), |lease| (StatusCode::OK, lease))
    }

    fn holder(&self) -> Option<&str> {
        self.lease.as_ref().and_then(|lease| lease["spec"]["holderIdentity"].as_str())
    }
}

fn client(server: &Shared) -> Client {
    let server = Arc::clone(server);
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = Arc::clone(&server);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let (status, answer) = server.lock().unwrap().answer(&head.method, &body);
            let response = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()));
            response.map_err(std::io::Error::other)
        }
    });
    Client::new(service, "ns")
}

struct Replica {
    leading: watch::Receiver<bool>,
    stop: Drain,
    campaign: JoinHandle<Result<(), LeadError>>,
}

fn replica(server: &Shared, name: &str) -> Replica {
    let (sender, leading) = watch::channel(false);
    let stop = Drain::new();
    let candidate = Candidate::new(client(server), "ns", name, sender);
    let campaign = tokio::spawn(candidate.campaign(stop.listener().stopping()));
    Replica { leading, stop, campaign }
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
    assert!(!*second.leading.borrow());
    assert_eq!(server.lock().unwrap().holder(), Some("a"));
    first.stop.begin();
    first.campaign.await.unwrap().unwrap();
    assert!(!*first.leading.borrow());
    second.leads().await;
    assert_eq!(server.lock().unwrap().holder(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn who_cannot_renew_is_told_and_ends_before_the_lease_does() {
    let server = Arc::new(Mutex::new(Server { lease: None, once: Once::Won }));
    let mut only = replica(&server, "a");
    only.leads().await;
    let begun = Instant::now();
    let ended = timeout(Duration::from_secs(HOLDS), only.campaign).await.expect("still leads");
    assert!(matches!(ended.unwrap(), Err(LeadError::Lost)));
    assert!(begun.elapsed() >= trouble::ENDURED);
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
