//! What a peer must be able to do to take part in a group.
//!
//! An adapter is built once for each measurement; every thread of the measurement gets a clone. The harness
//! keeps the first one until all work has ended, so a clone need not own the peer's threads.

use crate::groups::Role;

/// A thing that limits or runs work.
pub(crate) trait Adapter: Clone + Send + 'static {
    const NAME: &'static str;
    const ROLE: Role = Role::Peer;

    /// Builds it so that at most `limit` tasks run at once.
    fn new(limit: usize) -> Self;
}

/// Runs work here if that is possible at once.
pub(crate) trait TryRun: Adapter {
    /// `false`: it did not run.
    fn try_run(&mut self, work: impl FnOnce()) -> bool;
}

/// Runs work under the limit and returns when it has run; waits when it must.
pub(crate) trait Run: Adapter {
    fn run(&mut self, work: impl FnOnce() + Send);
}

/// Gets a result of work that may run elsewhere.
pub(crate) trait Ask: Adapter {
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64;
}

/// Queues work and does not wait for it.
pub(crate) trait Execute: Adapter {
    fn execute(&self, work: impl FnOnce() + Send + 'static);
}

/// Chooses one of many.
pub(crate) trait Choose: Adapter {
    /// A number below `count`.
    fn choose(&mut self, count: usize) -> usize;
}

/// A queued task as most peers keep it.
pub(crate) type Job = Box<dyn FnOnce() + Send>;
