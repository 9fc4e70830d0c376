//! Places of a plan's releases by name, and what is worked out of each once: decisions ask for both all the time.

use std::sync::OnceLock;

use super::{Archive, ReleaseContent};
use crate::digest::{CanonicalError, Digest};

/// Places within a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    /// Releases by name.
    by_name: Vec<usize>,
    /// For each release its archive.
    archives: Vec<usize>,
    /// For each release its fingerprint.
    prints: Vec<Print>,
}

impl Index {
    /// Every release has exactly one archive, which the plan has checked.
    pub(super) fn of(releases: &[ReleaseContent], archives: &[Archive]) -> Self {
        let mut by_name: Vec<usize> = (0..releases.len()).collect();
        by_name.sort_by_key(|place| &releases[*place].id);
        let mut order: Vec<usize> = (0..archives.len()).collect();
        order.sort_by_key(|place| &archives[*place].id);
        let archive = |release: &ReleaseContent| {
            order.binary_search_by_key(&&release.id, |place| &archives[*place].id).map_or(0, |found| order[found])
        };
        Self {
            archives: releases.iter().map(archive).collect(),
            prints: releases.iter().map(|_| Print::default()).collect(),
            by_name,
        }
    }

    /// Place of the release of this name.
    pub(super) fn place(&self, releases: &[ReleaseContent], id: &str) -> Option<usize> {
        let found = self.by_name.binary_search_by_key(&id, |place| &releases[*place].id).ok()?;
        Some(self.by_name[found])
    }

    /// Place of the archive of the release at `place`.
    pub(super) fn archive(&self, place: usize) -> usize {
        self.archives[place]
    }

    /// What is remembered of the release at `place`.
    pub(super) fn print(&self, place: usize) -> &Print {
        &self.prints[place]
    }
}

/// The fingerprint of a release's Application in one repository, once it was asked for: values are long, and it is asked
/// for at every decision.
#[derive(Clone, Debug, Default)]
pub(crate) struct Print(OnceLock<(String, Digest)>);

impl Print {
    /// The fingerprint within `repository`.
    pub(crate) fn within(
        &self,
        repository: &str,
        work_out: impl FnOnce() -> Result<Digest, CanonicalError>,
    ) -> Result<Digest, CanonicalError> {
        if let Some((known, print)) = self.0.get()
            && known == repository
        {
            return Ok(*print);
        }
        let print = work_out()?;
        // Another repository than the first one is worked out each time.
        let _ = self.0.set((repository.to_owned(), print));
        Ok(print)
    }
}

/// What is remembered is no part of what a plan is.
impl PartialEq for Print {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Print {}
