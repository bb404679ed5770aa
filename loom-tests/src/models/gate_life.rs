//! Claim: as in `gate.rs`, while the limit changes or the gate is closed.

use super::yard::{Out, Plan};
use crate::gate::NotQueued;
use crate::{Size, model};

/// The limit goes from 0 to 1 while a task is queued: it runs.
#[test]
fn raise_races_push() {
    model("raise_races_push", Size::Proof, 4..=10, || {
        let yard = Plan { at_most: 1, ..Plan::new(0, 0) }.build();
        let other = yard.beside(|yard| yard.set_limit(1));
        yard.push(0).unwrap();
        other.join().unwrap();
        yard.assert_as_new(1, 1);
    });
}

/// The limit goes from 0 to 1 while a thread comes to wait: it gets the permit.
#[test]
fn raise_races_arrive() {
    model("raise_races_arrive", Size::Proof, 44..=99, || {
        let yard = Plan { at_most: 1, ..Plan::new(0, 0) }.build();
        let other = yard.beside(|yard| yard.set_limit(1));
        assert_eq!(yard.stand(false), Out::Ran);
        other.join().unwrap();
        yard.assert_as_new(0, 1);
    });
}

/// The limit goes to 0 while a worker comes for a task: it starts before, or after the next raise.
#[test]
fn lower_races_claim() {
    model("lower_races_claim", Size::Proof, 46..=110, || {
        let yard = Plan { may_pause: true, ..Plan::new(1, 1) }.build();
        yard.push(0).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        yard.set_limit(0);
        worker.join().unwrap();
        let queued = yard.gate.stats().tasks;
        assert_eq!(yard.floor.ran(), 2 - queued);
        yard.set_limit(1);
        yard.assert_as_new(1, 2);
    });
}

/// The limit goes to 0 while a worker would go on (T6): it gives its permit back instead.
#[test]
fn lower_races_hand_on() {
    model("lower_races_hand_on", Size::Proof, 71..=160, || {
        let yard = Plan { goes_on: true, may_pause: true, ..Plan::new(1, 1) }.build();
        yard.push(0).unwrap();
        yard.push(1).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        yard.set_limit(0);
        worker.join().unwrap();
        yard.set_limit(1);
        yard.assert_as_new(2, 3);
    });
}

/// The limit goes from 2 to 1 under two that run, with a task queued: only when both have given
/// back does it start.
#[test]
fn lower_races_gives() {
    model("lower_races_gives", Size::Wide, 4_800..=11_000, || {
        let yard = Plan { goes_on: true, ..Plan::new(2, 2) }.build();
        yard.push(0).unwrap();
        let first = yard.beside(|yard| yard.run_and_give());
        let second = yard.beside(|yard| yard.run_and_give());
        yard.set_limit(1);
        first.join().unwrap();
        second.join().unwrap();
        yard.assert_as_new(1, 3);
    });
}

/// After `close` a task is refused; one that came before runs.
#[test]
fn close_races_push() {
    model("close_races_push", Size::Proof, 540..=1_201, || {
        let yard = Plan::new(1, 1).build();
        let pusher = yard.beside(|yard| {
            let pushed = yard.push(0);
            assert!(matches!(pushed, Ok(_) | Err(NotQueued::Closed)), "{pushed:?}");
        });
        yard.carry_out(yard.gate.close());
        assert_eq!(yard.push(1).unwrap_err(), NotQueued::Closed);
        yard.run_and_give();
        pusher.join().unwrap();
        let accepted = yard.gate.stats().tally.accepted as usize;
        yard.assert_quiet(accepted, 1 + accepted);
    });
}

/// All that was queued is taken out while a worker comes for it and a thread waits: each task runs
/// or comes out, and the waiter runs or is told.
#[test]
fn shutdown_races_claim_and_arrive() {
    model("shutdown_races_claim_and_arrive", Size::Wide, 3_900..=8_900, || {
        let yard = Plan::new(1, 1).build();
        yard.push(0).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        let waiter = yard.beside(|yard| assert_ne!(yard.stand(false), Out::Left));
        let taken = yard.gate.close_and_take();
        taken.iter().for_each(|(_, job)| yard.end(*job));
        worker.join().unwrap();
        waiter.join().unwrap();
        assert_eq!(yard.gate.stats().tally.unrun, taken.len() as u64);
        yard.assert_quiet(1, yard.floor.ran());
    });
}

