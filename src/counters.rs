//! Counters that the inline path can afford: a cache line for each thread, written with plain stores by that
//! thread alone and added up by whoever asks. Threads beyond the prepared lines share one, with atomic adds.
//! What happens rarely (refusals, overtakes, panics) is counted in shared words.
//!
//! Sums taken while work runs are of no single moment; when the executor is quiet they are exact, since
//! everything is counted before the permit goes back.
//!
//! A child has no lines for threads: it must be small, and its inline runs write its permit word anyway. It counts
//! inline runs in [`Few`], and the rest in a box that it gets with the first task that it queues.
#![forbid(unsafe_code)]

use crate::error::Reason;
use crate::lease::Lease;
use crate::stats::Refused;
use crate::sync::Ordering::Relaxed;
use crate::sync::plain::{AtomicU32, AtomicU64};
use crate::sync::{Arc, OnceLock};
use crate::thread_index;
use crossbeam_utils::CachePadded;

/// Slots prepared for each executor.
#[cfg(not(work_permit_loom))]
const SLOTS: usize = 64;
#[cfg(work_permit_loom)]
const SLOTS: usize = 2;

/// What one thread has of one executor, on cache lines of its own.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) lease: Lease,
    counts: PerThread,
}

/// The slots of one executor, by [`thread_index`].
pub(crate) type Slots = Arc<[CachePadded<Slot>]>;

/// Slots for as many threads as an executor prepares for.
pub(crate) fn slots() -> Slots {
    let slot = || CachePadded::new(Slot { lease: Lease::new(), counts: PerThread::default() });
    (0..SLOTS).map(|_| slot()).collect()
}

/// Runs by where they were: each pair is begun and ended.
#[derive(Debug, Default)]
struct PerThread {
    inline: Pair,
    nested: Pair,
    queued_here: Pair,
    queued_on_worker: Pair,
    why_queued: [AtomicU64; 5],
    attempts: Pair,
    /// Attempts that did the work, or panicked: the others are work for the queue.
    attempts_done: AtomicU64,
    /// Permits that work of children had.
    below: Pair,
}

#[derive(Debug, Default)]
struct Pair {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// How a run came to its permit and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// On the caller's thread, under a permit of its own.
    Inline,
    /// The same under the permit that stays with the thread: counted by the [`Lease`].
    Leased,
    /// On the caller's thread, under the permit of the task around it; never queued.
    Nested,
    /// A queued task on the thread of its joiner, under a permit of its own.
    Joined,
    /// A queued task on the thread of its joiner, under the permit of the task around it.
    JoinedNested,
    /// A queued task on a worker.
    Worker,
    /// An attempt, on the caller's thread and under no permit. What it is counted as depends on what it says.
    Attempt,
}

/// Why a task was queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    NoPermit,
    NotFit,
    TooDeep,
    Asked,
    WouldBlock,
}

/// Sums of all threads.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sums {
    pub(crate) inline_begun: u64,
    pub(crate) inline_ended: u64,
    pub(crate) queued_ended: u64,
    pub(crate) inline_now: u64,
    pub(crate) on_workers_now: u64,
    pub(crate) attempts_done: u64,
    pub(crate) attempts_now: u64,
    pub(crate) below_now: u64,
}

/// The counters of one executor.
#[derive(Debug)]
pub(crate) struct Counters {
    few: Few,
    rest: OnceLock<Box<Rest>>,
}

/// What a child counts of inline runs, which allocate nothing.
#[derive(Debug, Default)]
struct Few {
    inline: Pair,
    nested: AtomicU64,
    /// Permits that work of its own children has.
    below: AtomicU32,
}

/// In this order what every queued task of a root reads is not on the line of what many threads may write. No more
/// is done for that, since a child has it too.
#[derive(Debug, Default)]
#[repr(C)]
struct Rest {
    /// None: a child.
    slots: Option<Slots>,
    overtakes: AtomicU64,
    panicked: AtomicU64,
    refused: [AtomicU64; Reason::COUNT],
    /// Of a child, whose line does not last: see [`Books`].
    books: [AtomicU64; 3],
    shared: PerThread,
}

/// What became of the tasks that a child queued. Written under the lock of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Books {
    Accepted,
    Cancelled,
    Unrun,
}

impl Counters {
    pub(crate) fn new(slots: Slots) -> Self {
        let rest = Box::new(Rest { slots: Some(slots), ..Rest::default() });
        Self { few: Few::default(), rest: OnceLock::from(rest) }
    }

