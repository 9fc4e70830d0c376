//! What only the hands can find out: live objects, validation runs, refusals, trouble. Absent means not gathered.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::resolve::JobSeen;

/// What was gathered beside the objects that the watches hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Live objects of the release whose step is in flight or next.
    pub live: Live,
    /// What deployment validation needs, and its reports.
    pub validation: ValidationSeen,
    /// Writes that the API server refused for good.
    pub refusals: Refusals,
    /// What could not be read or written for the step in flight, as a message.
    pub trouble: Option<String>,
}

/// Live objects that Argo CD does not judge (`facts/argocd.md` A51 to A57).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// `DaemonSets` of the release, those that its operator made included, found by owner and not by template labels.
    pub daemon_sets: Vec<DaemonSetSeen>,
    /// Custom resources of the release that have `status.state` or a `Ready` condition.
    pub customs: Vec<CustomSeen>,
    /// Objects that are not as rendered although Argo CD says so: `Deployment gpu/x: spec.template.spec.containers[0].image`.
    pub outdated: Vec<String>,
    /// Managed resources that are not healthy, with their state and message.
    pub unhealthy: Vec<String>,
    /// Objects of the release in deletion, with the finalizers or the absent webhook Service that hold them.
    pub stuck: Vec<String>,
    /// Custom resources of the release in deletion whose CRDs it brought too: what finalizes them is deleted along with them.
    pub own_customs: Vec<String>,
}

/// A live `DaemonSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonSetSeen {
    /// `namespace/name`.
    pub name: String,
    /// Nodes that should run it.
    pub desired: i64,
    /// Nodes whose pod is of the present revision, counted by owner and revision hash.
    pub updated: i64,
    /// Nodes whose pod is ready.
    pub ready: i64,
    /// Pods that do not run, with node and why: `pod x on node n1: Init:CrashLoopBackOff`.
    pub pods: Vec<String>,
}

/// A live custom resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomSeen {
    /// `Kind name` or `Kind namespace/name`.
    pub name: String,
    /// `status.state`, where there is one.
    pub state: Option<String>,
    /// Status of the `Ready` condition, where there is one.
    pub ready: Option<String>,
    /// What the resource says about it.
    pub message: String,
}

/// What deployment validation needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationSeen {
    /// Where it runs.
    pub place: ValidationPlace,
    /// What it needs and lacks (namespace, `ServiceAccount`), as a message.
    pub lacks: Option<String>,
    /// AICR Jobs; those of one rollout's validation carry its input label.
    pub jobs: Vec<JobSeen>,
    /// Reports of finished validation Jobs that wrote one, by Job name.
    pub reports: BTreeMap<String, Report>,
}

/// Where validation runs, and what its commands name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationPlace {
    /// Namespace of the checks.
    pub namespace: String,
    /// Registry and prefix below which evidence is pushed.
    pub repository: String,
    /// Whether that registry is spoken to over plain HTTP.
    pub plain_http: bool,
    /// The command line of the snapshot that is taken first, but for what depends on its Job.
    pub snapshot: Vec<String>,
    /// Namespace of snapshot Jobs.
    pub discovery_namespace: String,
}

/// AICR's report on a validation run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Checks that did not pass, each with its message.
    pub failed: Vec<String>,
    /// Reference of the evidence, where it was pushed.
    pub evidence: Option<String>,
}

/// Writes that were refused for good (403, 422, or read back unchanged), by Application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Changes of automated sync.
    pub automation: BTreeMap<String, Refusal>,
    /// `orphaned-from` annotations.
    pub orphaning: BTreeMap<String, Refusal>,
}

/// One refused write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The API server's words, or that the field reads back unchanged.
    pub why: String,
    /// When it was tried last.
    pub at: Timestamp,
}
