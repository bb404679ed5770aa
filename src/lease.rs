//! Leases: while nothing waits, a permit may stay with its thread between two inline runs.
//!
//! The permit word counts a leased permit as taken; the lease, on a cache line of the thread, says whether it is
//! in use. An inline run under a lease touches that line alone, with plain loads and stores. Whoever finds the
//! word without a free permit, makes work wait, changes the limit or closes, calls the idle leases back.
//!
//! | state | meaning | who moves on |
//! |---|---|---|
//! | `NONE` | no permit here | the owner: [`Lease::keep`] |
//! | `LEASED` | a permit stays here; the owner may run under it | a collector: `RECALLED`; the owner that changed his mind: `NONE` |
//! | `RECALLED` | the permit must go back to the word | whoever moves it to `NONE` owns it: one compare-exchange decides |
//!
//! `busy` is written by the owner alone: he runs under the lease, or is finding out whether he may.
//! Collectors take turns, under the line's lock.
//!
//! # Why a permit is never used twice, and never lost
//! Owner: writes `busy`, passes the light side of the barrier, reads `state`. Collector: writes `RECALLED`,
//! passes the heavy side, reads `busy`. One of the two barriers is first, so at least one sees the other's write.
//! - *The owner begins.* Case 1, his barrier is first: the collector reads `busy` (or a later value of it, when
//!   the run is over) and keeps its hands off. Case 2, the collector's is first: the owner reads `RECALLED` and
//!   does not run under the lease. Without either barrier both go on, and two run under one permit:
//!   model `lease_races_recall` fails.
//! - *The owner ends.* He clears `busy` before he passes the barrier. Case 1, his barrier is first: the collector
//!   reads `busy` cleared and takes the permit. Case 2, the collector's is first: the owner reads `RECALLED` and
//!   takes the permit back. If each sees the other, the compare-exchange decides, once. Without either barrier
//!   each leaves it to the other: model `lease_races_recall` fails.
//! - *The owner keeps.* He writes `LEASED` and counts it in `out`, passes a fence, and looks at the word again.
//!   Whoever changes the word (work waits, closed, another limit) passes a fence and looks at `out`. Case 1, the
//!   owner's fence is first: the other sees the lease and collects it. Case 2, the other's is first: the owner
//!   sees the change and gives the permit back. Without either fence work waits beside an idle lease:
//!   model `keep_races_push` fails.
//!
//! A thread that ends leaves its idle leases where they are: they can be collected like any other, and the next
//! thread with its number goes on with them.
//!
//! # When to keep
//! A lease that is called back at once costs more than it saves. So a thread must have made `patience` inline
//! runs in a row from the word before it keeps one; a recall of leases that served few runs doubles the
//! executor's patience, one of leases that served many resets it. No clock.
#![forbid(unsafe_code)]

use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::plain;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Barrier};

const NONE: u32 = 0;
const LEASED: u32 = 1;
const RECALLED: u32 = 2;

const OUT_MASK: u64 = u32::MAX as u64;
const ONE_RETURN: u64 = 1 << 32;

/// Runs from the word before the first lease is kept.
#[cfg(not(work_permit_loom))]
const PATIENCE_FLOOR: u64 = 4;
#[cfg(work_permit_loom)]
const PATIENCE_FLOOR: u64 = 1;
/// Largest patience.
const PATIENCE_CEILING: u64 = 1 << 14;
/// A lease paid for itself when it served this many runs.
const WORTH_IT: u64 = 64;

/// What the owner finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The lease is his to run under.
    Leased,
    /// It was being called back, and the permit is in his hand: as if he had taken it from the word.
    InHand,
    /// There is no lease.
    Nothing,
}

/// What the owner does with his permit after a run.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It stays, or somebody else has taken it back.
    Done,
    /// It must go back to the word.
    GiveBack,
}

