//! Times as people read them: RFC 3339 to the second, and how far away.

use aicr_crds::rollout::RuntimeRolloutStatus;
use jiff::{SignedDuration, Timestamp};

/// RFC 3339 to the second, as the API server stores times.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The two largest units of a length of time: `2h 13m`, `45s`; a negative one reads like its positive.
pub(crate) fn short(length: SignedDuration) -> String {
    let seconds = length.as_secs().unsigned_abs();
    let units = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let first = units.iter().position(|(count, _)| *count > 0).unwrap_or(units.len() - 1);
    let shown = units.iter().skip(first).take(2).enumerate();
    let kept = shown.filter(|(place, (count, _))| *place == 0 || *count > 0);
    kept.map(|(_, (count, unit))| format!("{count}{unit}")).collect::<Vec<_>>().join(" ")
}

/// `in 2h 13m`, `3m ago`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let away = at.duration_since(now);
    if away.is_negative() { format!("{} ago", short(away)) } else { format!("in {}", short(away)) }
}

/// A length of time as `--expires` takes it, rounded down so that it still fits a moment later.
pub(crate) fn flag(length: SignedDuration) -> String {
    match (length.as_mins().max(0), length.as_secs().max(0)) {
        (0, seconds) => format!("{seconds}s"),
        (minutes @ 1..60, _) => format!("{minutes}m"),
        (minutes, _) if minutes % 60 == 0 => format!("{}h", minutes / 60),
        (minutes, _) => format!("{}h{}m", minutes / 60, minutes % 60),
    }
}

/// How long a release took, or has taken so far.
pub(crate) fn took(status: Option<&RuntimeRolloutStatus>, release: &str, now: Timestamp) -> Option<String> {
    let release = status?.releases.iter().find(|known| known.release == release)?;
    let end = release.finished_at.as_ref().map_or(now, |time| time.0);
    Some(short(end.duration_since(release.started_at.as_ref()?.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_show_their_two_largest_units() {
        for (seconds, text) in [
            (0, "0s"),
            (45, "45s"),
            (60, "1m"),
            (61, "1m 1s"),
            (3600, "1h"),
            (7980, "2h 13m"),
            (7985, "2h 13m"),
            (3605, "1h"),
            (90_000, "1d 1h"),
            (-180, "3m"),
        ] {
            assert_eq!(short(SignedDuration::from_secs(seconds)), text, "{seconds}");
        }
    }

    #[test]
    fn a_time_is_ahead_or_behind() {
        let now: Timestamp = "2026-07-01T10:00:00Z".parse().unwrap();
        assert_eq!(relative("2026-07-01T12:13:00Z".parse().unwrap(), now), "in 2h 13m");
        assert_eq!(relative("2026-07-01T09:57:00Z".parse().unwrap(), now), "3m ago");
        assert_eq!(stamp("2026-07-01T09:57:00.75Z".parse().unwrap()), "2026-07-01T09:57:00Z");
    }

    #[test]
    fn what_is_offered_for_expires_is_accepted_and_not_longer() {
        for (seconds, text) in [(59, "59s"), (119, "1m"), (7200, "2h"), (21_599, "5h59m"), (604_800, "168h")] {
            let length = SignedDuration::from_secs(seconds);
            assert_eq!(flag(length), text);
            assert!(aicr_crds::duration::parse(text).unwrap() <= length);
        }
    }
}
