//! Every reader against what is broken or hostile: typed errors, no panic, bounded memory.

#![allow(clippy::unwrap_used, reason = "a fixture that cannot be made fails its test")]

mod archives;
mod documents;
mod fuzz;
mod mutate;
mod readers;