/// One thread's lease of one executor.
#[derive(Debug)]
pub(crate) struct Lease {
    state: AtomicU32,
    busy: AtomicBool,
    /// Runs that ended under the lease, in all; written by the owner.
    served: plain::AtomicU64,
    /// `served` when the lease was kept.
    served_before: plain::AtomicU64,
    /// Runs from the word in a row; written by the owner.
    streak: plain::AtomicU64,
}

impl Lease {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(NONE),
            busy: AtomicBool::new(false),
            served: plain::AtomicU64::new(0),
            served_before: plain::AtomicU64::new(0),
            streak: plain::AtomicU64::new(0),
        }
    }

    /// The owner wants to run.
    #[inline]
    pub(crate) fn begin(&self, leases: &Leases) -> Begin {
        if self.state.load(Relaxed) != LEASED {
            return Begin::Nothing;
        }
        self.busy.store(true, Relaxed);
        leases.barrier.light(); // See "The owner begins".
        if self.state.load(Relaxed) == LEASED {
            return Begin::Leased;
        }
        self.begin_recalled(leases)
    }

    #[cold]
    fn begin_recalled(&self, leases: &Leases) -> Begin {
        self.busy.store(false, Relaxed);
        if self.take_back(RECALLED, leases) { Begin::InHand } else { Begin::Nothing }
    }

    /// The owner's run under the lease is over.
    #[inline]
    pub(crate) fn end(&self, leases: &Leases) -> End {
        add_one(&self.served);
        // Release: pairs with the collector's read of `busy`, for what was done under the permit.
        self.busy.store(false, Release);
        leases.barrier.light(); // See "The owner ends".
        if self.state.load(Relaxed) == LEASED {
            return End::Done;
        }
        self.end_recalled(leases)
    }

    #[cold]
    fn end_recalled(&self, leases: &Leases) -> End {
        if self.take_back(RECALLED, leases) { End::GiveBack } else { End::Done }
    }

    /// As `take_back`, for a collector.
    fn collect(&self) -> bool {
        self.state.compare_exchange(RECALLED, NONE, Relaxed, Relaxed).is_ok()
    }

    /// Whoever succeeds owns the permit. The permit itself is passed on through the word, so this is Relaxed.
    fn take_back(&self, from: u32, leases: &Leases) -> bool {
        let done = self.state.compare_exchange(from, NONE, Relaxed, Relaxed).is_ok();
        if done {
            leases.out.fetch_add(ONE_RETURN - 1, Relaxed);
        }
        done
    }

    /// The owner's run under a permit of the word is over: whether he keeps the permit as a lease. `is_calm`
    /// says whether the word lets him: nothing waits, it is open, and not over its limit.
    #[inline]
    pub(crate) fn keep(&self, leases: &Leases, is_calm: impl Fn() -> bool) -> End {
        add_one(&self.streak);
        if self.streak.load(Relaxed) < leases.patience.load(Relaxed) || !is_calm() {
            return End::GiveBack;
        }
        self.keep_slow(leases, is_calm)
    }

    #[cold]
    fn keep_slow(&self, leases: &Leases, is_calm: impl Fn() -> bool) -> End {
        if self.state.load(Relaxed) != NONE {
            return End::GiveBack; // A run inside of a run: the lease is the outer one's.
        }
        self.streak.store(0, Relaxed);
        self.served_before.store(self.served(), Relaxed);
        leases.out.fetch_add(1, Relaxed);
        // Release: pairs with the collector's read of LEASED, for what was done under the permit before it was
        // kept. The fence below comes too late for that; loom lets two such fences order all before them.
        self.state.store(LEASED, Release); // mutant: loom's fences hide it, see above
        Barrier::Fences.heavy();
        if is_calm() {
            return End::Done;
        }
        // A collector may be at it: then one of the two owns the permit.
        if self.take_back(LEASED, leases) || self.take_back(RECALLED, leases) {
            End::GiveBack
        } else {
            End::Done
        }
    }

    /// Runs that ended under the lease so far.
    pub(crate) fn served(&self) -> u64 {
        self.served.load(Relaxed)
    }

    /// The owner runs under it, or is finding out whether he may.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Relaxed)
    }

    /// A permit stays here and nobody uses it.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.load(Relaxed) != NONE && !self.busy.load(Relaxed)
    }
}

