//! Inputs to plan: which stage is due, what its Job runs, and what its outcome means.

mod agents;
mod args;
mod cleanup;
mod discovery;
mod inputs;
mod jobs;
mod mirror;
mod namespaces;
mod next;
#[cfg(test)]
mod overrides_tests;
mod plans;
mod record;
pub mod snapshot;
pub mod token;
mod verdict;

pub use agents::{launcher as launcher_of_agent, left_behind as agents_left_behind};
pub(crate) use args::launched;
pub use args::{launcher, upgrade_check};
pub use cleanup::{KEPT_SECONDS, kept_longer};
pub use discovery::{Group, Groups, NodeLabels, NodeSeen, labels_of_interest};
pub use inputs::{AicrInstall, Installation, input_label, of_spec};
pub(crate) use jobs::said;
pub use jobs::{Class, Failure, JobPhase, JobSeen, RunState, StageRuns, backoff, run_state, run_state_recorded};
pub use mirror::MirrorSeen;
pub use namespaces::Namespaces;
pub(crate) use next::job_name;
pub use next::{Credentials, Seen, criteria, next};
pub use plans::{LeftOut, left_out};
pub use record::{RECORDS, RunRecord, record_of, with_record};
pub use verdict::{JobPlan, MirrorPlan, Output, Stage, Verdict};