    /// Of a child.
    pub(crate) fn of_child() -> Self {
        Self { few: Few::default(), rest: OnceLock::new() }
    }

    #[inline]
    fn rest(&self) -> &Rest {
        self.rest.get_or_init(Box::default)
    }

    /// This thread's slot, unless there are more threads than slots.
    #[inline]
    fn slot(&self) -> Option<&Slot> {
        slot_of_this_thread(self.rest().slots.as_ref()?)
    }

    #[inline]
    fn bump(&self, slot: Option<&Slot>, pick: impl Fn(&PerThread) -> &AtomicU64) {
        self.add(slot, 1, pick);
    }

    #[inline]
    fn add(&self, slot: Option<&Slot>, n: u64, pick: impl Fn(&PerThread) -> &AtomicU64) {
        match slot {
            Some(slot) => {
                // This thread is the only writer of its slot's counts.
                let counter = pick(&slot.counts);
                counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
            }
            None => {
                pick(&self.rest().shared).fetch_add(n, Relaxed);
            }
        }
    }

    #[inline]
    fn pair(line: &PerThread, kind: Kind) -> &Pair {
        match kind {
            Kind::Inline | Kind::Leased => &line.inline,
            Kind::Nested => &line.nested,
            Kind::Joined => &line.queued_here,
            // Under a permit that is counted already, so it is not "active" a second time.
            Kind::JoinedNested | Kind::Worker => &line.queued_on_worker,
            Kind::Attempt => &line.attempts,
        }
    }

    #[inline]
    pub(crate) fn begin(&self, slot: Option<&Slot>, kind: Kind) {
        if !matches!(kind, Kind::JoinedNested | Kind::Leased) {
            self.bump(slot, |line| &Self::pair(line, kind).begun);
        }
    }

    #[inline]
    pub(crate) fn end(&self, slot: Option<&Slot>, kind: Kind) {
        if kind == Kind::Leased {
            return;
        }
        if kind == Kind::JoinedNested {
            // Begun and ended in one, so that no gauge sees it.
            self.bump(slot, |line| &line.queued_on_worker.begun);
        }
        self.bump(slot, |line| &Self::pair(line, kind).ended);
    }

    /// An attempt is a task that ran inline after all.
    #[inline]
    pub(crate) fn attempt_done(&self, slot: Option<&Slot>) {
        self.bump(slot, |line| &line.attempts_done);
    }

    #[cold]
    pub(crate) fn overtook(&self) {
        self.rest().overtakes.fetch_add(1, Relaxed);
    }

    #[cold]
    pub(crate) fn panicked(&self) {
        self.rest().panicked.fetch_add(1, Relaxed);
    }

    #[cold]
    pub(crate) fn refused(&self, reason: Reason) {
        self.rest().refused[reason.index()].fetch_add(1, Relaxed);
    }

    #[inline]
    pub(crate) fn queued(&self, why: Why) {
        self.bump(self.slot(), |line| &line.why_queued[why as usize]);
    }

    pub(crate) fn queued_many(&self, why: Why, tasks: usize) {
        self.add(self.slot(), tasks as u64, |line| &line.why_queued[why as usize]);
    }

    pub(crate) fn overtakes(&self) -> u64 {
        self.rest.get().map_or(0, |rest| rest.overtakes.load(Relaxed))
    }

    pub(crate) fn panics(&self) -> u64 {
        self.rest.get().map_or(0, |rest| rest.panicked.load(Relaxed))
    }

    pub(crate) fn why(&self, why: Why) -> u64 {
        let of = |line: &PerThread| line.why_queued[why as usize].load(Relaxed);
        let slots = self.slots().iter().map(|slot| of(&slot.counts)).sum::<u64>();
        slots + self.rest.get().map_or(0, |rest| of(&rest.shared))
    }

    pub(crate) fn refusals(&self) -> Refused {
        let rest = self.rest.get();
        let count =
            |reason: Reason| rest.map_or(0, |rest| rest.refused[reason.index()].load(Relaxed));
        Refused {
            saturated: count(Reason::Saturated),
            queue_full: count(Reason::QueueFull),
            closed: count(Reason::Closed),
            timed_out: count(Reason::TimedOut),
            not_fit: count(Reason::NotFit),
            deadlock: count(Reason::Deadlock),
            no_thread: count(Reason::NoThread),
            too_many: count(Reason::TooMany),
        }
    }

