//! The door on a real API server: who is denied what, what passes without it, and that it is always answered.

pub(crate) mod access;
pub(crate) mod down;
pub(crate) mod engine;
mod forged;
pub(crate) mod lease;
pub(crate) mod load;
pub(crate) mod people;
pub(crate) mod scrape;
pub(crate) mod waiting;
