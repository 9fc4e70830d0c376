//! The list of who changed a runtime's spec: how an edit extends it, and whether one was extended so.

use aicr_crds::rollout::Author;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{
    known::Known,
    person::{is_about_now, is_fresh, to_the_second},
    verdict::{Denial, Rule},
};

/// Entries that the list holds.
pub(crate) const LIMIT: usize = 64;
/// Characters of a user name that a rollout's `requestedBy` holds; with a longer one none could be created any more.
const NAME_LIMIT: usize = 256;

const UNREADABLE: &str = "the annotation operator.aicr.run/spec-changed-by cannot be read, so nobody knows whose change this is; have it taken off as the page on break-glass says";
const FULL: &str =
    "64 people have changed the spec since a rollout last succeeded; let a rollout succeed, then edit again";
const LONG_NAME: &str = "a user name of more than 256 characters cannot be held as an author, and nobody could be kept from approving their own change; edit as another user";
const NOT_STAMPED: &str =
    "operator.aicr.run/spec-changed-by is stamped by admission and cannot be set; send the change without it";
const NOT_SEEN: &str = "the list of authors has just changed; send the change again";

/// An edit of one runtime's spec.
pub(crate) struct Edit<'e> {
    /// The list before it, as stored.
    pub(crate) before: Option<&'e str>,
    /// Who edits.
    pub(crate) user: &'e str,
    /// UID of the runtime; empty while it has none.
    pub(crate) runtime_uid: &'e str,
    /// The rollouts, which say whose edits are spent.
    pub(crate) known: &'e Known,
    /// When.
    pub(crate) now: Timestamp,
}

impl Edit<'_> {
    /// The list after the edit: one entry a user, the newest last.
    pub(crate) fn after(&self) -> Result<Vec<Author>, Denial> {
        self.is_held()?;
        let (mut kept, previous) = self.before()?;
        if kept.len() >= LIMIT {
            kept.retain(|author| !self.known.is_spent(self.runtime_uid, author));
        }
        if kept.len() >= LIMIT {
            // A success that this replica's watch has not seen would make room.
            return Err(Rule::Authors.conflicts(FULL));
        }
        kept.push(Author { user: self.user.to_owned(), at: Time(self.time(previous)) });
        Ok(kept)
    }

    /// Whether this is such a list, by any replica's clock.
    pub(crate) fn check(&self, after: Option<&str>) -> Result<(), Denial> {
        self.is_held()?;
        let (kept, previous) = self.before()?;
        let forged = || Rule::Authors.forbids(NOT_STAMPED);
        let mut list = after.and_then(parse).ok_or_else(forged)?;
        let newest = list.pop().ok_or_else(forged)?;
        let is_later = previous.is_none_or(|previous| newest.at.0 > previous);
        if newest.user != self.user || !is_later || !is_about_now(newest.at.0, self.now) {
            return Err(forged());
        }
        if list == kept {
            return Ok(());
        }
        if kept.len() < LIMIT {
            return Err(forged());
        }
        let mut rest = list.iter().peekable();
        let dropped = kept.iter().filter(|author| rest.next_if_eq(author).is_none());
        let all_spent = dropped.into_iter().all(|author| self.known.is_spent(self.runtime_uid, author));
        if all_spent && rest.next().is_none() { Ok(()) } else { Err(Rule::Authors.conflicts(NOT_SEEN)) }
    }

    /// Whether a list was stamped for this edit a moment ago.
    pub(crate) fn is_stamped(&self, after: Option<&str>) -> bool {
        let fresh = after.and_then(parse).and_then(|list| list.last().map(|newest| newest.at.0));
        fresh.is_some_and(|at| is_fresh(at, self.now) || Some(at) == self.floor()) && self.check(after).is_ok()
    }

    /// Whether who edits can be held as an author.
    fn is_held(&self) -> Result<(), Denial> {
        if self.user.chars().count() > NAME_LIMIT { Err(Rule::Authors.forbids(LONG_NAME)) } else { Ok(()) }
    }

    /// Everybody else's entries, and the time of the editor's own.
    fn before(&self) -> Result<(Vec<Author>, Option<Timestamp>), Denial> {
        let Some(text) = self.before else { return Ok((Vec::new(), None)) };
        let mut list = parse(text).ok_or_else(|| Rule::Authors.forbids(UNREADABLE))?;
        let previous = list.iter().filter(|author| author.user == self.user).map(|author| author.at.0).max();
        list.retain(|author| author.user != self.user);
        Ok((list, previous))
    }

    /// A success frees the edits that it carried by user and time: a later edit has a later second, whatever the clocks.
    fn time(&self, previous: Option<Timestamp>) -> Timestamp {
        let now = to_the_second(self.now);
        previous.and_then(next_second).map_or(now, |least| least.max(now))
    }

    fn floor(&self) -> Option<Timestamp> {
        let (_, previous) = self.before().ok()?;
        next_second(previous?)
    }
}

fn next_second(at: Timestamp) -> Option<Timestamp> {
    to_the_second(at).checked_add(SignedDuration::from_secs(1)).ok()
}

fn parse(text: &str) -> Option<Vec<Author>> {
    serde_json::from_str(text).ok()
}

