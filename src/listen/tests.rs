//! The accept loop over a real socket, with a client that trusts the authority.

use aicr_certs::{Authority, Leaf, LeafLife, ServiceNames, provider};
use axum::routing::post;
use jiff::Timestamp;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;
use crate::{door::CONNECTIONS, drain::Drain};

/// What the API server asks, but for the body.
const ASK: &[u8] = b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";

struct Server {
    address: std::net::SocketAddr,
    client: ClientConfig,
    drain: Drain,
    serving: JoinHandle<io::Result<()>>,
}

async fn server(linger: Duration) -> Server {
    serving(Router::new().route("/x", post(|| async { "seen" })), linger).await
}

async fn serving(router: Router, linger: Duration) -> Server {
    let now = Timestamp::now();
    let authority = Authority::generate(Vec::new(), now).unwrap();
    let names = ServiceNames::new("webhook", "ns").unwrap();
    let leaf = Leaf::issue(&authority, &names, LeafLife::default(), now).unwrap();
    let resolver = Arc::new(CertificateResolver::default());
    resolver.serve(leaf.served());
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let drain = Drain::new();
    let listening =
        Listening { listener, transport: Transport::Tls(resolver), router, connections: CONNECTIONS, linger };
    let serving = tokio::spawn(serve(listening, drain.listener()));
    Server { address, client, drain, serving }
}

impl Server {
    async fn connect(&self) -> TlsStream<TcpStream> {
        self.connect_as("webhook.ns.svc", |_| {}).await.unwrap()
    }

    /// A connection by a client that does something else than the API server.
    async fn connect_as(
        &self,
        name: &'static str,
        change: impl FnOnce(&mut ClientConfig),
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut client = self.client.clone();
        change(&mut client);
        let stream = TcpStream::connect(self.address).await.unwrap();
        TlsConnector::from(Arc::new(client)).connect(ServerName::try_from(name).unwrap(), stream).await
    }
}

/// One request and its whole answer.
async fn ask(stream: &mut TlsStream<TcpStream>) -> String {
    stream.write_all(ASK).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"seen") {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "{}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_drain_goes_on_accepting_closes_each_connection_with_its_answer_and_then_stops() {
    let server = server(Duration::from_secs(2)).await;
    let mut kept = server.connect().await;
    let mut idle = server.connect().await;
    for _ in 0..2 {
        assert!(!ask(&mut kept).await.contains("connection: close"));
    }
    server.drain.begin();
    assert!(ask(&mut kept).await.contains("connection: close"));
    assert_eq!(kept.read(&mut [0]).await.unwrap(), 0);
    let mut late = server.connect().await;
    assert!(ask(&mut late).await.contains("connection: close"));
    server.serving.await.unwrap().unwrap();
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
    TcpStream::connect(server.address).await.unwrap_err();
}

/// A handler that tells of each request and answers once it is let, a permit for all of them.
fn gated() -> (Router, tokio::sync::mpsc::Receiver<()>, Arc<tokio::sync::Semaphore>) {
    let (entered, entries) = tokio::sync::mpsc::channel::<()>(8);
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let waits = Arc::clone(&gate);
    let handler = move || {
        let (entered, waits) = (entered.clone(), Arc::clone(&waits));
        async move {
            entered.send(()).await.unwrap();
            let _ = waits.acquire().await.unwrap();
            "seen"
        }
    };
    (Router::new().route("/x", post(handler)), entries, gate)
}

#[tokio::test]
async fn requests_in_flight_when_the_drain_begins_are_answered_and_so_is_whoever_comes_while_it_lasts() {
    let (router, mut entries, gate) = gated();
    let server = serving(router, Duration::from_mins(10)).await;
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let mut stream = server.connect().await;
        asked.spawn(async move { ask(&mut stream).await });
        entries.recv().await.unwrap();
    }
    server.drain.begin();
    gate.add_permits(1);
    for answer in asked.join_all().await {
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
    }
    let drained = tokio::spawn(async move { while entries.recv().await.is_some() {} });
    for _ in 0..50 {
        let mut stream = server.connect().await;
        let answer = ask(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    }
    server.serving.abort();
    drained.abort();
}

#[tokio::test]
async fn an_answer_on_its_way_at_the_very_end_is_finished() {
    let (router, mut entries, gate) = gated();
    let server = serving(router, Duration::ZERO).await;
    let (mut idle, mut busy) = (server.connect().await, server.connect().await);
    let asked = tokio::spawn(async move { ask(&mut busy).await });
    entries.recv().await.unwrap();
    server.drain.begin();
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0, "closed, and the other one is still being answered");
    gate.add_permits(1);
    assert!(asked.await.unwrap().contains("connection: close"));
    server.serving.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_accept_that_fails_is_tried_again_after_a_rest_and_at_once_where_the_peer_went() {
    let too_many_open_files = || io::Error::from_raw_os_error(24);
    let went = || io::Error::from(io::ErrorKind::ConnectionAborted);
    let mut failures = vec![went(), too_many_open_files(), too_many_open_files(), too_many_open_files(), went()];
    for _ in 0..5 {
        failures.push(too_many_open_files());
    }
    failures.reverse();
    let begun = tokio::time::Instant::now();
    let next = || std::future::ready(failures.pop().map_or(Ok("accepted"), Err));
    assert_eq!(accepted(next).await, "accepted");
    let rests = [100, 200, 400, 800, 1000, 1000, 1000, 1000].map(Duration::from_millis);
    assert_eq!(begun.elapsed().as_millis(), rests.iter().sum::<Duration>().as_millis());
}

mod plain;
mod strangers;
