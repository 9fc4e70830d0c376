//! Condition types, reasons, Event reasons and outcomes, as enums whose one `Display` is the word on the page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares an enum of words: its variants, `as_str`, `Display`, `ALL` and serde by the same names.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $(= $text:literal)?),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[schemars(inline)]
        pub enum $name { $($(#[$doc])* $(#[serde(rename = $text)])? $variant),+ }

        impl $name {
            /// Every variant, in the order of the page.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as people read it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => words!(@text $variant $($text)?)),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
    (@text $variant:ident $text:literal) => { $text };
    (@text $variant:ident) => { stringify!($variant) };
}
pub(crate) use words;

words! {
    /// The conditions of a ClusterRuntime (Day-2 operations, "Runtime conditions").
    ConditionType {
        /// The target plan is rolled out and ready.
        Ready,
        /// Every release of the active plan is ready.
        Available,
        /// Work is in progress.
        Reconciling,
        /// Progress needs a person.
        Stalled,
        /// A plan exists for the current inputs.
        Resolved,
        /// Argo CD can be driven.
        EngineAvailable,
    }
}

words! {
    /// Every reason a condition of a ClusterRuntime can have (`docs/runbooks.md` has one entry for each).
    Reason {
        /// The target is rolled out (Ready); nothing is in progress (Reconciling=False).
        RolledOut,
        /// Rolled out; deployment validation is switched off.
        ValidationDisabled,
        /// A rollout is unfinished or due.
        RollingOut,
        /// A release is not ready.
        NotReady,
        /// No rollout has succeeded yet.
        NoActivePlan,
        /// `spec.paused` holds a rollout.
        Paused,
        /// `spec.suspendEngine` is in force.
        EngineSuspended,
        /// The API server refuses to change an Application's automated sync.
        EngineSuspensionRefused,
        /// Argo CD's CRDs are absent.
        EngineMissing,
        /// The AppProject is absent.
        ProjectMissing,
        /// The registry token is absent or expires within the hour.
        RegistryCredentialsStale,
        /// A right is missing: towards Argo CD, or towards the registry.
        Unauthorized,
        /// A plan or rollout cannot be read.
        PlanUnreadable,
        /// The runtime is being deleted.
        Deleting,
        /// Every release is healthy.
        Healthy,
        /// AICR Jobs run, or a transient failure is retried.
        Resolving,
        /// The candidate waits for its stabilization window.
        Stabilizing,
        /// The transition is being assessed.
        Assessing,
        /// Deployment validation runs.
        Validating,
        /// Not stalled.
        Progressing,
        /// A plan exists for the current inputs.
        Resolved,
        /// Argo CD can be driven.
        EngineAvailable,
        /// A rollout needs an approver.
        AwaitingApproval,
        /// A manual release is applied; its recorded steps are owed.
        AwaitingAcknowledgement,
        /// The move needs a migration that the operator does not perform.
        TransitionBlocked,
        /// Applications are not as the rollout's inventory says.
        InventoryDrift,
        /// A step names a release that the target plan lacks.
        StepUnknown,
        /// A release that an unsuccessful rollout may have moved has lost its Application.
        MovedReleaseMissing,
        /// The newest rollout to this target failed.
        RolloutFailed,
        /// The newest rollout to this target expired.
        RolloutExpired,
        /// The newest rollout to this target was revoked.
        RolloutRevoked,
        /// The removal of the runtime's releases did not succeed.
        RemovalFailed,
        /// Deployment validation is required and cannot run.
        ValidationUnavailable,
        /// The active plan is gone and cannot be rebuilt.
        PlanMissing,
        /// The target plan belongs to an earlier runtime.
        PlanOfAnotherRuntime,
        /// The target plan has no recipe, and validation is required.
        PlanWithoutRecipe,
        /// The pinned plan is missing.
        NotFound,
        /// An Application of a release's name is not ours.
        ForeignObject,
        /// Applications of another runtime exist.
        OrphanedObjectsPresent,
        /// Applications do not rebuild into a plan.
        AdoptionBlocked,
        /// A placement selector matches no node.
        NodeGroupEmpty,
        /// A node is in both placement groups.
        PlacementOverlap,
        /// Accelerated nodes differ.
        AcceleratedGroupHeterogeneous,
        /// The snapshot lacks a reading.
        SnapshotIncomplete,
        /// Declared criteria disagree with the snapshot.
        CriteriaConflict,
        /// An override names a path that does not exist.
        OverridePathUnknown,
        /// An override is not one that AICR takes.
        InvalidOverride,
        /// AICR refuses selectors or tolerations.
        InvalidPlacement,
        /// A release's namespace is not allowed.
        NamespaceNotAllowed,
        /// A chart's source cannot be mirrored.
        ChartSourceUnsupported,
        /// Something is larger than its limit.
        ContentTooLarge,
        /// The registry holds other content under a tag.
        Conflict,
        /// AICR refused the request (exit 2).
        AICRInvalidRequest,
        /// AICR did not find something (exit 3).
        AICRNotFound,
        /// AICR was not authorized (exit 4).
        AICRUnauthorized,
        /// AICR failed (exit 1, 8 and others).
        AICRInternal,
        /// AICR took too long (exit 5, deadline).
        AICRTimeout,
        /// The image reports another version than `aicr.version`.
        AICRVersionMismatch,
        /// AICR wrote something that this operator does not know.
        AICRArtifactUnsupported,
        /// No registry credentials could be had.
        RegistryCredentialsUnavailable,
    }
}

words! {
    /// How a rollout ended: the `outcome` label, the metric's label, the terminal phases.
    Outcome {
        /// Every step is ready, and validated where required.
        Succeeded,
        /// A step or the validation failed.
        Failed,
        /// The deadline or the approval's expiry passed.
        Expired,
        /// An approver revoked it.
        Revoked,
        /// Another rollout takes its place.
        Superseded,
        /// Its runtime is gone.
        Orphaned,
    }
}

words! {
    /// Reasons of Events (Day-2 operations, "Events").
    EventReason {
        /// A rollout was created.
        RolloutCreated,
        /// A rollout ended well.
        RolloutSucceeded,
        /// A rollout was replaced.
        RolloutSuperseded,
        /// A rollout failed.
        RolloutFailed,
        /// A rollout expired.
        RolloutExpired,
        /// A rollout was revoked.
        RolloutRevoked,
        /// A rollout lost its runtime.
        RolloutOrphaned,
        /// Automated sync was switched off.
        EngineSuspended,
        /// Automated sync was switched on again.
        EngineResumed,
        /// The runtime was deleted with policy Orphan.
        RuntimeOrphaned,
        /// A lost active plan was rebuilt.
        PlanRebuilt,
        /// An AICR run failed.
        AICRRunFailed,
        /// The runtime turned Stalled, or stalls for another reason.
        Stalled,
        /// A reconcile ended in an error that is retried.
        ReconcileFailed,
        /// Hand edits of an Application were forced back.
        FieldOwnershipOverridden,
        /// An Application deleted by hand was written again.
        ApplicationRecreated,
        /// Automated sync of an Application could not be changed.
        EngineSuspensionRefused,
        /// An Application could not be annotated while orphaning.
        OrphanAnnotationRefused,
    }
}

/// Type of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// For information.
    Normal,
    /// Something a person should look at.
    Warning,
}

impl EventType {
    /// The word of the Kubernetes API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl EventReason {
    /// The Event's type, as the page's table has it.
    pub fn event_type(self) -> EventType {
        match self {
            Self::RolloutCreated
            | Self::RolloutSucceeded
            | Self::RolloutSuperseded
            | Self::EngineSuspended
            | Self::EngineResumed
            | Self::RuntimeOrphaned
            | Self::PlanRebuilt => EventType::Normal,
            Self::RolloutFailed
            | Self::RolloutExpired
            | Self::RolloutRevoked
            | Self::RolloutOrphaned
            | Self::AICRRunFailed
            | Self::Stalled
            | Self::ReconcileFailed
            | Self::FieldOwnershipOverridden
            | Self::ApplicationRecreated
            | Self::EngineSuspensionRefused
            | Self::OrphanAnnotationRefused => EventType::Warning,
        }
    }

    /// The Event that announces a rollout's outcome.
    pub fn of_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::RolloutSucceeded,
            Outcome::Failed => Self::RolloutFailed,
            Outcome::Expired => Self::RolloutExpired,
            Outcome::Revoked => Self::RolloutRevoked,
            Outcome::Superseded => Self::RolloutSuperseded,
            Outcome::Orphaned => Self::RolloutOrphaned,
        }
    }
}

