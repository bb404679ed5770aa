//! Claim: as in `executor.rs`, with leases: the calls of an executor keep, use and call back permits so
//! that every answer is the one they would give without.
//!
//! Modelled: executors whose threads have numbers, so that they keep leases after one run. What the
//! gate makes of them is in `lease.rs`; here it is about what the calls make of the gate's answers.
//! Left out: how a thread comes to its number, and patience.

use super::executor::{House, drop_result, run_and_panic};
use crate::error::Reason;
use crate::thread_index::{NONE, become_number};
use crate::{Size, model};
use loom::thread;
use std::time::Duration;

impl House {
    /// Where leases are kept.
    fn with_leases(max_threads: usize, limit: usize) -> Self {
        let mut house = Self::new(max_threads, limit, limit);
        house.exec = house.pool.executor("leased").limit(limit).leases(true).build().unwrap();
        house
    }

    /// With leases of threads that are gone, as many as there are permits.
    fn leased(max_threads: usize, limit: usize) -> Self {
        let house = Self::with_leases(max_threads, limit);
        for number in 0..limit {
            house.keep_lease(number);
        }
        become_number(NONE);
        house
    }

    /// This thread, by this number, keeps a lease.
    fn keep_lease(&self, number: usize) {
        become_number(number);
        self.exec.run(self.task()).unwrap();
    }

    /// Runs `f` on another thread, which goes on with the lease of that number.
    fn owner(&self, number: usize, f: impl FnOnce() + 'static) -> thread::JoinHandle<()> {
        let house = self.exec.clone();
        thread::spawn(move || {
            become_number(number);
            f();
            drop(house);
        })
    }
}

/// A stranger and the owner of the only permit's lease: both run, whoever is first, and each sees
/// what the other did.
#[test]
fn leased_run_races_run() {
    model("leased_run_races_run", Size::Huge, 510..=1_200, || {
        let house = House::leased(1, 1);
        let (exec, task) = (house.exec.clone(), house.task());
        let owner = house.owner(0, move || assert!(exec.run(task).is_ok()));
        house.exec.run(house.task()).unwrap();
        owner.join().unwrap();
        house.floor.assert_all_is_seen();
        house.close();
    });
}

/// Two strangers, and two permits that stay with threads which are gone: nobody is refused (G4).
#[test]
fn idle_leases_refuse_nobody() {
    model("idle_leases_refuse_nobody", Size::Wide, 5_100..=12_000, || {
        let house = House::leased(1, 2);
        let (exec, task) = (house.exec.clone(), house.task());
        let other = thread::spawn(move || assert!(exec.try_run(task).is_ok()));
        assert!(house.exec.try_run(house.task()).is_ok());
        other.join().unwrap();
        house.close();
    });
}

/// The owner's lease is called back by a stranger, with permits enough for both: neither is refused.
#[test]
fn owner_races_stranger_with_enough_for_both() {
    model("owner_races_stranger_with_enough_for_both", Size::Huge, 320..=740, || {
        let house = House::leased(1, 2);
        let (exec, task) = (house.exec.clone(), house.task());
        let owner = house.owner(0, move || assert!(exec.try_run(task).is_ok()));
        assert!(house.exec.try_run(house.task()).is_ok());
        owner.join().unwrap();
        house.close();
    });
}

/// A guard is asked for while the owner uses or does not use the only permit.
#[test]
fn leased_run_races_acquire() {
    model("leased_run_races_acquire", Size::Huge, 340..=780, || {
        let house = House::leased(1, 1);
        let (exec, task) = (house.exec.clone(), house.task());
        let owner = house.owner(0, move || drop(exec.try_run(task)));
        let permit = house.exec.acquire().unwrap();
        house.floor.body();
        drop(permit);
        owner.join().unwrap();
        drop(house.exec.try_acquire().unwrap());
        house.pool.shutdown(Duration::MAX).unwrap();
        assert_eq!(house.exec.stats().free, 1);
    });
}

/// A guard is asked for while a lease is kept and used again: what the owner has in his hand when it is
/// called back is not lost.
#[test]
fn keep_and_run_race_acquire() {
    model("keep_and_run_race_acquire", Size::Wide, 34_000..=78_000, || {
        let house = House::with_leases(1, 1);
        let exec = house.exec.clone();
        let owner = house.owner(0, move || {
            let _either = exec.try_run(|| ());
            let _either = exec.try_run(|| ());
        });
        drop(house.exec.acquire().unwrap());
        owner.join().unwrap();
        assert_eq!(house.exec.stats().free, 1);
    });
}

/// A task is queued while the owner uses or does not use the only permit: it runs, by itself.
#[test]
fn leased_run_races_spawn() {
    model("leased_run_races_spawn", Size::Huge, 1_000..=2_400, || {
        let house = House::leased(1, 1);
        let (exec, task) = (house.exec.clone(), house.task());
        let owner = house.owner(0, move || drop(exec.try_run(task)));
        house.exec.execute(drop_result(house.task())).unwrap();
        house.exec.drain(Duration::MAX).unwrap();
        house.floor.assert_all_is_seen();
        owner.join().unwrap();
        house.close();
    });
}

/// All that was queued is taken out while the owner comes: afterwards he too starts nothing, and the
/// permit is free.
#[test]
fn leased_run_races_shutdown_now() {
    model("leased_run_races_shutdown_now", Size::Huge, 70..=170, || {
        let house = House::leased(1, 1);
        let (exec, task) = (house.exec.clone(), house.task());
        let owner = house.owner(0, move || {
            if let Err(refused) = exec.try_run(task) {
                assert_eq!(refused.reason(), Reason::Closed);
            }
        });
        assert!(house.exec.shutdown_now().is_empty());
        owner.join().unwrap();
        become_number(0);
        assert_eq!(house.exec.try_run(|| ()).unwrap_err().reason(), Reason::Closed);
        house.close();
    });
}

/// A run under a lease panics while somebody waits for its permit: he gets it.
#[test]
fn leased_panic_races_run() {
    model("leased_panic_races_run", Size::Huge, 510..=1_200, || {
        let house = House::leased(1, 1);
        let (exec, task) = (house.exec.clone(), house.task());
        let owner = house.owner(0, move || run_and_panic(&exec, task));
        house.exec.run(house.task()).unwrap();
        owner.join().unwrap();
        house.close();
    });
}
