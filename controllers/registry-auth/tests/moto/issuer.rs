//! Who gives credentials for an identity, as the Pod Identity agent and as STS, and remembers which identities came.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use crate::later;

/// A server on loopback; its thread ends with the process.
pub(crate) struct Issuer {
    port: u16,
    identities: Arc<Mutex<Vec<String>>>,
}

impl Issuer {
    /// Starts one.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let identities = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&identities);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(identity) = answer(&stream) {
                    seen.lock().unwrap().push(identity);
                }
            }
        });
        Self { port, identities }
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The identities in the order in which they came.
    pub(crate) fn identities(&self) -> Vec<String> {
        self.identities.lock().unwrap().clone()
    }
}

/// Answers one request; the identity that it came with.
fn answer(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let (mut authorization, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ")?;
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.to_owned()),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let of_sts = body.split('&').find_map(|pair| pair.strip_prefix("WebIdentityToken=").map(str::to_owned));
    let (kind, text) = if of_sts.is_some() { ("text/xml", sts()) } else { ("application/json", agent()) };
    let mut stream = stream;
    let head = "HTTP/1.1 200 OK\r\nConnection: close";
    write!(stream, "{head}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{text}", text.len()).ok()?;
    of_sts.or(authorization)
}

fn agent() -> String {
    let until = later();
    format!(r#"{{"AccessKeyId":"a","SecretAccessKey":"s","Token":"t","Expiration":"{until}"}}"#)
}

fn sts() -> String {
    let until = later();
    format!(
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>{until}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    )
}
