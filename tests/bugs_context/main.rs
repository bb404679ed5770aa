//! What a thread brings into a task and takes out of it: faults that other pools had, each as the behaviour that is
//! right here. The numbers only tell the faults apart.
#![forbid(unsafe_code)]

mod leaks;
mod locks;
mod paths;
#[path = "../support/mod.rs"]
mod support;
