//! What a rollout does next: exactly one thing, fully specified, with its reason.

use aicr_crds::{
    application::{Desired, Ownership},
    reason::Outcome,
    rollout::WrittenEntry,
};
use jiff::Timestamp;
use serde_json::Value;

use super::why::Why;
use crate::resolve::JobPlan;

/// What happens next. Exactly one thing.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// One write, with nothing left to choose.
    Do(Write, Why),
    /// Nothing to do, until an event, a person, or this time.
    Wait(Why, Option<Timestamp>),
    /// The rollout ends.
    End(Outcome, Why),
}

impl Verdict {
    /// Why, whichever it is.
    pub fn why(&self) -> &Why {
        match self {
            Self::Do(_, why) | Self::Wait(why, _) | Self::End(_, why) => why,
        }
    }
}

/// One write of a rollout; each names its object and its precondition.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// `status.current` of this step, with the rollout's resourceVersion, before its Application is written: a
    /// revocation or approval not yet seen makes it fail.
    Begin {
        /// Place of the step, from 0.
        index: usize,
    },
    /// Create an Application that must not exist.
    Create(Box<Desired>),
    /// Apply a whole Application that must exist.
    Apply {
        /// What it shall be.
        desired: Box<Desired>,
        /// Which object.
        on: ObjectRef,
    },
    /// Ask Argo CD for a comparison.
    Refresh {
        /// Which Application.
        on: ObjectRef,
        /// Past the caches.
        hard: bool,
    },
    /// Start a sync of the Application's own source, since Argo CD will not by itself.
    Sync {
        /// Which Application.
        on: ObjectRef,
        /// `operation.sync.source`.
        source: Value,
    },
    /// Tell an operation for other content to terminate.
    Terminate {
        /// Which Application.
        on: ObjectRef,
    },
    /// Add Argo CD's cascade finalizer and `delete-rollout`, switch its automated sync off and ask for a comparison, all in
    /// one: prepares a Remove step.
    PrepareRemove {
        /// Which Application.
        on: ObjectRef,
    },
    /// Rewrite `delete-rollout` alone: the Application is in deletion by an earlier Remove.
    ClaimRemove {
        /// Which Application.
        on: ObjectRef,
    },
    /// Write the ownership annotations and nothing else, and take `orphaned-from` off: an Adopt step.
    Annotate {
        /// Which Application.
        on: ObjectRef,
        /// What they shall say.
        ownership: Box<Ownership>,
    },
    /// Create a Job of this rollout's deployment validation.
    RunValidation(Box<JobPlan>),
    /// Take the marks off again: a Remove that will not happen.
    WithdrawRemove {
        /// Which Application.
        on: ObjectRef,
        /// Whether its automated sync is switched on again; a suspended engine's stays off.
        enabled: bool,
    },
    /// Delete a prepared Application.
    Delete {
        /// Which Application.
        on: ObjectRef,
    },
    /// One entry of the rollout's `written` annotation, with the rollout's resourceVersion.
    Record {
        /// Release.
        release: String,
        /// What was done.
        entry: WrittenEntry,
    },
    /// The rollout's `retry-spent` annotation.
    SpendToken {
        /// The token.
        token: String,
    },
}

/// An object with the identity and version that was decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// resourceVersion.
    pub resource_version: String,
}

impl ObjectRef {
    /// This Application as it was seen.
    pub fn of(application: &aicr_crds::application::Application) -> Self {
        Self {
            name: application.name().to_owned(),
            uid: application.uid().to_owned(),
            resource_version: application.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}
