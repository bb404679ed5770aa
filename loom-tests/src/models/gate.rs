//! Claim: whoever waits at the gate is served or leaves, by whichever thread the token reaches, and
//! nothing runs twice; queued tasks.
//!
//! Modelled: the gate with its line, its word and its lock, as the executor uses it; a worker is
//! the thread that was told to send one. Waiters are in `gate_waiters.rs`, limits and ends in
//! `gate_life.rs`. Left out: time (a waiter whose time has passed leaves at its first look).

use super::yard::{Out, Plan};
use crate::gate::{Errand, NotQueued};
use crate::{Size, model};

/// A task that is queued while the only permit comes back is run by one of the two threads.
#[test]
fn push_races_give() {
    model("push_races_give", Size::Proof, 85..=200, || {
        let yard = Plan::new(1, 1).build();
        let holder = yard.beside(|yard| yard.run_and_give());
        yard.push(0).unwrap();
        holder.join().unwrap();
        yard.assert_as_new(1, 2);
    });
}

/// Two tasks that are queued at once both run, under one permit one after the other.
#[test]
fn push_races_push() {
    model("push_races_push", Size::Proof, 1_200..=2_901, || {
        let yard = Plan::new(1, 0).build();
        let other = yard.beside(|yard| assert!(yard.push(0).is_ok()));
        yard.push(1).unwrap();
        other.join().unwrap();
        yard.assert_as_new(2, 2);
    });
}

/// With two permits two tasks that are queued at once both start.
#[test]
fn push_races_push_with_enough_for_both() {
    model("push_races_push_with_enough_for_both", Size::Proof, 8_700..=20_001, || {
        let yard = Plan::new(2, 0).build();
        let other = yard.beside(|yard| assert!(yard.push(0).is_ok()));
        yard.push(1).unwrap();
        other.join().unwrap();
        yard.assert_as_new(2, 2);
    });
}

/// Two permits come back while two tasks are queued: one token serves both, or each has its own.
#[test]
fn give_races_give_with_two_queued() {
    model("give_races_give_with_two_queued", Size::Proof, 36_000..=83_000, || {
        let yard = Plan::new(2, 2).build();
        yard.push(0).unwrap();
        yard.push(1).unwrap();
        let other = yard.beside(|yard| yard.run_and_give());
        yard.run_and_give();
        other.join().unwrap();
        yard.assert_as_new(2, 4);
    });
}

/// A call of a free permit and a queued task: the call runs or is refused, the task runs.
#[test]
fn push_races_try_run() {
    model("push_races_try_run", Size::Proof, 1_100..=2_700, || {
        let yard = Plan::new(1, 0).build();
        let other = yard.beside(|yard| assert!(yard.push(0).is_ok()));
        let ran = yard.try_run();
        other.join().unwrap();
        yard.assert_as_new(1, 1 + usize::from(ran));
    });
}

/// A call overtakes a queued task at most once while a worker is on its way to it.
#[test]
fn overtaking_races_claim() {
    model("overtaking_races_claim", Size::Proof, 2_200..=5_000, || {
        let yard = Plan { max_overtakes: 1, ..Plan::new(1, 1) }.build();
        yard.push(0).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        let ran = usize::from(yard.try_run()) + usize::from(yard.try_run());
        worker.join().unwrap();
        yard.assert_as_new(1, 2 + ran);
    });
}

/// A worker that would go on (T6) and a task that arrives: it goes on, or the token finds another.
#[test]
fn hand_on_races_push() {
    model("hand_on_races_push", Size::Proof, 3_300..=7_801, || {
        let yard = Plan { goes_on: true, ..Plan::new(1, 0) }.build();
        let worker = yard.beside(|yard| assert!(yard.push(0).is_ok()));
        yard.push(1).unwrap();
        worker.join().unwrap();
        yard.assert_as_new(2, 2);
    });
}

/// A worker that would go on (T6) and the token that another permit makes for the same task.
#[test]
fn hand_on_races_claim() {
    model("hand_on_races_claim", Size::Wide, 1_700..=3_900, || {
        let yard = Plan { goes_on: true, ..Plan::new(2, 2) }.build();
        yard.push(0).unwrap();
        yard.push(1).unwrap();
        let other = yard.beside(|yard| yard.run_and_give());
        yard.run_and_give();
        other.join().unwrap();
        yard.assert_as_new(2, 4);
    });
}

/// A task is joined while a worker comes for it: one of them runs it.
#[test]
fn join_races_claim() {
    model("join_races_claim", Size::Proof, 840..=2_000, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        let out = yard.join(ticket, false);
        assert!(matches!(out, Out::Ran | Out::Gone), "{out:?}");
        worker.join().unwrap();
        yard.assert_as_new(1, 2);
    });
}

/// A joiner whose time has passed leaves its task in the line, where a worker runs it.
#[test]
fn join_that_leaves_races_claim() {
    model("join_that_leaves_races_claim", Size::Proof, 720..=1_700, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        yard.join(ticket, true);
        worker.join().unwrap();
        yard.assert_as_new(1, 2);
    });
}

/// A task is cancelled while a worker comes for it: it runs, or it is taken out.
#[test]
fn cancel_races_claim() {
    model("cancel_races_claim", Size::Proof, 130..=310, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        let cancelled = yard.cancel(ticket);
        assert!(!yard.cancel(ticket), "only once");
        worker.join().unwrap();
        yard.assert_as_new(1, 2 - usize::from(cancelled));
    });
}

/// The head is cancelled while a worker comes for it: the worker serves the next one.
#[test]
fn cancel_of_head_races_claim() {
    model("cancel_of_head_races_claim", Size::Proof, 30..=71, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        yard.push(1).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        let cancelled = yard.cancel(ticket);
        worker.join().unwrap();
        yard.assert_as_new(2, 3 - usize::from(cancelled));
    });
}

/// A task is taken out to be run under a permit that is held already, or a worker gets it.
#[test]
fn nested_join_races_claim() {
    model("nested_join_races_claim", Size::Proof, 790..=1_800, || {
        let yard = Plan { goes_on: true, ..Plan::new(2, 2) }.build();
        let ticket = yard.push(0).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        let mut here = 0;
        if let Some((job, _, errand)) = yard.gate.remove_to_run(ticket) {
            yard.carry_out(errand);
            yard.floor.body();
            yard.end(job);
            here = 1;
        }
        yard.run_and_give();
        worker.join().unwrap();
        assert!(here <= 1);
        yard.assert_as_new(1, 3);
    });
}

/// Of two tasks that want the last place in the queue one gets it.
#[test]
fn push_races_push_for_the_last_place() {
    model("push_races_push_for_the_last_place", Size::Proof, 21..=50, || {
        let yard = Plan { capacity: 1, ..Plan::new(1, 1) }.build();
        let other = yard.beside(|yard| match yard.gate.push(0, 0) {
            Ok((ticket, errand)) => {
                assert_eq!(errand, Errand::Nothing, "no permit is free");
                assert!(yard.cancel(ticket));
            }
            Err((job, why)) => assert_eq!((job, why), (0, NotQueued::Full)),
        });
        // Job 0 is accepted here when the other was refused or has cancelled its own.
        let here = yard.gate.push(1, 0).is_ok();
        other.join().unwrap();
        let stats = yard.gate.stats();
        assert_eq!(stats.tasks, usize::from(here));
        assert!(stats.tally.accepted >= 1, "{stats:?}");
    });
}
