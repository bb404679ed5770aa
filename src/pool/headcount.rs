//! How many threads can serve, and how many lines with tasks count on one: one word, so that "the last thread
//! leaves" and "a first task is accepted" cannot both succeed.
//!
//! ```text
//!  63                 32   31     30                 0
//! +---------------------+--------+--------------------+
//! |  alive : u32        | LINGER |  owed : u31        |
//! +---------------------+--------+--------------------+
//! ```
//!
//! | field | counts or says |
//! |---|---|
//! | `alive` | threads that exist and have not begun to leave |
//! | `LINGER` | the last thread wanted to leave and had to stay: wake it when `owed` is 0 |
//! | `owed` | executors with a queued task, and callers about to queue one |
//!
//! Invariant: `owed > 0` and `alive = 0` only inside [`Headcount::hold`]'s window, where a caller is creating a
//! thread. Every change is a read-modify-write of this one word and publishes nothing else: Relaxed.
#![forbid(unsafe_code)]

use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

const ONE_ALIVE: u64 = 1 << 32;
const LINGER: u64 = 1 << 31;
const OWED_MASK: u64 = LINGER - 1;

/// What a thread that wants to leave is told.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It does not count any more.
    Left,
    /// It is the last, and tasks are queued.
    Stay,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Headcount(AtomicU64);

impl Headcount {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn update<T>(&self, next: impl Fn(u64) -> Result<(u64, T), T>) -> T {
        let mut bits = self.0.load(Relaxed);
        loop {
            let (new, answer) = match next(bits) {
                Ok(step) => step,
                Err(answer) => return answer,
            };
            match self.0.compare_exchange_weak(bits, new, Relaxed, Relaxed) {
                Ok(_) => return answer,
                Err(now) => bits = now,
            }
        }
    }

    /// Threads that can serve.
    pub(crate) fn alive(&self) -> usize {
        (self.0.load(Relaxed) / ONE_ALIVE) as usize
    }

    /// A line gets its first task. `false`: no thread can serve it, and nothing was noted.
    pub(crate) fn owe(&self) -> bool {
        self.update(|bits| if bits >= ONE_ALIVE { Ok((bits + 1, true)) } else { Err(false) })
    }

    /// Keeps the last thread from leaving, whether or not there is one. Ends with [`settle`](Self::settle).
    pub(crate) fn hold(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// A line has no task any more, or a hold ends. `true`: a lingering thread is to be woken.
    pub(crate) fn settle(&self) -> bool {
        self.update(|bits| {
            debug_assert!(bits & OWED_MASK > 0, "settled more than was owed");
            let left = bits - 1;
            if left & OWED_MASK == 0 && left & LINGER != 0 {
                Ok((left & !LINGER, true))
            } else {
                Ok((left, false))
            }
        })
    }

    /// A thread was created.
    pub(crate) fn join(&self) {
        self.0.fetch_add(ONE_ALIVE, Relaxed);
    }

    /// A thread wants to leave.
    pub(crate) fn leave(&self) -> Leave {
        self.update(|bits| {
            if bits / ONE_ALIVE == 1 && bits & OWED_MASK > 0 {
                Ok((bits | LINGER, Leave::Stay))
            } else {
                Ok((bits - ONE_ALIVE, Leave::Left))
            }
        })
    }
}

#[cfg(all(test, not(work_permit_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_thread_stays_while_tasks_are_queued() {
        let count = Headcount::new();
        assert!(!count.owe(), "nobody could serve it");
        count.join();
        count.join();
        assert!(count.owe() && count.owe());
        assert_eq!(count.leave(), Leave::Left, "one is left");
        assert_eq!(count.leave(), Leave::Stay);
        assert!(!count.settle(), "one is still owed");
        assert!(count.settle(), "now the lingering thread is woken");
        assert_eq!(count.leave(), Leave::Left);
        assert_eq!(count.alive(), 0);
    }

    #[test]
    fn a_hold_keeps_a_thread_that_comes_later() {
        let count = Headcount::new();
        count.hold();
        count.join();
        assert_eq!(count.leave(), Leave::Stay);
        assert!(count.settle());
        assert_eq!(count.leave(), Leave::Left);
    }
}
