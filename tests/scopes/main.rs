//! Tasks that borrow: scopes and `run_all`. What they borrow is freed right after the call, and results, closures
//! and panics carry values that know whether they are dropped once and in time; so these are also the tests that
//! an address sanitizer has something to say about.
#![forbid(unsafe_code)]

mod all;
mod all_ends;
mod closing;
mod forget;
mod nesting;
mod panics;
mod scope;
mod stress;
#[path = "../support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Counts values that exist.
#[derive(Debug, Default)]
pub(crate) struct Census {
    alive: AtomicUsize,
    ever: AtomicUsize,
}

impl Census {
    pub(crate) fn one(&self) -> Counted<'_> {
        self.alive.fetch_add(1, SeqCst);
        self.ever.fetch_add(1, SeqCst);
        Counted(self)
    }

    pub(crate) fn alive(&self) -> usize {
        self.alive.load(SeqCst)
    }

    pub(crate) fn ever(&self) -> usize {
        self.ever.load(SeqCst)
    }
}

/// A value that borrows the census that counts it, on the heap: dropped after its census it would be found out.
#[derive(Debug)]
pub(crate) struct Counted<'a>(&'a Census);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, SeqCst);
    }
}

/// A value whose `Drop` panics.
#[derive(Debug)]
pub(crate) struct Bomb<'a>(#[expect(dead_code)] pub(crate) Counted<'a>);

impl Drop for Bomb<'_> {
    fn drop(&mut self) {
        std::panic::panic_any("a bomb");
    }
}

/// The text of the panic in which `f` ends.
#[track_caller]
pub(crate) fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let payload = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("it ended well"),
        Err(payload) => payload,
    };
    match payload.downcast_ref::<&'static str>() {
        Some(text) => (*text).to_owned(),
        None => payload.downcast_ref::<String>().expect("a text").clone(),
    }
}
