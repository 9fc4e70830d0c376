//! What is kept beside the snapshots: which plan some inputs came to, and how many snapshots there are.

use aicr_crds::ClusterRuntimeSpec;
use aicr_decide::resolve::{self, Seen, snapshot::Stored};

use crate::{
    controller::Hands,
    watch::{Content, ResolvedEntry},
};

/// Snapshots that are kept.
const SNAPSHOTS: usize = 5;
/// Entries that a snapshot keeps of what was resolved from it.
const ENTRIES: usize = 20;

/// The entries with this one last; the oldest make room.
pub(super) fn with_entry(mut entries: Vec<ResolvedEntry>, entry: ResolvedEntry) -> Vec<ResolvedEntry> {
    entries.retain(|known| known.input != entry.input);
    entries.push(entry);
    let surplus = entries.len().saturating_sub(ENTRIES);
    entries.drain(..surplus);
    entries
}

/// Hash of what the spec and the installation say of the render.
pub(super) fn spec_label(spec: &ClusterRuntimeSpec, seen: &Seen<'_>) -> String {
    resolve::of_spec(spec, &seen.install.aicr).short()
}

/// What was resolved from each snapshot, newest last.
pub(super) fn all(hands: &Hands, seen: &Seen<'_>) -> Vec<ResolvedEntry> {
    let documents = seen.snapshots.iter().filter_map(|stored| hands.gather.document(&stored.name));
    documents
        .flat_map(|document| match &document.content {
            Content::Snapshot(snapshot) => snapshot.resolved.clone(),
            Content::Plan(_) | Content::Assessment(_) | Content::Runs(_) | Content::Other => Vec::new(),
        })
        .collect()
}

/// Snapshots that make room for the newest, of those that were there, oldest first.
pub(super) fn surplus<'a>(there: &'a [Stored], newest: &str) -> Vec<&'a str> {
    // The one that says what the candidate is stays too, however old.
    let says = there.iter().rev().find(|stored| !stored.resolved.is_empty()).map(|stored| stored.name.as_str());
    let others: Vec<&str> = there.iter().map(|stored| stored.name.as_str()).filter(|name| *name != newest).collect();
    let beyond = (others.len() + 1).saturating_sub(SNAPSHOTS);
    others.into_iter().take(beyond).filter(|name| Some(*name) != says).collect()
}

#[cfg(test)]
mod tests {
    use aicr_crds::Digest;
    use aicr_decide::resolve::snapshot::{Reading, Record};
    use jiff::Timestamp;

    use super::*;

    fn entry(input: &str) -> ResolvedEntry {
        ResolvedEntry { input: input.to_owned(), spec: "s".to_owned(), plan: Digest::of(input.as_bytes()) }
    }

    #[test]
    fn a_snapshot_keeps_the_last_twenty_plans_and_each_input_once() {
        let all = (0..25).fold(Vec::new(), |all, place| with_entry(all, entry(&place.to_string())));
        assert_eq!(all.len(), ENTRIES);
        assert_eq!((all[0].input.as_str(), all[19].input.as_str()), ("5", "24"));
        let again = with_entry(all, entry("7"));
        assert_eq!(again.len(), ENTRIES);
        assert_eq!(again[19].input, "7");
    }

    /// Snapshots of these names, oldest first; those with a star were resolved.
    fn stored(names: &str) -> Vec<Stored> {
        let one = |name: &str| Stored {
            name: name.trim_end_matches('*').to_owned(),
            taken_at: Timestamp::UNIX_EPOCH,
            record: Record::default(),
            reading: Ok(Reading::default()),
            text: String::new(),
            resolved: name.ends_with('*').then(|| ("input".to_owned(), Digest::of(b"plan"))).into_iter().collect(),
        };
        names.split_whitespace().map(one).collect()
    }

    #[rstest::rstest]
    #[case::fewer("1* 2* 3* 4*", &[])]
    #[case::five_and_the_new_one("1* 2* 3* 4* 5*", &["1"])]
    #[case::more("1* 2* 3* 4* 5* 6* 7*", &["1", "2", "3"])]
    #[case::read_back_already("1* 2* 3* 4* 5* new", &["1"])]
    #[case::none_was_resolved("1 2 3 4 5 6", &["1", "2"])]
    #[case::the_candidate_is_of_an_old_one("1 2* 3 4 5 6 7", &["1", "3"])]
    #[case::the_candidate_is_of_the_oldest("1* 2 3 4 5", &[])]
    fn the_newest_five_stay_and_the_one_that_says_what_the_candidate_is(#[case] there: &str, #[case] goes: &[&str]) {
        assert_eq!(surplus(&stored(there), "new"), goes);
    }
}
