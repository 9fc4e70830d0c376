//! What could not be read or written for a step: kept between passes, forgotten once the same thing works.

use std::collections::BTreeMap;

use aicr_decide::message::bounded;

use crate::error::{DriveError, chain};

/// Bytes of one error's words.
const WORDS: usize = 512;

/// What is read beside the watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reading {
    /// Applications by name.
    Applications,
    /// Live objects of the release in flight.
    Live,
}

/// Troubles by what was tried last and did not work.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    reads: BTreeMap<Reading, String>,
    writes: BTreeMap<String, String>,
}

impl Troubles {
    /// What came of reading.
    pub(crate) fn read(&mut self, what: Reading, failure: Option<&DriveError>) {
        match failure {
            Some(error) => drop(self.reads.insert(what, words(error))),
            None => drop(self.reads.remove(&what)),
        }
    }

    /// What came of what this rollout wrote last.
    pub(crate) fn wrote(&mut self, rollout: &str, failure: Option<&DriveError>) {
        match failure {
            Some(error) => drop(self.writes.insert(rollout.to_owned(), words(error))),
            None => drop(self.writes.remove(rollout)),
        }
    }

    /// What cannot be read now.
    pub(crate) fn reads(&self) -> Option<String> {
        joined(self.reads.values())
    }

    /// The same, and what this rollout could not write.
    pub(crate) fn of(&self, rollout: &str) -> Option<String> {
        joined(self.reads.values().chain(self.writes.get(rollout)))
    }
}

fn words(error: &DriveError) -> String {
    bounded(chain(error), WORDS)
}

fn joined<'a>(all: impl Iterator<Item = &'a String>) -> Option<String> {
    let all: Vec<&str> = all.map(String::as_str).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(act: &str) -> DriveError {
        let status = kube::core::Status { code: 403, ..kube::core::Status::failure("no", "Forbidden") };
        DriveError::Api { act: act.to_owned(), source: Box::new(kube::Error::Api(Box::new(status))) }
    }

    #[test]
    fn trouble_names_the_act_and_the_answer_until_the_same_thing_works() {
        let mut troubles = Troubles::default();
        troubles.wrote("r-1", Some(&refused("apply Application gpu")));
        troubles.read(Reading::Applications, Some(&refused("get Application nfd")));
        let both = "get Application nfd: 403 Forbidden: no; apply Application gpu: 403 Forbidden: no";
        assert_eq!(troubles.of("r-1").as_deref(), Some(both));
        assert_eq!(troubles.of("r-2"), troubles.reads());
        assert_eq!(troubles.reads().as_deref(), Some("get Application nfd: 403 Forbidden: no"));
        troubles.read(Reading::Applications, None);
        assert_eq!(troubles.of("r-1").as_deref(), Some("apply Application gpu: 403 Forbidden: no"));
        troubles.wrote("r-1", None);
        assert_eq!(troubles.of("r-1"), None);
    }
}
