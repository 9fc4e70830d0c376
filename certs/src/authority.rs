//! The authority that signs every replica's leaf: a P-256 key and a certificate of one year.

use jiff::{SignedDuration, Timestamp};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use crate::{
    bundle::Bundle,
    certificate::{self, CaCertificate, CertificateFault},
    leaf::LeafLife,
    schedule::Validity,
    stored::Stored,
};

/// How many certificates that came before are kept; more rotations than that within one leaf's life are not foreseen.
pub(crate) const KEPT: usize = 3;

/// A certificate authority with its key, and the certificates it replaced. Its `Debug` shows no key.
#[derive(Debug)]
pub struct Authority {
    certificate: CaCertificate,
    issuer: Issuer<'static, KeyPair>,
    previous: Vec<CaCertificate>,
}

/// Why no authority came to be.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// No key.
    #[error("create the authority's key")]
    Key(#[source] rcgen::Error),
    /// No certificate.
    #[error("sign the authority's certificate")]
    Sign(#[source] rcgen::Error),
    /// The certificate just made is not what we would accept from the Secret.
    #[error("read the new authority back")]
    ReadBack(#[source] CertificateFault),
}

impl Authority {
    /// How long an authority holds: 365 days.
    pub const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);

    /// Makes a new authority that follows `previous` (newest first). Blocks for the time it takes to make a key.
    pub fn generate(previous: Vec<CaCertificate>, now: Timestamp) -> Result<Self, GenerateError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(GenerateError::Key)?;
        let params = params(now);
        let signed = params.self_signed(&key).map_err(GenerateError::Sign)?;
        let certificate = CaCertificate::from_der(signed.der().clone()).map_err(GenerateError::ReadBack)?;
        Ok(Self { certificate, issuer: Issuer::new(params, key), previous })
    }

    pub(crate) fn from_parts(certificate: CaCertificate, key: KeyPair, previous: Option<&[u8]>) -> Option<Self> {
        let issuer = Issuer::from_ca_cert_der(certificate.der(), key).ok()?;
        let previous = previous.map(ours).unwrap_or_default();
        Some(Self { certificate, issuer, previous })
    }

    /// The certificate that signs.
    pub fn certificate(&self) -> &CaCertificate {
        &self.certificate
    }

    /// What the API server shall trust at `now`: this authority, and each one before it until one leaf's life after it
    /// was replaced, unless it expired before.
    pub fn bundle(&self, overlap: LeafLife, now: Timestamp) -> Bundle {
        let successors = std::iter::once(&self.certificate).chain(&self.previous);
        let still_trusted = self.previous.iter().zip(successors).filter(|(old, successor)| {
            let replaced = successor.validity().issued_at();
            now.duration_since(replaced) < overlap.duration() && !old.is_expired(now)
        });
        Bundle::of(std::iter::once(&self.certificate).chain(still_trusted.map(|(old, _)| old)))
    }

    /// The authority as the Secret keeps it.
    pub fn to_stored(&self) -> Stored {
        let previous: String = self.previous.iter().map(CaCertificate::to_pem).collect();
        Stored {
            certificate: Some(self.certificate.to_pem().into_bytes()),
            key: Some(self.issuer.key().serialize_pem().into_bytes()),
            previous: Some(previous.into_bytes()).filter(|pem| !pem.is_empty()),
        }
    }

    pub(crate) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }
}

/// The certificates of a PEM text that are ours, [`KEPT`] at most; what cannot be read or is foreign is passed over.
pub(crate) fn ours(pem: &[u8]) -> Vec<CaCertificate> {
    CertificateDer::pem_slice_iter(pem)
        .map_while(Result::ok)
        .filter_map(|der| CaCertificate::from_der(der).ok())
        .take(KEPT)
        .collect()
}

fn params(now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = certificate::subject();
    // It signs leaves and nothing between.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Validity::starting(now, Authority::LIFE).write_to(&mut params);
    params
}
