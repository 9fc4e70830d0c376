//! What goes wrong on the way: refusals, answers that are lost, and what happens to open watches.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Response;
use kube::client::Body;
use tokio::sync::watch;

use super::Kind;

/// What happens to the watches that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Nothing.
    Flows,
    /// Not a byte comes any more, and no error either.
    Silent,
    /// The API server says 410: the version is too old.
    Gone,
    /// A line comes that is no JSON.
    Garbage,
    /// The connection is reset.
    Cut,
}

/// Which requests are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refuse {
    /// None.
    Nothing,
    /// Each time so many have passed, the next is answered with 429, 500, 503 in turn, or the answer to it is lost.
    EachAfter(usize),
    /// All of them, with 503.
    Everything,
    /// Whatever changes an object of this resource, with 504.
    WritesOf(&'static str),
}

/// The troubles of one way.
pub struct Trouble {
    refuse: Mutex<Refuse>,
    passed: AtomicUsize,
    refused: AtomicUsize,
    late: Duration,
    happenings: watch::Sender<Stream>,
}

/// What one request meets.
enum Met {
    Nothing,
    Code(u16),
    /// It is sent, and its answer never comes.
    AnswerLost,
}

impl Trouble {
    /// None, until something is told.
    pub fn none() -> Self {
        Self {
            refuse: Mutex::new(Refuse::Nothing),
            passed: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            late: Duration::ZERO,
            happenings: watch::Sender::new(Stream::Flows),
        }
    }

    /// Everything that a watch tells comes so much later.
    pub fn late(late: Duration) -> Self {
        Self { late, ..Self::none() }
    }

    /// From now on these requests are refused.
    pub fn refuse(&self, what: Refuse) {
        *self.refuse.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// This happens to every watch that is open now; those that are begun later flow.
    pub fn befall(&self, how: Stream) {
        self.happenings.send_replace(how);
    }

    /// How many requests met something.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn lateness(&self) -> Duration {
        self.late
    }

    /// What will happen to a watch that is begun now.
    pub(super) fn stream(&self) -> watch::Receiver<Stream> {
        self.happenings.subscribe()
    }

    fn meets(&self, kind: Kind, path: &str) -> Met {
        let refuse = *self.refuse.lock().unwrap_or_else(PoisonError::into_inner);
        match refuse {
            Refuse::Everything => Met::Code(503),
            Refuse::EachAfter(count) if (self.passed.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(count) => {
                match (self.refused.load(Ordering::Relaxed) % 4, kind) {
                    (0, _) => Met::Code(429),
                    (1, _) => Met::Code(500),
                    (2, _) => Met::Code(503),
                    // A watch whose answer is lost is one that was never begun.
                    (_, Kind::Watch) => Met::Code(410),
                    (_, Kind::Read | Kind::Write) => Met::AnswerLost,
                }
            }
            Refuse::WritesOf(resource) if kind == Kind::Write && path.split('/').any(|part| part == resource) => {
                Met::Code(504)
            }
            Refuse::Nothing | Refuse::EachAfter(_) | Refuse::WritesOf(_) => Met::Nothing,
        }
    }

    /// Sends a request, or not.
    pub(super) async fn around(
        &self,
        (kind, path): (Kind, &str),
        send: impl Future<Output = Result<Response<Body>, kube::Error>>,
    ) -> Result<Response<Body>, kube::Error> {
        let met = self.meets(kind, path);
        match met {
            Met::Nothing => send.await,
            Met::Code(code) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Ok(refusal(code))
            }
            Met::AnswerLost => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                drop(send.await?);
                Err(kube::Error::Service(Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset))))
            }
        }
    }
}

fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
        429 => "TooManyRequests",
        410 => "Expired",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "played trouble",
        "reason": reason, "code": code,
    });
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
