//! What people read: verdicts made into conditions, messages, status and Events; nothing is decided here.

mod advice;
mod available;
mod conditions;
mod events;
mod ready;
mod rollout;
mod runtime;
mod stalled;
mod upkeep;

pub use conditions::{Answer, conditions};
pub use events::{EventNote, created_event, outcome_event, run_failed, stalled_event};
pub use rollout::{approval_state, status as rollout_status};
pub use runtime::status as runtime_status;
pub use upkeep::{Subject, carried_out, suspension_refused};
