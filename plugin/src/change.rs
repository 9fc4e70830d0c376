//! A change to a rollout's spec as a merge patch that only fits the object it was made for.

use aicr_crds::{RuntimeRollout, rollout::Person};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Who changes it, why, and by which clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    /// As the API server reports them.
    pub(crate) person: Person,
    /// At most 1024 characters.
    pub(crate) reason: String,
}

/// A merge patch of `spec`, bound to the `resourceVersion` that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    resource_version: Option<String>,
    spec: Value,
}

impl Change {
    /// A change of these fields of the rollout's spec.
    pub(crate) fn of(rollout: &RuntimeRollout, spec: Value) -> Self {
        Self { resource_version: rollout.metadata.resource_version.clone(), spec }
    }

    /// The patch's body.
    pub(crate) fn body(&self) -> Value {
        json!({ "metadata": { "resourceVersion": self.resource_version }, "spec": self.spec })
    }
}

/// The time to the second, which is all that the API server keeps.
pub(crate) fn to_the_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
