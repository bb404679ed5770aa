//! How much is asked of the permits: for those who choose among executors.
#![forbid(unsafe_code)]

use super::{Gate, Ledger, Work};
use crate::sync::Ordering::Relaxed;
use crate::sync::plain::AtomicU64;

/// Copies of what the lock protects.
#[derive(Debug)]
pub(super) struct Seen {
    limit: AtomicU64,
}

impl Seen {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: AtomicU64::new(limit as u64) }
    }

    /// Under the lock.
    pub(super) fn set_limit(&self, limit: usize) {
        self.limit.store(limit as u64, Relaxed);
    }
}

/// A rough look at the gate: its numbers are of slightly different moments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    pub(crate) limit: u64,
    /// Permits that are taken, but for leased ones, and entries of the line.
    pub(crate) asked: u64,
    pub(crate) closed: bool,
}

impl<T: Work, L: Ledger> Gate<T, L> {
    /// A lease says only to its owner's cache whether it is in use, so a leased permit counts as free: looking
    /// would cost the owner a cache miss at each run. When permits get scarce leases are called back. The lock is
    /// taken only where work waits.
    pub(crate) fn demand(&self) -> Demand {
        let limit = self.seen.limit.load(Relaxed);
        let state = self.word.peek();
        let taken = limit as i64 - i64::from(state.free()) - self.leases.kept() as i64;
        // Between a change of the limit and that of the word, and while leases come and go, it may be off.
        let taken = taken.max(0) as u64;
        let waiting = if state.is_waiting() { self.waiting() } else { 0 };
        let asked = taken + waiting as u64;
        Demand { limit, asked, closed: state.is_closed() }
    }

    fn waiting(&self) -> usize {
        let inner = self.inner.lock();
        inner.line.len() + self.count_intake().0
    }
}
