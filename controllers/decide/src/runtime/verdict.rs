//! What happens next with the runtime, and why.

use aicr_crds::{
    RuntimeRollout,
    application::{Desired, Ownership},
    plan::StoredPlan,
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
    /// Let an unchanged release's ownership annotations follow the plan that it is at.
    Follow {
        /// Which Application.
        on: ObjectRef,
        /// What they shall say.
        ownership: Box<Ownership>,
    },
    /// Add the operator's finalizer to the runtime, with its resourceVersion.
    AddFinalizer,
    /// Take the operator's finalizer off the runtime; the policy has run.
    Release {
        /// What became of the Applications.
        note: String,
    },
    /// Annotate an Application with `orphaned-from`: this runtime's UID.
    Orphan {
        /// Which Application.
        on: ObjectRef,
    },
    /// Set `syncPolicy.automated.enabled` alone, by merge patch, and read it back.
    SetAutomated {
        /// Which Application.
        on: ObjectRef,
        /// The value.
        enabled: bool,
    },
    /// Force an edited Application back: apply it whole.
    Repair {
        /// What it shall be.
        desired: Box<Desired>,
        /// Which object.
        on: ObjectRef,
        /// Who else owns fields of its spec.
        managers: Vec<String>,
    },
    /// Write an Application again that was deleted by hand; it must not exist.
    Recreate(Box<Desired>),
    /// Write the lost active plan back.
    RebuildPlan(Box<StoredPlan>),
    /// Store the plan that Applications to be adopted rebuild to; one of another runtime is replaced.
    StorePlan(Box<StoredPlan>),
    /// Take the marks of a Remove that will not happen off an Application.
    WithdrawRemove {
        /// Which Application.
        on: ObjectRef,
        /// Whether its automated sync is switched on again; a suspended engine's stays off.
        enabled: bool,
    },
    /// Delete a plan ConfigMap that retention does not keep, by name and as it was seen.
    DeletePlan(String),
    /// Delete an ended rollout that retention does not keep.
    DeleteRollout(ObjectRef),
}

/// Why the runtime is where it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// A plan or a rollout cannot be read.
    Unreadable(String),
    /// The runtime is being deleted: nothing resolves, repairs or starts. What is done, or waited for.
    Deleting(String),
    /// The removal rollout did not succeed.
    RemovalFailed {
        /// The rollout.
        name: String,
        /// How it ended.
        outcome: Outcome,
        /// Why, as its status says.
        message: String,
    },
    /// Something is put right that changes nothing of what the runtime waits for.
    Upkeep,
    /// Applications to be adopted do not rebuild into a plan.
    AdoptionBlocked(String),
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
