//! Claim: siblings take turns, also where one of them could start more than once; who finds no permit further down leaves
//! those above free; and a token that is under way for work of a child does for whoever comes to be first meanwhile.
//!
//! Modelled: the tree of `child.rs`, with a child of two permits or one that may be overtaken; and strands on a pool.
//! Left out: what those leave out.

use super::child::{Kid, Tree};
use super::child_engine::Strands;
use super::yard::Out;
use crate::gate::Errand;
use crate::permits::state::{Refusal, Take};
use crate::{Size, model};

/// Job 0 waits in a child of two permits and job 2 in its sibling; job 1 comes behind the first one while the root's
/// permit comes back. Its child has had its turn by then.
fn siblings_take_turns(goes_on: bool) {
    let tree = Tree::build(1, 1, goes_on, Kid::new(2, 0, None));
    tree.push(&tree.a, 0).unwrap();
    tree.push(&tree.b, 2).unwrap();
    let holder = tree.beside(|tree| tree.run_root_and_give());
    tree.push(&tree.a, 1).unwrap();
    holder.join().unwrap();
    assert_eq!(tree.order(), [0, 2, 1], "G5: siblings take turns");
    tree.assert_as_new(3);
}

/// Each worker comes with the root's token.
#[test]
fn turn_of_sibling_races_push() {
    model("turn_of_sibling_races_push", Size::Proof, 1_100..=2_600, || siblings_take_turns(false));
}

/// One worker goes on under the root's permit.
#[test]
fn hand_on_to_sibling_races_push() {
    model("hand_on_to_sibling_races_push", Size::Proof, 330..=770, || {
        siblings_take_turns(true);
    });
}

/// Two levels down the limit goes to 0 while a worker comes: he leaves the permit in the middle free.
#[test]
fn deep_pause_races_claim() {
    model("deep_pause_races_claim", Size::Proof, 25..=58, || {
        let tree = Tree::new(1, 1);
        tree.push(&tree.deep, 0).unwrap();
        let holder = tree.beside(|tree| tree.run_root_and_give());
        tree.carry_out(tree.gate.set_limit_below(&tree.deep, 0));
        holder.join().unwrap();
        let (root, middle) = (tree.gate.stats(), tree.gate.stats_below(&tree.b));
        assert_eq!((root.free, middle.free), (1, 1), "G3: {root:?}, {middle:?}");
        tree.carry_out(tree.gate.set_limit_below(&tree.deep, 1));
        tree.assert_as_new(1);
    });
}

/// A call comes ahead of a child's task and finds no permit further up; with that task served, the next one may be
/// overtaken as often again.
#[test]
fn overtaking_in_child_races_claim() {
    model("overtaking_in_child_races_claim", Size::Wide, 940..=2_200, || {
        let tree = Tree::build(1, 1, false, Kid::new(1, 1, None));
        tree.push(&tree.a, 0).unwrap();
        let holder = tree.beside(|tree| tree.run_root_and_give());
        tree.try_run(&tree.a);
        holder.join().unwrap();
        tree.gate.try_take().unwrap();
        tree.push(&tree.a, 1).unwrap();
        assert_eq!(tree.gate.try_take_below(&tree.a), Ok(Take::Overtook));
        tree.carry_out(tree.gate.give_below(&tree.a));
        assert_eq!(tree.gate.try_take_below(&tree.a), Err(Refusal::Saturated), "G5");
        tree.carry_out(tree.gate.give());
        tree.assert_as_new(2);
    });
}

/// A worker goes on with the next task of a strand, for which another worker was about to come: he has the token that
/// was made for it.
#[test]
fn hand_on_in_strand_races_push() {
    model("hand_on_in_strand_races_push", Size::Wide, 5_800..=14_000, || {
        let tree = Tree::build(2, 0, true, Kid::new(1, 0, None));
        let other = tree.beside(|tree| _ = tree.push(&tree.a, 0).unwrap());
        tree.push(&tree.a, 1).unwrap();
        other.join().unwrap();
        tree.assert_as_new(2);
    });
}

/// The root's token is at the pool for a child's task, and its permit is gone again when a thread joins that task: the
/// joiner hears of the next permit without a worker.
#[test]
fn child_join_races_late_worker() {
    model("child_join_races_late_worker", Size::Proof, 11..=26, || {
        let tree = Tree::new(1, 1);
        let ticket = tree.push(&tree.a, 0).unwrap();
        let late = tree.gate.give();
        assert_eq!(late, Errand::SendWorker);
        tree.carry_out(tree.gate.set_limit(0));
        let joiner =
            tree.beside(move |tree| assert_eq!(tree.join(&tree.a, ticket, false), Out::Ran));
        tree.carry_out(tree.gate.set_limit(1));
        joiner.join().unwrap();
        tree.carry_out(late);
        tree.assert_as_new(1);
    });
}

/// A child that stands in the root's line is at limit 0 when a nested waiter comes, and has permits for him and for the
/// task behind him later.
#[test]
fn nested_waiter_races_raise() {
    model("nested_waiter_races_raise", Size::Proof, 20..=48, || {
        let tree = Tree::build(1, 1, false, Kid::new(2, 0, None));
        tree.push(&tree.a, 0).unwrap();
        tree.carry_out(tree.gate.set_limit_below(&tree.a, 0));
        let nested =
            tree.beside(|tree| assert_eq!(tree.run_nested(&tree.a, None, false), Out::Ran));
        tree.carry_out(tree.gate.set_limit_below(&tree.a, 2));
        nested.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// Two tasks of a strand that nobody joins: the worker goes on with the second one, or has another one come.
#[test]
fn second_task_of_strand_races_claim() {
    model("second_task_of_strand_races_claim", Size::Wide, 23_000..=53_000, || {
        let strands = Strands::new(2);
        let first = strands.strand.spawn(strands.task()).unwrap();
        let second = strands.strand.spawn(strands.task()).unwrap();
        strands.close();
        assert_eq!((first.join().unwrap(), second.join().unwrap()), (0, 1));
    });
}
