//! What this thread is fit for: the guards that describe it, of which the innermost counts, over what it is without
//! any.
//!
//! The guards of a thread stand in a list, oldest first, each under a number of its own: they may be dropped in any
//! order, and each takes out itself and nothing else. A forgotten one stays in force to the end of the task that it
//! was made in, or of the thread.
//!
//! A task leaves its thread as it found it: a guard that was made inside of a frame is taken out when the frame ends,
//! wherever the guard is by then, and its drop finds nothing to do.
#![forbid(unsafe_code)]

use crate::operations::Operations;
use crate::sync::local;
use crate::task::context::{self, Place};
use std::cell::{Cell, RefCell};

/// What a thread is fit for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fitness {
    allows: Operations,
    inline: bool,
}

impl Fitness {
    /// A thread that nobody described.
    const UNDESCRIBED: Self = Self::allowing(Operations::NONE);
    /// A pool's worker.
    const WORKER: Self = Self::allowing(Operations::ALL);
    /// Nothing runs inline here.
    pub(crate) const NO_INLINE: Self = Self { allows: Operations::NONE, inline: false };

    pub(crate) const fn allowing(allows: Operations) -> Self {
        Self { allows, inline: true }
    }

    fn suits(self, requires: Operations) -> bool {
        self.inline && self.allows.contains(requires)
    }
}

/// Names a guard of this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number(u64);

#[derive(Debug)]
struct Entry {
    number: Number,
    fitness: Fitness,
    made_in: Place,
}

#[derive(Debug)]
struct Guards {
    last: u64,
    entries: Vec<Entry>,
}

local! {
    /// What counts now: the last of [`GUARDS`], or [`WITHOUT`].
    static NOW: Cell<Fitness> = Cell::new(Fitness::UNDESCRIBED)
}

local! {
    /// What this thread is fit for without a guard.
    static WITHOUT: Cell<Fitness> = Cell::new(Fitness::UNDESCRIBED)
}

local! {
    static GUARDS: RefCell<Guards> = RefCell::new(Guards { last: 0, entries: Vec::new() })
}

/// This thread may run work that requires this, as it is described now.
pub(crate) fn suits(requires: Operations) -> bool {
    NOW.with(Cell::get).suits(requires)
}

/// This thread is a pool's worker from now on.
pub(crate) fn become_worker() {
    WITHOUT.with(|without| without.set(Fitness::WORKER));
    change(|_| ());
}

/// A guard comes.
pub(crate) fn describe(fitness: Fitness) -> Number {
    let number = change(|guards| {
        guards.last += 1;
        let number = Number(guards.last);
        guards.entries.push(Entry { number, fitness, made_in: context::place() });
        number
    });
    number.unwrap_or(Number(0))
}

/// A guard goes.
pub(crate) fn withdraw(number: Number) {
    change(|guards| {
        if let Some(at) = guards.entries.iter().rposition(|entry| entry.number == number) {
            guards.entries.remove(at);
        }
    });
}

/// A frame ends inside of which guards came or went: those that were made in it are out of force.
pub(crate) fn leave(frame: Place) {
    change(|guards| guards.entries.retain(|entry| entry.made_in != frame));
}

/// Changes the guards, and what follows from them. `None`: the thread is being torn down and has no list any more.
/// Nothing is known of its guards then, so it runs nothing inline.
fn change<R>(f: impl FnOnce(&mut Guards) -> R) -> Option<R> {
    let changed = GUARDS.try_with(|guards| {
        let mut guards = guards.borrow_mut();
        let result = f(&mut guards);
        (result, guards.entries.last().map(|entry| entry.fitness))
    });
    let (result, now) = match changed {
        Ok((result, innermost)) => (Some(result), innermost.unwrap_or(WITHOUT.with(Cell::get))),
        Err(_) => (None, Fitness::NO_INLINE),
    };
    NOW.with(|counts| counts.set(now));
    context::fitness_changed(now.inline);
    result
}

#[cfg(all(test, not(work_permit_loom)))]
mod tests {
    use super::*;
    use crate::task::context::{Id, Standing, enter, standing};

    const A: Operations = Operations::only(0).unwrap();
    const B: Operations = Operations::only(1).unwrap();
    const E: Id = Id::NONE;

    fn is_unfit(requires: Operations) -> bool {
        matches!(standing(E, requires), Standing::Unfit)
    }

