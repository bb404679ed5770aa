//! Claim: as in `gate.rs`, for threads that stand in the line themselves.

use super::yard::{Out, Plan, Yard};
use crate::gate::Arrival;
use crate::line::Ticket;
use crate::sync::Parker;
use crate::{Size, model};
use std::sync::Arc;

/// A thread that waits for the only permit gets it when it comes back, and sees the work under it.
#[test]
fn arrive_races_give() {
    model("arrive_races_give", Size::Proof, 10_000..=23_000, || {
        let yard = Plan::new(1, 1).build();
        let holder = yard.beside(|yard| yard.run_and_give());
        assert_eq!(yard.stand(false), Out::Ran);
        holder.join().unwrap();
        yard.assert_as_new(0, 2);
    });
}

/// Two threads wait for one permit: one gets it, and the other gets it from him.
#[test]
fn two_waiters_race_give() {
    model("two_waiters_race_give", Size::Wide, 30_000..=68_000, || {
        let yard = Plan::new(1, 1).build();
        let holder = yard.beside(|yard| yard.run_and_give());
        let other = yard.beside(|yard| assert_eq!(yard.stand(false), Out::Ran));
        assert_eq!(yard.stand(false), Out::Ran);
        holder.join().unwrap();
        other.join().unwrap();
        yard.assert_as_new(0, 3);
    });
}

/// A thread that leaves at once, one that stays, and a permit that comes back: who stays gets it.
#[test]
fn leave_races_give() {
    model("leave_races_give", Size::Wide, 30_000..=70_000, || {
        let yard = Plan::new(1, 1).build();
        let holder = yard.beside(|yard| yard.run_and_give());
        let leaver = yard.beside(|yard| assert_ne!(yard.stand(true), Out::Gone));
        assert_eq!(yard.stand(false), Out::Ran);
        holder.join().unwrap();
        leaver.join().unwrap();
        let ran = yard.floor.ran();
        assert!((2..=3).contains(&ran));
        yard.assert_as_new(0, ran);
    });
}

/// The head leaves when the token may have been handed to it: the task behind it runs.
#[test]
fn leave_of_head_races_give() {
    model("leave_of_head_races_give", Size::Proof, 410..=930, || {
        let yard = Plan::new(1, 1).build();
        let (parker, ticket) = place(&yard);
        yard.push(0).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        let out = yard.turns(&parker, ticket, true);
        holder.join().unwrap();
        yard.assert_as_new(1, 2 + usize::from(out == Out::Ran));
    });
}

/// Somebody in the middle leaves while the head is served: those around him keep their order.
#[test]
fn leave_behind_head_races_give() {
    model("leave_behind_head_races_give", Size::Proof, 250..=580, || {
        let yard = Plan::new(1, 1).build();
        yard.push(0).unwrap();
        let (parker, ticket) = place(&yard);
        yard.push(1).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        let out = yard.turns(&parker, ticket, true);
        holder.join().unwrap();
        yard.assert_as_new(2, 3 + usize::from(out == Out::Ran));
    });
}

/// A waiter behind a task that is cancelled while a worker comes for it: the worker hands the
/// token to the waiter.
#[test]
fn cancel_in_front_of_waiter_races_claim() {
    model("cancel_in_front_of_waiter_races_claim", Size::Wide, 3_000..=6_900, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        let waiter = yard.beside(|yard| assert_eq!(yard.stand(false), Out::Ran));
        let cancelled = yard.cancel(ticket);
        worker.join().unwrap();
        waiter.join().unwrap();
        yard.assert_as_new(1, 3 - usize::from(cancelled));
    });
}

/// A worker that would go on (T6) finds a waiter at the head, who gets the permit from it.
#[test]
fn arrive_races_hand_on() {
    model("arrive_races_hand_on", Size::Proof, 15_000..=35_000, || {
        let yard = Plan { goes_on: true, ..Plan::new(1, 0) }.build();
        let worker = yard.beside(|yard| assert!(yard.push(0).is_ok()));
        assert_eq!(yard.stand(false), Out::Ran);
        worker.join().unwrap();
        yard.assert_as_new(1, 2);
    });
}

/// A joiner and a waiter want the permit that comes back: both get it, in turn.
#[test]
fn join_races_arrive() {
    model("join_races_arrive", Size::Wide, 12_000..=28_000, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        let waiter = yard.beside(|yard| assert_eq!(yard.stand(false), Out::Ran));
        yard.join(ticket, false);
        holder.join().unwrap();
        waiter.join().unwrap();
        yard.assert_as_new(1, 3);
    });
}

/// Two waiters and two permits that come back one after the other: both run, whoever is first.
#[test]
fn two_waiters_race_two_gives() {
    model("two_waiters_race_two_gives", Size::Wide, 12_000..=28_000, || {
        let yard = Plan::new(2, 2).build();
        let (first, second) = (place(&yard), place(&yard));
        let holder = yard.beside(|yard| {
            yard.run_and_give();
            yard.run_and_give();
        });
        let waiter =
            yard.beside(move |yard| assert_eq!(yard.turns(&first.0, first.1, false), Out::Ran));
        assert_eq!(yard.turns(&second.0, second.1, false), Out::Ran);
        holder.join().unwrap();
        waiter.join().unwrap();
        yard.assert_as_new(0, 4);
    });
}

/// The token is at the pool for a task that is cancelled: a thread that waits needs no worker.
#[test]
fn arrive_races_late_worker() {
    model("arrive_races_late_worker", Size::Wide, 880..=2_000, || {
        let yard = late_workers(1);
        let ticket = yard.push(0).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        assert!(yard.cancel(ticket));
        assert_eq!(yard.stand(false), Out::Ran);
        holder.join().unwrap();
        yard.let_workers_come();
        yard.assert_as_new(1, 2);
    });
}

