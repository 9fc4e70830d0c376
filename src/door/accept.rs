//! The accept loop: TLS, HTTP/1.1 with keep-alive, and an end that loses no review.
//!
//! The API server keeps its connections, and sends to an endpoint for some time after it went. So the drain goes on
//! accepting, answers each request with `Connection: close`, and stops only after that time.

use std::{io, sync::Arc, time::Duration};

use aicr_certs::CertificateResolver;
use axum::{
    Router,
    extract::State,
    http::{HeaderValue, header::CONNECTION},
    middleware::map_response_with_state,
    response::Response,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use crate::drain::Listener;

/// How long after the drain began the API server may still come: its endpoints have gone by then.
pub(crate) const LINGER: Duration = Duration::from_secs(10);
/// For a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// For the head of a request, rest between two requests included: longer than the API server keeps an idle connection
/// (90 s), so that it is the one who closes.
const HEAD: Duration = Duration::from_mins(2);
/// Connections at once; each API server has one for each path.
const CONNECTIONS: usize = 256;
/// For the answers on their way at the end.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Rest after an accept that failed for want of something.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// What is listened on and with what.
pub(crate) struct Listening {
    /// The bound socket.
    pub(crate) listener: TcpListener,
    /// Where each handshake's certificate comes from.
    pub(crate) resolver: Arc<CertificateResolver>,
    /// The webhooks.
    pub(crate) router: Router,
    /// How long to go on after the drain has begun.
    pub(crate) linger: Duration,
}

/// Serves until `linger` after the drain has begun; answers that are on their way are finished.
///
/// # Errors
/// TLS could not be set up.
pub(crate) async fn serve(listening: Listening, drain: Listener) -> io::Result<()> {
    let Listening { listener, resolver, router, linger } = listening;
    let config = aicr_certs::server_config(resolver).map_err(io::Error::other)?;
    let handling = Handling {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        router: router.layer(map_response_with_state(drain.clone(), close_when_stopping)),
    };
    let open = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let ending = async {
        drain.stopping().await;
        tokio::time::sleep(linger).await;
    };
    tokio::select! {
        () = accept(listener, &handling, &open, &room) => {}
        () = ending => {}
    }
    if timeout(LAST_ANSWERS, open.shutdown()).await.is_err() {
        tracing::warn!("a review is broken off");
    }
    Ok(())
}

/// Accepts, without end.
async fn accept(listener: TcpListener, handling: &Handling, open: &GracefulShutdown, room: &Arc<Semaphore>) {
    loop {
        let Ok(permit) = Arc::clone(room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let handled = handling.clone().connection(stream, open.watcher(), permit);
                drop(tokio::spawn(handled));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}

#[derive(Clone)]
struct Handling {
    acceptor: TlsAcceptor,
    router: Router,
}

impl Handling {
    async fn connection(self, stream: TcpStream, watcher: Watcher, _room: OwnedSemaphorePermit) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let stream = match timeout(HANDSHAKE, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            // A port scan, or an API server that does not trust the authority: it says so itself.
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => return tracing::debug!("a TLS handshake took too long"),
        };
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.router));
        if let Err(error) = watcher.watch(serving).await {
            tracing::debug!(%error, "a connection broke off");
        }
    }
}

async fn close_when_stopping(State(drain): State<Listener>, mut response: Response) -> Response {
    if drain.is_stopping() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
mod tests;
