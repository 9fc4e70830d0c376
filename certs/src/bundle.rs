//! The caBundle: the authorities that the API server shall trust.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::certificate::CaCertificate;

/// PEM certificates one after another, the signing one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle(String);

impl Bundle {
    pub(crate) fn of<'a>(certificates: impl Iterator<Item = &'a CaCertificate>) -> Self {
        Self(certificates.map(CaCertificate::to_pem).collect())
    }

    /// The PEM text, as a `ByteString` in `clientConfig.caBundle` wants it.
    pub fn pem(&self) -> &str {
        &self.0
    }

    /// The PEM text in base64, as `caBundle` stands in JSON.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Whether each webhook entry carries exactly this bundle; an entry without one is an empty slice.
    ///
    /// An empty, stale or foreign bundle is none of ours, and a certificate too many is one too many.
    pub fn stands_in(&self, entries: &[&[u8]]) -> bool {
        entries.iter().all(|entry| *entry == self.0.as_bytes())
    }
}
