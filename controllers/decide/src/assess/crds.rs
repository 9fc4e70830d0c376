//! The CRDs that a new chart adds, changes or drops.

use aicr_crds::rollout::{CrdChange, CrdEffect};

/// Compares the CRD names of the old and the new chart; both sorted lists, by name.
///
/// A CRD that both own counts as changed: Argo CD applies the new definition on every sync, whatever is in it.
pub(super) fn changes(old: &[String], new: &[String]) -> Vec<CrdChange> {
    let dropped = old.iter().filter(|name| !new.contains(name)).map(|name| (name, CrdEffect::Dropped));
    let kept = new.iter().map(|name| (name, if old.contains(name) { CrdEffect::Changed } else { CrdEffect::Added }));
    let mut all: Vec<CrdChange> =
        dropped.chain(kept).map(|(name, change)| CrdChange { name: name.clone(), change }).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}
