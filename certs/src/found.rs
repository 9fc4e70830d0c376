//! What the Secret was found to hold: an authority to use, one to replace, or none.

use std::{fmt, str};

use jiff::Timestamp;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};

use crate::{
    authority::Authority,
    certificate::{CaCertificate, CertificateFault},
    schedule::Age,
    stored::Stored,
};

/// What a look at the Secret found.
#[derive(Debug)]
pub enum Found {
    /// Neither certificate nor key: the chart's shell.
    Absent,
    /// An authority in the first two thirds of its life.
    Usable(Box<Authority>),
    /// To be replaced by the leader.
    Renew(Why),
}

/// Why the authority in the Secret is to be replaced.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// Two thirds of its life have passed; until the leader has replaced it, it signs.
    #[error("two thirds of the authority's life have passed")]
    Due(Box<Authority>),
    /// Its life has ended.
    #[error("the authority has expired")]
    Expired,
    /// Its life begins in the future: it was made under a wrong clock.
    #[error("the authority is not valid yet")]
    NotYetValid,
    /// A certificate without a key.
    #[error("the authority's key is missing")]
    KeyMissing,
    /// A key without a certificate.
    #[error("the authority's certificate is missing")]
    CertificateMissing,
    /// The certificate is none of our authorities.
    #[error(transparent)]
    Certificate(CertificateFault),
    /// The key is not PEM, or no private key.
    #[error("the authority's key cannot be read")]
    KeyUnreadable,
    /// Certificate and key do not belong together.
    #[error("the authority's key is another certificate's")]
    KeyOfAnother,
}

impl Found {
    /// Judges the Secret's entries at `now`. Whatever they are, this is an answer, never a panic.
    pub fn read(stored: &Stored, now: Timestamp) -> Self {
        let (certificate, key) = match (&stored.certificate, &stored.key) {
            (None, None) => return Self::Absent,
            (Some(_), None) => return Self::Renew(Why::KeyMissing),
            (None, Some(_)) => return Self::Renew(Why::CertificateMissing),
            (Some(certificate), Some(key)) => (certificate, key),
        };
        pair(certificate, key, stored.previous.as_deref()).map_or_else(Self::Renew, |authority| of_age(authority, now))
    }

    /// The authority that may sign leaves now: a usable one, or one that is due and not yet replaced.
    pub fn authority(&self) -> Option<&Authority> {
        match self {
            Self::Usable(authority) | Self::Renew(Why::Due(authority)) => Some(authority),
            Self::Absent
            | Self::Renew(
                Why::Expired
                | Why::NotYetValid
                | Why::KeyMissing
                | Why::CertificateMissing
                | Why::Certificate(_)
                | Why::KeyUnreadable
                | Why::KeyOfAnother,
            ) => None,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("there is no authority"),
            Self::Usable(_) => f.write_str("the authority is usable"),
            Self::Renew(why) => fmt::Display::fmt(why, f),
        }
    }
}

fn pair(certificate: &[u8], key: &[u8], previous: Option<&[u8]>) -> Result<Authority, Why> {
    let certificate = CaCertificate::from_pem(certificate).map_err(Why::Certificate)?;
    let key = str::from_utf8(key).ok().and_then(|pem| KeyPair::from_pem(pem).ok()).ok_or(Why::KeyUnreadable)?;
    if key.subject_public_key_info() != certificate.public_key() {
        return Err(Why::KeyOfAnother);
    }
    if !key.is_compatible(&PKCS_ECDSA_P256_SHA256) {
        return Err(Why::Certificate(CertificateFault::Foreign));
    }
    Authority::from_parts(certificate, key, previous).ok_or(Why::Certificate(CertificateFault::Unreadable))
}

fn of_age(authority: Authority, now: Timestamp) -> Found {
    match authority.certificate().validity().age(now) {
        Age::Fresh => Found::Usable(Box::new(authority)),
        Age::Due => Found::Renew(Why::Due(Box::new(authority))),
        Age::Expired => Found::Renew(Why::Expired),
        Age::NotYetValid => Found::Renew(Why::NotYetValid),
    }
}
