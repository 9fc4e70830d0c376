//! Resolution from its inputs on, by what each test loses or changes.

mod bound;
mod mirrored;
mod stages;
mod triggers;
