//! What each reason of Stalled asks of a person, as the troubleshooting page has it.

use aicr_crds::reason::Reason;

/// What to do about a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// Ask for another rollout to the same target.
    Retry,
    /// Mend a cause outside the runtime, then resolve anew.
    Resnapshot,
    /// Mend the runtime's spec.
    Edit,
    /// Mend the chart's values.
    Upgrade,
    /// Choose another plan, or none.
    Unpin,
    /// Look at the stored plans.
    Plans,
    /// Mend the identity, then restart the operator.
    Restart,
    /// Take over an earlier runtime's Applications.
    Adopt,
    /// Every case is another.
    Message,
}

impl Advice {
    /// The advice for this reason; none where the rollout itself says more, or nothing is to be done.
    pub(super) fn of(reason: Reason) -> Option<Self> {
        match reason {
            Reason::InventoryDrift
            | Reason::StepUnknown
            | Reason::MovedReleaseMissing
            | Reason::RolloutFailed
            | Reason::RolloutExpired
            | Reason::RolloutRevoked
            | Reason::RemovalFailed
            | Reason::ForeignObject => Some(Self::Retry),
            Reason::NodeGroupEmpty
            | Reason::PlacementOverlap
            | Reason::AcceleratedGroupHeterogeneous
            | Reason::SnapshotIncomplete
            | Reason::ChartSourceUnsupported
            | Reason::Conflict
            | Reason::AICRNotFound
            | Reason::AICRUnauthorized
            | Reason::AICRInternal
            | Reason::AICRTimeout
            | Reason::RegistryCredentialsUnavailable
            | Reason::Unauthorized => Some(Self::Resnapshot),
            Reason::CriteriaConflict
            | Reason::OverridePathUnknown
            | Reason::InvalidOverride
            | Reason::InvalidPlacement
            | Reason::ContentTooLarge
            | Reason::AICRInvalidRequest
            | Reason::TransitionBlocked
            | Reason::PlanWithoutRecipe => Some(Self::Edit),
            Reason::NamespaceNotAllowed
            | Reason::AICRVersionMismatch
            | Reason::AICRArtifactUnsupported
            | Reason::ValidationUnavailable
            | Reason::ProjectMissing => Some(Self::Upgrade),
            Reason::PlanOfAnotherRuntime => Some(Self::Unpin),
            Reason::PlanUnreadable => Some(Self::Plans),
            Reason::RegistryCredentialsStale => Some(Self::Restart),
            Reason::OrphanedObjectsPresent => Some(Self::Adopt),
            Reason::NotFound
            | Reason::PlanMissing
            | Reason::AdoptionBlocked
            | Reason::EngineMissing
            | Reason::EngineSuspensionRefused => Some(Self::Message),
            // The rollout that waits has its own line, with its name.
            Reason::AwaitingApproval
            | Reason::AwaitingAcknowledgement
            // These are no reasons of Stalled=True.
            | Reason::RolledOut
            | Reason::ValidationDisabled
            | Reason::RollingOut
            | Reason::NotReady
            | Reason::NoActivePlan
            | Reason::Paused
            | Reason::EngineSuspended
            | Reason::Deleting
            | Reason::Healthy
            | Reason::Resolving
            | Reason::Stabilizing
            | Reason::Assessing
            | Reason::Validating
            | Reason::Progressing
            | Reason::Resolved
            | Reason::EngineAvailable => None,
        }
    }

    /// What to do, in words.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Retry => "mend what its message says, then retry; the new rollout needs a fresh approval",
            Self::Resnapshot => "mend what its message says, then resolve anew",
            Self::Edit => "change the runtime's spec as its message says",
            Self::Upgrade => "mend what its message says with the chart's values",
            Self::Unpin => "pin a plan that is there, or return to Automatic",
            Self::Plans => "find the plan that its message names; after a downgrade, upgrade the operator again",
            Self::Restart => "mend the operator's AWS identity; it tries again within 5 minutes, at once after",
            Self::Adopt => "adopt the Applications of the earlier runtime whose UID its message names",
            Self::Message => "do as its message says",
        }
    }

    /// By which commands, in order.
    pub(super) fn commands(self, namespace: &str) -> Vec<String> {
        let token = |name: &str| {
            format!("kubectl annotate clusterruntime cluster operator.aicr.run/{name}=\"$(date +%s)\" --overwrite")
        };
        let plans = || format!("kubectl get configmaps -n {namespace} -l operator.aicr.run/role=plan");
        let patch = |spec: &str| format!("kubectl patch clusterruntime cluster --type merge -p '{{\"spec\":{spec}}}'");
        match self {
            Self::Retry => vec![token("retry")],
            Self::Resnapshot => vec![token("resnapshot")],
            Self::Edit => vec!["kubectl edit clusterruntime cluster".to_owned()],
            Self::Upgrade => vec![format!("helm upgrade aicr-operator CHART -n {namespace} -f values.yaml")],
            Self::Unpin => {
                vec![plans(), patch("{\"selection\":{\"policy\":\"Automatic\",\"pinnedPlanDigest\":\"\"}}")]
            }
            Self::Plans => vec![format!("{} -L operator.aicr.run/schema-version", plans())],
            Self::Restart => vec![format!("kubectl -n {namespace} rollout restart deployment/aicr-operator")],
            Self::Adopt => vec![patch("{\"adoption\":{\"runtimeUID\":\"<uid>\"}}")],
            Self::Message => Vec::new(),
        }
    }
}
