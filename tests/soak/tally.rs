//! What the soak itself knows about an executor, from outside. Relaxed throughout: a counter must not order what
//! only the executor is to order.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use work_permit::{Reason, Stats};

/// Counted by those who call and by those who run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) accepted: AtomicU64,
    /// Runs under a permit.
    pub(crate) ran: AtomicU64,
    pub(crate) panicked: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) unrun: AtomicU64,
    pub(crate) unrun_ran: AtomicU64,
    refused: [AtomicU64; 8],
    pub(crate) closures_made: AtomicU64,
    pub(crate) closures_dropped: AtomicU64,
    /// Results and payloads.
    pub(crate) outcomes_made: AtomicU64,
    pub(crate) outcomes_dropped: AtomicU64,
}

/// All rounds together.
pub(crate) static TOTALS: Totals = Totals {
    accepted: AtomicU64::new(0),
    panicked: AtomicU64::new(0),
    cancelled: AtomicU64::new(0),
    unrun: AtomicU64::new(0),
    refused: AtomicU64::new(0),
    dropped: AtomicU64::new(0),
};

pub(crate) struct Totals {
    accepted: AtomicU64,
    panicked: AtomicU64,
    cancelled: AtomicU64,
    unrun: AtomicU64,
    refused: AtomicU64,
    /// Executors whose last handle was dropped under load.
    pub(crate) dropped: AtomicU64,
}

impl Totals {
    pub(crate) fn add(&self, tally: &Tally) {
        self.accepted.fetch_add(get(&tally.accepted), Relaxed);
        self.panicked.fetch_add(get(&tally.panicked), Relaxed);
        self.cancelled.fetch_add(get(&tally.cancelled), Relaxed);
        self.unrun.fetch_add(get(&tally.unrun), Relaxed);
        self.refused.fetch_add(tally.refused.iter().map(get).sum(), Relaxed);
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "accepted {}, panicked {}, cancelled {}, unrun {}, refused {}, executors dropped {}",
            get(&self.accepted),
            get(&self.panicked),
            get(&self.cancelled),
            get(&self.unrun),
            get(&self.refused),
            get(&self.dropped)
        )
    }
}

pub(crate) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Tally {
    pub(crate) fn refused(&self, reason: Reason) {
        add(&self.refused[place(reason)]);
    }

    /// Every closure and every outcome was dropped once.
    pub(crate) fn is_all_dropped(&self) -> bool {
        get(&self.closures_made) == get(&self.closures_dropped)
            && get(&self.outcomes_made) == get(&self.outcomes_dropped)
    }

    /// Where what the executor says differs from what was seen from outside.
    pub(crate) fn differences(&self, stats: &Stats) -> Vec<(&'static str, u64, u64)> {
        let r = &stats.refused;
        let told = [
            r.saturated,
            r.queue_full,
            r.closed,
            r.timed_out,
            r.not_fit,
            r.deadlock,
            r.no_thread,
            r.too_many,
        ];
        let mut pairs = vec![
            ("accepted", get(&self.accepted), stats.accepted),
            ("completed", get(&self.ran), stats.completed),
            ("panicked", get(&self.panicked), stats.panicked),
            ("cancelled", get(&self.cancelled), stats.cancelled),
            ("unrun", get(&self.unrun), stats.unrun),
            ("free", stats.limit as u64, stats.free as u64),
            ("active", 0, stats.active as u64),
            ("queued", 0, (stats.queued + stats.waiting) as u64),
            ("ended", stats.accepted, stats.completed + stats.cancelled + stats.unrun),
        ];
        let refusals = self.refused.iter().zip(told);
        pairs.extend(refusals.map(|(seen, told)| ("refused", get(seen), told)));
        pairs.retain(|(_, seen, told)| seen != told);
        pairs
    }

    /// For an executor that cannot be asked any more: what was accepted has run or ended.
    pub(crate) fn is_balanced(&self) -> bool {
        let ended = get(&self.ran) + get(&self.cancelled) + get(&self.unrun);
        get(&self.accepted) == ended && self.is_all_dropped()
    }
}

fn place(reason: Reason) -> usize {
    match reason {
        Reason::Saturated => 0,
        Reason::QueueFull => 1,
        Reason::Closed => 2,
        Reason::TimedOut => 3,
        Reason::NotFit => 4,
        Reason::Deadlock => 5,
        Reason::NoThread => 6,
        _ => 7,
    }
}
