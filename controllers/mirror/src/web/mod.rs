//! Requests that end: to addresses that may be asked, within their time, of answers within their size.

mod guard;

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture};
use reqwest::{Certificate, Method, Response, Url, header::HeaderMap};
use rustls::pki_types::{CertificateDer, pem::PemObject};

pub(crate) use guard::{Guard, Refusal, host_of};

use crate::error::MirrorError;

/// How long a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Until a connection stands.
    pub connect: Duration,
    /// Silence within an answer.
    pub silence: Duration,
    /// One request altogether, its redirects, its login and its content included.
    pub whole: Duration,
}

impl Default for Times {
    /// 10 s, 1 min, 5 min.
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), silence: Duration::from_mins(1), whole: Duration::from_mins(5) }
    }
}

/// What messages call us.
pub(crate) const USER_AGENT: &str = concat!("aicr-operator/", env!("CARGO_PKG_VERSION"));

/// A client of one kind of servers.
pub(crate) struct Web {
    client: reqwest::Client,
    guard: Guard,
    times: Times,
}

impl Web {
    /// A client that trusts these authorities beside the system's. A rustls provider must be installed in the process.
    ///
    /// # Errors
    /// `Client` where it cannot be made.
    pub(crate) fn new(guard: Guard, authorities: &[Vec<u8>], times: Times) -> Result<Self, MirrorError> {
        let failed = |error: reqwest::Error| MirrorError::Client(error.to_string());
        let roots = authorities.iter().map(|der| Certificate::from_der(der)).collect::<Result<Vec<_>, _>>();
        let redirects = guard.clone();
        let client = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .connect_timeout(times.connect)
            .read_timeout(times.silence)
            .tls_certs_merge(roots.map_err(failed)?)
            .dns_resolver(guard.clone())
            .redirect(reqwest::redirect::Policy::custom(move |attempt| redirects.redirect(attempt)))
            .no_proxy()
            .referer(false)
            .build();
        Ok(Self { client: client.map_err(failed)?, guard, times })
    }

    /// The scheme of a registry's host.
    pub(crate) fn scheme(&self, host: &str) -> &'static str {
        if self.guard.is_plain(host) { "http" } else { "https" }
    }

    /// Sends one request; the answer may have any status.
    pub(crate) async fn send(
        &self,
        what: &str,
        method: Method,
        url: Url,
        headers: HeaderMap,
    ) -> Result<Response, MirrorError> {
        let refused =
            |refusal: &Refusal| MirrorError::Forbidden { what: what.to_owned(), refusal: refusal.to_string() };
        self.guard.admit(&url).map_err(|refusal| refused(&refusal))?;
        let answer = self.client.request(method, url).headers(headers).send().await;
        answer.map_err(|error| MirrorError::of_request(what, &error))
    }

    /// The content of an answer, at most `limit` bytes of it: what says that it is longer is not read at all.
    pub(crate) async fn body(&self, what: &str, mut answer: Response, limit: u64) -> Result<Vec<u8>, MirrorError> {
        let too_large = || MirrorError::TooLarge { what: what.to_owned(), limit };
        if answer.content_length().is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| MirrorError::of_request(what, &error))? {
            if (bytes.len() + chunk.len()) as u64 > limit {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// Awaits work within the time of one request.
    pub(crate) async fn within<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, MirrorError>> + Send,
    ) -> Result<T, MirrorError> {
        within(what, self.times.whole, work.boxed()).await
    }
}

/// Awaits work for so long.
pub(crate) async fn within<T>(
    what: &str,
    whole: Duration,
    work: BoxFuture<'_, Result<T, MirrorError>>,
) -> Result<T, MirrorError> {
    tokio::time::timeout(whole, work).await.unwrap_or_else(|_| {
        let cause = format!("no end within {} seconds", whole.as_secs());
        Err(MirrorError::Unavailable { what: what.to_owned(), cause })
    })
}

/// The certificates of a PEM bundle, in DER; none of an empty one.
///
/// # Errors
/// `Client` for what is no PEM, or holds no certificate.
pub(crate) fn authorities(value: &str, pem: &[u8]) -> Result<Vec<Vec<u8>>, MirrorError> {
    if pem.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let unread = |problem: String| MirrorError::Client(format!("{value}: {problem}"));
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| unread(format!("it is no PEM ({error:?})")))?;
    if found.is_empty() {
        return Err(unread("it holds no certificate".to_owned()));
    }
    Ok(found.into_iter().map(|certificate| certificate.to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_certificates_or_nothing() {
        assert!(authorities("registry.caBundle", b" \n").unwrap().is_empty());
        for bad in [
            "hello",
            "-----BEGIN CERTIFICATE-----\nx\n",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ] {
            let error = authorities("registry.caBundle", bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("registry.caBundle"), "{error}");
        }
        let two = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".repeat(2);
        assert_eq!(authorities("registry.caBundle", two.as_bytes()).unwrap(), [[0; 3], [0; 3]]);
    }
}