/// As before, with a thread that waits behind that task already: it gets the token.
#[test]
fn cancel_of_head_races_late_worker() {
    model("cancel_of_head_races_late_worker", Size::Wide, 640..=1_500, || {
        let yard = late_workers(1);
        let ticket = yard.push(0).unwrap();
        let (parker, place) = place(&yard);
        let holder = yard.beside(|yard| yard.run_and_give());
        let waiter =
            yard.beside(move |yard| assert_eq!(yard.turns(&parker, place, false), Out::Ran));
        assert!(yard.cancel(ticket));
        holder.join().unwrap();
        waiter.join().unwrap();
        yard.let_workers_come();
        yard.assert_as_new(1, 2);
    });
}

/// The token is at the pool for a task that is joined: the joiner needs no worker.
#[test]
fn join_races_late_worker() {
    model("join_races_late_worker", Size::Proof, 840..=2_000, || {
        let yard = late_workers(1);
        let ticket = yard.push(0).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        assert_eq!(yard.join(ticket, false), Out::Ran);
        holder.join().unwrap();
        yard.let_workers_come();
        yard.assert_as_new(1, 2);
    });
}

/// As before, with a thread that waits behind the joiner: it needs no worker either.
#[test]
fn join_and_arrive_race_late_worker() {
    model("join_and_arrive_race_late_worker", Size::Wide, 4_200..=9_600, || {
        let yard = late_workers(1);
        let ticket = yard.push(0).unwrap();
        let (parker, place) = place(&yard);
        let holder = yard.beside(|yard| yard.run_and_give());
        let waiter =
            yard.beside(move |yard| assert_eq!(yard.turns(&parker, place, false), Out::Ran));
        assert_eq!(yard.join(ticket, false), Out::Ran);
        holder.join().unwrap();
        waiter.join().unwrap();
        yard.let_workers_come();
        yard.assert_as_new(1, 3);
    });
}

/// A joiner that leaves may have taken the token from the pool: it gives it back there.
#[test]
fn join_that_leaves_races_late_worker() {
    model("join_that_leaves_races_late_worker", Size::Proof, 720..=1_700, || {
        let yard = late_workers(1);
        let ticket = yard.push(0).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        yard.join(ticket, true);
        holder.join().unwrap();
        yard.let_workers_come();
        yard.assert_as_new(1, 2);
    });
}

/// The token is at the pool for a task that is gone, and somebody else has the permit: a thread that
/// comes to wait for it needs no worker.
#[test]
fn arrive_behind_taker_races_late_worker() {
    model("arrive_behind_taker_races_late_worker", Size::Proof, 80_000..=190_000, || {
        let (yard, ticket) = token_at_pool(0);
        assert!(yard.cancel(ticket));
        yard.gate.try_take().unwrap();
        let taker = yard.beside(|yard| yard.run_and_give());
        assert_eq!(yard.stand(false), Out::Ran);
        taker.join().unwrap();
        yard.let_workers_come();
        yard.assert_as_new(1, 3);
    });
}

/// The token is at the pool for a task that is joined, and somebody who overtook it has the permit:
/// the joiner needs no worker.
#[test]
fn join_behind_overtaker_races_late_worker() {
    model("join_behind_overtaker_races_late_worker", Size::Proof, 68..=160, || {
        let (yard, ticket) = token_at_pool(1);
        yard.gate.try_take().unwrap();
        let overtaker = yard.beside(|yard| yard.run_and_give());
        assert_eq!(yard.join(ticket, false), Out::Ran);
        overtaker.join().unwrap();
        yard.let_workers_come();
        yard.assert_as_new(1, 3);
    });
}

/// A strict gate or not, whose one permit is free: the token for its one job is at the pool.
fn token_at_pool(max_overtakes: u16) -> (Arc<Yard>, Ticket) {
    let yard = Plan { late_workers: true, max_overtakes, ..Plan::new(1, 1) }.build();
    let ticket = yard.push(0).unwrap();
    yard.run_and_give();
    (yard, ticket)
}

/// A worker that goes on (T6) takes the task that the token is at the pool for, and a thread waits
/// behind it: under the second permit it needs no other worker.
#[test]
fn hand_on_races_late_worker() {
    model("hand_on_races_late_worker", Size::Wide, 8_700..=20_000, || {
        let yard = Plan { goes_on: true, late_workers: true, ..Plan::new(2, 2) }.build();
        yard.push(0).unwrap();
        let (parker, place) = place(&yard);
        let worker = yard.beside(|yard| yard.go_on_and_give());
        let waiter =
            yard.beside(move |yard| assert_eq!(yard.turns(&parker, place, false), Out::Ran));
        yard.run_and_give();
        worker.join().unwrap();
        waiter.join().unwrap();
        yard.let_workers_come();
        yard.assert_as_new(1, 3);
    });
}

fn late_workers(limit: usize) -> Arc<Yard> {
    Plan { late_workers: true, ..Plan::new(limit, limit) }.build()
}

/// A place in the line of a gate without a free permit, and where its owner waits.
fn place(yard: &Yard) -> (Parker, Ticket) {
    let parker = Parker::new();
    match yard.gate.arrive(&parker.unparker(), 0) {
        Arrival::Standing(ticket) => (parker, ticket),
        other => unreachable!("every permit is taken: {other:?}"),
    }
}
