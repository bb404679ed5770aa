//! Stalls: work that waits though it could run, calls that wait for themselves, threads that never come or never
//! go. Faults that other pools and limiters had, each as the behaviour that is right here; the numbers only tell
//! the faults apart.

mod limits;
mod reentry;
mod shutdown;
#[path = "../support/mod.rs"]
mod support;
#[cfg(target_os = "linux")]
mod threads;
