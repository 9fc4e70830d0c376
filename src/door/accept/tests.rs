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
use crate::drain::Drain;

const ASK: &[u8] = b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";

struct Server {
    address: std::net::SocketAddr,
    client: TlsConnector,
    drain: Drain,
    serving: JoinHandle<io::Result<()>>,
}

async fn server(linger: Duration) -> Server {
    let now = Timestamp::now();
    let authority = Authority::generate(Vec::new(), now).unwrap();
    let names = ServiceNames::new("webhook", "ns").unwrap();
    let leaf = Leaf::issue(&authority, &names, LeafLife::default(), now).unwrap();
    let resolver = Arc::new(CertificateResolver::default());
    resolver.serve(leaf.served());
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let client = TlsConnector::from(Arc::new(client.with_root_certificates(roots).with_no_client_auth()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let drain = Drain::new();
    let router = Router::new().route("/x", post(|| async { "seen" }));
    let serving = tokio::spawn(serve(Listening { listener, resolver, router, linger }, drain.listener()));
    Server { address, client, drain, serving }
}

impl Server {
    async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("webhook.ns.svc").unwrap();
        self.client.connect(name, stream).await.unwrap()
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

#[tokio::test]
async fn whoever_speaks_no_tls_holds_nobody_up() {
    let server = server(Duration::ZERO).await;
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(ask(&mut server.connect().await).await.starts_with("HTTP/1.1 200"));
}
