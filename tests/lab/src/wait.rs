//! Waiting for a state, with a bound, saying what was seen last.

use std::time::{Duration, Instant};

use thiserror::Error;

use crate::interrupt;

const POLL: Duration = Duration::from_millis(100);

/// What a probe saw.
#[derive(Debug)]
pub enum Seen<T> {
    /// The state is there.
    Ready(T),
    /// Not yet; what is there instead.
    NotYet(String),
    /// It will never be; why.
    Never(String),
}

/// A wait that did not end well.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The bound passed.
    #[error("waited {} s for {what}; last seen: {seen}", bound.as_secs())]
    Bound {
        /// What was waited for.
        what: String,
        /// How long.
        bound: Duration,
        /// What was there instead.
        seen: String,
    },
    /// The probe gave up.
    #[error("{what} will not happen: {seen}")]
    Never {
        /// What was waited for.
        what: String,
        /// Why it will not be.
        seen: String,
    },
    /// A person asked to stop.
    #[error("interrupted while waiting for {what}")]
    Interrupted {
        /// What was waited for.
        what: String,
    },
}

/// Asks `probe` every 100 ms until it sees the state, for `bound` at most.
///
/// # Errors
/// When the bound passes, the probe says never, or a person asked to stop.
pub fn until<T>(what: &str, bound: Duration, mut probe: impl FnMut() -> Seen<T>) -> Result<T, WaitError> {
    to_the_end(what, bound, || {
        if interrupt::requested() { Err(WaitError::Interrupted { what: what.to_owned() }) } else { Ok(probe()) }
    })
}

/// As [`until`], also when a person asked to stop: for cleaning up.
pub(crate) fn in_any_case<T>(what: &str, bound: Duration, mut probe: impl FnMut() -> Seen<T>) -> Result<T, WaitError> {
    to_the_end(what, bound, || Ok(probe()))
}

fn to_the_end<T>(
    what: &str,
    bound: Duration,
    mut probe: impl FnMut() -> Result<Seen<T>, WaitError>,
) -> Result<T, WaitError> {
    let what = what.to_owned();
    let start = Instant::now();
    loop {
        match probe()? {
            Seen::Ready(value) => return Ok(value),
            Seen::Never(seen) => return Err(WaitError::Never { what, seen }),
            Seen::NotYet(seen) if start.elapsed() >= bound => return Err(WaitError::Bound { what, bound, seen }),
            Seen::NotYet(_) => std::thread::sleep(POLL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_what_was_seen_last() {
        let error = until("rain", Duration::ZERO, || Seen::<()>::NotYet("sun".to_owned())).unwrap_err();
        assert_eq!(error.to_string(), "waited 0 s for rain; last seen: sun");
    }

    #[test]
    fn a_probe_that_gives_up_ends_the_wait_before_its_bound() {
        let error = until("rain", Duration::from_hours(1), || Seen::<()>::Never("desert".to_owned())).unwrap_err();
        assert_eq!(error.to_string(), "rain will not happen: desert");
    }

    #[test]
    fn a_state_is_returned_once_it_is_there() {
        let mut left = 2;
        let got = until("zero", Duration::from_mins(1), || {
            left -= 1;
            if left == 0 { Seen::Ready("there") } else { Seen::NotYet(left.to_string()) }
        });
        assert_eq!(got.unwrap(), "there");
    }
}
