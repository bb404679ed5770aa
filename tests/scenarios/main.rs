//! Scenarios from the ancestor's own test suite, by number. `tests/README.md` says what belongs to which.
#![forbid(unsafe_code)]

#[path = "../support/mod.rs"]
mod support;

mod verbs;
mod work;
