//! Handles as futures, by hand and under tokio; and what every type of the interface promises about threads,
//! futures and errors.
#![forbid(unsafe_code)]

#[path = "../support/mod.rs"]
mod support;

mod by_hand;
mod contract;
mod on_tokio;
