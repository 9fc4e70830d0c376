//! The hands: watch, gather, and write what was decided. No choices.
//!
//! [`Drive`] is the whole: every watch, the reconciles of inputs, runtime and rollouts one after the other, and the
//! mirror beside them. It spawns nothing: whoever runs it polls all of it.

mod controller;
mod error;
mod events;
mod gather;
pub mod jobs;
pub mod metrics;
mod mirror;
mod requests;
mod resolver;
mod rollout;
mod runtime;
mod settings;
mod watch;
mod write;

pub use controller::{Drive, Readiness};
pub use error::DriveError;
pub use requests::client;
pub use settings::DriveSettings;
