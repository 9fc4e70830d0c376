//! Back-off after failures, for each controller: 1 s, doubled to 60 s, with jitter.

use std::{collections::BTreeMap, time::Duration};

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use jiff::{SignedDuration, Timestamp};

/// First wait.
const FIRST: Duration = Duration::from_secs(1);
/// Longest wait, before jitter.
const LONGEST: Duration = Duration::from_mins(1);

/// Until when each controller that failed rests.
#[derive(Default)]
pub(super) struct Patience(BTreeMap<String, (Timestamp, ExponentialBackoff)>);

impl Patience {
    /// Whether the controller may go on.
    pub(super) fn is_over(&self, controller: &str, now: Timestamp) -> bool {
        self.0.get(controller).is_none_or(|(until, _)| *until <= now)
    }

    /// It failed once more.
    pub(super) fn failed(&mut self, controller: &str, now: Timestamp) {
        let builder = ExponentialBuilder::default().with_min_delay(FIRST).with_max_delay(LONGEST).with_jitter();
        let (until, waits) =
            self.0.entry(controller.to_owned()).or_insert_with(|| (now, builder.without_max_times().build()));
        let wait = waits.next().unwrap_or(LONGEST);
        *until = now + SignedDuration::try_from(wait).unwrap_or(SignedDuration::from_mins(1));
    }

    /// It went well.
    pub(super) fn forgive(&mut self, controller: &str) {
        self.0.remove(controller);
    }

    /// When the first of those that rest is due.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.0.values().map(|(until, _)| *until).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_in_a_row_rests_longer_up_to_a_bound_and_a_success_forgives() {
        let mut patience = Patience::default();
        let now = Timestamp::from_second(1000).unwrap();
        let mut waits = Vec::new();
        for _ in 0..12 {
            patience.failed("runtime", now);
            waits.push(patience.next(now).unwrap().duration_since(now));
        }
        assert!(waits[0] >= SignedDuration::from_secs(1) && waits[0] <= SignedDuration::from_secs(2), "{waits:?}");
        assert!(waits[5] > waits[0], "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= SignedDuration::from_secs(120)), "{waits:?}");
        assert!(!patience.is_over("runtime", now) && patience.is_over("rollout", now));
        patience.forgive("runtime");
        assert!(patience.is_over("runtime", now) && patience.next(now).is_none());
    }
}
