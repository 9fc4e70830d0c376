//! The registry's token: whether the one in Argo CD's Secret is fresh, and when the next one is fetched.

use aicr_crds::application::Application;
use jiff::{SignedDuration, Timestamp};

use super::jobs::backoff;
use crate::rollout::{ObjectRef, refuses_credentials};

/// How often a token is fetched.
const EVERY: SignedDuration = SignedDuration::from_hours(6);
/// With less than this left, it is stale.
const MARGIN: SignedDuration = SignedDuration::from_hours(1);
/// ECR's tokens live for 12 hours; an expiry further ahead, but for two clocks' difference, is not believed.
const BELIEVED: SignedDuration = SignedDuration::from_mins(12 * 60 + 10);
/// By how much a wait may be shorter than its backoff, as a share of it; never below the first.
const JITTER: f64 = 0.2;

/// What Argo CD's Secret says of its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSeen {
    /// There is no such Secret, or it cannot be read.
    NoSecret,
    /// It does not say when its token expires.
    NoExpiry,
    /// What it says is not a time.
    Unreadable,
    /// Its token expires then.
    Expires(Timestamp),
}

impl TokenSeen {
    /// As the Secret's annotation says it.
    pub fn read(annotation: Option<&str>) -> Self {
        let Some(text) = annotation else { return Self::NoExpiry };
        text.parse().map_or(Self::Unreadable, Self::Expires)
    }

    /// Whether Argo CD can rely on it at `now`: by its own expiry alone, since Argo CD tells of an expired token only
    /// hours later, when something is not cached any more.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        match self {
            Self::NoSecret | Self::NoExpiry | Self::Unreadable => false,
            Self::Expires(at) => lasts(*at, now) && *at <= now + BELIEVED,
        }
    }

    /// When it turns stale by itself.
    pub fn turns_stale(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Expires(at) if self.is_fresh(now) => Some(*at - MARGIN),
            Self::Expires(_) | Self::NoSecret | Self::NoExpiry | Self::Unreadable => None,
        }
    }
}

/// Whether a token with this expiry has an hour left: enough for any run that is given it.
pub fn lasts(expires: Timestamp, now: Timestamp) -> bool {
    expires >= now + MARGIN
}

/// How fetching went so far, in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetches {
    /// When the last was tried; `None` just after the start.
    pub tried: Option<Timestamp>,
    /// How many failed since the last that went well.
    pub failures: u32,
}

impl Fetches {
    /// One more went well.
    pub fn succeeded(now: Timestamp) -> Self {
        Self { tried: Some(now), failures: 0 }
    }

    /// One more failed.
    #[must_use]
    pub fn failed(self, now: Timestamp) -> Self {
        Self { tried: Some(now), failures: self.failures.saturating_add(1) }
    }

    /// When the next is due: at the start, every six hours, and after a failure, or while the Secret holds no fresh
    /// token, 10 s to 5 min later. `chance` from 0 to 1 spreads the retries.
    pub fn next(self, seen: &TokenSeen, now: Timestamp, chance: f64) -> Timestamp {
        let Some(tried) = self.tried else { return now };
        if self.failures == 0 && seen.is_fresh(now) {
            return tried + EVERY;
        }
        let wait = backoff(self.failures.max(1));
        let spread = wait.as_secs_f64() * JITTER * chance.clamp(0.0, 1.0);
        tried + (wait - SignedDuration::try_from_secs_f64(spread).unwrap_or_default()).max(backoff(1))
    }
}

/// Applications whose comparison fails for the registry's sake: each is asked once to look again after a refresh.
pub fn with_registry_errors<'a>(applications: impl IntoIterator<Item = &'a Application>) -> Vec<ObjectRef> {
    let refused = |application: &&Application| {
        application.status.conditions.iter().any(|condition| {
            let message = condition.message.to_ascii_lowercase();
            condition.kind == "ComparisonError" && refuses_credentials(&message)
        })
    };
    let mut all: Vec<ObjectRef> = applications.into_iter().filter(refused).map(ObjectRef::of).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

#[cfg(test)]
#[path = "token/tests.rs"]
mod tests;
