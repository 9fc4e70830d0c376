//! What the leader does for the authority next: exactly one thing, so ordered that no reviewer is ever refused.
//!
//! A new authority is published before it is stored: replicas sign with it only once the API servers trust it.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};

use crate::{
    authority::{self, Authority, GenerateError, KEPT},
    bundle::Bundle,
    certificate::CaCertificate,
    found::Found,
    leaf::LeafLife,
    schedule::at,
    stored::Stored,
};

/// The longest rest between two looks; timers drift through hibernation, so the wall clock is asked often.
pub const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// How long a bundle stands before a leaf of the new authority is served: every API server has its own watch of it.
pub const SETTLE: SignedDuration = SignedDuration::from_secs(5);

/// A new authority that is not in the Secret yet.
#[derive(Debug)]
pub struct Rotation {
    replaces: Stored,
    authority: Authority,
    trusted_before: bool,
}

/// One leader's term; a new term starts with `Leader::new`. What was staged in another term was never signed with.
#[derive(Debug)]
pub struct Leader {
    overlap: LeafLife,
    staged: Option<(Rotation, Option<Timestamp>)>,
}

/// The one thing to do next; after it, look again.
#[derive(Debug)]
pub enum Step {
    /// Call [`Rotation::prepare`] off the runtime's threads and [`Leader::stage`] what it gives.
    Rotate(Found),
    /// Patch this bundle into every webhook entry that is there.
    Publish(Bundle),
    /// Patch the Secret's entries, with the resourceVersion that was looked at.
    Store(Stored),
    /// All is as it should be; look again then, or when the Secret or a configuration changes.
    Rest {
        /// [`LOOK_EVERY`] from now at the latest.
        until: Timestamp,
        /// Whether authority and bundle stand, which a leader's readiness needs.
        ready: bool,
    },
}

impl Rotation {
    /// Makes the authority that shall replace what is stored; blocks. What could be trusted in the Secret stays trusted,
    /// and so does `in_use`, the authority of the leaf being served, should the Secret have lost it.
    pub fn prepare(replaces: Stored, in_use: Option<&CaCertificate>, now: Timestamp) -> Result<Self, GenerateError> {
        let stored =
            [&replaces.certificate, &replaces.previous].into_iter().flatten().flat_map(|pem| authority::ours(pem));
        let mut previous: Vec<CaCertificate> = in_use.cloned().into_iter().chain(stored).collect();
        previous.retain(|certificate| !certificate.is_expired(now));
        previous.sort_by_key(|certificate| Reverse(certificate.validity().issued_at()));
        previous.dedup();
        previous.truncate(KEPT);
        let trusted_before = !previous.is_empty();
        Ok(Self { replaces, authority: Authority::generate(previous, now)?, trusted_before })
    }
}

impl Leader {
    /// A new term. `overlap` is the life of a leaf: so long a replaced authority stays trusted.
    pub fn new(overlap: LeafLife) -> Self {
        Self { overlap, staged: None }
    }

    /// Takes the authority that [`Step::Rotate`] asked for.
    pub fn stage(&mut self, rotation: Rotation) {
        self.staged = Some((rotation, None));
    }

    /// What to do, given the Secret's entries and the bundle of each webhook entry that is there (empty where none is).
    pub fn next(&mut self, stored: &Stored, bundles: &[&[u8]], now: Timestamp) -> Step {
        // Stored by us, or by another leader: either way the Secret says what holds now.
        if let Some((rotation, settled)) = self.staged.as_mut().filter(|(rotation, _)| rotation.replaces == *stored) {
            return staged(rotation, settled, bundles, self.overlap, now);
        }
        self.staged = None;
        let authority = match Found::read(stored, now) {
            Found::Usable(authority) => authority,
            found @ (Found::Absent | Found::Renew(_)) => return Step::Rotate(found),
        };
        let bundle = authority.bundle(self.overlap, now);
        if bundle.stands_in(bundles) {
            Step::Rest { until: later(now, LOOK_EVERY), ready: true }
        } else {
            Step::Publish(bundle)
        }
    }
}

fn staged(
    rotation: &Rotation,
    settled: &mut Option<Timestamp>,
    bundles: &[&[u8]],
    overlap: LeafLife,
    now: Timestamp,
) -> Step {
    let bundle = rotation.authority.bundle(overlap, now);
    if !bundle.stands_in(bundles) {
        *settled = None;
        return Step::Publish(bundle);
    }
    let settle = if rotation.trusted_before { SETTLE } else { SignedDuration::ZERO };
    let until = *settled.get_or_insert(later(now, settle));
    // A clock set back must not hold a rotation up.
    if now < until && now.duration_until(until) <= SETTLE {
        return Step::Rest { until, ready: false };
    }
    Step::Store(rotation.authority.to_stored())
}

fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(at(i64::MAX))
}
