//! A replica's own certificate, made in memory and signed by the authority.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use rustls::{pki_types::PrivateKeyDer, sign::CertifiedKey};

use crate::{
    authority::Authority,
    certificate::CaCertificate,
    provider,
    resolver::Served,
    schedule::{Age, Validity},
    service::ServiceNames,
};

/// How long a leaf holds: one hour to 30 days, 7 days by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafLife(SignedDuration);

/// A leaf's life outside its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a leaf's life is between {min} and {max}, not {0}", min = LeafLife::MIN, max = LeafLife::MAX)]
pub struct LifeOutOfBounds(SignedDuration);

/// A serving certificate, and which authority signed it.
#[derive(Clone, Debug)]
pub struct Leaf {
    served: Served,
    authority: CaCertificate,
}

/// Why a leaf is to be made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reissue {
    /// Another authority signs now.
    Authority,
    /// It is due, expired, or from the future.
    Age(Age),
}

/// Why no leaf came to be.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// A name that no certificate can carry.
    #[error("write {name} into the certificate")]
    Name {
        /// The name.
        name: String,
        /// What rcgen says.
        #[source]
        source: rcgen::Error,
    },
    /// No key.
    #[error("create the serving key")]
    Key(#[source] rcgen::Error),
    /// No certificate.
    #[error("sign the serving certificate")]
    Sign(#[source] rcgen::Error),
    /// rustls does not take what was made.
    #[error("load the new serving certificate")]
    Load(#[source] rustls::Error),
}

impl LeafLife {
    /// One hour, for drills.
    pub const MIN: SignedDuration = SignedDuration::from_hours(1);
    /// 30 days.
    pub const MAX: SignedDuration = SignedDuration::from_hours(30 * 24);

    /// A life within the bounds.
    pub fn new(life: SignedDuration) -> Result<Self, LifeOutOfBounds> {
        if (Self::MIN..=Self::MAX).contains(&life) { Ok(Self(life)) } else { Err(LifeOutOfBounds(life)) }
    }

    /// The life as a duration.
    pub fn duration(self) -> SignedDuration {
        self.0
    }
}

impl Default for LeafLife {
    fn default() -> Self {
        Self(SignedDuration::from_hours(7 * 24))
    }
}

impl Leaf {
    /// Makes a leaf for these names; it ends no later than the authority. Blocks for the time it takes to make a key.
    pub fn issue(
        authority: &Authority,
        names: &ServiceNames,
        life: LeafLife,
        now: Timestamp,
    ) -> Result<Self, IssueError> {
        let validity = Validity::starting(now, life.duration()).within(authority.certificate().validity());
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(IssueError::Key)?;
        let signed = params(names, validity)?.signed_by(&key, authority.issuer()).map_err(IssueError::Sign)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let certified = CertifiedKey::from_der(vec![signed.der().clone()], key, &provider());
        let served = Served::new(certified.map_err(IssueError::Load)?, validity);
        Ok(Self { served, authority: authority.certificate().clone() })
    }

    /// Why a new leaf is to be made from `authority` at `now`, if one is.
    pub fn reissue(&self, authority: &Authority, now: Timestamp) -> Option<Reissue> {
        if self.authority != *authority.certificate() {
            return Some(Reissue::Authority);
        }
        match self.served.validity().age(now) {
            Age::Fresh => None,
            age @ (Age::Due | Age::Expired | Age::NotYetValid) => Some(Reissue::Age(age)),
        }
    }

    /// What the resolver serves.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// The authority that signed it; the leader keeps it trusted through a rotation.
    pub fn authority(&self) -> &CaCertificate {
        &self.authority
    }
}

fn params(names: &ServiceNames, validity: Validity) -> Result<CertificateParams, IssueError> {
    let mut params = CertificateParams::new(names.all().map(str::to_owned))
        .map_err(|source| IssueError::Name { name: names.called().to_owned(), source })?;
    // The names stand among the alternative names; a common name is bounded to 64 characters.
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "aicr-operator webhooks");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    validity.write_to(&mut params);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing(0, false)]
    #[case::a_second_short(3_599, false)]
    #[case::an_hour(3_600, true)]
    #[case::thirty_days(30 * 86_400, true)]
    #[case::a_second_long(30 * 86_400 + 1, false)]
    fn a_life_has_bounds(#[case] seconds: i64, #[case] taken: bool) {
        assert_eq!(LeafLife::new(SignedDuration::from_secs(seconds)).is_ok(), taken);
        assert_eq!(LeafLife::default().duration(), SignedDuration::from_hours(168));
    }
}
