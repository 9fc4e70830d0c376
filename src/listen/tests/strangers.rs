//! Whoever is no API server: refused or closed, and never in its way.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use aicr_crds::application::Engine;
use aicr_webhooks::{Approvers, BODY_LIMIT, Decision, Door, Known, Observe, Policy, Separation, Webhook};
use arc_swap::ArcSwap;

use super::*;

/// Bound for what must come: far longer than any of it takes.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Default)]
struct Allowed(AtomicUsize);

impl Observe for Allowed {
    fn decided(&self, _: Webhook, decision: Decision, _: Duration) {
        if decision == Decision::Allowed {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The real webhooks behind the real accept loop, and how many reviews they allowed.
async fn door() -> (Server, Arc<Allowed>) {
    let policy = Policy {
        operator: "operator".into(),
        namespace: "ns".into(),
        approvers: Approvers { users: BTreeSet::new(), groups: BTreeSet::new() },
        separation: Separation::FourEyes,
        engine: Engine {
            namespace: "argocd".into(),
            project: "aicr".into(),
            repository: "registry.example/aicr".into(),
        },
    };
    let allowed = Arc::new(Allowed::default());
    let door = Door {
        policy: Arc::new(policy),
        known: Arc::new(ArcSwap::from_pointee(Known::default())),
        clock: Arc::new(Timestamp::now),
        observer: allowed.clone(),
    };
    (serving(aicr_webhooks::router(door), Duration::ZERO).await, allowed)
}

/// Whatever comes back until the server closes.
pub(super) async fn all(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    // Closed with or without a goodbye.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it stays open");
    String::from_utf8_lossy(&answer).into_owned()
}

/// One request on a connection of its own; the status.
async fn status(server: &Server, head: &str, body: &[u8]) -> String {
    let mut stream = server.connect().await;
    let head = format!("{head}\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may answer and close before it has all of a body that it does not want.
    let _ = stream.write_all(body).await;
    all(&mut stream).await.split(' ').nth(1).unwrap_or_default().to_owned()
}

const REVIEWS: &str = "POST /validate/rollouts HTTP/1.1\r\ncontent-type: application/json";

#[tokio::test]
async fn what_is_no_review_gets_its_status_and_the_next_one_is_served() {
    let (server, allowed) = door().await;
    let large = vec![b' '; 10 * 1024 * 1024];
    for (head, body, expected) in [
        (REVIEWS, &b""[..], "400"),
        (REVIEWS, b"{\"kind\":\"AdmissionReview\",\"api", "400"),
        (REVIEWS, b"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\"}", "400"),
        (REVIEWS, &large, "413"),
        (REVIEWS, &large[..BODY_LIMIT], "400"),
        ("POST /validate/rollouts HTTP/1.1\r\ncontent-type: text/plain", b"{}", "415"),
        ("POST /validate/rollouts HTTP/1.1", b"{}", "415"),
        ("POST /validate/elsewhere HTTP/1.1\r\ncontent-type: application/json", b"{}", "404"),
        ("GET /validate/rollouts HTTP/1.1", b"", "405"),
        ("DELETE /validate/rollouts HTTP/1.1", b"", "405"),
        ("PUT /validate/rollouts HTTP/1.1\r\ncontent-type: application/json", b"{}", "405"),
    ] {
        assert_eq!(status(&server, head, body).await, expected, "{head} with {} bytes", body.len());
    }
    assert_eq!(allowed.0.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn no_http_and_too_long_heads_are_refused() {
    let (server, _) = door().await;
    let long = format!("POST /validate/rollouts HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(2 * BUFFER));
    for said in ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "hello\r\n\r\n", "POST / HTTP/9.9\r\n\r\n", &long] {
        let mut stream = server.connect().await;
        let _ = stream.write_all(said.as_bytes()).await;
        let answer = all(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(status(&server, REVIEWS, b"").await, "400");
}

#[tokio::test]
async fn who_breaks_off_within_a_body_holds_nobody_up() {
    let (server, _) = door().await;
    for _ in 0..40 {
        let mut stream = server.connect().await;
        stream.write_all(format!("{REVIEWS}\r\nhost: a\r\ncontent-length: 1000\r\n\r\n{{").as_bytes()).await.unwrap();
        drop(stream);
    }
    assert_eq!(status(&server, REVIEWS, b"").await, "400");
}

#[tokio::test]
async fn whoever_speaks_no_tls_holds_nobody_up() {
    let server = server(Duration::ZERO).await;
    for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0xff; 100], b"\x16\x03\x01"] {
        let mut plain = TcpStream::connect(server.address).await.unwrap();
        plain.write_all(said).await.unwrap();
        plain.shutdown().await.unwrap();
        assert!(!all(&mut plain).await.contains("HTTP"));
    }
    assert!(ask(&mut server.connect().await).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_client_without_or_with_a_foreign_name_gets_the_one_certificate() {
    let server = server(Duration::ZERO).await;
    let mut nameless = server.connect_as("webhook.ns.svc", |client| client.enable_sni = false).await.unwrap();
    assert!(ask(&mut nameless).await.starts_with("HTTP/1.1 200"));
    let foreign = server.connect_as("elsewhere.example", |_| {}).await.unwrap_err();
    assert!(foreign.to_string().contains("not valid for name"), "{foreign}");
    assert!(ask(&mut server.connect().await).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_client_that_speaks_http_2_alone_is_refused_in_the_handshake() {
    let server = server(Duration::ZERO).await;
    let refused = server.connect_as("webhook.ns.svc", |client| client.alpn_protocols = vec![b"h2".to_vec()]).await;
    assert!(format!("{refused:?}").contains("NoApplicationProtocol"), "{refused:?}");
    let both = |client: &mut ClientConfig| client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut stream = server.connect_as("webhook.ns.svc", both).await.unwrap();
    assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200"));
}

/// Half-open ones among them: whoever is asked for nothing leaves before whoever asks.
#[tokio::test]
async fn a_thousand_idle_connections_keep_nobody_out() {
    let server = server(Duration::ZERO).await;
    let mut kept = server.connect().await;
    let mut idle = Vec::new();
    for number in 0..1000 {
        if number % 10 == 0 {
            idle.push(server.connect().await.into_inner().0);
        } else {
            idle.push(TcpStream::connect(server.address).await.unwrap());
        }
        if number % 100 == 0 {
            assert!(ask(&mut kept).await.starts_with("HTTP/1.1 200"), "{number}");
        }
    }
    assert!(ask(&mut kept).await.starts_with("HTTP/1.1 200"));
    assert!(ask(&mut server.connect().await).await.starts_with("HTTP/1.1 200"));
    let first = &mut idle[1];
    let closed = timeout(PATIENCE, first.read(&mut [0])).await.expect("the oldest idle one still holds its seat");
    assert_eq!(closed.unwrap_or_default(), 0);
}

/// A body that never comes whole is answered by nobody: its seat goes to whoever comes.
#[tokio::test]
async fn bodies_without_end_on_every_seat_keep_nobody_out() {
    let (begun, mut begins) = tokio::sync::mpsc::channel::<()>(2 * CONNECTIONS);
    let whole = move |request: Request| {
        let begun = begun.clone();
        async move {
            begun.send(()).await.unwrap();
            axum::body::to_bytes(request.into_body(), BUFFER).await.map(|_| "seen").map_err(|error| error.to_string())
        }
    };
    let server = serving(Router::new().route("/x", post(whole)), Duration::ZERO).await;
    let mut sending = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = server.connect().await;
        stream.write_all(b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n{").await.unwrap();
        begins.recv().await.unwrap();
        sending.push(stream);
    }
    let asked = async { ask(&mut server.connect().await).await };
    let answer = timeout(PATIENCE, asked).await.expect("every seat is held");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(all(&mut sending[0]).await, "", "the one that has been at it longest has left");
}
