//! The faults of the ancestor, Cassandra's SEPExecutor: each that could happen here is a test with its number.
//!
//! Where a fault was a matter of time, the test asks for the event behind it: who ran, in which order, how many
//! together, or how much work was done. `tests/README.md` says what belongs to which number.
#![forbid(unsafe_code)]

#[path = "../support/mod.rs"]
mod support;

mod ends;
mod inline;
mod order;
mod paths;
mod threads;
