//! The judgment's tests: tables for rules, scripts for stories; a simulated cluster beneath both.

mod readiness;
mod scenarios;
mod sim;
mod tables;
