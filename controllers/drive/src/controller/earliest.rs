//! When to look again: the earliest of what each reconcile says.

use std::time::Duration;

use jiff::Timestamp;

/// How long until then; a time that has passed is a moment away.
pub(super) fn until(at: Timestamp, now: Timestamp) -> Duration {
    // A time that has passed already was looked at just now: no timer is faster than this.
    let soon = Duration::from_millis(250);
    Duration::try_from(at.duration_since(now)).unwrap_or(soon).max(soon)
}

/// The earliest of some times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Earliest(pub(super) Option<Timestamp>);

impl Earliest {
    /// One more.
    pub(super) fn add(&mut self, at: Option<Timestamp>) {
        self.0 = match (self.0, at) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_of_some_times_is_waited_for() {
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        let mut earliest = Earliest::default();
        for time in [None, at(20), at(10), None, at(30)] {
            earliest.add(time);
        }
        assert_eq!(earliest.0, at(10));
    }
}
