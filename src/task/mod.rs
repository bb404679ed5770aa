//! What a task is, and what a thread knows about the tasks it is in.

pub(crate) mod cell;
pub(crate) mod closure;
pub(crate) mod context;
pub(crate) mod fit;
pub(crate) mod unwind;
