//! The models, one file for each floor.
//!
//! What they have in common: a *body* stands for what user code does under a permit. It counts in
//! std atomics, which loom does not see, and writes a cell, which loom watches: where the limit is
//! 1 the permit is a mutex, and an ordering that is too weak shows as a race on the cell.

mod child;
mod child_engine;
mod child_nested;
mod child_order;
mod executor;
mod executor_lease;
mod gate;
mod gate_life;
mod gate_many;
mod gate_waiters;
mod intake;
mod lease;
mod permits;
mod pool;
mod scope;
mod task;
mod yard;

use loom::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A number that only one thread at a time may touch, each after the one before: loom fails the
/// model otherwise.
#[derive(Debug)]
struct Watched(UnsafeCell<usize>);

// SAFETY: loom allows no two accesses that are not ordered, and its threads share one thread of the
// system.
unsafe impl Sync for Watched {}

impl Watched {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add_one(&self) {
        // SAFETY: loom checks that no other access is at the same time, or not ordered with it.
        self.0.with_mut(|number| unsafe { *number += 1 });
    }

    fn read(&self) -> usize {
        // SAFETY: as in `add_one`.
        self.0.with(|number| unsafe { *number })
    }
}

/// What runs under permits: how much of it, how much at a time, and in which order.
#[derive(Debug)]
struct Floor {
    limit: usize,
    inside: AtomicUsize,
    ran: AtomicUsize,
    /// With limit 1: runs that each run sees before it.
    seen: Watched,
}

impl Floor {
    fn new(limit: usize) -> Self {
        let (inside, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { limit, inside, ran, seen: Watched::new() }
    }

    /// Work under a permit: G1 always; with limit 1 it also sees all work before it.
    fn body(&self) {
        let inside = 1 + self.inside.fetch_add(1, Relaxed);
        assert!(inside <= self.limit, "G1: {inside} at a time, the limit is {}", self.limit);
        if self.limit == 1 {
            assert_eq!(self.seen.read(), self.ran());
            self.seen.add_one();
        }
        self.ran.fetch_add(1, Relaxed);
        self.inside.fetch_sub(1, Relaxed);
    }

    /// This thread knows of all work up to now.
    fn assert_all_is_seen(&self) {
        assert_eq!(self.seen.read(), self.ran());
    }

    fn ran(&self) -> usize {
        self.ran.load(Relaxed)
    }
}
