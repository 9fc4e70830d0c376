//! The slice of Argo CD's Application that the operator reads and writes.

mod annotations;
mod desired;
mod fingerprint;
mod ownership;
mod seen;
mod wire;

pub use annotations::Annotations;
pub use desired::{Desired, Engine};
pub use fingerprint::fingerprint;
pub use ownership::{Ownership, OwnershipError};
pub use seen::{
    Application, ApplicationStatus, ArgoCondition, AutomatedSync, Destination, HealthStatus, OperationPhase,
    OperationState, ROLLOUT_INFO, Source, SourceId, SyncStatus, UnsyncedResource,
};

/// Name of the cluster that Argo CD runs in, as its destination server.
pub const IN_CLUSTER: &str = "https://kubernetes.default.svc";
