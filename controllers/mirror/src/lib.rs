//! The carrier: bundles and charts between registries, and the plan that comes of them.
//!
//! [`Registry`] speaks to the registry of the installation; [`make_plan`] reads a rendered bundle from it, checks what
//! AICR rendered, brings every chart below the registry's prefix, and answers with the plan. Nothing is written to
//! Kubernetes here, and nothing is pushed twice: a second run over the same bundle only reads.

mod artifact;
mod carry;
mod checks;
mod credentials;
mod distribution;
mod error;
mod failure;
mod helm;
mod overrides;
mod place;
mod plan;
mod registry;
mod web;

pub use credentials::{DockerConfig, DockerConfigError};
pub use error::MirrorError;
pub use failure::MirrorFailure;
pub use plan::{Around, make_plan};
pub use registry::{Registry, RegistryConfig, SourcesConfig};
pub use web::Times;
