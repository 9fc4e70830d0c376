//! Plan to rollout: whether one is due, what keeps it back, and the rollout as it is created; and what is done between
//! rollouts.

mod adoption;
mod around;
mod create;
mod deletion;
mod fitness;
mod next;
mod place;
mod prepare;
mod rebuild;
mod repair;
mod retention;
mod suspension;
mod verdict;

pub(crate) use create::authors;
pub(crate) use deletion::refused as orphaning_refused;
pub use fitness::fitness;
pub use next::{next, standing};
pub(crate) use place::{Place, Places, desired, moved_missing, owned, was_free};
pub(crate) use rebuild::{lost, recovered};
pub(crate) use repair::contradictions;
pub use suspension::{Suspension, suspension};
pub use verdict::{Verdict, Why, Write};
