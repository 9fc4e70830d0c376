//! For how long a leader endures that its lease cannot be renewed: not as long as it holds.

use std::time::Duration;

use tokio::time::Instant;

/// From the first failure on. A lease of 30 s is renewed after 10 s; the first failure comes 4 s later at most, and the
/// last one after this began within 5 s: 29 s.
pub(super) const ENDURED: Duration = Duration::from_secs(10);
/// Between two attempts.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// An attempt that took longer had renewed the lease and was resting: two calls take less.
const RESTED: Duration = Duration::from_secs(6);

/// Failures in a row.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    since: Option<Instant>,
}

/// What a failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Try again.
    Endure,
    /// The lease is as good as lost.
    GiveUp,
}

impl Trouble {
    /// An attempt that began then failed now.
    pub(super) fn failed(&mut self, begun: Instant, now: Instant) -> Verdict {
        if now.duration_since(begun) > RESTED {
            self.since = None;
        }
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) >= ENDURED { Verdict::GiveUp } else { Verdict::Endure }
    }
}

/// Reads in a row that failed, of one who waits.
#[derive(Debug, Default)]
pub(super) struct Unread(u32);

impl Unread {
    /// One more; whether a person should hear of it. A single one is a connection that had rested too long.
    pub(super) fn is_worth_telling(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        self.0 > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_waits_tells_of_the_second_failure_in_a_row_and_of_each_that_follows() {
        let mut unread = Unread::default();
        assert_eq!([(); 3].map(|()| unread.is_worth_telling()), [false, true, true]);
        unread = Unread::default();
        assert!(!unread.is_worth_telling());
    }

    #[test]
    fn failures_are_endured_for_ten_seconds_in_a_row_and_a_renewal_starts_anew() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut trouble = Trouble::default();
        assert_eq!(trouble.failed(at(0), at(12)), Verdict::Endure);
        assert_eq!(trouble.failed(at(13), at(17)), Verdict::Endure);
        assert_eq!(trouble.failed(at(18), at(21)), Verdict::Endure);
        // Renewed, and ten seconds later it fails again.
        assert_eq!(trouble.failed(at(22), at(33)), Verdict::Endure);
        assert_eq!(trouble.failed(at(34), at(38)), Verdict::Endure);
        assert_eq!(trouble.failed(at(39), at(43)), Verdict::GiveUp);
    }
}