/// For a count that only this thread writes.
#[inline]
fn add_one(count: &plain::AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

/// A moment in the life of an executor's leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

/// What the leases of one executor share.
#[derive(Debug)]
pub(crate) struct Leases {
    allowed: bool,
    barrier: Barrier,
    /// Low half: leases that are kept. High half: how many times some came back, so that a caller sees whether
    /// any did while he looked at the word.
    out: AtomicU64,
    patience: plain::AtomicU64,
}

impl Leases {
    pub(crate) fn new(barrier: Barrier) -> Self {
        Self {
            allowed: true,
            barrier,
            out: AtomicU64::new(0),
            patience: plain::AtomicU64::new(PATIENCE_FLOOR),
        }
    }

    /// No lease is ever kept.
    pub(crate) fn off() -> Self {
        let patience = plain::AtomicU64::new(u64::MAX);
        Self { allowed: false, patience, ..Self::new(Barrier::Fences) }
    }

    /// What [`hid_permits_since`](Self::hid_permits_since) compares with: to be taken before the word is asked.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        // Acquire: pairs with `collected`. Who sees that leases came back sees their permits in the word.
        Mark(self.out.load(Acquire))
    }

    /// Whether the word may have had no permit only because leases were out: they are, or came back since. That a
    /// lease is not seen here means that its owner was still running under the permit when the word was asked.
    pub(crate) fn hid_permits_since(&self, mark: Mark) -> bool {
        let now = self.out.load(Relaxed);
        self.allowed && (now != mark.0 || now & OUT_MASK != 0)
    }

    /// Leases that are kept, in use or not, as of some moment.
    pub(crate) fn kept(&self) -> u64 {
        self.out.load(Relaxed) & OUT_MASK
    }

    /// After a change of the word that leases must heed: whether any is out. See "The owner keeps".
    pub(crate) fn any_out_after_change(&self) -> bool {
        if !self.allowed {
            return false;
        }
        Barrier::Fences.heavy();
        self.out.load(Relaxed) & OUT_MASK != 0
    }

    /// Calls every lease back, under the line's lock: how many permits the caller must give to the word now,
    /// and then report with [`collected`](Self::collected). Those in use follow when their owners' runs end.
    pub(crate) fn recall<'a>(&self, all: impl Iterator<Item = &'a Lease> + Clone) -> usize {
        let (mut marked, mut served) = (0, 0);
        for lease in all.clone() {
            // Acquire: pairs with `keep_slow`, for what was done under the permit before it was kept.
            let recalled = lease.state.compare_exchange(LEASED, RECALLED, Acquire, Relaxed); // mutant: see `keep_slow`
            if recalled.is_ok() {
                marked += 1;
                served += lease.served().saturating_sub(lease.served_before.load(Relaxed));
            }
        }
        if marked == 0 {
            return 0;
        }
        self.learn(served / marked);
        self.barrier.heavy();
        // Acquire: pairs with `end`, for what was done under the permit.
        all.filter(|lease| lease.state.load(Relaxed) == RECALLED && !lease.busy.load(Acquire))
            .filter(|lease| lease.collect())
            .count()
    }

    /// The permits of this many leases are back in the word. Counted only now: a caller who finds neither a
    /// permit nor a lease would be refused while they are on their way.
    pub(crate) fn collected(&self, leases: usize) {
        // Release: pairs with `mark`.
        self.out.fetch_add(ONE_RETURN - leases as u64, Release);
    }

    fn learn(&self, served: u64) {
        let patience = self.patience.load(Relaxed);
        let next =
            if served >= WORTH_IT { PATIENCE_FLOOR } else { (patience * 2).min(PATIENCE_CEILING) };
        self.patience.store(next, Relaxed);
    }
}
