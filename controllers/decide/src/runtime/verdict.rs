//! What happens next with the runtime, and why.

use aicr_crds::{
    Digest, RuntimeRollout,
    reason::{Outcome, Reason},
};
use jiff::Timestamp;

use crate::{
    resolve::JobPlan,
    rollout::{Hold, ObjectRef, Verdict as RolloutVerdict},
};

/// What happens next. Exactly one thing.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// One write.
    Do(Write, Why),
    /// Nothing, until an event, a person, or this time.
    Wait(Why, Option<Timestamp>),
}

impl Verdict {
    /// Why, whichever it is.
    pub fn why(&self) -> &Why {
        match self {
            Self::Do(_, why) | Self::Wait(why, _) => why,
        }
    }
}

/// One write for the runtime.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Create this rollout unless one of its name exists.
    CreateRollout(Box<RuntimeRollout>),
    /// Create an assessment Job.
    RunAssessment(Box<JobPlan>),
    /// Store a finished assessment's report under this name, read it back, then delete the Job.
    StoreAssessment {
        /// The Job.
        job: String,
        /// Its input label, which names the ConfigMap.
        input: String,
    },
    /// Let an unchanged release's `plan-digest` annotation follow the active plan.
    Follow {
        /// Which Application.
        on: ObjectRef,
        /// The active plan.
        plan: Digest,
    },
}

/// Why the runtime is where it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// A plan or a rollout cannot be read.
    Unreadable(String),
    /// The runtime is being deleted: nothing resolves, repairs or starts.
    Deleting,
    /// A rollout is unfinished.
    InProgress {
        /// Its name.
        name: String,
        /// What happens next with it.
        verdict: Box<RolloutVerdict>,
        /// `9/18 gpu-operator (Upgrade)`, where a step is in flight or next.
        step: Option<String>,
    },
    /// Applications of another runtime exist.
    OrphanedObjects(String),
    /// No plan has been resolved yet.
    NoTarget,
    /// The target is the active plan.
    UpToDate,
    /// The newest rollout to this target did not succeed.
    EndedBadly {
        /// The rollout.
        name: String,
        /// How it ended.
        outcome: Outcome,
        /// Why, as its status says.
        message: String,
        /// A foreign Application that is in the way still.
        foreign: Option<String>,
    },
    /// A rollout is due and held.
    Held(Hold),
    /// A rollout is due, and the current inputs are not resolved.
    Unresolved,
    /// The target cannot be rolled out.
    Unfit(Reason, String),
    /// The target waits for its stabilization window.
    Stabilizing(Timestamp),
    /// The transition is being assessed.
    Assessing(String),
    /// The assessment needs a person.
    AssessmentStalled(Reason, String),
    /// The transition is blocked.
    Blocked(String),
    /// A rollout is being created.
    Creating(String),
}
