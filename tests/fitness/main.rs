//! Threads that are fit for some work and not for other: what each verb does on them, and what a guard leaves behind.
#![forbid(unsafe_code)]

mod guards;
#[path = "../support/mod.rs"]
mod support;
mod verbs;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::{self, ThreadId};
use work_permit::{Executor, Operations, Pool, Reason};

pub(crate) const A: Operations = Operations::only(0).unwrap();
pub(crate) const B: Operations = Operations::only(63).unwrap();

/// An executor for those that allow `operations`, on a pool of its own.
pub(crate) fn requiring(operations: Operations, limit: usize) -> Executor {
    Pool::new().executor("choosy").limit(limit).requires(operations).build().unwrap()
}

pub(crate) fn here() -> ThreadId {
    thread::current().id()
}

/// Whether this thread is fit for the executor, which has a permit free.
#[track_caller]
pub(crate) fn is_fit(exec: &Executor) -> bool {
    match exec.try_run(here) {
        Ok(there) => {
            assert_eq!(there, here());
            true
        }
        Err(refused) => {
            assert_eq!(refused.reason(), Reason::NotFit);
            false
        }
    }
}

/// Panics without a word, which ends here.
pub(crate) fn panics(f: impl FnOnce()) {
    let out = || {
        f();
        resume_unwind(Box::new("out"))
    };
    let caught: Result<(), _> = catch_unwind(AssertUnwindSafe(out));
    assert!(caught.is_err());
}
