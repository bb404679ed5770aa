//! Claim: a leased permit is used by its thread alone or collected, never both and never neither; and a
//! lease changes no answer of the gate.
//!
//! Modelled: the gate with leases whose owners come with their slots, as the executor uses it. The
//! process-wide barrier stands as a fence on both sides, which is also the other build of it. Left
//! out: patience (the model keeps a lease after one run), and how a thread comes to its slot.

use super::Floor;
use super::yard::{Books, Job};
use crate::counters::{self, Slots};
use crate::gate::{Arrival, Claim, Denied, Errand, Gate, Grant, Turn};
use crate::lease::{Leases, Mark};
use crate::permits::state::{Refusal, Take};
use crate::sync::{Barrier, Parker};
use crate::{Size, model};
use loom::thread;
use std::sync::Arc;

#[derive(Debug)]
struct Lot {
    gate: Gate<Job, Books>,
    slots: Slots,
    floor: Floor,
}

impl Lot {
    fn new(limit: usize) -> Arc<Self> {
        let slots = counters::slots();
        let leases = Leases::new(Barrier::Fences);
        let books = Books::default();
        let gate = Gate::with_leases(limit, 0, 4, books, leases, Arc::clone(&slots));
        Arc::new(Self { gate, slots, floor: Floor::new(limit) })
    }

    /// With a lease in slot 0.
    fn leased(limit: usize) -> Arc<Self> {
        let lot = Self::new(limit);
        assert_eq!(lot.run(0), Ok(()));
        assert!(lot.slots[0].lease.is_idle(), "one run is enough in a model");
        lot
    }

    fn beside(self: &Arc<Self>, f: impl FnOnce(&Lot) + 'static) -> thread::JoinHandle<()> {
        let lot = Arc::clone(self);
        thread::spawn(move || f(&lot))
    }

    fn carry_out(&self, errand: Errand) {
        if errand == Errand::SendWorker {
            if let Claim::Run(_, _, errand) = self.gate.claim() {
                self.carry_out(errand);
                self.floor.body();
                self.carry_out(self.gate.give());
            }
        }
    }

    /// An inline run of the thread with this slot.
    fn run(&self, slot: usize) -> Result<(), Refusal> {
        let slot = &self.slots[slot];
        let grant = match self.gate.enter(Some(slot)) {
            Ok(grant) => grant,
            Err(Denied::InHand) if self.gate.is_calm() => Grant::Taken(Take::Taken),
            Err(Denied::InHand) => {
                self.carry_out(self.gate.give());
                self.take()?;
                return self.run_and_give();
            }
            Err(Denied::Refused(refusal, mark)) => {
                self.recall(refusal, mark)?;
                return self.run_and_give();
            }
        };
        self.floor.body();
        self.carry_out(self.gate.exit(Some(slot), grant));
        Ok(())
    }

    /// A run of a thread without a slot.
    fn run_unslotted(&self) -> Result<(), Refusal> {
        self.take()?;
        self.run_and_give()
    }

    fn run_and_give(&self) -> Result<(), Refusal> {
        self.floor.body();
        self.carry_out(self.gate.give());
        Ok(())
    }

    fn take(&self) -> Result<(), Refusal> {
        let mark = self.gate.lease_mark();
        self.gate.try_take().map(drop).or_else(|refusal| self.recall(refusal, mark))
    }

    fn recall(&self, refusal: Refusal, mark: Mark) -> Result<(), Refusal> {
        if refusal == Refusal::Saturated && self.gate.hid_permits_since(mark) {
            self.carry_out(self.gate.recall());
            return self.gate.try_take().map(drop);
        }
        Err(refusal)
    }

    fn push(&self) {
        let (_, errand) = self.gate.push(0, 0).unwrap();
        self.carry_out(errand);
    }

    /// Stands in the line and runs when it is its turn.
    fn stand(&self) {
        let parker = Parker::new();
        match self.gate.arrive(&parker.unparker(), 0) {
            Arrival::Closed => panic!("nobody closes"),
            Arrival::Taken(_) => self.run_and_give().unwrap(),
            Arrival::Standing(ticket) => loop {
                match self.gate.turn(ticket, false) {
                    Turn::Granted { errand, .. } => {
                        self.carry_out(errand);
                        break self.run_and_give().unwrap();
                    }
                    Turn::Wait => parker.park_until(None),
                    Turn::Left(_) | Turn::Gone | Turn::Sent(_) => panic!("nobody asked for that"),
                }
            },
        }
    }

    /// Every permit is free for whoever asks, and really comes.
    fn assert_quiet(&self, ran: usize) {
        let stats = self.gate.stats();
        assert_eq!((stats.free, stats.taken), (stats.limit, 0), "G6: {stats:?}");
        assert_eq!((stats.tasks, stats.waiters), (0, 0), "G3: {stats:?}");
        assert_eq!(self.floor.ran(), ran);
        assert_eq!(self.gate.recall(), Errand::Nothing);
        for _ in 0..stats.limit {
            self.gate.try_take().unwrap();
        }
        assert_eq!(self.gate.try_take(), Err(Refusal::Saturated), "G1");
    }
}

/// A stranger asks while the owner uses or does not use the only permit: one at a time, and each
/// sees what was done before.
#[test]
fn lease_races_recall() {
    model("lease_races_recall", Size::Wide, 10_000..=23_000, || {
        let lot = Lot::leased(1);
        let owner = lot.beside(|lot| {
            let _either = lot.run(0);
        });
        let stranger = usize::from(lot.run_unslotted().is_ok());
        owner.join().unwrap();
        let ran = lot.floor.ran();
        assert!(ran >= 2 && ran <= 2 + stranger);
        lot.assert_quiet(ran);
    });
}

