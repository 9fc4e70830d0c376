//! When a certificate is due for renewal, by the wall clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, date_time_ymd};
use x509_parser::certificate::X509Certificate;

/// How far before its making a certificate of ours begins: whoever checks it may have a clock that is an hour behind.
pub const BACKDATED: SignedDuration = SignedDuration::from_hours(2);

/// From when until when a certificate holds, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second in which it holds.
    pub not_before: Timestamp,
    /// The last second in which it holds.
    pub not_after: Timestamp,
}

/// Where in its life a certificate of ours stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// Made under a clock that ran more than [`BACKDATED`] ahead.
    NotYetValid,
    /// In the first two thirds of its life.
    Fresh,
    /// Still valid, to be replaced.
    Due,
    /// Refused by everybody.
    Expired,
}

impl Validity {
    /// For a certificate made now that shall hold for `life` from now; the beginning is [`BACKDATED`].
    pub fn starting(now: Timestamp, life: SignedDuration) -> Self {
        let now = now.as_second();
        Self { not_before: at(now - BACKDATED.as_secs()), not_after: at(now.saturating_add(life.as_secs())) }
    }

    /// The same, but ending no later than `outer`: a leaf does not outlive its authority.
    #[must_use]
    pub fn within(self, outer: Self) -> Self {
        Self { not_after: self.not_after.min(outer.not_after), ..self }
    }

    /// When a certificate of ours was made.
    pub fn issued_at(&self) -> Timestamp {
        at(self.not_before.as_second() + BACKDATED.as_secs())
    }

    /// When a certificate of ours is due: at two thirds of the time between its making and its end.
    pub fn renew_at(&self) -> Timestamp {
        let issued = self.issued_at().as_second();
        let life = self.not_after.as_second() - issued;
        at(issued + life.max(0) / 3 * 2)
    }

    /// Where in its life a certificate of ours stands at `now`.
    pub fn age(&self, now: Timestamp) -> Age {
        if now > self.not_after {
            Age::Expired
        } else if now < self.not_before {
            Age::NotYetValid
        } else if now >= self.renew_at() {
            Age::Due
        } else {
            Age::Fresh
        }
    }

    pub(crate) fn of(certificate: &X509Certificate<'_>) -> Self {
        let validity = certificate.validity();
        Self { not_before: at(validity.not_before.timestamp()), not_after: at(validity.not_after.timestamp()) }
    }

    pub(crate) fn write_to(self, params: &mut CertificateParams) {
        let since_1970 = |time: Timestamp| Duration::from_secs(u64::try_from(time.as_second()).unwrap_or(0));
        params.not_before = date_time_ymd(1970, 1, 1) + since_1970(self.not_before);
        params.not_after = date_time_ymd(1970, 1, 1) + since_1970(self.not_after);
    }
}

/// The instant, or the nearest one that can be written.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const DAY: i64 = 86_400;

    #[rstest]
    #[case::three_hours_before(-3 * 3_600, Age::NotYetValid)]
    #[case::read_by_a_clock_an_hour_behind(-3_600, Age::Fresh)]
    #[case::just_made(0, Age::Fresh)]
    #[case::a_third(2 * DAY, Age::Fresh)]
    #[case::a_second_before_two_thirds(4 * DAY - 1, Age::Fresh)]
    #[case::two_thirds(4 * DAY, Age::Due)]
    #[case::read_at_two_thirds_by_a_clock_an_hour_behind(4 * DAY - 3_600, Age::Fresh)]
    #[case::the_last_second(6 * DAY, Age::Due)]
    #[case::expired(6 * DAY + 1, Age::Expired)]
    #[case::after_an_outage_of_thirty_days(30 * DAY, Age::Expired)]
    fn a_life_of_six_days_is_due_after_four(#[case] later: i64, #[case] age: Age) {
        let made = at(1_800_000_000);
        let validity = Validity::starting(made, SignedDuration::from_hours(6 * 24));
        assert_eq!(validity.age(at(1_800_000_000 + later)), age);
        assert_eq!(validity.issued_at(), made);
    }

    #[test]
    fn a_leaf_ends_with_its_authority_and_is_renewed_sooner() {
        let now = at(1_800_000_000);
        let outer = Validity::starting(now, SignedDuration::from_hours(3));
        let leaf = Validity::starting(now, SignedDuration::from_hours(24)).within(outer);
        assert_eq!(leaf.not_after, outer.not_after);
        assert_eq!(leaf.renew_at(), at(1_800_000_000 + 2 * 3_600));
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        for now in [Timestamp::MIN, Timestamp::MAX] {
            let validity = Validity::starting(now, SignedDuration::MAX);
            assert!(validity.not_before <= validity.not_after);
            let mut params = CertificateParams::default();
            validity.write_to(&mut params);
            let _ = validity.age(Timestamp::MAX);
        }
    }
}
