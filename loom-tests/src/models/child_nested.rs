//! Claim: a thread that has the permits of the levels above waits for those of the levels below alone, ahead of what is
//! queued there, and is where the end of each of these levels, and of the task that it joins, finds it.
//!
//! Modelled: the tree of `child.rs`, and threads that have the root's permit. Left out: what that leaves out.

use super::child::{Kid, Tree};
use super::yard::Out;
use crate::{Size, model};

/// A thread with the root's only permit waits for the strand, whose head needs that very permit.
#[test]
fn nested_waiter_races_push() {
    model("nested_waiter_races_push", Size::Wide, 580..=1_400, || {
        let tree = Tree::new(1, 1);
        let other = tree.beside(|tree| _ = tree.push(&tree.a, 0).unwrap());
        assert_eq!(tree.run_nested(&tree.a, None, false), Out::Ran);
        other.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// A nested waiter, the strand's permit that comes back, and the task that has stood there before.
#[test]
fn nested_waiter_races_strand_give() {
    model("nested_waiter_races_strand_give", Size::Wide, 6_600..=16_000, || {
        let tree = Tree::new(2, 1);
        assert!(tree.try_take(&tree.a));
        tree.push(&tree.a, 0).unwrap();
        let holder = tree.beside(|tree| {
            tree.body(Some(&tree.a));
            tree.give(&tree.a);
        });
        assert_eq!(tree.run_nested(&tree.a, None, false), Out::Ran);
        holder.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// A nested waiter leaves as the strand's permit comes back to him: the task behind him runs.
#[test]
fn nested_waiter_leaves_as_strand_gives() {
    model("nested_waiter_leaves_as_strand_gives", Size::Wide, 6_300..=15_000, || {
        let tree = Tree::new(2, 1);
        assert!(tree.try_take(&tree.a));
        tree.push(&tree.a, 0).unwrap();
        let holder = tree.beside(|tree| {
            tree.body(Some(&tree.a));
            tree.give(&tree.a);
        });
        tree.run_nested(&tree.a, None, true);
        holder.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// Two nested waiters of one strand: one after the other.
#[test]
fn nested_waiter_races_nested_waiter() {
    model("nested_waiter_races_nested_waiter", Size::Wide, 1_400..=3_300, || {
        let tree = Tree::new(2, 2);
        let other = tree.beside(|tree| assert_eq!(tree.run_nested(&tree.a, None, false), Out::Ran));
        assert_eq!(tree.run_nested(&tree.a, None, false), Out::Ran);
        other.join().unwrap();
        tree.assert_as_new(0);
    });
}

/// Two threads with permits of the root: one overtakes what is queued at the child, the other waits there, although the
/// child's token was in the root's line.
#[test]
fn nested_waiter_races_overtaker() {
    model("nested_waiter_races_overtaker", Size::Wide, 17_000..=42_000, || {
        let tree = Tree::with(2, 2, Kid::new(1, 1, None));
        tree.push(&tree.a, 0).unwrap();
        let other = tree.beside(|tree| assert_eq!(tree.run_nested(&tree.a, None, false), Out::Ran));
        assert_eq!(tree.run_nested(&tree.a, None, false), Out::Ran);
        other.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// A child gets two permits at once: the nested waiter takes one and sees that the task behind him gets the other.
#[test]
fn nested_waiter_races_raise_to_two() {
    model("nested_waiter_races_raise_to_two", Size::Wide, 1_900..=4_600, || {
        let tree = Tree::with(2, 1, Kid::new(2, 0, None));
        tree.carry_out(tree.gate.set_limit_below(&tree.a, 0));
        tree.push(&tree.a, 0).unwrap();
        let other = tree.beside(|tree| tree.carry_out(tree.gate.set_limit_below(&tree.a, 2)));
        assert_eq!(tree.run_nested(&tree.a, None, false), Out::Ran);
        other.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// The target is shut down while a thread waits for the level above, whose permit does not come back meanwhile.
#[test]
fn nested_waiter_above_races_shutdown() {
    model("nested_waiter_above_races_shutdown", Size::Proof, 220..=560, || {
        let tree = Tree::new(2, 1);
        assert!(tree.try_take(&tree.b));
        let other = tree.beside(|tree| {
            assert_eq!(tree.run_nested(&tree.deep, None, false), Out::Gone);
        });
        let (taken, errand) = tree.gate.close_and_take_below(&tree.deep);
        assert!(taken.is_empty());
        tree.carry_out(errand);
        other.join().unwrap();
        tree.give(&tree.b);
        tree.assert_quiet(0);
    });
}

/// The permit above comes back to him as the target is shut down: if he goes, the task behind him starts.
#[test]
fn nested_waiter_above_races_shutdown_and_give() {
    model("nested_waiter_above_races_shutdown_and_give", Size::Wide, 34_000..=83_000, || {
        let tree = Tree::new(2, 1);
        assert!(tree.try_take(&tree.b));
        tree.push(&tree.b, 0).unwrap();
        let other = tree.beside(|tree| _ = tree.run_nested(&tree.deep, None, false));
        let holder = tree.beside(|tree| {
            tree.body(Some(&tree.b));
            tree.give(&tree.b);
        });
        let (_, errand) = tree.gate.close_and_take_below(&tree.deep);
        tree.carry_out(errand);
        other.join().unwrap();
        holder.join().unwrap();
        tree.assert_quiet(1);
    });
}

/// The target is closed while a thread waits for the level above: who drains it sees him refused, or waits for him.
#[test]
fn nested_waiter_above_races_drain() {
    model("nested_waiter_above_races_drain", Size::Wide, 6_900..=17_000, || {
        let tree = Tree::new(2, 1);
        assert!(tree.try_take(&tree.b));
        let other = tree.beside(|tree| _ = tree.run_nested(&tree.deep, None, false));
        let holder = tree.beside(|tree| tree.give(&tree.b));
        tree.gate.close_below(&tree.deep);
        tree.gate.wait_quiet_below(&tree.deep, None).unwrap();
        let ran = tree.deep.floor.ran();
        other.join().unwrap();
        assert_eq!(tree.deep.floor.ran(), ran, "G12: nothing comes after the quiet");
        holder.join().unwrap();
        tree.assert_quiet(0);
    });
}

/// A thread that has the root's only permit goes down two levels, ahead of a task that needs that permit.
#[test]
fn nested_waiter_goes_down_as_middle_is_raised() {
    model("nested_waiter_goes_down_as_middle_is_raised", Size::Proof, 150..=360, || {
        let tree = Tree::new(1, 1);
        tree.push(&tree.deep, 0).unwrap();
        tree.carry_out(tree.gate.set_limit_below(&tree.b, 0));
        let other = tree.beside(|tree| tree.carry_out(tree.gate.set_limit_below(&tree.b, 1)));
        assert_eq!(tree.run_nested(&tree.deep, None, false), Out::Ran);
        other.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// A worker starts the task that a thread is about to wait for, and its strand gets no more permits.
#[test]
fn nested_joiner_races_worker_and_pause() {
    model("nested_joiner_races_worker_and_pause", Size::Wide, 2_400..=5_900, || {
        let tree = Tree::new(2, 1);
        assert!(tree.try_take(&tree.a));
        let task = tree.push(&tree.a, 0).unwrap();
        let joiner = tree.beside(move |tree| {
            let out = tree.run_nested(&tree.a, Some(task), false);
            assert!(matches!(out, Out::Ran | Out::Gone));
        });
        tree.give(&tree.a);
        let is_out = !tree.gate.is_queued_below(&tree.a, task);
        if is_out {
            tree.carry_out(tree.gate.set_limit_below(&tree.a, 0));
        }
        joiner.join().unwrap();
        if is_out {
            tree.carry_out(tree.gate.set_limit_below(&tree.a, 1));
        }
        tree.assert_as_new(1);
    });
}

/// The task that a thread joins is taken back while it waits for the level above, which is paused.
#[test]
fn nested_joiner_above_races_cancel() {
    model("nested_joiner_above_races_cancel", Size::Proof, 33_000..=81_000, || {
        let tree = Tree::new(1, 1);
        let task = tree.push(&tree.deep, 0).unwrap();
        tree.carry_out(tree.gate.set_limit_below(&tree.b, 0));
        let joiner = tree.beside(move |tree| {
            assert_eq!(tree.run_nested(&tree.deep, Some(task), false), Out::Gone);
        });
        assert!(tree.cancel(&tree.deep, task));
        joiner.join().unwrap();
        tree.carry_out(tree.gate.set_limit_below(&tree.b, 1));
        tree.assert_as_new(1);
    });
}

/// Who waits for a paused level keeps nothing of the one above it: a task there runs meanwhile, and the pause ends after
/// it.
#[test]
fn nested_waiter_of_paused_level_races_task_above() {
    model("nested_waiter_of_paused_level_races_task_above", Size::Wide, 250..=640, || {
        let tree = Tree::new(2, 1);
        tree.carry_out(tree.gate.set_limit_below(&tree.deep, 0));
        let other = tree.beside(|tree| {
            assert_eq!(tree.run_nested(&tree.deep, None, false), Out::Ran);
        });
        let task = tree.push(&tree.b, 0).unwrap();
        tree.join(&tree.b, task, false);
        tree.carry_out(tree.gate.set_limit_below(&tree.deep, 1));
        other.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// Two who need the same two levels.
#[test]
fn nested_waiters_of_two_levels_race() {
    model("nested_waiters_of_two_levels_race", Size::Wide, 20_000..=50_000, || {
        let tree = Tree::new(2, 2);
        let other = tree.beside(|tree| {
            assert_eq!(tree.run_nested(&tree.deep, None, false), Out::Ran);
        });
        assert_eq!(tree.run_nested(&tree.deep, None, false), Out::Ran);
        other.join().unwrap();
        tree.assert_as_new(0);
    });
}

/// One needs two levels, another the higher of them, where a task waits too.
#[test]
fn nested_waiter_of_two_levels_races_nested_waiter_above() {
    model(
        "nested_waiter_of_two_levels_races_nested_waiter_above",
        Size::Wide,
        48_000..=118_000,
        || {
            let tree = Tree::new(2, 2);
            tree.push(&tree.b, 0).unwrap();
            let other = tree.beside(|tree| {
                assert_eq!(tree.run_nested(&tree.deep, None, false), Out::Ran);
            });
            assert_eq!(tree.run_nested(&tree.b, None, false), Out::Ran);
            other.join().unwrap();
            tree.assert_as_new(1);
        },
    );
}

/// The permits of both levels come back, and a task waits for that of the higher one.
#[test]
fn nested_waiter_of_two_levels_races_give() {
    model("nested_waiter_of_two_levels_races_give", Size::Wide, 37_000..=92_000, || {
        let tree = Tree::new(2, 1);
        assert!(tree.try_take(&tree.deep));
        tree.push(&tree.b, 0).unwrap();
        let holder = tree.beside(|tree| {
            tree.body(Some(&tree.deep));
            tree.give(&tree.deep);
        });
        assert_eq!(tree.run_nested(&tree.deep, None, false), Out::Ran);
        holder.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// Of three levels the one in the middle has no permit until it comes back.
#[test]
fn nested_waiter_of_three_levels_races_give() {
    model("nested_waiter_of_three_levels_races_give", Size::Wide, 13_000..=32_000, || {
        let tree = Tree::new(2, 1);
        tree.carry_out(tree.gate.set_limit_below(&tree.b, 2));
        let low = Kid::new(1, 0, Some(&tree.deep));
        assert!(tree.try_take(&tree.deep));
        let holder = tree.beside(|tree| tree.give(&tree.deep));
        assert_eq!(tree.run_nested(&low, None, false), Out::Ran);
        holder.join().unwrap();
        tree.carry_out(tree.gate.set_limit_below(&tree.b, 1));
        tree.assert_as_new(0);
    });
}
