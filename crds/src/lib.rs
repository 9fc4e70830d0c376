//! The words: kinds, keys, reasons, plans and digests. Reads nothing, writes nothing.

pub mod application;
pub mod crd;
pub mod digest;
pub mod duration;
pub mod keys;
pub mod plan;
pub mod reason;
pub mod rollout;
pub mod runtime;
pub mod vocabulary;

pub use digest::Digest;
pub use rollout::{RuntimeRollout, RuntimeRolloutSpec, RuntimeRolloutStatus};
pub use runtime::{ClusterRuntime, ClusterRuntimeSpec, ClusterRuntimeStatus};
