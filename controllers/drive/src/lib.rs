//! The hands: watch, gather, and write what was decided. No choices.
//!
//! [`Drive`] is the whole: [`Watching`] fills the stores in every replica, [`Driving`] reconciles inputs, runtime and
//! rollouts one after the other in the one that leads, with the mirror beside them. [`Certificates`] keeps the door's.
//! Nothing is spawned but blocking key generation: whoever runs them polls them.

mod certificates;
mod clock;
mod controller;
mod credentials;
mod error;
mod events;
mod fence;
mod gather;
pub mod jobs;
pub mod metrics;
mod mirror;
#[cfg(test)]
mod played;
mod requests;
mod resolver;
mod rollout;
mod runtime;
mod settings;
mod upkeep;
mod watch;
mod write;

pub use aicr_mirror::SourcesConfig;
pub use certificates::{CertificateSettings, Certificates, Standing};
pub use clock::Clock;
pub use controller::{Drive, Driving, Readiness, Running, Watching};
pub use credentials::{Mint, NoToken, Token, TokenError, TokenSettings};
pub use error::DriveError;
pub use fence::Fence;
pub use requests::{client, fenced};
pub use settings::{DriveSettings, WATCH_SECONDS};
pub use watch::Rollouts;
