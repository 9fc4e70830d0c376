//! The judgment's tests: tables for rules, scripts for stories; a simulated cluster beneath both.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code: a broken invariant is a failed test")]

mod readiness;
mod scenarios;
mod sim;
mod tables;
