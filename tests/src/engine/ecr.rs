//! ECR, played: it answers with a token that lasts, or refuses, and counts what it was asked.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// `AWS:played` in base64.
const TOKEN: &str = "QVdTOnBsYXllZA==";
/// How long ECR's tokens last.
const LIFE: SignedDuration = SignedDuration::from_hours(12);

/// An ECR on loopback, for as long as the process lives.
pub struct Ecr {
    /// Where it listens.
    pub address: SocketAddr,
    refuses: Arc<AtomicBool>,
    refused: Arc<AtomicUsize>,
}

impl Ecr {
    /// One that refuses everybody, until it is told to answer.
    pub fn that_refuses() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("a free port: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("its address: {error}"));
        let (refuses, count) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (told, counted) = (Arc::clone(&refuses), Arc::clone(&count));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let refuses = told.load(Ordering::Acquire);
                counted.fetch_add(usize::from(refuses), Ordering::AcqRel);
                // Whoever hangs up has no answer.
                drop(answer(stream, refuses));
            }
        });
        Self { address, refuses, refused: count }
    }

    /// From now on it answers.
    pub fn answers(&self) {
        self.refuses.store(false, Ordering::Release);
    }

    /// How many it refused.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Acquire)
    }
}

fn answer(mut stream: TcpStream, refuses: bool) -> std::io::Result<()> {
    // The question is short and comes in one piece; what it says does not matter.
    let _ = stream.read(&mut [0; 16 * 1024])?;
    let (status, body) = if refuses {
        ("400 Bad Request", json!({ "__type": "AccessDeniedException", "message": "played refusal" }))
    } else {
        let expires = (Timestamp::now() + LIFE).as_second();
        ("200 OK", json!({ "authorizationData": [{ "authorizationToken": TOKEN, "expiresAt": expires }] }))
    };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/x-amz-json-1.1\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
