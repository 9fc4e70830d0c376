//! Registry tokens of AWS's ECR, by its SDK; a crate of its own, so that nothing else compiles the SDK.

mod ecr;
mod said;

pub use ecr::Ecr;
