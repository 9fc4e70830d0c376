//! The judgment's tests: tables for rules, scripts for stories; a cluster in a value beneath both.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code: a broken invariant is a failed test")]

mod docs;
mod found;
mod hands;
mod live;
mod readiness;
mod removal;
mod rules;
mod scenarios;
mod story;
mod tables;
