//! Plan to rollout: whether one is due, what keeps it back, and the rollout as it is created.

mod around;
mod create;
mod fitness;
mod next;
mod verdict;

pub use fitness::fitness;
pub use next::next;
pub use verdict::{Verdict, Why, Write};
