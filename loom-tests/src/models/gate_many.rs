//! Claim: as in `gate.rs`, for batches, for callers who run several things one after the other, and
//! for tasks that two may join: the holder of the handle, and the scope at its end.

use super::yard::{Out, Plan, Yard};
use crate::gate::NotQueued;
use crate::line::Ticket;
use crate::sync::Parker;
use crate::{Size, model};

/// Puts the jobs `0..jobs` into the line at once.
fn push_many(yard: &Yard, jobs: usize) -> Result<Vec<Ticket>, NotQueued> {
    let (mut tasks, mut tickets) = ((0..jobs).collect::<Vec<_>>().into_iter(), Vec::new());
    let errand = yard.gate.push_many(&mut tasks, jobs, &mut tickets, 0)?;
    assert_eq!(tasks.len(), jobs - tickets.len());
    yard.carry_out(errand);
    Ok(tickets)
}

/// Runs twice under permits that the caller takes in turn; he has the first. Says how often he ran.
fn run_twice(yard: &Yard) -> usize {
    yard.floor.body();
    let parker = Parker::new();
    match yard.gate.go_behind(&parker.unparker(), 0) {
        None => {
            yard.run_and_give();
            2
        }
        Some((ticket, errand)) => {
            yard.carry_out(errand);
            match yard.turns(&parker, ticket, false) {
                Out::Ran => 2,
                out => {
                    assert_eq!(out, Out::Gone);
                    1
                }
            }
        }
    }
}

/// Tasks that are queued at once while the only permit comes back run one after the other.
#[test]
fn push_many_races_give() {
    model("push_many_races_give", Size::Proof, 84..=190, || {
        let yard = Plan::new(1, 1).build();
        let holder = yard.beside(|yard| yard.run_and_give());
        assert_eq!(push_many(&yard, 3).unwrap().len(), 3);
        holder.join().unwrap();
        yard.assert_as_new(3, 4);
    });
}

/// Two permits come back while two tasks are queued at once: each task gets one.
#[test]
fn push_many_races_two_gives() {
    model("push_many_races_two_gives", Size::Wide, 21_000..=47_000, || {
        let yard = Plan::new(2, 2).build();
        let other = yard.beside(|yard| yard.run_and_give());
        let third = yard.beside(|yard| yard.run_and_give());
        push_many(&yard, 2).unwrap();
        other.join().unwrap();
        third.join().unwrap();
        yard.assert_as_new(2, 4);
    });
}

/// A batch is queued while the gate is closed: all of it or nothing of it runs.
#[test]
fn push_many_races_close() {
    model("push_many_races_close", Size::Proof, 2_900..=6_500, || {
        let yard = Plan::new(1, 0).build();
        let closer = yard.beside(|yard| yard.carry_out(yard.gate.close()));
        let jobs = match push_many(&yard, 2) {
            Ok(tickets) => tickets.len(),
            Err(why) => {
                assert_eq!(why, NotQueued::Closed);
                0
            }
        };
        assert!(jobs == 0 || jobs == 2);
        closer.join().unwrap();
        yard.assert_quiet(jobs, jobs);
    });
}

/// A queue with less room than a batch needs takes what it has room for.
#[test]
fn push_many_races_push_for_the_last_places() {
    model("push_many_races_push_for_the_last_places", Size::Proof, 6..=16, || {
        let yard = Plan { capacity: 2, ..Plan::new(1, 1) }.build();
        let other = yard.beside(|yard| {
            let _accepted_or_not = yard.gate.push(3, 0);
        });
        let here = push_many(&yard, 3).map_or(0, |tickets| tickets.len());
        other.join().unwrap();
        assert!((1..=2).contains(&here), "{here}");
        assert_eq!(yard.gate.stats().tasks, 2);
    });
}

/// A caller with more to do lets the thread that waits go between; both see all the work before
/// theirs.
#[test]
fn go_behind_races_arrive() {
    model("go_behind_races_arrive", Size::Proof, 11_000..=25_000, || {
        let yard = Plan::new(1, 1).build();
        let other = yard.beside(|yard| assert_eq!(yard.stand(false), Out::Ran));
        assert_eq!(run_twice(&yard), 2);
        other.join().unwrap();
        yard.assert_as_new(0, 3);
    });
}

/// A caller with more to do lets a task go between.
#[test]
fn go_behind_races_push() {
    model("go_behind_races_push", Size::Proof, 120..=280, || {
        let yard = Plan::new(1, 1).build();
        let other = yard.beside(|yard| assert!(yard.push(0).is_ok()));
        assert_eq!(run_twice(&yard), 2);
        other.join().unwrap();
        yard.assert_as_new(1, 3);
    });
}

