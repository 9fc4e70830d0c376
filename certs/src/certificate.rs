//! An authority's certificate: one of ours, or why not.

use std::fmt;

use jiff::Timestamp;
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{DistinguishedName, DnType};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use x509_parser::{certificate::X509Certificate, parse_x509_certificate, x509::X509Name};

use crate::schedule::{Age, Validity};

const COMMON_NAME: &str = "aicr-operator webhook authority";
const ORGANIZATION: &str = "aicr-operator";

/// A CA certificate that this operator made: by its subject, signed with its own key.
#[derive(Clone, PartialEq, Eq)]
pub struct CaCertificate {
    der: CertificateDer<'static>,
    validity: Validity,
    public_key: Vec<u8>,
}

/// Why a certificate is none of our authorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// Not PEM, not X.509, or something after it.
    #[error("the certificate cannot be read")]
    Unreadable,
    /// Somebody else's: another subject, issuer or signature.
    #[error("the certificate was not made by this operator")]
    Foreign,
    /// It may not sign certificates.
    #[error("the certificate is not a certificate authority's")]
    NotAnAuthority,
}

impl CaCertificate {
    /// The first certificate of a PEM text, checked to be one of ours; its age is not judged here.
    pub fn from_pem(pem: &[u8]) -> Result<Self, CertificateFault> {
        Self::from_der(CertificateDer::from_pem_slice(pem).map_err(|_| CertificateFault::Unreadable)?)
    }

    pub(crate) fn from_der(der: CertificateDer<'static>) -> Result<Self, CertificateFault> {
        let (rest, certificate) = parse_x509_certificate(&der).map_err(|_| CertificateFault::Unreadable)?;
        if !rest.is_empty() {
            return Err(CertificateFault::Unreadable);
        }
        check(&certificate)?;
        let (validity, public_key) = (Validity::of(&certificate), certificate.public_key().raw.to_vec());
        Ok(Self { der, validity, public_key })
    }

    /// From when until when it holds.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// The certificate as DER.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// The certificate as one PEM section, with a line feed at its end.
    pub fn to_pem(&self) -> String {
        let section = Pem::new("CERTIFICATE", self.der.to_vec());
        pem::encode_config(&section, EncodeConfig::new().set_line_ending(LineEnding::LF))
    }

    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.validity.age(now) == Age::Expired
    }

    /// The public key as its `SubjectPublicKeyInfo`, to be compared with a key pair's.
    pub(crate) fn public_key(&self) -> &[u8] {
        &self.public_key
    }
}

impl fmt::Debug for CaCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaCertificate").field("validity", &self.validity).finish_non_exhaustive()
    }
}

/// The subject of every authority of ours; by it a foreign one is told apart.
pub(crate) fn subject() -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, ORGANIZATION);
    name.push(DnType::CommonName, COMMON_NAME);
    name
}

fn check(certificate: &X509Certificate<'_>) -> Result<(), CertificateFault> {
    let subject = certificate.subject();
    if !is_ours(subject) || certificate.issuer().as_raw() != subject.as_raw() {
        return Err(CertificateFault::Foreign);
    }
    let may_sign = matches!(certificate.key_usage(), Ok(Some(usage)) if usage.value.key_cert_sign());
    if !certificate.is_ca() || !may_sign {
        return Err(CertificateFault::NotAnAuthority);
    }
    certificate.verify_signature(None).map_err(|_| CertificateFault::Foreign)
}

fn is_ours(subject: &X509Name<'_>) -> bool {
    let common = subject.iter_common_name().next().and_then(|name| name.as_str().ok());
    let organization = subject.iter_organization().next().and_then(|name| name.as_str().ok());
    common == Some(COMMON_NAME) && organization == Some(ORGANIZATION)
}
