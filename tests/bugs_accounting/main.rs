//! Permits and counters through panics, cancellations, timeouts and drops: faults that other pools and limiters
//! had, each as the behaviour that is right here. The numbers only tell the faults apart.
#![forbid(unsafe_code)]
#![deny(unfulfilled_lint_expectations)]

mod drops;
mod limits;
mod panics;
mod races;
#[path = "../support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Panics when it is dropped, as often as it says: the payload is the next one. Nothing is printed.
pub(crate) struct Bomb(pub(crate) u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            resume_unwind(Box::new(Bomb(self.0 - 1)));
        }
    }
}

/// A panic that prints nothing, with a payload that is a number, a text, or a [`Bomb`].
pub(crate) fn throw(n: u64) -> ! {
    match n % 3 {
        0 => resume_unwind(Box::new(n)),
        1 => resume_unwind(Box::new("a text")),
        _ => resume_unwind(Box::new(Bomb(2))),
    }
}

/// Whether `f` panics. The payload is forgotten, for its drop may panic too.
pub(crate) fn panics<R>(f: impl FnOnce() -> R) -> bool {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => false,
        Err(payload) => {
            std::mem::forget(payload);
            true
        }
    }
}