/// Two callers with more to do, and two permits, one of which another thread has.
#[test]
fn go_behind_races_give() {
    model("go_behind_races_give", Size::Wide, 1_500..=3_300, || {
        let yard = Plan::new(2, 2).build();
        yard.push(0).unwrap();
        let other = yard.beside(|yard| yard.run_and_give());
        assert_eq!(run_twice(&yard), 2);
        other.join().unwrap();
        yard.assert_as_new(1, 4);
    });
}

/// A caller with more to do while the limit is lowered below what runs, and raised again.
#[test]
fn go_behind_races_resize() {
    model("go_behind_races_resize", Size::Proof, 200..=460, || {
        let yard = Plan::new(1, 1).build();
        let other = yard.beside(|yard| {
            yard.set_limit(0);
            yard.set_limit(1);
        });
        assert_eq!(run_twice(&yard), 2);
        other.join().unwrap();
        yard.assert_as_new(0, 2);
    });
}

/// A caller with more to do finds the limit lowered below what runs: he starts nothing before the
/// next raise.
#[test]
fn go_behind_races_lower() {
    model("go_behind_races_lower", Size::Proof, 70..=160, || {
        let yard = Plan::new(1, 1).build();
        let other = yard.beside(|yard| yard.set_limit(0));
        yard.floor.body();
        let (parker, paused) = (Parker::new(), yard.gate.limit() == 0);
        let place = yard.gate.go_behind(&parker.unparker(), 0);
        if place.is_none() {
            assert!(!paused, "G1: a start at limit 0");
            yard.run_and_give();
        }
        other.join().unwrap();
        yard.set_limit(1);
        if let Some((ticket, errand)) = place {
            yard.carry_out(errand);
            assert_eq!(yard.turns(&parker, ticket, false), Out::Ran);
        }
        yard.assert_as_new(0, 2);
    });
}

/// Who waits for a closed gate to be quiet does not miss a caller who has more to do.
#[test]
fn go_behind_races_wait_quiet() {
    model("go_behind_races_wait_quiet", Size::Proof, 120..=270, || {
        let yard = Plan::new(1, 1).build();
        yard.push(0).unwrap();
        yard.carry_out(yard.gate.close());
        let drain = yard.beside(|yard| {
            yard.gate.wait_quiet(None).unwrap();
            yard.floor.assert_all_is_seen();
            assert_eq!(yard.floor.ran(), 3, "nothing comes after the quiet");
        });
        assert_eq!(run_twice(&yard), 2);
        drain.join().unwrap();
        yard.assert_quiet(1, 3);
    });
}

/// A shutdown finds a caller with more to do in the line, or he finds it empty: he runs or is told.
#[test]
fn go_behind_races_shutdown() {
    model("go_behind_races_shutdown", Size::Proof, 3_300..=8_200, || {
        let yard = Plan::new(1, 1).build();
        yard.push(0).unwrap();
        let other = yard.beside(|yard| {
            yard.gate.close_and_take().into_iter().for_each(|(_, job)| yard.end(job));
        });
        run_twice(&yard);
        other.join().unwrap();
        let ran = yard.floor.ran();
        assert!((1..=3).contains(&ran), "{ran}");
        yard.assert_quiet(1, ran);
    });
}

/// A task that two want to join, and a worker: one of the three runs it, and both joiners are
/// through.
#[test]
fn join_races_join() {
    model("join_races_join", Size::Wide, 1_900..=4_601, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        let other = yard.beside(move |yard| assert_ne!(yard.join(ticket, false), Out::Left));
        yard.join(ticket, false);
        holder.join().unwrap();
        other.join().unwrap();
        yard.assert_as_new(1, 2);
    });
}

/// The joiner who stands for a task leaves in time, while another wants to join it.
#[test]
fn join_that_leaves_races_join() {
    model("join_that_leaves_races_join", Size::Wide, 2_000..=4_701, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        let holder = yard.beside(|yard| yard.run_and_give());
        let other = yard.beside(move |yard| {
            yard.join(ticket, true);
        });
        yard.join(ticket, false);
        holder.join().unwrap();
        other.join().unwrap();
        yard.assert_as_new(1, 2);
    });
}

/// A task is taken from the joiner who stands for it, to be run under another permit: he is told.
#[test]
fn nested_join_races_join() {
    model("nested_join_races_join", Size::Proof, 5..=10, || {
        let yard = Plan::new(1, 1).build();
        let ticket = yard.push(0).unwrap();
        let joiner = yard.beside(move |yard| {
            yard.join(ticket, false);
        });
        take_and_run(&yard, ticket);
        joiner.join().unwrap();
        yard.assert_as_new(1, 2);
    });
}

/// Runs under the permit that the caller has, and the job at `ticket` too, if it is still there.
fn take_and_run(yard: &Yard, ticket: Ticket) {
    if let Some((job, _, errand)) = yard.gate.remove_to_run(ticket) {
        yard.carry_out(errand);
        yard.floor.body();
        yard.end(job);
    }
    yard.run_and_give();
}
