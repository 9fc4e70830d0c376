//! The token of the moment, between who fetches it and who needs it.

use std::sync::{Arc, Mutex, PoisonError};

use aicr_decide::resolve::token::lasts;
use jiff::Timestamp;

use super::Token;

/// What is held.
#[derive(Clone, Debug)]
pub(crate) enum Holding {
    /// Nothing was fetched yet.
    Nothing,
    /// A token that lasts for any run that is given it.
    Token(Token),
    /// The last fetch failed, and no earlier token lasts; why.
    Failed(String),
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    failure: Option<String>,
}

/// Held by one process, and by none after it.
#[derive(Clone, Default)]
pub(crate) struct Held(Arc<Mutex<State>>);

impl Held {
    /// A fetch went well.
    pub(crate) fn put(&self, token: Token) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State { token: Some(token), failure: None };
    }

    /// A fetch failed; what is held stays for as long as it lasts.
    pub(crate) fn failed(&self, why: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failure = Some(why);
    }

    /// What there is at `now`.
    pub(crate) fn holding(&self, now: Timestamp) -> Holding {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = state.token.as_ref().filter(|token| lasts(token.expires_at, now)) {
            return Holding::Token(token.clone());
        }
        match (&state.failure, &state.token) {
            (Some(why), _) => Holding::Failed(why.clone()),
            (None, Some(token)) => {
                Holding::Failed(format!("the token that was fetched expires at {}", token.expires_at))
            }
            (None, None) => Holding::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn a_token_is_handed_out_for_as_long_as_it_lasts_also_when_later_fetches_fail() {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let held = Held::default();
        assert!(matches!(held.holding(now), Holding::Nothing));
        held.failed("no identity".to_owned());
        assert!(matches!(held.holding(now), Holding::Failed(why) if why == "no identity"));
        held.put(Token::from_authorization("QVdTOnM6ZQ==", now + SignedDuration::from_hours(12)).unwrap());
        held.failed("no identity".to_owned());
        let after = |hours| held.holding(now + SignedDuration::from_hours(hours));
        assert!(matches!(after(11), Holding::Token(_)));
        assert!(matches!(after(12), Holding::Failed(why) if why == "no identity"));
    }
}
