//! Claim: a task that goes into the line by the intake is found by whoever comes next: the one who serves the
//! last task of the line, a joiner, a canceller, a shutdown.
//!
//! Modelled: the gate as in `gate.rs`, with a task in the line already, so that the next one finds room in the
//! intake.

use super::yard::{Out, Plan};
use crate::gate::NotQueued;
use crate::{Size, model};

/// A worker serves the only task of the line while another one is queued.
fn push_beside_last_task(plan: Plan) {
    let yard = plan.build();
    yard.push(0).unwrap();
    let worker = yard.beside(|yard| yard.run_and_give());
    yard.push(1).unwrap();
    worker.join().unwrap();
    yard.assert_as_new(2, 3);
}

/// The last task of the line leaves while another goes into the intake.
#[test]
fn intake_races_last_claim() {
    model("intake_races_last_claim", Size::Proof, 180..=431, || {
        push_beside_last_task(Plan::new(1, 1));
    });
}

/// The same with a worker that goes on under its permit (T6).
#[test]
fn intake_races_hand_on() {
    model("intake_races_hand_on", Size::Proof, 440..=1_001, || {
        push_beside_last_task(Plan { goes_on: true, ..Plan::new(1, 1) });
    });
}

/// The last task of the line is cancelled while another goes into the intake.
#[test]
fn intake_races_cancel_of_last() {
    model("intake_races_cancel_of_last", Size::Wide, 1_600..=3_701, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        let pusher = yard.beside(|yard| assert!(yard.push(1).is_ok()));
        let worker = yard.beside(|yard| yard.run_and_give());
        let cancelled = yard.cancel(ticket);
        pusher.join().unwrap();
        worker.join().unwrap();
        yard.assert_as_new(2, 3 - usize::from(cancelled));
    });
}

/// A task in the intake is joined while a worker comes for those before it.
#[test]
fn join_in_intake_races_claim() {
    model("join_in_intake_races_claim", Size::Proof, 2_000..=4_601, || {
        let yard = Plan { goes_on: true, ..Plan::new(1, 1) }.build();
        yard.push(0).unwrap();
        let ticket = yard.push(1).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        let out = yard.join(ticket, false);
        assert!(matches!(out, Out::Ran | Out::Gone), "{out:?}");
        worker.join().unwrap();
        yard.assert_as_new(2, 3);
    });
}

/// A task in the intake is cancelled while a worker comes for those before it.
#[test]
fn cancel_in_intake_races_claim() {
    model("cancel_in_intake_races_claim", Size::Proof, 48..=111, || {
        let yard = Plan { goes_on: true, ..Plan::new(1, 1) }.build();
        yard.push(0).unwrap();
        let ticket = yard.push(1).unwrap();
        let worker = yard.beside(|yard| yard.run_and_give());
        let cancelled = yard.cancel(ticket);
        worker.join().unwrap();
        yard.assert_as_new(2, 3 - usize::from(cancelled));
    });
}

/// After `close` the intake takes nothing; what it took before runs.
#[test]
fn close_races_intake() {
    model("close_races_intake", Size::Proof, 3_500..=8_201, || {
        let yard = Plan { goes_on: true, ..Plan::new(1, 1) }.build();
        yard.push(0).unwrap();
        let pusher = yard.beside(|yard| {
            let pushed = yard.push(1);
            assert!(matches!(pushed, Ok(_) | Err(NotQueued::Closed)), "{pushed:?}");
        });
        yard.carry_out(yard.gate.close());
        assert_eq!(yard.push(2).unwrap_err(), NotQueued::Closed);
        yard.run_and_give();
        pusher.join().unwrap();
        let accepted = yard.gate.stats().tally.accepted as usize;
        yard.assert_quiet(accepted, 1 + accepted);
    });
}

/// The line is emptied while a task goes into the intake: it comes out, or is refused.
#[test]
fn shutdown_races_intake() {
    model("shutdown_races_intake", Size::Proof, 3..=10, || {
        let yard = Plan::new(1, 1).build();
        yard.push(0).unwrap();
        let pusher = yard.beside(|yard| {
            let pushed = yard.push(1);
            assert!(matches!(pushed, Ok(_) | Err(NotQueued::Closed)), "{pushed:?}");
        });
        let taken = yard.gate.close_and_take();
        taken.iter().for_each(|(_, job)| yard.end(*job));
        pusher.join().unwrap();
        yard.run_and_give();
        let accepted = yard.gate.stats().tally.accepted as usize;
        assert_eq!(taken.len(), accepted, "nothing could run");
        yard.assert_quiet(accepted, 1);
    });
}

/// A caller that queued by the intake does not go ahead of his own task, uncounted.
#[test]
fn nobody_overtakes_the_intake_uncounted() {
    model("nobody_overtakes_the_intake_uncounted", Size::Proof, 32..=76, || {
        let yard = Plan { late_workers: true, ..Plan::new(1, 0) }.build();
        let first = yard.beside(|yard| assert!(yard.push(0).is_ok()));
        yard.push(1).unwrap();
        assert!(yard.gate.try_take().is_err(), "the gate is strict, and his own task waits");
        first.join().unwrap();
        yard.let_workers_come();
        yard.assert_as_new(2, 2);
    });
}
