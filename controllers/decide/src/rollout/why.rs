//! Why a rollout is where it is: one value, of which status, condition, Event and log line are renderings.

use std::fmt;

use aicr_crds::{
    reason::{Outcome, Reason, StepReason},
    rollout::Operation,
};
use jiff::Timestamp;

use super::drift::Difference;
use crate::message::listed;

/// How many differences a message names.
const DIFFERENCES: usize = 10;

/// Why a rollout is where it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// It has ended.
    Ended(Outcome),
    /// It was written by a newer operator, with this schema.
    NewerOperator(String),
    /// Its runtime is gone, another, or being orphaned.
    RuntimeGone,
    /// The deadline passed, with this step in flight.
    DeadlinePassed {
        /// The deadline.
        deadline: Timestamp,
        /// The step that was in flight.
        in_flight: Option<String>,
    },
    /// An approver withdrew it.
    Revoked {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// Another takes its place.
    Superseded(Superseder),
    /// The approval's time is over.
    ApprovalExpired(Timestamp),
    /// A step is in flight.
    Step {
        /// Release.
        release: String,
        /// What is done.
        operation: Operation,
        /// What is observed.
        reason: StepReason,
        /// Which resource, with Argo CD's words.
        detail: String,
        /// Whether it stands still.
        halt: Option<Halt>,
        /// Whether waiting is of use.
        outlook: Outlook,
    },
    /// The step in flight failed.
    StepFailed {
        /// Release.
        release: String,
        /// The last observation.
        reason: StepReason,
        /// More about it.
        detail: String,
    },
    /// The step in flight is ready.
    StepReady {
        /// Release.
        release: String,
    },
    /// Recorded steps of this manual release are owed.
    AcknowledgementOwed {
        /// Release.
        release: String,
    },
    /// An approver is waited for; what has drifted meanwhile.
    AwaitingApproval(Vec<Difference>),
    /// The approval does not bind this spec.
    ApprovalMismatch,
    /// No step starts.
    Held(Hold),
    /// Applications are not as the inventory says.
    Drift(Vec<Difference>),
    /// The target plan cannot be rolled out.
    Unfit(Reason, String),
    /// A step names a release that the target plan lacks.
    StepUnknown(String),
    /// An Application of this name is not ours.
    Foreign(String),
    /// This step starts.
    Starting {
        /// Release.
        release: String,
        /// What is done.
        operation: Operation,
    },
    /// A retry token was seen that nothing is retried for.
    TokenSpent,
    /// A validation run is on its way.
    Validating {
        /// Run ID.
        run: String,
        /// Why its pod is not running, or that it is.
        message: String,
    },
    /// Validation failed.
    ValidationFailed(String),
    /// Validation is due and cannot run: what it lacks.
    ValidationUnavailable(String),
    /// Every step is ready, and validation passed.
    Validated {
        /// Run ID.
        run: String,
        /// Reference of the evidence.
        evidence: Option<String>,
    },
    /// Every step is ready.
    Complete,
}

/// Whether waiting for a step is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// It may become ready by itself.
    Open,
    /// It will not; the step fails after a grace.
    Hopeless,
    /// All is ready; the gate's stable period is waited for.
    Passing,
}

/// What takes a rollout's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Superseder {
    /// The runtime's deletion with policy Delete.
    Removal,
    /// A retry token.
    Retry(String),
    /// Another target.
    Target,
    /// An older unfinished rollout.
    Older(String),
}

/// Why no step starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// `spec.paused`.
    Paused,
    /// `spec.suspendEngine`.
    EngineSuspended,
    /// Argo CD cannot be driven.
    Engine(Reason),
    /// A plan or a rollout cannot be read.
    Unreadable(String),
    /// The current inputs need a person.
    Resolution(Reason, String),
}

/// Why a step in flight stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// `spec.paused`.
    Paused,
    /// `spec.suspendEngine`.
    EngineSuspended,
    /// Argo CD is not there.
    Engine(Reason),
}

