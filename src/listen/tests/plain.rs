//! Without TLS: metrics and probes, which a peer that says nothing does not keep from whoever asks.

use super::{strangers::all, *};
use crate::serve::{CONNECTIONS as SEATS, Probes, plain};

async fn answer(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    all(&mut stream).await
}

#[tokio::test]
async fn silent_connections_keep_no_probe_out_and_the_end_closes_them() {
    let drain = Drain::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listening = plain(listener, Probes::new(drain.listener(), || None));
    let serving = tokio::spawn(serve(listening, drain.listener()));
    let mut silent = Vec::new();
    for _ in 0..2 * SEATS {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        let answer = answer(address, path).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    assert_eq!(all(&mut silent[0]).await, "", "the one that was silent for longest has left");
    drain.begin();
    serving.await.unwrap().unwrap();
    assert_eq!(all(silent.last_mut().unwrap()).await, "");
}