    /// Unfit for: nothing, A, B.
    fn unfit_for() -> [bool; 3] {
        [Operations::NONE, A, B].map(is_unfit)
    }

    fn in_frame<R>(f: impl FnOnce() -> R) -> R {
        enter(E, Id::NONE, true, f)
    }

    const UNDESCRIBED: [bool; 3] = [false, true, true];
    const NOTHING: [bool; 3] = [true; 3];

    #[test]
    fn the_innermost_counts() {
        assert_eq!(unfit_for(), UNDESCRIBED);
        let a = describe(Fitness::allowing(A));
        assert_eq!(unfit_for(), [false, false, true]);
        let none = describe(Fitness::NO_INLINE);
        assert_eq!(unfit_for(), NOTHING);
        let b = describe(Fitness::allowing(B));
        assert_eq!(unfit_for(), [false, true, false]);
        // In any order.
        withdraw(a);
        assert_eq!(unfit_for(), [false, true, false]);
        withdraw(b);
        assert_eq!(unfit_for(), NOTHING, "that of the middle is there still");
        withdraw(none);
        assert_eq!(unfit_for(), UNDESCRIBED);
        withdraw(b);
        assert_eq!(unfit_for(), UNDESCRIBED);
    }

    #[test]
    fn a_frame_takes_its_guards_along() {
        let outer = describe(Fitness::allowing(A));
        let escaped = in_frame(|| {
            let inner = describe(Fitness::NO_INLINE);
            in_frame(|| {
                describe(Fitness::allowing(B));
                assert_eq!(unfit_for(), [false, true, false]);
            });
            assert_eq!(unfit_for(), NOTHING);
            inner
        });
        assert_eq!(unfit_for(), [false, false, true]);
        withdraw(escaped);
        assert_eq!(unfit_for(), [false, false, true]);
        withdraw(outer);
        assert_eq!(unfit_for(), UNDESCRIBED);
    }

    #[test]
    fn a_guard_of_outside_may_go_inside() {
        let outer = describe(Fitness::NO_INLINE);
        assert!(!context::is_plain());
        in_frame(|| {
            in_frame(|| {
                assert_eq!(unfit_for(), NOTHING);
                withdraw(outer);
                assert_eq!(unfit_for(), UNDESCRIBED);
            });
            assert_eq!(unfit_for(), UNDESCRIBED);
        });
        assert_eq!(unfit_for(), UNDESCRIBED);
        assert!(context::is_plain(), "and nobody looks closer from now on");
    }

    #[test]
    fn a_panic_leaves_the_thread_as_it_was() {
        let caught = std::panic::catch_unwind(|| {
            in_frame(|| {
                describe(Fitness::NO_INLINE);
                std::panic::resume_unwind(Box::new("out"));
            });
        });
        assert!(caught.is_err());
        assert_eq!(unfit_for(), UNDESCRIBED);
    }

    #[test]
    fn a_worker_is_fit_for_all() {
        let worker = || {
            become_worker();
            assert_eq!(unfit_for(), [false; 3]);
            let a = describe(Fitness::allowing(A));
            assert_eq!(unfit_for(), [false, false, true]);
            withdraw(a);
            assert_eq!(unfit_for(), [false; 3]);
        };
        std::thread::spawn(worker).join().unwrap();
    }

    /// Uses its guards when it is dropped.
    struct Late(Cell<Option<Number>>);

    impl Drop for Late {
        fn drop(&mut self) {
            // The list has gone before or goes after this; either way there is an answer, and no inline run.
            let own = describe(Fitness::NO_INLINE);
            assert_eq!(unfit_for(), NOTHING);
            withdraw(own);
            if let Some(older) = self.0.take() {
                withdraw(older);
            }
        }
    }

    thread_local! {
        static LATE: Late = const { Late(Cell::new(None)) };
    }

    #[test]
    fn a_thread_that_is_torn_down_is_no_exception() {
        let late_first = || {
            LATE.with(|late| late.0.set(Some(describe(Fitness::allowing(A)))));
        };
        std::thread::spawn(late_first).join().unwrap();
        let list_first = || {
            let number = describe(Fitness::allowing(A));
            LATE.with(|late| late.0.set(Some(number)));
        };
        std::thread::spawn(list_first).join().unwrap();
    }
}
