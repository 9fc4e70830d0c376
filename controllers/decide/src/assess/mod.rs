//! Two plans and the live Applications to ordered steps, each with what is known of it and whether it needs approval.

mod approval;
mod blocked;
mod build;
mod crds;
mod diff;

pub use blocked::blocked;
pub(crate) use build::{REMOVES, application_chart, chart_ref};
pub use build::{Transition, rollout_name, steps};
pub(crate) use diff::{touched_by, unsuccessful};
