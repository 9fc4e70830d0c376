//! The accept loop of both ports: TLS or none, HTTP/1.1 with keep-alive, everything bounded, and an end that loses no answer.
//!
//! The API server keeps its connections, and sends to an endpoint for some time after it went. So the door's drain goes on
//! accepting, answers each request with `Connection: close`, and stops only after that time.

mod room;

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use aicr_certs::CertificateResolver;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, header::CONNECTION},
    middleware::map_response_with_state,
    response::Response,
};
use hyper::{
    body::{Body as _, Bytes, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use self::room::{Farewell, Room, Seat};
use crate::drain::Listener;

/// For a TLS handshake: the API server gives up on the whole call after 5 s.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// For the head of a request, rest between two requests included: longer than the API server keeps an idle connection
/// (90 s), so that it is the one who closes; and longer than Prometheus usually rests.
const HEAD: Duration = Duration::from_mins(2);
/// Bytes of a request's head, and of a body that is read at once: an API server's head has less than one kilobyte.
const BUFFER: usize = 64 * 1024;
/// For the answers on their way at the end: none takes longer than the API server waits.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Rest after an accept that failed for want of something (descriptors, memory); doubled with each failure in a row.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// The longest such rest: the API server waits for five seconds.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// What is listened on and with what.
pub(crate) struct Listening {
    /// The bound socket.
    pub(crate) listener: TcpListener,
    /// What a connection begins with.
    pub(crate) transport: Transport,
    /// The paths.
    pub(crate) router: Router,
    /// Connections at once. One more than these sends the most idle one away.
    pub(crate) connections: usize,
    /// How long to go on after the drain has begun.
    pub(crate) linger: Duration,
}

/// What a connection begins with.
pub(crate) enum Transport {
    /// A handshake, with the certificate that the resolver has then.
    Tls(Arc<CertificateResolver>),
    /// The first request.
    Plain,
}

impl Transport {
    fn acceptor(self) -> io::Result<Option<TlsAcceptor>> {
        let resolver = match self {
            Self::Tls(resolver) => resolver,
            Self::Plain => return Ok(None),
        };
        let config = aicr_certs::server_config(resolver).map_err(io::Error::other)?;
        Ok(Some(TlsAcceptor::from(Arc::new(config))))
    }
}

/// Serves until `linger` after the drain has begun; answers that are on their way are finished.
///
/// # Errors
/// TLS could not be set up.
pub(crate) async fn serve(listening: Listening, drain: Listener) -> io::Result<()> {
    let Listening { listener, transport, router, connections, linger } = listening;
    let router = router.layer(map_response_with_state(drain.clone(), close_when_stopping));
    let handling = Handling { acceptor: transport.acceptor()?, router };
    let room = Room::new(connections);
    let ending = async {
        drain.stopping().await;
        tokio::time::sleep(linger).await;
    };
    tokio::select! {
        () = accept(listener, &handling, &room) => {}
        () = ending => {}
    }
    if timeout(LAST_ANSWERS, room.close()).await.is_err() {
        tracing::warn!("an answer is broken off");
    }
    Ok(())
}

/// Accepts, without end.
async fn accept(listener: TcpListener, handling: &Handling, room: &Room) {
    let listener = &listener;
    loop {
        let stream = accepted(|| async move { listener.accept().await.map(|(stream, _)| stream) }).await;
        let seat = room.seat().await;
        drop(tokio::spawn(handling.clone().connection(stream, seat)));
    }
}

/// The next connection, however often that fails.
async fn accepted<S, F: Future<Output = io::Result<S>>>(mut accept: impl FnMut() -> F) -> S {
    let mut rest = AFTER_FAILURE;
    loop {
        match accept().await {
            Ok(stream) => return stream,
            Err(error) if is_the_peers(&error) => tracing::debug!(%error, "a peer went before it was accepted"),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(rest).await;
                rest = (rest * 2).min(LONGEST_REST);
            }
        }
    }
}

/// Whether the next accept may follow at once.
fn is_the_peers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

#[derive(Clone)]
struct Handling {
    /// None where connections are plain.
    acceptor: Option<TlsAcceptor>,
    router: Router,
}

impl Handling {
    async fn connection(self, stream: TcpStream, seat: Seat) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let Some(acceptor) = self.acceptor else {
            return converse(stream, self.router, &Arc::new(seat)).await;
        };
        let shaken = tokio::select! {
            shaken = timeout(HANDSHAKE, acceptor.accept(stream)) => shaken,
            _ = seat.leave() => return,
        };
        match shaken {
            Ok(Ok(stream)) => converse(stream, self.router, &Arc::new(seat)).await,
            // A port scan, or an API server that does not trust the authority: it says so itself.
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }
}

/// One request after the other, until either side has had enough.
async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router, seat: &Arc<Seat>) {
    let own = Arc::clone(seat);
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, seat) = (router.clone(), Arc::clone(&own));
        async move {
            let _answers = seat.receives();
            router.oneshot(request.map(|body| Body::new(Received::of(body, &seat)))).await
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        how = seat.leave() => match how {
            Farewell::AfterAnswer => {
                serving.as_mut().graceful_shutdown();
                timeout(LAST_ANSWERS, serving).await.unwrap_or(Ok(()))
            }
            Farewell::AtOnce => Ok(()),
        },
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// The body of a request, which tells the seat of its connection once all of it has come.
struct Received {
    body: Incoming,
    seat: Arc<Seat>,
}

impl Received {
    fn of(body: Incoming, seat: &Arc<Seat>) -> Self {
        if body.is_end_stream() {
            seat.has_received();
        }
        Self { body, seat: Arc::clone(seat) }
    }
}

impl hyper::body::Body for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.seat.has_received();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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
