//! The kinds as the API server is told of them: bounds, immutability, defaults, generated files, samples.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "kinds/bounds.rs"]
mod bounds;
#[path = "kinds/generated.rs"]
mod generated;
#[path = "kinds/immutability.rs"]
mod immutability;
#[path = "kinds/samples.rs"]
mod samples;
#[path = "kinds/schema.rs"]
mod schema;
