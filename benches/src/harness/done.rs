//! Knows when tasks have run: a count without a line that all workers write, for long streams; a countdown that
//! wakes its caller at once, for short rounds.

use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

const STRIPES: usize = 32;

/// A count, striped by thread. There is one, which goes on counting: one measurement runs at a time, and tasks
/// can refer to it without counting references.
#[derive(Debug)]
pub(crate) struct Done {
    stripes: [CachePadded<AtomicU64>; STRIPES],
}

static DONE: Done = Done { stripes: [const { CachePadded::new(AtomicU64::new(0)) }; STRIPES] };

/// Tasks that a measurement has queued: what was counted before it does not count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since {
    done: &'static Done,
    before: u64,
}

thread_local! {
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    STRIPE.with(|stripe| {
        if stripe.get() == usize::MAX {
            stripe.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        stripe.get()
    })
}

impl Done {
    #[inline]
    pub(crate) fn one(&self) {
        self.stripes[stripe()].fetch_add(1, Ordering::Release);
    }

    fn sum(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.load(Ordering::Acquire)).sum()
    }
}

impl Since {
    /// Counts from now on. No task of an earlier measurement may still be queued.
    pub(crate) fn now() -> Self {
        Self { done: &DONE, before: DONE.sum() }
    }

    /// What a task is to note that it ran with.
    pub(crate) fn done(&self) -> &'static Done {
        self.done
    }

    pub(crate) fn count(&self) -> u64 {
        self.done.sum() - self.before
    }

    /// Waits until `count` have run. It looks now and then, so as not to take a core from the workers.
    pub(crate) fn wait_for(&self, count: u64) {
        while self.count() < count {
            // sleep: short beside what is measured.
            thread::sleep(Duration::from_micros(100));
        }
    }
}

static LEFT: AtomicU64 = AtomicU64::new(0);
static CALLER: Mutex<Option<Thread>> = Mutex::new(None);

/// Waits for `tasks` calls of [`count_down`] after `queue`.
pub(crate) fn wait_for_countdown(tasks: u64, queue: impl FnOnce()) {
    *CALLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
    LEFT.store(tasks, Ordering::Relaxed);
    queue();
    while LEFT.load(Ordering::Acquire) > 0 {
        thread::park();
    }
}

/// One task of a round has run; the last one wakes the caller.
#[inline]
pub(crate) fn count_down() {
    if LEFT.fetch_sub(1, Ordering::AcqRel) == 1 {
        if let Some(caller) = &*CALLER.lock().unwrap_or_else(PoisonError::into_inner) {
            caller.unpark();
        }
    }
}