impl Halt {
    /// The word of the message.
    pub fn reason(self) -> Reason {
        match self {
            Self::Paused => Reason::Paused,
            Self::EngineSuspended => Reason::EngineSuspended,
            Self::Engine(reason) => reason,
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused => write!(f, "{}", Reason::Paused),
            Self::EngineSuspended => write!(f, "{}", Reason::EngineSuspended),
            Self::Engine(reason) => write!(f, "{reason}"),
            Self::Unreadable(message) => write!(f, "{}: {message}", Reason::PlanUnreadable),
            Self::Resolution(reason, message) => write!(f, "{reason}: {message}"),
        }
    }
}

impl fmt::Display for Superseder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removal => f.write_str("superseded: the runtime is being deleted with policy Delete"),
            Self::Retry(token) => write!(f, "superseded by retry {token}"),
            Self::Target => f.write_str("superseded: the target plan changed"),
            Self::Older(name) => write!(f, "superseded: rollout {name} is unfinished"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(outcome) => write!(f, "{outcome}"),
            Self::NewerOperator(schema) => {
                write!(f, "rollouts written by a newer operator: schema version {schema:?}; upgrade the operator")
            }
            Self::RuntimeGone => f.write_str("the runtime is gone or was orphaned"),
            Self::DeadlinePassed { deadline, in_flight: None } => write!(f, "the deadline {deadline} passed"),
            Self::DeadlinePassed { deadline, in_flight: Some(release) } => {
                write!(f, "the deadline {deadline} passed with the step of release {release} in flight")
            }
            Self::Revoked { by, reason } => write!(f, "revoked by {by}: {reason}"),
            Self::Superseded(superseder) => write!(f, "{superseder}"),
            Self::ApprovalExpired(at) => write!(f, "the approval expired at {at}"),
            Self::Step { release, reason, detail, halt, .. } => {
                write!(f, "release {release}: {reason}{}", after(detail))?;
                halt.map_or(Ok(()), |halt| write!(f, " ({})", halt.reason()))
            }
            Self::StepFailed { release, reason, detail } => write!(f, "release {release}: {reason}{}", after(detail)),
            Self::StepReady { release } => write!(f, "release {release}: ready"),
            Self::AcknowledgementOwed { release } => {
                write!(
                    f,
                    "release {release} is applied; its recorded steps after the apply are to be done and acknowledged"
                )
            }
            Self::AwaitingApproval(drift) if drift.is_empty() => f.write_str("awaiting approval"),
            Self::AwaitingApproval(drift) => {
                write!(
                    f,
                    "awaiting approval; it would stall: {}; a retry makes a fresh rollout",
                    listed(drift, DIFFERENCES)
                )
            }
            Self::ApprovalMismatch => {
                f.write_str("the approval does not bind this rollout's target, inventory, steps and deadline; a retry makes a fresh rollout")
            }
            Self::Held(hold) => write!(f, "no step starts: {hold}"),
            Self::Drift(differences) => write!(f, "{}; undo the change, or set a new operator.aicr.run/retry annotation on the runtime", listed(differences, DIFFERENCES)),
            Self::Unfit(_, message) | Self::ValidationFailed(message) => f.write_str(message),
            Self::StepUnknown(release) => write!(f, "the target plan has no release {release}; set a new operator.aicr.run/retry annotation on the runtime"),
            Self::Foreign(name) => {
                write!(
                    f,
                    "Application {name} exists and is not the operator's; it is left as it is. Rename or delete it, then retry"
                )
            }
            Self::Starting { release, operation } => write!(f, "release {release}: {operation} starts"),
            Self::TokenSpent => f.write_str("a retry token was seen with nothing to retry"),
            Self::Validating { run, message } => write!(f, "deployment validation run {run}: {message}"),
            Self::ValidationUnavailable(lacks) => {
                write!(f, "deployment validation is required and cannot run: {lacks}; it runs once that is there, until the deadline")
            }
            Self::Validated { run, evidence: Some(evidence) } => {
                write!(f, "every step is ready; deployment validation run {run} passed, evidence {evidence}")
            }
            Self::Validated { run, evidence: None } => {
                write!(f, "every step is ready; deployment validation run {run} passed")
            }
            Self::Complete => f.write_str("every step is ready"),
        }
    }
}

fn after(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(": {detail}") }
}
