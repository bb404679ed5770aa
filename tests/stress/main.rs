//! Everything at once, many times: books that must balance exactly, and work that must never be forgotten.
//!
//! Each test has a size for every run, and a full size under `#[ignore]`; `tests/README.md` has the command
//! and the result of the last full run.
#![forbid(unsafe_code)]

#[path = "../support/mod.rs"]
mod support;

mod calm;
mod episodes;
mod mixed;
mod wake_ups;
