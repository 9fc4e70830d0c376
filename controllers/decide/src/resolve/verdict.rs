//! What the resolver does next: one Job, one stored document, one mirror run, one plan; or why it waits.

use std::collections::BTreeMap;

use aicr_crds::{Digest, reason::Reason};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::record::RunRecord;

/// What resolution does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Create this Job with its inputs and its output ConfigMap.
    Run(Box<JobPlan>),
    /// Store the finished snapshot Job's output in the operator namespace, read it back, then delete the Job.
    StoreSnapshot {
        /// The Job.
        job: String,
        /// What the snapshot saw, recorded beside it.
        record: Box<super::snapshot::Record>,
    },
    /// Keep what this run says where it outlives its Job, before the next one starts.
    Record(Box<RunRecord>),
    /// Read the rendered bundle, mirror its charts, and store the plan.
    Mirror(Box<MirrorPlan>),
    /// Delete Jobs whose output is stored, or that no present input asks for; one that runs is cancelled so.
    DeleteJobs(Vec<String>),
    /// The plan of these inputs exists.
    Resolved(Digest),
    /// Nothing to do until an event or this time.
    Wait(String, Option<Timestamp>),
    /// A person is needed.
    Stall(Reason, String),
}

impl Verdict {
    /// What the runtime says while it is carried out or waited for.
    pub fn message(&self) -> &str {
        match self {
            Self::Wait(message, _) | Self::Stall(_, message) => message,
            Self::Mirror(_) => "charts are mirrored into the registry",
            Self::Run(_) | Self::StoreSnapshot { .. } | Self::Record(_) | Self::DeleteJobs(_) | Self::Resolved(_) => {
                "AICR Jobs are running"
            }
        }
    }
}

/// Stages of AICR, as the Jobs' label and the messages name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// `aicr snapshot`.
    Snapshot,
    /// `aicr recipe`.
    Recipe,
    /// `aicr bundle` without overrides: gives the paths that exist.
    Base,
    /// `aicr bundle`.
    Render,
    /// `aicr upgrade-check`.
    Assessment,
    /// `aicr validate`.
    Validation,
}

impl Stage {
    /// Every stage, as the metrics list them.
    pub const ALL: [Self; 6] =
        [Self::Snapshot, Self::Recipe, Self::Base, Self::Render, Self::Assessment, Self::Validation];

    /// The word of labels, messages and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Recipe => "recipe",
            Self::Base => "base",
            Self::Render => "render",
            Self::Assessment => "assessment",
            Self::Validation => "validation",
        }
    }

    /// The stage of a Job's label.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == word)
    }

    /// `activeDeadlineSeconds` of its Jobs.
    pub fn deadline_seconds(self) -> i64 {
        match self {
            Self::Snapshot => 600,
            Self::Recipe | Self::Base | Self::Render | Self::Assessment => 300,
            Self::Validation => 3600,
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One AICR Job, fully specified; the hands only turn it into objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// Its name, `aicr-<stage>-<input>-<attempt>`.
    pub name: String,
    /// Its stage.
    pub stage: Stage,
    /// Hash of the inputs, first 32 hex digits.
    pub input: String,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Arguments of `aicr`.
    pub args: Vec<String>,
    /// Documents mounted below `/in`, by file name; an input ConfigMap owned by the Job.
    pub inputs: BTreeMap<String, String>,
    /// What the command writes.
    pub output: Output,
}

/// Where a Job's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A ConfigMap of the Job's name in its namespace, made beforehand and owned by the Job.
    ConfigMap,
    /// A bundle in the registry; its digest is the termination message. Needs registry credentials.
    Registry,
}

/// A rendered bundle to be mirrored and made a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorPlan {
    /// Digest of the bundle's manifest.
    pub bundle: Digest,
    /// Of the base bundle, where there are overrides.
    pub base: Option<Digest>,
    /// The overrides that were rendered.
    pub overrides: Vec<aicr_crds::runtime::Override>,
    /// Hash of the inputs.
    pub inputs: Digest,
    /// Snapshot the inputs hold.
    pub snapshot: String,
    /// The criteria as resolved.
    pub criteria: aicr_crds::runtime::Criteria,
}
