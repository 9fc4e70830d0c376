//! A seam for the simulator, behind the feature `simulation`: rules broken on purpose; nothing of it is in the product.

#[cfg(feature = "simulation")]
pub use broken::{binding, breaks};
#[cfg(not(feature = "simulation"))]
pub(crate) use whole::{binding, is_broken, kept};

#[cfg(feature = "simulation")]
pub(crate) use broken::{is_broken, kept};

/// The product: every rule holds.
#[cfg(not(feature = "simulation"))]
mod whole {
    use aicr_crds::{Digest, RuntimeRollout};

    /// No rule is broken.
    pub(crate) const fn is_broken(_: &str) -> bool {
        false
    }

    /// How many old objects retention keeps.
    pub(crate) const fn kept(count: usize) -> usize {
        count
    }

    /// What an approval of this rollout must bind.
    pub(crate) fn binding(rollout: &RuntimeRollout) -> Option<Digest> {
        rollout.spec.binding_digest().ok()
    }
}

/// The simulation: one rule is broken, and a stand-in for the digest that an approval binds, since hashing whole specs would
/// be most of its time.
#[cfg(feature = "simulation")]
mod broken {
    use std::cell::Cell;

    use aicr_crds::{Digest, RuntimeRollout};

    thread_local! {
        static BROKEN: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// From now on this rule never answers, on this thread; an empty name mends all.
    pub fn breaks(rule: &'static str) {
        BROKEN.set(Some(rule));
    }

    pub(crate) fn is_broken(rule: &str) -> bool {
        BROKEN.get() == Some(rule)
    }

    /// How many old objects retention keeps; where a simulation runs, so few that short histories come to more.
    pub(crate) fn kept(count: usize) -> usize {
        if BROKEN.get().is_none() { count } else { count.min(1) }
    }

    /// What an approval of this rollout must bind; where a simulation runs, a stand-in: of what is bound, a history
    /// changes the schema version alone.
    pub fn binding(rollout: &RuntimeRollout) -> Option<Digest> {
        if BROKEN.get().is_none() {
            return rollout.spec.binding_digest().ok();
        }
        let uid = rollout.metadata.uid.as_deref()?;
        Some(Digest::of([uid, " ", &rollout.spec.schema_version].concat().as_bytes()))
    }
}