words! {
    /// What a step waits for, or why it failed: the closed list of `design/rules.md` section 3.
    StepReason {
        /// Argo CD has not compared the current source yet.
        WaitingForComparison,
        /// Argo CD refuses the spec.
        SpecRefused,
        /// Argo CD cannot render or compare.
        ComparisonError,
        /// Argo CD lacks registry credentials.
        RegistryCredentials,
        /// Argo CD's diff does not know a field.
        DiffSchema,
        /// Live objects differ from the source.
        OutOfSync,
        /// A sync runs.
        SyncRunning,
        /// A sync failed and will be retried by Argo CD.
        SyncRetrying,
        /// A sync failed and will not be retried.
        SyncFailed,
        /// An operation for other content is in flight.
        OtherOperation,
        /// Argo CD will not act by itself any more.
        EngineWedged,
        /// A sync window forbids it.
        SyncWindow,
        /// A hook failed.
        HookFailed,
        /// Some rendered objects were not applied.
        NotAllApplied,
        /// Another Application carries the same object.
        SharedResource,
        /// Not healthy yet.
        HealthProgressing,
        /// Unhealthy.
        HealthDegraded,
        /// Suspended by itself.
        HealthSuspended,
        /// Live objects are missing.
        HealthMissing,
        /// Health is unknown.
        HealthUnknown,
        /// The release's own gate does not pass yet.
        GateNotReady,
        /// The Application was edited by hand.
        SpecDrifted,
        /// The Application is being deleted.
        Deleting,
        /// The operator could not observe or write.
        ReconcileFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_its_own_name_in_json() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), serde_json::json!(reason.as_str()));
        }
        assert_eq!(Reason::AICRInvalidRequest.to_string(), "AICRInvalidRequest");
        assert_eq!(Outcome::ALL.len(), 6);
    }

    #[test]
    fn an_outcome_that_needs_a_look_is_a_warning() {
        let warnings: Vec<_> =
            Outcome::ALL.iter().filter(|o| EventReason::of_outcome(**o).event_type() == EventType::Warning).collect();
        assert_eq!(warnings, [&Outcome::Failed, &Outcome::Expired, &Outcome::Revoked, &Outcome::Orphaned]);
    }
}