/// Refuses a list that differs although the spec does not.
pub(crate) fn unchanged(before: Option<&str>, after: Option<&str>) -> Result<(), Denial> {
    if before == after { Ok(()) } else { Err(Rule::Authors.forbids(NOT_STAMPED)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::{KnownRollout, RolloutState};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_780_000_000 + second).unwrap()
    }

    fn author(user: &str, second: i64) -> Author {
        Author { user: user.into(), at: Time(at(second)) }
    }

    fn text(list: &[Author]) -> String {
        serde_json::to_string(list).unwrap()
    }

    fn edit<'e>(before: Option<&'e str>, user: &'e str, known: &'e Known) -> Edit<'e> {
        Edit { before, user, runtime_uid: "uid", known, now: at(100) }
    }

    fn full() -> Vec<Author> {
        (0..64).map(|n| author(&format!("u{n}"), n)).collect()
    }

    fn freeing(frees: Vec<Author>) -> Known {
        Known::from_rollouts(vec![KnownRollout {
            name: "r".into(),
            runtime_uid: "uid".into(),
            state: RolloutState::Ended,
            removes: vec![],
            frees,
        }])
    }

    #[test]
    fn an_edit_adds_its_author_last_and_keeps_the_others() {
        let known = Known::default();
        let before = text(&[author("ann", 1), author("bob", 2)]);
        let after = edit(Some(&before), "ann", &known).after().unwrap();
        assert_eq!(after, [author("bob", 2), author("ann", 100)]);
        assert_eq!(edit(None, "ann", &known).after().unwrap(), [author("ann", 100)]);
        assert_eq!(edit(Some(&before), "ann", &known).check(Some(&text(&after))), Ok(()));
    }

    /// A success must not free a later edit of the same second, or of a replica whose clock is behind.
    #[test]
    fn a_later_edit_has_a_later_time_whatever_the_clock_says() {
        let known = Known::default();
        for earlier in [100, 160] {
            let before = text(&[author("ann", earlier)]);
            let edit = edit(Some(&before), "ann", &known);
            assert_eq!(edit.after().unwrap(), [author("ann", earlier + 1)]);
            assert_eq!(edit.check(Some(&text(&[author("ann", earlier + 1)]))), Ok(()));
            assert_eq!(edit.check(Some(&before)), Err(Rule::Authors.forbids(NOT_STAMPED)));
            assert!(edit.is_stamped(Some(&text(&[author("ann", earlier + 1)]))));
        }
    }

    #[test]
    fn a_list_that_drops_adds_or_dates_anybody_otherwise_is_refused() {
        let known = Known::default();
        let before = text(&[author("ann", 1), author("bob", 2)]);
        let edit = edit(Some(&before), "cid", &known);
        for forged in [
            vec![author("bob", 2), author("cid", 100)],
            vec![author("ann", 2), author("bob", 2), author("cid", 100)],
            vec![author("ann", 1), author("bob", 2), author("cid", 100 + 901)],
            vec![author("ann", 1), author("bob", 2), author("cid", 100 - 901)],
            vec![author("ann", 1), author("bob", 2)],
            vec![author("ann", 1), author("bob", 2), author("dan", 100)],
            vec![author("ann", 1), author("bob", 2), author("dan", 100), author("cid", 100)],
            vec![],
        ] {
            assert_eq!(edit.check(Some(&text(&forged))), Err(Rule::Authors.forbids(NOT_STAMPED)), "{forged:?}");
        }
        for none in [None, Some("x")] {
            assert_eq!(edit.check(none), Err(Rule::Authors.forbids(NOT_STAMPED)));
        }
    }

    /// A rollout's `requestedBy` could not hold it, and no rollout would be created any more.
    #[test]
    fn who_has_a_longer_name_than_a_rollout_holds_is_no_author() {
        let none = Known::default();
        let (longest, longer) = ("ä".repeat(256), "ä".repeat(257));
        assert!(edit(None, &longest, &none).after().is_ok());
        let refused = Rule::Authors.forbids(LONG_NAME);
        assert_eq!(edit(None, &longer, &none).after(), Err(refused));
        let stamped = text(&[author(&longer, 100)]);
        assert_eq!(edit(None, &longer, &none).check(Some(&stamped)), Err(refused));
    }

    #[test]
    fn a_65th_author_waits_for_a_success_which_makes_room() {
        let before = text(&full());
        let none = Known::default();
        assert_eq!(edit(Some(&before), "new", &none).after(), Err(Rule::Authors.conflicts(FULL)));
        assert!(edit(Some(&before), "u3", &none).after().is_ok(), "one of the 64 may edit again");
        let known = freeing(vec![author("u1", 1), author("u2", 99)]);
        let after = edit(Some(&before), "new", &known).after().unwrap();
        assert_eq!(after.len(), 64, "u2 edited again since");
        assert!(!after.contains(&author("u1", 1)) && after.contains(&author("u2", 2)));
        assert_eq!(edit(Some(&before), "new", &known).check(Some(&text(&after))), Ok(()));
        assert_eq!(
            edit(Some(&before), "new", &none).check(Some(&text(&after))),
            Err(Rule::Authors.conflicts(NOT_SEEN)),
            "another replica's watch may be behind"
        );
    }

    #[test]
    fn a_stored_list_that_cannot_be_read_is_not_taken_for_nobody() {
        let known = Known::default();
        assert_eq!(edit(Some("?"), "ann", &known).after(), Err(Rule::Authors.forbids(UNREADABLE)));
    }
}
