//! The requester and the time, as they are recorded: the same for who stamps and who checks.

use aicr_crds::rollout::Person;
use jiff::{SignedDuration, Timestamp};

use crate::review::User;

/// How far a recorded time may be from now: stamp and check may meet two replicas with two clocks.
pub(crate) const TOLERANCE: SignedDuration = SignedDuration::from_mins(15);
/// For how long a stamp stands when the API server asks again in the same request.
pub(crate) const REINVOCATION: SignedDuration = SignedDuration::from_secs(30);
/// Groups that the kinds hold, and characters of one.
const GROUPS: usize = 64;
const GROUP_LENGTH: usize = 256;

/// The requester, with as many of their groups as the kinds hold.
pub(crate) fn recorded(user: &User<'_>) -> Person {
    let groups = user.groups().into_iter().map(|group| group.into_inner().into_owned());
    let kept = groups.filter(|group| group.chars().count() <= GROUP_LENGTH).take(GROUPS).collect();
    Person { username: user.name().to_owned(), groups: kept }
}

/// Whether a recorded time is close enough to now.
pub(crate) fn is_about_now(at: Timestamp, now: Timestamp) -> bool {
    at.duration_since(now).abs() <= TOLERANCE
}

/// Whether a stamp was made a moment ago.
pub(crate) fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now.duration_since(at) <= REINVOCATION
}

/// Kubernetes times have whole seconds.
pub(crate) fn to_the_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
