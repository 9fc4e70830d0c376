//! Inputs to plan: which stage is due, what its Job runs, and what its outcome means.

mod args;
mod discovery;
mod inputs;
mod jobs;
mod namespaces;
mod next;
#[cfg(test)]
mod overrides_tests;
pub mod snapshot;
mod verdict;

pub use args::upgrade_check;
pub use discovery::{Group, Groups, NodeSeen};
pub use inputs::{AicrInstall, Installation, input_label, of_spec};
pub(crate) use jobs::said;
pub use jobs::{Class, Failure, JobPhase, JobSeen, RunState, StageRuns, run_state};
pub use namespaces::Namespaces;
pub(crate) use next::job_name;
pub use next::{Credentials, MirrorSeen, Seen, next};
pub use verdict::{JobPlan, MirrorPlan, Output, Stage, Verdict};
