//! The certificate that each new handshake gets, exchanged without touching the accept loop.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwapOption;
use rustls::{
    ServerConfig,
    server::{ClientHello, NoServerSessionStorage, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

use crate::{provider, schedule::Validity};

/// A certificate with its key, ready to serve, and how long it holds. Its `Debug` shows no key.
#[derive(Clone)]
pub struct Served {
    key: Arc<CertifiedKey>,
    validity: Validity,
}

/// Hands the newest certificate to every handshake; aborts the handshake while there is none.
#[derive(Debug, Default)]
pub struct CertificateResolver(ArcSwapOption<Served>);

/// The TLS server could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("set up the TLS server")]
pub struct ConfigError(#[source] rustls::Error);

impl Served {
    pub(crate) fn new(key: CertifiedKey, validity: Validity) -> Self {
        Self { key: Arc::new(key), validity }
    }

    /// From when until when the certificate holds; for the expiry metric and for readiness.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// The chain and the key, as rustls wants them.
    pub fn key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("validity", &self.validity).finish_non_exhaustive()
    }
}

impl CertificateResolver {
    /// From now on new handshakes get this one; running connections keep theirs.
    pub fn serve(&self, served: &Served) {
        self.0.store(Some(Arc::new(served.clone())));
    }

    /// What is being served: readiness needs one that has not expired.
    pub fn served(&self) -> Option<Served> {
        self.0.load().as_deref().cloned()
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load().as_deref().map(|served| Arc::clone(&served.key))
    }
}

/// TLS 1.2 and 1.3, HTTP/1.1 only (the API server speaks no other to webhooks), no client certificates.
pub fn server_config(resolver: Arc<CertificateResolver>) -> Result<ServerConfig, ConfigError> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(ConfigError)?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session would outlive the certificate it was begun with; the API server resumes none anyway.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}