/// All that was queued is taken out while another task is queued: it comes out, runs or is refused.
#[test]
fn shutdown_races_push() {
    model("shutdown_races_push", Size::Proof, 77..=190, || {
        let yard = Plan::new(1, 0).build();
        let pusher = yard.beside(|yard| assert_ne!(yard.push(0).err(), Some(NotQueued::Full)));
        let taken = yard.gate.close_and_take();
        taken.iter().for_each(|(_, job)| yard.end(*job));
        pusher.join().unwrap();
        let tally = yard.gate.stats().tally;
        yard.assert_quiet(tally.accepted as usize, tally.ran as usize);
    });
}

/// The token is at the pool when the line is emptied: whoever waits for quiet needs no worker, and the
/// one that comes finds nothing.
#[test]
fn shutdown_races_late_worker() {
    model("shutdown_races_late_worker", Size::Proof, 6_500..=16_000, || {
        let yard = Plan { late_workers: true, ..Plan::new(1, 1) }.build();
        yard.push(0).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        yard.gate.close_and_take().iter().for_each(|(_, job)| yard.end(*job));
        yard.gate.wait_quiet(None).unwrap();
        yard.let_workers_come();
        holder.join().unwrap();
        yard.let_workers_come();
        yard.assert_quiet(1, 1);
    });
}

/// The token is at the pool when the limit goes to 0: the worker that comes finds no permit, and the
/// next raise makes a new token.
#[test]
fn lower_races_late_worker() {
    model("lower_races_late_worker", Size::Proof, 25..=57, || {
        let yard = Plan { late_workers: true, may_pause: true, ..Plan::new(1, 1) }.build();
        yard.push(0).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        yard.set_limit(0);
        yard.let_workers_come();
        holder.join().unwrap();
        yard.let_workers_come();
        assert_eq!(yard.gate.stats().tasks, 1, "G1: a start at limit 0");
        yard.set_limit(1);
        yard.let_workers_come();
        yard.assert_as_new(1, 2);
    });
}

/// The token is with a waiter when the line is emptied: it ends there.
#[test]
fn shutdown_races_turn() {
    model("shutdown_races_turn", Size::Wide, 480..=1_100, || {
        let yard = Plan::new(1, 1).build();
        let waiter = yard.beside(|yard| assert_ne!(yard.stand(false), Out::Left));
        yard.run_and_give();
        assert!(yard.gate.close_and_take().is_empty());
        waiter.join().unwrap();
        yard.assert_quiet(0, yard.floor.ran());
    });
}

/// A joined task is taken out at shutdown, or its joiner runs it: never both.
#[test]
fn shutdown_races_join() {
    model("shutdown_races_join", Size::Proof, 18_000..=44_000, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        let joiner = yard.beside(move |yard| assert_ne!(yard.join(ticket, false), Out::Left));
        yard.run_and_give();
        yard.gate.close_and_take().iter().for_each(|(_, job)| yard.end(*job));
        joiner.join().unwrap();
        yard.assert_quiet(1, yard.floor.ran());
    });
}

/// Who waits for quiet is told when the last permit is back, and sees the work under it.
#[test]
fn wait_quiet_races_give() {
    model("wait_quiet_races_give", Size::Proof, 2_300..=5_300, || {
        let yard = Plan::new(1, 1).build();
        let holder = yard.beside(|yard| yard.run_and_give());
        yard.carry_out(yard.gate.close());
        yard.gate.wait_quiet(None).unwrap();
        yard.floor.assert_all_is_seen();
        yard.assert_quiet(0, 1);
        holder.join().unwrap();
    });
}

/// Who waits for quiet waits for what is queued too.
#[test]
fn wait_quiet_races_claim() {
    model("wait_quiet_races_claim", Size::Proof, 6_500..=15_000, || {
        let yard = Plan::new(1, 1).build();
        yard.push(0).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        yard.carry_out(yard.gate.close());
        yard.gate.wait_quiet(None).unwrap();
        yard.floor.assert_all_is_seen();
        yard.assert_quiet(1, 2);
        holder.join().unwrap();
    });
}

/// Who waits for quiet is told when the last task is taken back, or the last waiter leaves.
#[test]
fn wait_quiet_races_cancel() {
    model("wait_quiet_races_cancel", Size::Proof, 12..=27, || {
        let yard = Plan::new(0, 0).build();
        let ticket = yard.push(0).unwrap();
        let other = yard.beside(move |yard| assert!(yard.cancel(ticket)));
        yard.carry_out(yard.gate.close());
        yard.gate.wait_quiet(None).unwrap();
        yard.assert_quiet(1, 0);
        other.join().unwrap();
    });
}
