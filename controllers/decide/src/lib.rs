//! The judgment: what happens next, and why. Pure: no client, no clock, no tokio.
//!
//! Three questions are answered, each by one function over values that somebody else gathered:
//! [`resolve::next`] (inputs to plan), [`runtime::next`] (plan to rollout), [`rollout::next`] (rollout to outcome).

pub mod assess;
pub mod facts;
pub mod message;
pub mod report;
pub mod resolve;
pub mod rollout;
pub mod runtime;
#[cfg(feature = "simulation")]
pub mod seam;
#[cfg(not(feature = "simulation"))]
mod seam;
pub mod seen;
