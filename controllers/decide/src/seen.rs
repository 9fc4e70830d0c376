//! What was seen of the cluster: the values that decisions are made of, gathered once for each.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use aicr_crds::{
    ClusterRuntime, Digest, RuntimeRollout,
    application::{Application, Engine, OperationPhase},
    keys::annotation,
    plan::StoredPlan,
    reason::{Outcome, Reason},
    runtime::{Aicr, DeletionPolicy, Discovery, SelectionPolicy},
};
use jiff::Timestamp;

use crate::{
    facts::Facts,
    resolve::{Installation, JobSeen},
};

/// What an installation says once, for every decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where Applications and charts live.
    pub engine: Engine,
    /// Whether deployment validation is installed.
    pub validation_installed: bool,
}

/// Whether Argo CD can be driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineState {
    /// CRDs, project, rights and token are there.
    Available,
    /// Argo CD's CRDs are absent.
    Missing,
    /// The AppProject is absent.
    ProjectMissing,
    /// The operator lacks a right towards Argo CD.
    Unauthorized,
    /// The registry token is absent or expires within the hour.
    CredentialsStale,
}

impl EngineState {
    /// The reason of `EngineAvailable=False`; `None` while it is available.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Available => None,
            Self::Missing => Some(Reason::EngineMissing),
            Self::ProjectMissing => Some(Reason::ProjectMissing),
            Self::Unauthorized => Some(Reason::Unauthorized),
            Self::CredentialsStale => Some(Reason::RegistryCredentialsStale),
        }
    }

    /// Whether nothing may be written to Argo CD, so that a step's time stands still.
    pub fn is_absent(self) -> bool {
        match self {
            Self::Available | Self::CredentialsStale => false,
            Self::Missing | Self::ProjectMissing | Self::Unauthorized => true,
        }
    }
}

/// How far the current inputs have come on their way to a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolution {
    /// Where resolution stands.
    pub state: ResolutionState,
    /// The newest plan resolved from inputs of this runtime.
    pub candidate: Option<Digest>,
    /// What discovery found.
    pub discovery: Option<Discovery>,
    /// The AICR that ran.
    pub aicr: Option<Aicr>,
    /// Generation of the runtime whose inputs they are.
    pub generation: Option<i64>,
}

/// Where resolution stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ResolutionState {
    /// Nothing is known yet: the operator has just started.
    #[default]
    Unknown,
    /// Jobs run, or a transient failure is retried.
    Resolving {
        /// What is waited for.
        message: String,
        /// Whether the candidate was resolved from this very spec, and only the snapshot is new.
        plan_stands: bool,
    },
    /// The candidate is the plan of the current inputs.
    Resolved,
    /// It needs a person.
    Stalled {
        /// Why.
        reason: Reason,
        /// More.
        message: String,
    },
}

/// What is seen around one rollout.
#[derive(Clone, Debug)]
pub struct RolloutSeen {
    /// The installation.
    pub settings: Arc<Settings>,
    /// Its runtime.
    pub runtime: RuntimeSeen,
    /// Argo CD.
    pub engine: EngineState,
    /// The runtime's resolution.
    pub resolution: ResolutionState,
    /// The rollout's target plan.
    pub target: TargetSeen,
    /// Every Application that carries our label or the runtime's UID, or is named like a step's release.
    pub applications: Arc<Vec<Arc<Application>>>,
    /// Why plans or rollouts cannot be read, where any cannot.
    pub unreadable: Option<String>,
    /// Other unfinished rollouts of this runtime: when created, and name.
    pub unfinished: Vec<(Timestamp, String)>,
    /// What only the hands can find out.
    pub facts: Arc<Facts>,
}

/// The rollout's runtime.
#[derive(Clone, Debug, PartialEq)]
pub enum RuntimeSeen {
    /// There is none, or one of another UID.
    Gone,
    /// It is there.
    There(RuntimeFacts),
}

/// What a rollout needs to know of its runtime.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuntimeFacts {
    /// Its deletion policy, once it is being deleted.
    pub deleting: Option<DeletionPolicy>,
    /// `spec.paused`.
    pub paused: bool,
    /// `spec.suspendEngine`.
    pub suspend_engine: bool,
    /// Whether the API server refuses to change an Application's automated sync.
    pub suspension_refused: bool,
    /// A retry token that no rollout has recorded yet.
    pub new_token: Option<String>,
    /// The present target; `None` while it is not known.
    pub target: Option<Digest>,
}

/// The rollout's target plan.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetSeen {
    /// There is none by design: a removal.
    None,
    /// It is read.
    Plan(Arc<StoredPlan>),
    /// It cannot be rolled out.
    Unfit(Reason, String),
}

