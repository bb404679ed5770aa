//! Leases under real threads, with either barrier: the limit holds, and every permit is there at the end.
#![forbid(unsafe_code)]

use super::{Claim, Denied, Errand, Gate, Grant, Kin, Ledger, Level, Work};
use crate::counters::{self, Counters, Slots};
use crate::lease::Leases;
use crate::permits::state::{Refusal, Take};
use crate::sync::{Arc, Barrier, Ordering::Relaxed, plain};
use std::thread;

struct NoLedger;

impl Ledger for NoLedger {
    fn owe(&self) -> bool {
        true
    }

    fn settle(&self) {}
}

/// There are no children here.
#[derive(Clone)]
pub(crate) enum NoKin {}

impl Kin for NoKin {
    fn level(&self) -> &Level {
        match *self {}
    }

    fn counters(&self) -> &Counters {
        match *self {}
    }

    fn parent(&self) -> Option<&Self> {
        match *self {}
    }
}

impl Work for () {
    type Kin = NoKin;
}

struct Lot {
    gate: Gate<(), NoLedger>,
    slots: Slots,
    limit: u64,
    inside: plain::AtomicU64,
    ran: plain::AtomicU64,
}

impl Lot {
    fn new(limit: usize, barrier: Barrier) -> Self {
        let slots = counters::slots();
        let leases = Leases::new(barrier);
        let gate = Gate::with_leases(limit, 2, 1 << 20, NoLedger, leases, Arc::clone(&slots));
        let zero = || plain::AtomicU64::new(0);
        Self { gate, slots, limit: limit as u64, inside: zero(), ran: zero() }
    }

    fn body(&self) {
        let inside = 1 + self.inside.fetch_add(1, Relaxed);
        assert!(inside <= self.limit, "G1: {inside} of {}", self.limit);
        self.ran.fetch_add(1, Relaxed);
        (0..20).for_each(|_| std::hint::spin_loop());
        self.inside.fetch_sub(1, Relaxed);
    }

    fn carry_out(&self, errand: Errand) {
        if errand == Errand::SendWorker {
            if let Claim::Run((), _, errand) = self.gate.claim() {
                self.carry_out(errand);
                self.body();
                self.carry_out(self.gate.give());
            }
        }
    }

    fn run(&self, slot: usize) -> bool {
        let slot = self.slots.get(slot).map(|slot| &**slot);
        let grant = match self.gate.enter(slot) {
            Ok(grant) => grant,
            Err(Denied::InHand) if self.gate.is_calm() => Grant::Taken(Take::Taken),
            Err(Denied::InHand) => {
                self.carry_out(self.gate.give());
                return self.run(usize::MAX);
            }
            Err(Denied::Refused(Refusal::Saturated, mark)) if self.gate.hid_permits_since(mark) => {
                self.carry_out(self.gate.recall());
                match self.gate.try_take() {
                    Ok(how) => Grant::Taken(how),
                    Err(_) => return false,
                }
            }
            Err(Denied::Refused(..)) => return false,
        };
        self.body();
        self.carry_out(self.gate.exit(slot, grant));
        true
    }

    fn assert_whole(&self) {
        let stats = self.gate.stats();
        assert_eq!((stats.taken, stats.tasks), (0, 0), "{stats:?}");
        self.carry_out(self.gate.recall());
        for _ in 0..self.limit {
            self.gate.try_take().expect("a permit was lost");
        }
        assert!(self.gate.try_take().is_err(), "a permit too many");
    }
}

fn storm(barrier: Barrier, limit: usize, owners: usize) {
    const RUNS: u64 = 100_000;
    let lot = Lot::new(limit, barrier);
    let at_work = plain::AtomicU64::new(owners as u64);
    thread::scope(|scope| {
        for slot in 0..owners {
            let (lot, at_work) = (&lot, &at_work);
            scope.spawn(move || {
                let mut ran = 0;
                while ran < RUNS {
                    ran += u64::from(lot.run(slot));
                }
                at_work.fetch_sub(1, Relaxed);
            });
        }
        // A thread beyond the slots, then a task, then a lower limit and a raise, all the time.
        scope.spawn(|| {
            for n in 0_u64.. {
                lot.run(usize::MAX);
                if n % 16 == 0 {
                    let (_, errand) = lot.gate.push((), 0).expect("the line is long enough");
                    lot.carry_out(errand);
                }
                if n % 64 == 0 {
                    lot.carry_out(lot.gate.set_limit(0));
                    lot.carry_out(lot.gate.set_limit(limit));
                }
                // Long enough apart for leases to be kept again.
                (0..n % 1_000).for_each(|_| std::hint::spin_loop());
                if at_work.load(Relaxed) == 0 {
                    break;
                }
            }
        });
    });
    assert!(lot.ran.load(Relaxed) >= owners as u64 * RUNS);
    lot.assert_whole();
}

#[test]
fn leases_hold_with_the_process_wide_barrier() {
    if Barrier::detect() == Barrier::ProcessWide {
        storm(Barrier::ProcessWide, 1, 4);
        storm(Barrier::ProcessWide, 2, 4);
    }
}

#[test]
fn leases_hold_with_fences() {
    storm(Barrier::Fences, 1, 4);
    storm(Barrier::Fences, 2, 4);
}

#[test]
fn an_idle_lease_is_a_free_permit() {
    let lot = Lot::new(1, Barrier::detect());
    for _ in 0..100 {
        assert!(lot.run(0));
    }
    assert!(lot.slots[0].lease.is_idle(), "it is kept after some runs");
    assert_eq!(lot.gate.stats().free, 1);
    assert!(lot.run(1), "G4: it refuses nobody");
    lot.assert_whole();
}

#[test]
fn a_steady_shortage_ends_leasing() {
    let lot = Lot::new(1, Barrier::detect());
    let mut kept = 0;
    for _ in 0..10_000 {
        assert!(lot.run(0) && lot.run(1));
        kept += u32::from(lot.slots[0].lease.is_idle() || lot.slots[1].lease.is_idle());
    }
    assert!(kept < 5_000, "leases were kept {kept} times though each was called back at once");
    lot.assert_whole();
}
