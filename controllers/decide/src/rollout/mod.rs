//! Rollout to outcome: the gates in their order, the step in flight, and why it waits.

mod current;
mod drift;
mod gate;
mod position;
mod readiness;
mod remove;
mod share;
mod start;
mod step;
mod validation;
mod verdict;
mod why;

pub use current::{begun, current};
pub use drift::{Change, Difference, is_owned};
pub use gate::{GATES, Gate, is_stalled, is_unapproved, next, next_at};
pub use position::{Position, written};
pub(crate) use readiness::refuses_credentials;
pub use readiness::{Action, Expected, GATE_STABLE, Observation, Proof, Readiness, readiness};
pub(crate) use remove::STAYS;
pub(crate) use step::halt;
pub(crate) use validation::is_begun as validation_begun;
pub use validation::{Validation, validation, validation_input};
pub use verdict::{ObjectRef, Verdict, Write};
pub use why::{Halt, Hold, Outlook, Superseder, Why};