/// What is seen around the runtime.
#[derive(Clone, Debug)]
pub struct World {
    /// The installation, as decisions need it.
    pub settings: Arc<Settings>,
    /// The installation, as AICR's command lines need it.
    pub install: Arc<Installation>,
    /// The runtime itself.
    pub runtime: Arc<ClusterRuntime>,
    /// Argo CD.
    pub engine: EngineState,
    /// Resolution.
    pub resolution: Resolution,
    /// Plans by digest, as far as they can be read, with the creation time of their ConfigMaps.
    pub plans: BTreeMap<Digest, (Timestamp, Arc<StoredPlan>)>,
    /// Plan ConfigMaps that cannot be read: name and why.
    pub unreadable: Vec<(String, String)>,
    /// Every rollout of this runtime.
    pub rollouts: Vec<Arc<RuntimeRollout>>,
    /// Names of all rollouts, of any runtime.
    pub rollout_names: BTreeSet<String>,
    /// Every Application in Argo CD's namespace that is ours by label or owner, or named like a release that matters.
    pub applications: Arc<Vec<Arc<Application>>>,
    /// Assessment Jobs.
    pub jobs: Vec<JobSeen>,
    /// Stored assessments by input label.
    pub assessments: BTreeMap<String, Arc<Assessment>>,
    /// What only the hands can find out.
    pub facts: Arc<Facts>,
}

/// A stored upgrade-check report, reduced to what decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// Its ConfigMap.
    pub config_map: String,
    /// Digest of its bytes.
    pub digest: Digest,
    /// One row for each component that changes its version or identity.
    pub rows: BTreeMap<String, AssessmentRow>,
}

/// One component's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssessmentRow {
    /// The verdict; absent for added and removed components.
    pub verdict: Option<aicr_crds::rollout::Verdict>,
    /// What stands in the way, where it is blocked.
    pub explanation: String,
    /// Ids of the recorded steps, in order; the apply is one of them.
    pub steps: Vec<String>,
}

impl World {
    /// UID of the runtime.
    pub fn uid(&self) -> &str {
        self.runtime.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The plan to reach: the pinned one, else the candidate.
    pub fn target(&self) -> Option<Digest> {
        match self.runtime.spec.selection.policy {
            SelectionPolicy::Automatic => self.resolution.candidate,
            SelectionPolicy::Pinned => self.runtime.spec.selection.pinned_plan_digest.parse().ok(),
        }
    }

    /// The newest rollout that succeeded.
    pub fn newest_success(&self) -> Option<&RuntimeRollout> {
        self.rollouts
            .iter()
            .map(AsRef::as_ref)
            .filter(|rollout| outcome(rollout) == Some(Outcome::Succeeded))
            .max_by_key(|rollout| age_key(rollout))
    }

    /// The newest rollout of all.
    pub fn newest(&self) -> Option<&RuntimeRollout> {
        self.rollouts.iter().map(AsRef::as_ref).max_by_key(|rollout| age_key(rollout))
    }

    /// Digest of the active plan: the target of the newest rollout that succeeded.
    pub fn active(&self) -> Option<Digest> {
        self.newest_success().and_then(|rollout| rollout.spec.target_plan_digest)
    }

    /// The unfinished rollout; of several the oldest.
    pub fn unfinished(&self) -> Option<&RuntimeRollout> {
        let open = self.rollouts.iter().map(AsRef::as_ref).filter(|rollout| outcome(rollout).is_none());
        open.min_by_key(|rollout| age_key(rollout))
    }

    /// The runtime's retry token, as rollouts record it.
    pub fn token(&self) -> Option<String> {
        let text =
            self.runtime.metadata.annotations.as_ref()?.get(annotation::RETRY).filter(|text| !text.is_empty())?;
        Some(if text.chars().count() > TOKEN_LIMIT { Digest::of(text.as_bytes()).to_string() } else { text.clone() })
    }

    /// The same, unless a rollout has recorded it already.
    pub fn new_token(&self) -> Option<String> {
        let token = self.token()?;
        let seen = |rollout: &Arc<RuntimeRollout>| {
            rollout.spec.retry_token.as_ref() == Some(&token) || spent_token(rollout) == Some(&token)
        };
        (!self.rollouts.iter().any(seen)).then_some(token)
    }
}

/// Characters of a retry token that a rollout records; a longer one is recorded by its digest.
const TOKEN_LIMIT: usize = 256;

/// Age of a rollout, oldest first; the name decides within one second.
pub fn age_key(rollout: &RuntimeRollout) -> (Option<Timestamp>, i32, &str) {
    let created = rollout.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, rollout.spec.attempt, rollout.metadata.name.as_deref().unwrap_or_default())
}

/// Whether an operation of Argo CD waits or runs on this Application.
pub(crate) fn is_busy(application: &Application) -> bool {
    let state = application.status.operation.as_ref();
    application.operation_requested
        || state.is_some_and(|state| match state.phase {
            OperationPhase::Running | OperationPhase::Terminating => true,
            OperationPhase::Succeeded | OperationPhase::Failed | OperationPhase::Error => false,
        })
}

/// The outcome label, which alone says that a rollout has ended.
pub fn outcome(rollout: &RuntimeRollout) -> Option<Outcome> {
    let word = rollout.metadata.labels.as_ref()?.get(aicr_crds::keys::label::OUTCOME)?;
    Outcome::ALL.iter().copied().find(|outcome| outcome.as_str() == word)
}

/// The retry token that was spent while a rollout was unfinished.
pub fn spent_token(rollout: &RuntimeRollout) -> Option<&String> {
    rollout.metadata.annotations.as_ref()?.get(annotation::RETRY_SPENT)
}
