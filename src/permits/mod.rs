//! Permits: who may run, decided in one 64-bit word. [`state`] is the pure value with its transitions,
//! [`word`] the thin owner of the atomic. Neither knows threads, tasks or time.
#![forbid(unsafe_code)]

pub(crate) mod state;
pub(crate) mod word;
