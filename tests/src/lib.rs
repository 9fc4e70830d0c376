//! The proof: what tests on a real API server have in common, in words that read like prose.
#![allow(clippy::missing_panics_doc, reason = "a test ends at the first surprise")]

pub mod answer;
pub mod caller;
pub mod engine;
pub mod floor;
pub mod people;
pub mod samples;
pub mod stage;
pub mod world;
pub mod write;

pub use answer::Answer;
pub use stage::Stage;
pub use world::{Kind, World};
pub use write::Way;
