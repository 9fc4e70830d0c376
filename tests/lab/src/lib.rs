//! Real parts on one machine: install, build, start and stop them, in one network namespace.
//!
//! ```no_run
//! use aicr_lab::{Lab, Options};
//! let lab = Lab::up(&Options::whole())?;
//! let nodes = lab.kubectl(&["get", "nodes"])?;
//! lab.down()?;
//! # Ok::<(), aicr_lab::LabError>(())
//! ```
//!
//! One lab at a time: a second [`Lab::up`] beside a living one is refused. A lab belongs to the process that made it
//! (dropping it takes it down) or to nobody ([`Options::detached`]); what a dead owner left is removed by the next
//! [`Lab::up`] or by [`down`].

pub mod addresses;
mod cgroup;
mod clean;
pub mod command;
mod components;
mod error;
mod files;
pub mod image;
pub mod interrupt;
mod kubeconfig;
mod lab;
mod layout;
mod network;
pub mod parts;
mod pki;
pub mod preflight;
mod process;
pub mod product;
mod run;
mod state;
mod sysctl;
mod tools;
mod traces;
pub mod wait;

pub use clean::down;
pub use error::LabError;
pub use image::{Entry, Image};
pub use lab::{Kind, Lab, Options, RegistryAccess};
pub use layout::{Layout, parts_cache, workspace};
pub use process::Place;
pub use traces::traces;
