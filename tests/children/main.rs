//! Executors below others: children, strands and stripes. Permits of several levels, turns among siblings, order on a
//! strand, ends at each level, and what each costs.
#![forbid(unsafe_code)]

mod chaos;
mod depth;
mod ends;
mod levels;
mod nesting;
mod order;
mod stress;
mod stripes;
#[path = "../support/mod.rs"]
mod support;
mod waiting;

use work_permit::{Executor, Pool};

/// An executor with children, on a pool of its own.
pub(crate) fn root(limit: usize) -> Executor {
    Pool::new().executor("root").limit(limit).build().unwrap()
}

pub(crate) fn child(parent: &Executor, limit: usize) -> Executor {
    parent.child("child").limit(limit).build().unwrap()
}

pub(crate) fn strand(parent: &Executor) -> Executor {
    parent.strand("strand").build().unwrap()
}

/// Every permit is back at every level, which the worker that gives them back does one after the other.
#[track_caller]
pub(crate) fn at_rest(all: &[&Executor]) {
    for exec in all {
        support::until("all permits are back", || exec.stats().active == 0);
        support::assert_quiet(exec);
    }
}
