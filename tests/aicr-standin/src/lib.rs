//! A stand-in for the AICR command, honest about its limits; test equipment only.

mod args;
mod bundle;
mod catalog;
mod charts;
mod cli;
mod configmap;
mod constraint;
mod evidence;
mod failure;
mod faults;
mod log;
mod oci;
mod place;
mod recipe;
mod release;
mod snapshot;
mod tree;
mod upgrade_check;
mod validate;
mod yaml;

pub use charts::run as charts;
pub use cli::run as aicr;