/// A task arrives while a permit is being kept: it starts, by itself.
#[test]
fn keep_races_push() {
    model("keep_races_push", Size::Wide, 1_300..=3_000, || {
        let lot = Lot::new(1);
        let owner = lot.beside(|lot| {
            let _busy = lot.run(0);
        });
        lot.push();
        owner.join().unwrap();
        lot.assert_quiet(lot.floor.ran());
    });
}

/// A task arrives while the owner runs under his lease: it starts, by itself.
#[test]
fn lease_races_push() {
    model("lease_races_push", Size::Wide, 9_700..=22_000, || {
        let lot = Lot::leased(1);
        let owner = lot.beside(|lot| {
            let _waits_behind_it = lot.run(0);
        });
        lot.push();
        owner.join().unwrap();
        lot.assert_quiet(lot.floor.ran());
    });
}

/// A thread stands in the line while the owner runs under his lease: its turn comes.
#[test]
fn lease_races_waiter() {
    model("lease_races_waiter", Size::Wide, 10_000..=23_000, || {
        let lot = Lot::leased(1);
        let waiter = lot.beside(Lot::stand);
        let _maybe_refused = lot.run(0);
        waiter.join().unwrap();
        lot.assert_quiet(lot.floor.ran());
    });
}

/// The limit is lowered to 0: when that call has returned nothing starts, lease or not.
#[test]
fn lease_races_lower() {
    model("lease_races_lower", Size::Wide, 6_800..=16_000, || {
        let lot = Lot::leased(1);
        let owner = lot.beside(|lot| {
            let _either = lot.run(0);
        });
        let errand = lot.gate.set_limit(0);
        lot.carry_out(errand);
        let before = lot.gate.stats();
        if before.taken == 0 {
            let ran = lot.floor.ran();
            owner.join().unwrap();
            assert_eq!(lot.floor.ran(), ran, "started at limit 0");
        } else {
            owner.join().unwrap();
        }
        assert_eq!(lot.run(0), Err(Refusal::Saturated));
        let errand = lot.gate.set_limit(1);
        lot.carry_out(errand);
        lot.assert_quiet(lot.floor.ran());
    });
}

/// After a close nothing starts under a lease, and the gate becomes quiet.
#[test]
fn lease_races_close() {
    model("lease_races_close", Size::Wide, 4_800..=11_000, || {
        let lot = Lot::leased(1);
        let owner = lot.beside(|lot| {
            let _either = lot.run(0);
        });
        let errand = lot.gate.close();
        lot.carry_out(errand);
        lot.gate.wait_quiet(None).unwrap();
        let ran = lot.floor.ran();
        owner.join().unwrap();
        assert_eq!(lot.floor.ran(), ran, "started after it was quiet");
        assert_eq!(lot.run(0), Err(Refusal::Closed));
    });
}

/// Two owners with two permits, and a stranger: never three at a time.
#[test]
fn two_leases_race_recall() {
    model("two_leases_race_recall", Size::Wide, 25_000..=59_000, || {
        let lot = Lot::leased(2);
        lot.run(1).unwrap();
        let owner = lot.beside(|lot| {
            let _either = lot.run(0);
        });
        let _either = lot.run(1);
        let _either = lot.run_unslotted();
        owner.join().unwrap();
        lot.assert_quiet(lot.floor.ran());
    });
}

/// Two collectors and the owner: the permit is collected once.
#[test]
fn recall_races_recall() {
    model("recall_races_recall", Size::Huge, 26_000..=61_000, || {
        let lot = Lot::leased(1);
        let owner = lot.beside(|lot| {
            let _either = lot.run(0);
        });
        let other = lot.beside(|lot| {
            let _either = lot.run_unslotted();
        });
        let _either = lot.run_unslotted();
        owner.join().unwrap();
        other.join().unwrap();
        lot.assert_quiet(lot.floor.ran());
    });
}

/// Owner and keeper at once: a lease that comes back and is kept again is not collected twice.
#[test]
fn keep_again_races_recall() {
    model("keep_again_races_recall", Size::Wide, 26_000..=61_000, || {
        let lot = Lot::leased(1);
        let owner = lot.beside(|lot| {
            let _either = lot.run(0);
            let _either = lot.run(0);
        });
        let _either = lot.run_unslotted();
        owner.join().unwrap();
        lot.assert_quiet(lot.floor.ran());
    });
}

/// Two callers and two permits, one of them with a thread that is gone: nobody is refused (G4).
#[test]
fn enough_permits_refuse_nobody() {
    model("enough_permits_refuse_nobody", Size::Wide, 21_000..=50_000, || {
        let lot = Lot::leased(2);
        lot.run(1).unwrap();
        // Slot 0 stays with its lease; its thread asks for nothing any more.
        let other = lot.beside(|lot| lot.run(1).unwrap());
        lot.run_unslotted().unwrap();
        other.join().unwrap();
        lot.assert_quiet(4);
    });
}

/// Two strangers and two leased permits that nobody uses: nobody is refused (G4).
#[test]
fn permits_on_their_way_back_refuse_nobody() {
    model("permits_on_their_way_back_refuse_nobody", Size::Wide, 5_100..=12_000, || {
        let lot = Lot::leased(2);
        lot.run(1).unwrap();
        let other = lot.beside(|lot| lot.run_unslotted().unwrap());
        lot.run_unslotted().unwrap();
        other.join().unwrap();
        lot.assert_quiet(4);
    });
}
