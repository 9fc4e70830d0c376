//! The plain listener: metrics and probes.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;

use crate::{
    drain::Listener,
    listen::{Listening, Transport},
};

/// Content type of Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Connections at once: the kubelet's, and a few scrapers'.
pub(crate) const CONNECTIONS: usize = 64;

/// What the probes ask.
#[derive(Clone)]
pub(crate) struct Probes {
    drain: Listener,
    missing: Arc<dyn Fn() -> Option<&'static str> + Send + Sync>,
}

impl Probes {
    /// Unready from the drain on; before, while `missing` names something.
    pub(crate) fn new(drain: Listener, missing: impl Fn() -> Option<&'static str> + Send + Sync + 'static) -> Self {
        Self { drain, missing: Arc::new(missing) }
    }
}

/// The three paths; by value, so that tests need no socket.
fn router(probes: Probes) -> Router {
    Router::new()
        .route("/metrics", get(|| async { ([(header::CONTENT_TYPE, METRICS)], aicr_drive::metrics::gather()) }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(probes)
}

async fn readyz(State(probes): State<Probes>) -> impl IntoResponse {
    if probes.drain.is_stopping() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping");
    }
    match (probes.missing)() {
        Some(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing),
        None => (StatusCode::OK, "ready"),
    }
}

/// Metrics and probes on this socket, until the drain.
pub(crate) fn plain(listener: TcpListener, probes: Probes) -> Listening {
    let (transport, router) = (Transport::Plain, router(probes));
    Listening { listener, transport, router, connections: CONNECTIONS, linger: Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use tower::ServiceExt as _;

    use super::*;
    use crate::drain::Drain;

    async fn ask(router: &Router, path: &str) -> StatusCode {
        let request = Request::get(path).body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn readiness_waits_for_the_watches_and_ends_with_the_drain_while_liveness_stays() {
        let drain = Drain::new();
        let unready = router(Probes::new(drain.listener(), || Some("a watch")));
        let ready = router(Probes::new(drain.listener(), || None));
        assert_eq!(ask(&unready, "/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask(&ready, "/readyz").await, StatusCode::OK);
        drain.begin();
        assert_eq!(ask(&ready, "/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask(&ready, "/healthz").await, StatusCode::OK);
        assert_eq!(ask(&ready, "/metrics").await, StatusCode::OK);
        assert_eq!(ask(&ready, "/").await, StatusCode::NOT_FOUND);
    }
}