    pub(crate) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for slot in self.slots() {
            let (ended, busy) = (slot.lease.served(), slot.lease.is_busy());
            sums.inline_begun += ended + u64::from(busy);
            sums.inline_ended += ended;
            sums.inline_now += u64::from(busy);
            sums.add(&slot.counts);
        }
        if let Some(rest) = self.rest.get() {
            sums.add(&rest.shared);
        }
        sums.add_few(&self.few);
        sums
    }

    fn slots(&self) -> &[CachePadded<Slot>] {
        self.rest.get().and_then(|rest| rest.slots.as_deref()).unwrap_or_default()
    }

    /// As `begin`, of a child.
    #[inline]
    pub(crate) fn begin_in_child(&self, kind: Kind) {
        match kind {
            Kind::Inline | Kind::Leased => drop(self.few.inline.begun.fetch_add(1, Relaxed)),
            Kind::Nested => {}
            _ => self.begin(None, kind),
        }
    }

    /// As `end`, of a child.
    #[inline]
    pub(crate) fn end_in_child(&self, kind: Kind) {
        match kind {
            Kind::Inline | Kind::Leased => drop(self.few.inline.ended.fetch_add(1, Relaxed)),
            // Begun and ended in one: the gauges tell of permits.
            Kind::Nested => drop(self.few.nested.fetch_add(1, Relaxed)),
            _ => self.end(None, kind),
        }
    }

    /// Work of a child got a permit. With a slot: of the root, by this thread.
    #[inline]
    pub(crate) fn begin_below(&self, slot: Option<&Slot>, is_root: bool) {
        match is_root {
            true => self.bump(slot, |line| &line.below.begun),
            false => drop(self.few.below.fetch_add(1, Relaxed)),
        }
    }

    /// Work of a child gave its permit back.
    #[inline]
    pub(crate) fn end_below(&self, slot: Option<&Slot>, is_root: bool) {
        match is_root {
            true => self.bump(slot, |line| &line.below.ended),
            false => drop(self.few.below.fetch_sub(1, Relaxed)),
        }
    }

    /// Of a child, under the lock of its tree.
    pub(crate) fn book(&self, book: Books, tasks: usize) {
        self.rest().books[book as usize].fetch_add(tasks as u64, Relaxed);
    }

    pub(crate) fn booked(&self, book: Books) -> u64 {
        self.rest.get().map_or(0, |rest| rest.books[book as usize].load(Relaxed))
    }
}

/// This thread's slot, unless there are more threads than slots.
#[inline]
pub(crate) fn slot_of_this_thread(slots: &Slots) -> Option<&Slot> {
    slots.get(thread_index::current()).map(|slot| &**slot)
}

impl Sums {
    fn add(&mut self, counts: &PerThread) {
        let pairs = [&counts.inline, &counts.nested, &counts.queued_here, &counts.queued_on_worker];
        // Ends before begins: a gauge may then be a little high, never below zero.
        let ended = pairs.map(|pair| pair.ended.load(Relaxed));
        let begun = pairs.map(|pair| pair.begun.load(Relaxed));
        self.inline_begun += begun[0] + begun[1];
        self.inline_ended += ended[0] + ended[1];
        self.queued_ended += ended[2] + ended[3];
        self.inline_now += begun[0].saturating_sub(ended[0]) + begun[2].saturating_sub(ended[2]);
        self.on_workers_now += begun[3].saturating_sub(ended[3]);
        let done = counts.attempts_done.load(Relaxed);
        self.attempts_done += done;
        self.inline_begun += done;
        self.inline_ended += done;
        let ended = counts.attempts.ended.load(Relaxed);
        self.attempts_now += counts.attempts.begun.load(Relaxed).saturating_sub(ended);
        // An owned permit may end on another thread than it began on: the sum of all is right.
        self.below_now = self.below_now.wrapping_add(counts.below.begun.load(Relaxed));
        self.below_now = self.below_now.wrapping_sub(counts.below.ended.load(Relaxed));
    }

    fn add_few(&mut self, few: &Few) {
        let ended = few.inline.ended.load(Relaxed);
        let begun = few.inline.begun.load(Relaxed);
        let nested = few.nested.load(Relaxed);
        self.inline_begun += begun + nested;
        self.inline_ended += ended + nested;
        self.inline_now += begun.saturating_sub(ended);
        self.below_now += u64::from(few.below.load(Relaxed));
    }
}
