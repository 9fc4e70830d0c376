//! The keys as they are used: read from a Secret, served in handshakes, rotated, mounted.
#![allow(clippy::unwrap_used, reason = "test helpers outside of test functions")]

mod found;
mod leader;
mod mounted;
mod serving;
mod support;
