//! What time it is, for everything that is decided and told.

use jiff::{SignedDuration, Timestamp};

/// The machine's clock, or one that differs from it: replicas that disagree come to the same end, and a test shows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock(SignedDuration);

impl Clock {
    /// A clock that is ahead of the machine's by this much; behind it where that is negative. At most some hours.
    pub const fn ahead(by: SignedDuration) -> Self {
        Self(by)
    }

    /// The time now.
    pub(crate) fn now(self) -> Timestamp {
        let now = Timestamp::now();
        now.checked_add(self.0).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_ahead_says_a_later_time() {
        let ten = SignedDuration::from_mins(10);
        let (exact, ahead) = (Clock::default().now(), Clock::ahead(ten).now());
        assert!(ahead.duration_since(exact) >= ten);
        assert!(Clock::ahead(-ten).now() < exact);
    }
}
