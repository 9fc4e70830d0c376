//! Versions of an object that our own writes have replaced: a view that still shows one is not decided on.

use std::collections::BTreeSet;

use aicr_decide::rollout::ObjectRef;

/// The replaced versions of the object of one kind that was written last; of any other, none is known.
#[derive(Debug, Default)]
pub(crate) struct Overtaken {
    uid: String,
    versions: BTreeSet<String>,
}

impl Overtaken {
    /// A write went from one version to another, or changed nothing.
    pub(crate) fn note(&mut self, before: &ObjectRef, after: &ObjectRef) {
        if before.resource_version == after.resource_version {
            return;
        }
        if self.uid != before.uid {
            *self = Self { uid: before.uid.clone(), versions: BTreeSet::new() };
        }
        self.versions.insert(before.resource_version.clone());
    }

    /// Whether any of these is at a replaced version.
    pub(crate) fn holds_any(&mut self, seen: impl IntoIterator<Item = ObjectRef>) -> bool {
        seen.into_iter().any(|seen| self.holds(&seen))
    }

    /// Whether this is a replaced version; one that is not shows that the view has come past those that are.
    pub(crate) fn holds(&mut self, seen: &ObjectRef) -> bool {
        if self.uid != seen.uid {
            return false;
        }
        let holds = self.versions.contains(&seen.resource_version);
        if !holds {
            self.versions.clear();
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(uid: &str, version: &str) -> ObjectRef {
        ObjectRef { name: "r".to_owned(), uid: uid.to_owned(), resource_version: version.to_owned() }
    }

    #[test]
    fn a_version_counts_as_replaced_until_a_later_one_is_seen() {
        let mut overtaken = Overtaken::default();
        assert!(!overtaken.holds(&at("a", "1")));
        overtaken.note(&at("a", "1"), &at("a", "2"));
        overtaken.note(&at("a", "2"), &at("a", "3"));
        assert!(overtaken.holds(&at("a", "1")) && overtaken.holds(&at("a", "2")));
        assert!(!overtaken.holds(&at("b", "1")), "of another object nothing is known");
        assert!(overtaken.holds_any([at("b", "1"), at("a", "2")]) && !overtaken.holds_any([at("b", "1")]));
        assert!(!overtaken.holds(&at("a", "3")));
        assert!(!overtaken.holds(&at("a", "1")), "an older view that comes later is not waited out for ever");
    }

    #[test]
    fn a_write_that_changed_nothing_replaces_nothing() {
        let mut overtaken = Overtaken::default();
        overtaken.note(&at("a", "1"), &at("a", "1"));
        assert!(!overtaken.holds(&at("a", "1")));
    }

    #[test]
    fn only_the_object_written_last_is_held() {
        let mut overtaken = Overtaken::default();
        overtaken.note(&at("a", "1"), &at("a", "2"));
        overtaken.note(&at("b", "5"), &at("b", "6"));
        assert!(!overtaken.holds(&at("a", "1")));
        assert!(overtaken.holds(&at("b", "5")));
    }
}
