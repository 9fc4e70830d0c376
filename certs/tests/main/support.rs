//! Clocks, certificates that are none of ours, and a TLS handshake in memory.

use std::{sync::Arc, time::Duration};

use aicr_certs::{Authority, CertificateResolver, Leaf, LeafLife, ServiceNames, provider, server_config};
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    date_time_ymd,
};
use rustls::{
    ClientConfig, ClientConnection, Error, RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
    time_provider::TimeProvider,
};

/// When every story begins.
pub(crate) fn start() -> Timestamp {
    "2026-11-29T12:00:00Z".parse().unwrap()
}

pub(crate) fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(days * 24)
}

pub(crate) fn names() -> ServiceNames {
    ServiceNames::new("aicr-operator", "aicr-system").unwrap()
}

pub(crate) fn authority(now: Timestamp) -> Authority {
    Authority::generate(Vec::new(), now).unwrap()
}

pub(crate) fn leaf(authority: &Authority, now: Timestamp) -> Leaf {
    Leaf::issue(authority, &names(), LeafLife::default(), now).unwrap()
}

/// Any authority with this subject, which may or may not call itself one; certificate and key as PEM.
pub(crate) fn other_authority(organization: &str, common_name: &str, is_ca: bool) -> (String, String) {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.is_ca = if is_ca { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::ExplicitNoCa };
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// A serving pair as cert-manager would mount it, valid for a day of 2026; and the authority's certificate.
pub(crate) fn mounted_pair(name: &str, year_of_end: i32) -> (String, String) {
    let (ca, ca_key) = other_authority("cert-manager", "ca", true);
    let issuer = Issuer::from_ca_cert_pem(&ca, KeyPair::from_pem(&ca_key).unwrap()).unwrap();
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(2025, 1, 1);
    params.not_after = date_time_ymd(year_of_end, 1, 1);
    (params.signed_by(&key, &issuer).unwrap().pem() + &ca, key.serialize_pem())
}

/// A resolver and the server that asks it.
pub(crate) fn server() -> (Arc<CertificateResolver>, Arc<ServerConfig>) {
    let resolver = Arc::new(CertificateResolver::default());
    let config = server_config(Arc::clone(&resolver)).unwrap();
    (resolver, Arc::new(config))
}

#[derive(Debug)]
struct Clock(Timestamp);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.as_second().try_into().ok()?)))
    }
}

/// The API server: trusts this bundle, has this clock, asks for the Service's name.
pub(crate) fn client(bundle: &str, now: Timestamp) -> ClientConfig {
    client_of(rustls::DEFAULT_VERSIONS, bundle, now)
}

/// The same, with these versions of TLS.
pub(crate) fn client_of(versions: &[&'static SupportedProtocolVersion], bundle: &str, now: Timestamp) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    ClientConfig::builder_with_details(provider(), Arc::new(Clock(now)))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Both ends of one connection after a handshake in memory, or the first end's error.
pub(crate) fn handshake(
    server: &Arc<ServerConfig>,
    client: ClientConfig,
) -> Result<(ClientConnection, ServerConnection), Error> {
    let name = ServerName::try_from(names().called().to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name)?;
    let mut server = ServerConnection::new(Arc::clone(server))?;
    // Neither side has more than four flights to send.
    for _ in 0..8 {
        if !client.is_handshaking() && !server.is_handshaking() {
            return Ok((client, server));
        }
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut sent = wire.as_slice();
        while !sent.is_empty() {
            server.read_tls(&mut sent).unwrap();
            server.process_new_packets()?;
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut sent = wire.as_slice();
        while !sent.is_empty() {
            client.read_tls(&mut sent).unwrap();
            client.process_new_packets()?;
        }
    }
    panic!("the handshake does not end");
}

/// The certificate the server showed in one handshake.
pub(crate) fn shown(
    server: &Arc<ServerConfig>,
    bundle: &str,
    now: Timestamp,
) -> Result<CertificateDer<'static>, Error> {
    let (client, _) = handshake(server, client(bundle, now))?;
    Ok(client.peer_certificates().unwrap()[0].clone().into_owned())
}
