//! What people read: verdicts made into conditions, messages, status and Events; nothing is decided here.

mod conditions;
mod events;
mod rollout;
mod runtime;
mod stalled;

pub use conditions::{Answer, conditions};
pub use events::{EventNote, created_event, outcome_event, run_failed, stalled_event};
pub use rollout::{approval_state, status as rollout_status};
pub use runtime::status as runtime_status;
