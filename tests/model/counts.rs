//! Gauges and counters as lists of names and numbers, of the reference and of an executor.
#![forbid(unsafe_code)]

use crate::jobs::Kind;
use crate::reference::Model;
use work_permit::{Reason, Stats};

/// Why a task is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    NoPermit,
    TooDeep,
    Asked,
    WouldBlock,
}

/// The counters of one executor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) accepted_inline: u64,
    accepted_queued: u64,
    ran_inline: u64,
    ran_queued: u64,
    pub(crate) overtakes: u64,
    /// Attempts that were done.
    pub(crate) speculated: u64,
    panicked: u64,
    pub(crate) cancelled: u64,
    pub(crate) unrun: u64,
    refused: [u64; 5],
    why: [u64; 4],
}

impl Counts {
    pub(crate) fn refuse(&mut self, reason: Reason) {
        let place = match reason {
            Reason::Saturated => 0,
            Reason::QueueFull => 1,
            Reason::Closed => 2,
            Reason::TimedOut => 3,
            Reason::Deadlock => 4,
            other => unreachable!("{other:?}"),
        };
        self.refused[place] += 1;
    }

    pub(crate) fn queued(&mut self, why: Why) {
        self.accepted_queued += 1;
        self.why[why as usize] += 1;
    }

    /// A run is over.
    pub(crate) fn end(&mut self, kind: Kind, was_queued: bool) {
        match was_queued {
            true => self.ran_queued += 1,
            false => self.ran_inline += 1,
        }
        self.panicked += u64::from(kind.panics());
        if kind == Kind::CallsAgain {
            self.calls_again();
        }
    }

    /// A job of that kind called its executor twice.
    pub(crate) fn calls_again(&mut self) {
        self.accepted_inline += 2;
        self.ran_inline += 2;
    }
}

/// What is compared, in the order of both lists below.
pub(crate) const NAMES: [&str; 29] = [
    "limit",
    "active",
    "inline",
    "on_workers",
    "guards",
    "free",
    "queued",
    "waiting",
    "attempts",
    "accepted",
    "completed",
    "ran_inline",
    "ran_queued",
    "overtakes",
    "panicked",
    "cancelled",
    "expired",
    "unrun",
    "saturated",
    "queue_full",
    "closed",
    "timed_out",
    "deadlock",
    "other refusals",
    "no_permit",
    "too_deep",
    "asked",
    "would_block",
    "speculated",
];

pub(crate) type Numbers = [u64; NAMES.len()];

pub(crate) fn expected(model: &Model, exec: usize) -> Numbers {
    let e = &model.execs[exec];
    let c = &e.counts;
    let taken = model.taken(exec);
    let [inline, guards, on_workers] = model.places(exec);
    let free = e.limit.saturating_sub(taken);
    let attempts = model.attempts(exec);
    let gauges =
        [e.limit, taken, inline, on_workers, guards, free, e.tasks(), e.waiting(), attempts];
    let [saturated, queue_full, closed, timed_out, deadlock] = c.refused;
    let counters = [
        c.accepted_inline + c.accepted_queued,
        c.ran_inline + c.ran_queued,
        c.ran_inline,
        c.ran_queued,
        c.overtakes,
        c.panicked,
        c.cancelled,
        0,
        c.unrun,
        saturated,
        queue_full,
        closed,
        timed_out,
        deadlock,
        0,
        c.why[0],
        c.why[1],
        c.why[2],
        c.why[3],
        c.speculated,
    ];
    join(gauges, counters)
}

pub(crate) fn actual(stats: &Stats) -> Numbers {
    let s = stats;
    let r = &s.refused;
    let gauges = [
        s.limit,
        s.active,
        s.inline,
        s.on_workers,
        s.guards,
        s.free,
        s.queued,
        s.waiting,
        s.attempts,
    ];
    let counters = [
        s.accepted,
        s.completed,
        s.ran_inline,
        s.ran_queued,
        s.overtakes,
        s.panicked,
        s.cancelled,
        s.expired,
        s.unrun,
        r.saturated,
        r.queue_full,
        r.closed,
        r.timed_out,
        r.deadlock,
        r.not_fit + r.no_thread + r.too_many,
        s.no_permit,
        s.too_deep,
        s.asked,
        s.would_block,
        s.speculated,
    ];
    join(gauges, counters)
}

fn join(gauges: [usize; 9], counters: [u64; 20]) -> Numbers {
    let mut numbers = [0; NAMES.len()];
    for (place, number) in numbers.iter_mut().zip(gauges.map(|n| n as u64).iter().chain(&counters))
    {
        *place = *number;
    }
    numbers
}

/// Where the two differ: name, expected, actual.
pub(crate) fn differences(expected: &Numbers, actual: &Numbers) -> Vec<(&'static str, u64, u64)> {
    let pairs = expected.iter().zip(actual).zip(NAMES);
    pairs.filter(|((e, a), _)| e != a).map(|((e, a), name)| (name, *e, *a)).collect()
}
