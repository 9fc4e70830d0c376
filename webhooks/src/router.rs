//! The HTTP half: paths, bounds on body, time and number, and statuses for what is no review.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
    routing::post,
};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::{Judged, Known, Policy, Verdict, Webhook, judge};

/// Bytes of a review: it carries the old and the new object, each up to the store's limit.
pub const BODY_LIMIT: usize = 8 * 1024 * 1024;
/// Bytes of a review that waits for nobody: far more than a rollout or a runtime has. Connections are few, and so are these.
const SMALL: usize = 64 * 1024;
/// Larger bodies that are held at once: 128 MiB at most, half of what the chart lets the process have. Whoever lets a large
/// one drip keeps other large ones waiting, and no small one.
const AT_ONCE: usize = 16;
/// For waiting and reading together, however slowly it drips; the API server gives up after 5 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the time comes from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the process gives to the door.
#[derive(Clone)]
pub struct Door {
    /// The installation's flags.
    pub policy: Arc<Policy>,
    /// The rollouts as the watch last delivered them; the process stores a new one with each change.
    pub known: Arc<ArcSwap<Known>>,
    /// The clock.
    pub clock: Clock,
    /// Who counts.
    pub observer: Arc<dyn Observe>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allowed, patched or not.
    Allowed,
    /// Denied by a rule.
    Denied,
    /// No review: an HTTP error, which the API server takes for a denial.
    Refused,
}

impl Decision {
    /// Every decision.
    pub const ALL: [Self; 3] = [Self::Allowed, Self::Denied, Self::Refused];

    /// The value of the metric's label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Refused => "refused",
        }
    }
}

/// Told of every request but dry runs.
pub trait Observe: Send + Sync {
    /// `took` counts from the request's head to the answer, the wait for its body included.
    fn decided(&self, webhook: Webhook, decision: Decision, took: Duration);
}

/// The webhooks' routes, to be served over TLS.
pub fn router(door: Door) -> Router {
    let state = Arc::new(Served { door, room: Semaphore::new(AT_ONCE) });
    let paths = Webhook::ALL.into_iter().fold(Router::new(), |router, webhook| {
        let handler = move |State(served): State<Arc<Served>>, request: Request| serve(served, webhook, request);
        router.route(webhook.path(), post(handler))
    });
    paths.with_state(state)
}

struct Served {
    door: Door,
    room: Semaphore,
}

async fn serve(served: Arc<Served>, webhook: Webhook, request: Request) -> Response {
    let since = Instant::now();
    let observe = |decision| served.door.observer.decided(webhook, decision, since.elapsed());
    match answer(&served, webhook, request).await {
        Ok(judged) => {
            if !judged.dry_run {
                observe(match judged.verdict {
                    Verdict::Allow(_) | Verdict::Patch(_) => Decision::Allowed,
                    Verdict::Deny(_) => Decision::Denied,
                });
            }
            ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], judged.answer).into_response()
        }
        Err(refusal) => {
            observe(Decision::Refused);
            refusal
        }
    }
}

/// The judgment, or the HTTP error in its place.
async fn answer(served: &Served, webhook: Webhook, request: Request) -> Result<Judged, Response> {
    if !is_json(&request) {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json").into_response());
    }
    // The permit is held until the verdict: it is the body that takes memory.
    let (_permit, body) = timeout(PATIENCE, whole(request, &served.room))
        .await
        .map_err(|_| (StatusCode::REQUEST_TIMEOUT, "the body did not come in time").into_response())??;
    let door = &served.door;
    judge(webhook, &body, &door.policy, &door.known.load(), (door.clock)())
        .map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()).into_response())
}

/// The body in one piece, as the review borrows from it; a large one with its permit, and from there on written once: where
/// its length is announced, at its place.
async fn whole(request: Request, room: &Semaphore) -> Result<(Option<SemaphorePermit<'_>>, Vec<u8>), Response> {
    let too_large = || (StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 8 MiB").into_response();
    let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let length = length.unwrap_or_default();
    if length > BODY_LIMIT {
        return Err(too_large());
    }
    let (mut permit, mut body) = (None, Vec::with_capacity(length.min(SMALL)));
    let mut pieces = request.into_body().into_data_stream();
    let broken = |_| (StatusCode::BAD_REQUEST, "the body broke off").into_response();
    while let Some(piece) = pieces.try_next().await.map_err(broken)? {
        let size = body.len() + piece.len();
        if size > BODY_LIMIT {
            return Err(too_large());
        }
        if size > SMALL && permit.is_none() {
            // Nobody closes the semaphore.
            permit = room.acquire().await.ok();
            body.reserve_exact(length.max(size) - body.len());
        }
        body.extend_from_slice(&piece);
    }
    Ok((permit, body))
}

fn is_json(request: &Request) -> bool {
    let named = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    named.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests;
