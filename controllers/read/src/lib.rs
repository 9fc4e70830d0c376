//! The eyes: AICR's documents, bundles and charts, from bytes to values. Pure and bounded.
//!
//! Every reader takes bytes that someone else wrote, bounds what it keeps, never panics, and answers either with a
//! value that is safe to decide on or with a [`ReadError`] that says what was wrong with which document.

mod archive;
pub mod bundle;
pub mod chart;
pub mod ctrf;
mod error;
pub mod failure;
pub mod image_refs;
pub mod index;
mod names;
pub mod path;
pub mod recipe;
pub mod snapshot;
pub mod upgrade;
pub mod values;
pub mod yaml;

pub use error::ReadError;
