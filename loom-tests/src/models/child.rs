//! Claim: work of a child runs under a permit of every level, one after the other on a strand; whatever event at
//! whatever level lets it start starts it; and no two wait for each other's permits.
//!
//! Modelled: the gate of a root with children below it, and around it what the engine does: callers who take the
//! child's permit first and then those above it, workers who come for the root's token, waiters, joiners, and threads
//! that have the root's permit already. Left out: time (a waiter whose time has passed leaves at its first look), and
//! the engine itself, of which `child_engine.rs` has models.

use super::Floor;
use super::yard::{Job, Out};
use crate::counters::{Books, Counters};
use crate::gate::{
    Ask, Claim, Errand, Gate, Hand, Kin, Ledger, Level, NotQueued, Onward, Step, Turn,
};
use crate::line::Ticket;
use crate::sync::Parker;
use crate::{Size, model};
use loom::thread;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Most jobs in a model.
const JOBS: usize = 4;

/// A child.
#[derive(Debug)]
pub(crate) struct Kid {
    level: Level,
    counters: Counters,
    parent: Option<Arc<Kid>>,
    pub(super) floor: Floor,
}

impl Kid {
    pub(super) fn new(limit: usize, overtakes: u16, parent: Option<&Arc<Kid>>) -> Arc<Self> {
        Arc::new(Self {
            level: Level::new(limit, overtakes, JOBS),
            counters: Counters::of_child(),
            parent: parent.cloned(),
            floor: Floor::new(limit.max(1)),
        })
    }
}

impl Kin for Arc<Kid> {
    fn level(&self) -> &Level {
        &self.level
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn parent(&self) -> Option<&Self> {
        self.parent.as_ref()
    }
}

/// Lines that owe a thread for their tasks.
#[derive(Debug, Default, Clone)]
pub(super) struct Debts(Arc<AtomicUsize>);

impl Ledger for Debts {
    fn owe(&self) -> bool {
        self.0.fetch_add(1, Relaxed);
        true
    }

    fn settle(&self) {
        assert!(self.0.fetch_sub(1, Relaxed) > 0, "settled without a debt");
    }
}

/// A root with two strands and one below the second.
pub(super) struct Tree {
    pub(super) gate: Gate<Job, Debts>,
    debts: Debts,
    /// What runs under the root's permits.
    pub(super) floor: Floor,
    pub(super) a: Arc<Kid>,
    pub(super) b: Arc<Kid>,
    pub(super) deep: Arc<Kid>,
    ends: [AtomicUsize; JOBS],
    /// The jobs that have ended, in this order.
    order: Mutex<Vec<Job>>,
    /// Workers go on under their permit (T6), as long as they may.
    goes_on: bool,
}

impl Tree {
    /// With `taken` of the root's permits in the hands of the model.
    pub(super) fn new(limit: usize, taken: usize) -> Arc<Self> {
        Self::build(limit, taken, false, Kid::new(1, 0, None))
    }

    /// With another first child.
    pub(super) fn with(limit: usize, taken: usize, a: Arc<Kid>) -> Arc<Self> {
        Self::build(limit, taken, false, a)
    }

    pub(super) fn build(limit: usize, taken: usize, goes_on: bool, a: Arc<Kid>) -> Arc<Self> {
        let debts = Debts::default();
        let gate = Gate::new(limit, 0, JOBS, debts.clone());
        (0..taken).for_each(|_| _ = gate.try_take().unwrap());
        let b = Kid::new(1, 0, None);
        let deep = Kid::new(1, 0, Some(&b));
        let floor = Floor::new(limit.max(1));
        let (ends, order) = Default::default();
        Arc::new(Self { gate, debts, floor, a, b, deep, ends, order, goes_on })
    }

    pub(super) fn beside(
        self: &Arc<Self>,
        f: impl FnOnce(&Tree) + 'static,
    ) -> thread::JoinHandle<()> {
        let tree = Arc::clone(self);
        thread::spawn(move || f(&tree))
    }

    /// Runs under a permit of each level.
    pub(super) fn body(&self, kid: Option<&Arc<Kid>>) {
        match kid {
            None => self.floor.body(),
            Some(kid) => {
                kid.floor.body();
                self.body(kid.parent.as_ref());
            }
        }
    }

    pub(super) fn carry_out(&self, errand: Errand) {
        if errand == Errand::SendWorker {
            self.work();
        }
    }

    fn work(&self) {
        let (kid, job, errand) = match self.gate.claim() {
            Claim::Nothing => return,
            Claim::Run(job, _, errand) => (None, job, errand),
            Claim::Below(kid, job, _, errand) => (Some(kid), job, errand),
        };
        self.carry_out(errand);
        self.go_on(kid, job);
    }

    /// A worker with a job, which goes on under the root's permit if it may.
    fn go_on(&self, mut kid: Option<Arc<Kid>>, mut job: Job) {
        loop {
            self.body(kid.as_ref());
            self.end(job);
            if !self.goes_on {
                self.give_children(kid.as_ref());
                return self.carry_out(self.gate.give());
            }
            let mut has_token = false;
            let mut above = kid.as_ref();
            while let Some(kid) = above {
                has_token |= self.gate.give_below(kid) == Errand::SendWorker;
                above = kid.parent.as_ref();
            }
            let mut hand = Hand::empty();
            match self.gate.hand_on(&mut hand, |_| false) {
                onward @ (Onward::Go | Onward::GoLast) => {
                    if has_token && onward == Onward::Go {
                        self.carry_out(Errand::SendWorker);
                    }
                    job = *hand.task();
                    kid = hand.of;
                }
                Onward::Stop => {
                    let errand = self.gate.give();
                    return self.carry_out(if has_token { Errand::SendWorker } else { errand });
                }
            }
        }
    }

    pub(super) fn end(&self, job: Job) {
        self.ends[job].fetch_add(1, Relaxed);
        self.order.lock().unwrap().push(job);
    }

    fn give_children(&self, kid: Option<&Arc<Kid>>) {
        let mut next = kid;
        while let Some(kid) = next {
            self.carry_out(self.gate.give_below(kid));
            next = kid.parent.as_ref();
        }
    }

    /// The permit of this child and of each level above it.
    pub(super) fn give(&self, kid: &Arc<Kid>) {
        self.give_children(Some(kid));
        self.carry_out(self.gate.give());
    }

    /// Takes a permit of each level, the child's first. Gives back what it has when one is not to be had.
    pub(super) fn try_take(&self, kid: &Arc<Kid>) -> bool {
        let mut taken = Vec::new();
        let mut next = Some(kid);
        while let Some(kid) = next {
            if self.gate.try_take_below(kid).is_err() {
                break;
            }
            taken.push(kid);
            next = kid.parent.as_ref();
        }
        if next.is_none() && self.gate.try_take().is_ok() {
            return true;
        }
        taken.into_iter().for_each(|kid| self.carry_out(self.gate.give_below(kid)));
        false
    }

    /// Runs here if a permit of each level is free. Says whether it was.
    pub(super) fn try_run(&self, kid: &Arc<Kid>) -> bool {
        let taken = self.try_take(kid);
        if taken {
            self.body(Some(kid));
            self.give(kid);
        }
        taken
    }

    pub(super) fn run_root_and_give(&self) {
        self.floor.body();
        self.carry_out(self.gate.give());
    }

    pub(super) fn push(&self, kid: &Arc<Kid>, job: Job) -> Result<Ticket, NotQueued> {
        let (ticket, errand) = self.gate.push_below(kid, job, 0).map_err(|(_, why)| why)?;
        self.carry_out(errand);
        Ok(ticket)
    }

    /// Stands in the child's line until it is its turn, or takes one look and leaves.
    fn stand(&self, kid: &Arc<Kid>, leave: bool) -> Out {
        let parker = Parker::new();
        let Some((ticket, errand)) = self.gate.arrive_below(kid, &parker.unparker(), 0) else {
            return Out::Gone;
        };
        self.carry_out(errand);
        self.turns(kid, &parker, ticket, leave)
    }

    pub(super) fn join(&self, kid: &Arc<Kid>, ticket: Ticket, leave: bool) -> Out {
        let parker = Parker::new();
        if !self.gate.join_below(kid, ticket, &parker.unparker()) {
            return Out::Gone;
        }
        self.turns(kid, &parker, ticket, leave)
    }

    fn turns(&self, kid: &Arc<Kid>, parker: &Parker, ticket: Ticket, leave: bool) -> Out {
        loop {
            match self.gate.turn_below(kid, ticket, leave) {
                Turn::Granted { task, errand, .. } => {
                    self.carry_out(errand);
                    self.body(Some(kid));
                    task.into_iter().for_each(|job| self.end(job));
                    self.give(kid);
                    return Out::Ran;
                }
                Turn::Wait => parker.park_until(None),
                Turn::Sent(errand) => self.carry_out(errand),
                Turn::Left(errand) => {
                    self.carry_out(errand);
                    return Out::Left;
                }
                Turn::Gone => return Out::Gone,
            }
        }
    }

    /// A thread that has the root's permit takes or waits for those of a child and of the levels between, runs, and
    /// gives all back. With `task` it does so to run this job.
    pub(super) fn run_nested(&self, kid: &Arc<Kid>, task: Option<Ticket>, leave: bool) -> Out {
        let out = self.wait_nested(kid, task, leave);
        if out == Out::Ran {
            let removed = task.map(|task| self.gate.remove_below(kid, task, None));
            if let Some((job, _, errand)) = removed.flatten() {
                self.carry_out(errand);
                self.end(job);
            }
            self.body_below_root(kid);
            self.give_children(Some(kid));
        }
        self.run_root_and_give();
        out
    }

    fn body_below_root(&self, kid: &Arc<Kid>) {
        let kids = std::iter::successors(Some(kid), |kid| kid.parent.as_ref());
        kids.for_each(|kid| kid.floor.body());
    }

    /// As the engine does it.
    fn wait_nested(&self, kid: &Arc<Kid>, task: Option<Ticket>, leave: bool) -> Out {
        if task.is_some_and(|task| !self.gate.is_queued_below(kid, task)) {
            return Out::Gone;
        }
        let levels: Vec<_> = std::iter::successors(Some(kid), |kid| kid.parent.as_ref()).collect();
        let taken = levels.iter().take_while(|kid| self.gate.try_take_below(kid).is_ok()).count();
        if taken == levels.len() {
            return Out::Ran;
        }
        levels[..taken].iter().for_each(|kid| self.carry_out(self.gate.give_below(kid)));
        self.stand_nested(&levels, task, leave)
    }

    fn stand_nested(&self, levels: &[&Arc<Kid>], task: Option<Ticket>, leave: bool) -> Out {
        let parker = Parker::new();
        let (signal, ask) = (parker.unparker(), task.map_or(Ask::New, Ask::Task));
        let arrived = self.gate.arrive_nested(levels, &signal, ask, 0);
        let Some((mut ticket, errand)) = arrived else {
            return Out::Gone;
        };
        let mut at = 0;
        self.carry_out(errand);
        loop {
            match self.gate.turn_nested(levels, at, ticket, leave) {
                Step::Moved(to, there, errand) => {
                    (at, ticket) = (to, there);
                    self.carry_out(errand);
                }
                Step::Turn(Turn::Granted { errand, .. }) => {
                    self.carry_out(errand);
                    return Out::Ran;
                }
                Step::Turn(Turn::Wait) => parker.park_until(None),
                Step::Turn(Turn::Sent(errand)) => self.carry_out(errand),
                Step::Turn(Turn::Left(errand)) => {
                    self.carry_out(errand);
                    return Out::Left;
                }
                Step::Turn(Turn::Gone) => return Out::Gone,
            }
        }
    }

    pub(super) fn cancel(&self, kid: &Arc<Kid>, ticket: Ticket) -> bool {
        let Some((job, _, errand)) = self.gate.remove_below(kid, ticket, Some(Books::Cancelled))
        else {
            return false;
        };
        self.end(job);
        self.carry_out(errand);
        true
    }

    fn kids(&self) -> [&Arc<Kid>; 3] {
        [&self.a, &self.b, &self.deep]
    }

    /// The jobs in the order in which they ended.
    pub(super) fn order(&self) -> Vec<Job> {
        self.order.lock().unwrap().clone()
    }

    /// Jobs of all children have ended once, every permit is back and nobody waits.
    pub(super) fn assert_quiet(&self, jobs: usize) {
        for kid in self.kids() {
            let stats = self.gate.stats_below(kid);
            assert_eq!((stats.free, stats.taken), (stats.limit, 0), "G6: {stats:?}");
            assert_eq!((stats.tasks, stats.waiters), (0, 0), "G3: {stats:?}");
        }
        let stats = self.gate.stats();
        assert_eq!((stats.free, stats.taken), (stats.limit, 0), "G6: {stats:?}");
        assert_eq!((stats.tasks, stats.waiters), (0, 0), "G3: {stats:?}");
        for (job, ends) in self.ends.iter().enumerate() {
            assert_eq!(ends.load(Relaxed), usize::from(job < jobs), "G2: ends of job {job}");
        }
        assert_eq!(self.debts.0.load(Relaxed), 0, "a debt is left");
    }

    /// As [`assert_quiet`](Self::assert_quiet), and no token is left over at any level: the next job makes one.
    pub(super) fn assert_as_new(&self, jobs: usize) {
        self.assert_quiet(jobs);
        for (n, kid) in [&self.a, &self.deep].into_iter().enumerate() {
            if jobs + n >= JOBS {
                return;
            }
            let (_, errand) = self.gate.push_below(kid, jobs + n, 0).unwrap();
            assert_eq!(errand, Errand::SendWorker, "a token is left that nobody has");
            self.carry_out(errand);
            self.assert_quiet(jobs + n + 1);
        }
    }
}

/// A call of an idle strand and a task that is queued there: never both at once, and both are heard of.
#[test]
fn strand_inline_races_push() {
    model("strand_inline_races_push", Size::Wide, 5_400..=13_000, || {
        let tree = Tree::new(2, 0);
        let other = tree.beside(|tree| _ = tree.push(&tree.a, 0).unwrap());
        let ran = tree.try_run(&tree.a);
        other.join().unwrap();
        assert_eq!(tree.a.floor.ran(), 1 + usize::from(ran));
        tree.assert_as_new(1);
    });
}

/// A strand's call ends while a task is queued behind it: one of the two threads sees to it.
#[test]
fn strand_give_races_push() {
    model("strand_give_races_push", Size::Proof, 1_700..=4_100, || {
        let tree = Tree::new(1, 0);
        assert!(tree.try_take(&tree.a));
        let other = tree.beside(|tree| {
            tree.body(Some(&tree.a));
            tree.give(&tree.a);
        });
        tree.push(&tree.a, 0).unwrap();
        other.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// A task of a child is queued while the root's only permit comes back.
#[test]
fn child_push_races_root_give() {
    model("child_push_races_root_give", Size::Proof, 89..=210, || {
        let tree = Tree::new(1, 1);
        let holder = tree.beside(|tree| tree.run_root_and_give());
        tree.push(&tree.a, 0).unwrap();
        holder.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// The child's permit and the parent's: one call takes the first, one the second, and a release.
#[test]
fn child_take_races_root_take_and_give() {
    model("child_take_races_root_take_and_give", Size::Wide, 11_000..=26_000, || {
        let tree = Tree::new(1, 1);
        tree.push(&tree.a, 0).unwrap();
        let below = tree.beside(|tree| _ = tree.try_run(&tree.a));
        let beside = tree.beside(|tree| _ = tree.try_run(&tree.b));
        tree.run_root_and_give();
        below.join().unwrap();
        beside.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// A call that takes the child's permit, finds none at the root and gives it back, and the worker that came for it.
#[test]
fn bounced_call_races_claim() {
    model("bounced_call_races_claim", Size::Proof, 23_000..=54_000, || {
        let tree = Tree::new(1, 1);
        let caller = tree.beside(|tree| _ = tree.try_run(&tree.a));
        tree.push(&tree.a, 0).unwrap();
        tree.run_root_and_give();
        caller.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// Tasks of two strands are queued at once under one permit: both run, one after the other.
#[test]
fn siblings_race_for_one_permit() {
    model("siblings_race_for_one_permit", Size::Wide, 220..=520, || {
        let tree = Tree::build(1, 0, true, Kid::new(1, 0, None));
        let other = tree.beside(|tree| _ = tree.push(&tree.b, 0).unwrap());
        tree.push(&tree.a, 1).unwrap();
        other.join().unwrap();
        tree.assert_as_new(2);
    });
}

/// Two tasks of one strand in the order of one thread, while another thread runs there.
#[test]
fn strand_keeps_order_beside_a_call() {
    model("strand_keeps_order_beside_a_call", Size::Wide, 100_000..=240_000, || {
        let tree = Tree::new(2, 0);
        let other = tree.beside(|tree| _ = tree.try_run(&tree.a));
        tree.push(&tree.a, 0).unwrap();
        // The strand is strict: with job 0 waiting it refuses; else job 0 has ended.
        let before = tree.ends[0].load(Relaxed);
        if tree.try_run(&tree.a) {
            assert_eq!(tree.ends[0].load(Relaxed), 1, "overtaken, {before} before");
        }
        tree.push(&tree.a, 1).unwrap();
        other.join().unwrap();
        tree.assert_as_new(2);
    });
}

/// A waiter of a child is handed both permits when the root's comes back.
#[test]
fn child_waiter_races_root_give() {
    model("child_waiter_races_root_give", Size::Proof, 3_100..=7_300, || {
        let tree = Tree::new(1, 1);
        let holder = tree.beside(|tree| tree.run_root_and_give());
        assert_eq!(tree.stand(&tree.a, false), Out::Ran);
        holder.join().unwrap();
        tree.assert_as_new(0);
    });
}

/// A waiter of a child is handed both permits when the child's comes back.
#[test]
fn child_waiter_races_child_give() {
    model("child_waiter_races_child_give", Size::Wide, 990..=2_300, || {
        let tree = Tree::new(2, 0);
        assert!(tree.try_take(&tree.a));
        let holder = tree.beside(|tree| {
            tree.body(Some(&tree.a));
            tree.give(&tree.a);
        });
        assert_eq!(tree.stand(&tree.a, false), Out::Ran);
        holder.join().unwrap();
        tree.assert_as_new(0);
    });
}

/// A waiter of a child leaves while the root's permit comes back to the task behind him.
#[test]
fn child_waiter_leaves_as_root_gives() {
    model("child_waiter_leaves_as_root_gives", Size::Wide, 2_100..=5_000, || {
        let tree = Tree::new(1, 1);
        let waiter = tree.beside(|tree| _ = tree.stand(&tree.a, true));
        tree.push(&tree.a, 0).unwrap();
        tree.run_root_and_give();
        waiter.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// Waiters of two strands and one permit of the root: each is served.
#[test]
fn child_waiter_races_waiter_of_sibling() {
    model("child_waiter_races_waiter_of_sibling", Size::Wide, 18_000..=43_000, || {
        let tree = Tree::new(1, 1);
        let other = tree.beside(|tree| assert_eq!(tree.stand(&tree.b, false), Out::Ran));
        let holder = tree.beside(|tree| tree.run_root_and_give());
        assert_eq!(tree.stand(&tree.a, false), Out::Ran);
        other.join().unwrap();
        holder.join().unwrap();
        tree.assert_as_new(0);
    });
}

/// A waiter stands behind a queued task of his strand.
#[test]
fn child_waiter_races_claim() {
    model("child_waiter_races_claim", Size::Wide, 250..=590, || {
        let tree = Tree::new(1, 1);
        tree.push(&tree.a, 0).unwrap();
        let holder = tree.beside(|tree| tree.run_root_and_give());
        assert_eq!(tree.stand(&tree.a, false), Out::Ran);
        assert_eq!(tree.ends[0].load(Relaxed), 1, "in the order they came");
        holder.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// A task of a child is joined while a worker comes for it.
#[test]
fn child_join_races_claim() {
    model("child_join_races_claim", Size::Proof, 360..=840, || {
        let tree = Tree::new(1, 1);
        let ticket = tree.push(&tree.a, 0).unwrap();
        let holder = tree.beside(|tree| tree.run_root_and_give());
        let out = tree.join(&tree.a, ticket, false);
        assert!(matches!(out, Out::Ran | Out::Gone));
        holder.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// A task of a child is taken back while a worker comes for it; another stands behind.
#[test]
fn child_cancel_races_claim() {
    model("child_cancel_races_claim", Size::Wide, 5..=12, || {
        let tree = Tree::new(1, 1);
        let ticket = tree.push(&tree.a, 0).unwrap();
        tree.push(&tree.a, 1).unwrap();
        let holder = tree.beside(|tree| tree.run_root_and_give());
        tree.cancel(&tree.a, ticket);
        holder.join().unwrap();
        tree.assert_as_new(2);
    });
}

/// The last task of a child is taken back while the root's permit comes back to it: its entry goes with it.
#[test]
fn child_cancel_of_last_races_root_give() {
    model("child_cancel_of_last_races_root_give", Size::Proof, 110..=280, || {
        let tree = Tree::new(1, 1);
        let ticket = tree.push(&tree.deep, 0).unwrap();
        let holder = tree.beside(|tree| tree.run_root_and_give());
        tree.cancel(&tree.deep, ticket);
        holder.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// Two levels down: a permit comes back in the middle while a task is queued at the bottom.
#[test]
fn deep_push_races_middle_give() {
    model("deep_push_races_middle_give", Size::Wide, 490..=1_200, || {
        let tree = Tree::new(2, 0);
        assert!(tree.try_take(&tree.b));
        let holder = tree.beside(|tree| {
            tree.body(Some(&tree.b));
            tree.give(&tree.b);
        });
        tree.push(&tree.deep, 0).unwrap();
        holder.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// Two levels down, a waiter and a task in the middle.
#[test]
fn deep_waiter_races_middle_push() {
    model("deep_waiter_races_middle_push", Size::Wide, 1_100..=2_600, || {
        let tree = Tree::new(1, 0);
        let other = tree.beside(|tree| _ = tree.push(&tree.b, 0).unwrap());
        assert_eq!(tree.stand(&tree.deep, false), Out::Ran);
        other.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// A waiter has the root's token when his child is paused, and leaves: the sibling behind him is served.
#[test]
fn child_waiter_leaves_as_child_pauses() {
    model("child_waiter_leaves_as_child_pauses", Size::Wide, 9_500..=22_000, || {
        let tree = Tree::new(1, 1);
        let waiter = tree.beside(|tree| _ = tree.stand(&tree.a, true));
        let holder = tree.beside(|tree| tree.run_root_and_give());
        tree.push(&tree.b, 0).unwrap();
        tree.carry_out(tree.gate.set_limit_below(&tree.a, 0));
        waiter.join().unwrap();
        holder.join().unwrap();
        tree.assert_quiet(1);
    });
}

/// A waiter has the root's token when his child is shut down: the sibling behind him is served.
#[test]
fn child_shutdown_races_waiter() {
    model("child_shutdown_races_waiter", Size::Wide, 8_700..=21_000, || {
        let tree = Tree::new(1, 1);
        let waiter = tree.beside(|tree| _ = tree.stand(&tree.a, false));
        let holder = tree.beside(|tree| tree.run_root_and_give());
        tree.push(&tree.b, 0).unwrap();
        let (taken, errand) = tree.gate.close_and_take_below(&tree.a);
        assert!(taken.is_empty());
        tree.carry_out(errand);
        waiter.join().unwrap();
        holder.join().unwrap();
        tree.assert_quiet(1);
    });
}

/// The child's limit is raised while a task is queued there.
#[test]
fn child_raise_races_push() {
    model("child_raise_races_push", Size::Proof, 4..=9, || {
        let tree = Tree::new(1, 0);
        tree.carry_out(tree.gate.set_limit_below(&tree.a, 0));
        let other = tree.beside(|tree| tree.carry_out(tree.gate.set_limit_below(&tree.a, 1)));
        tree.push(&tree.a, 0).unwrap();
        other.join().unwrap();
        tree.assert_as_new(1);
    });
}

/// The child's limit goes to 0 while a worker comes: the task stays, and the root's permit is free.
#[test]
fn child_pause_races_claim() {
    model("child_pause_races_claim", Size::Wide, 12..=28, || {
        let tree = Tree::new(1, 1);
        tree.push(&tree.a, 0).unwrap();
        let holder = tree.beside(|tree| tree.run_root_and_give());
        tree.carry_out(tree.gate.set_limit_below(&tree.a, 0));
        holder.join().unwrap();
        let stats = tree.gate.stats();
        assert_eq!((stats.free, stats.waiters), (1, 0), "G3: {stats:?}");
        tree.carry_out(tree.gate.set_limit_below(&tree.a, 1));
        tree.assert_as_new(1);
    });
}

/// The root is closed while a task is queued below: it is refused, or it runs before the root is quiet.
#[test]
fn root_close_races_child_push() {
    model("root_close_races_child_push", Size::Proof, 860..=2_000, || {
        let tree = Tree::new(1, 0);
        let other = tree.beside(|tree| {
            let accepted = tree.push(&tree.deep, 0);
            assert!(matches!(accepted, Ok(_) | Err(NotQueued::Closed)));
        });
        tree.carry_out(tree.gate.close());
        tree.gate.wait_quiet(None).unwrap();
        let ran = tree.deep.floor.ran();
        other.join().unwrap();
        assert_eq!(tree.deep.floor.ran(), ran, "G12: nothing comes after the quiet");
        tree.assert_quiet(ran);
    });
}

/// A child is closed, and who waits for its end hears of the last cancelled task.
#[test]
fn child_drain_races_cancel() {
    model("child_drain_races_cancel", Size::Proof, 19..=44, || {
        let tree = Tree::new(1, 1);
        let ticket = tree.push(&tree.deep, 0).unwrap();
        let other = tree.beside(move |tree| _ = tree.cancel(&tree.deep, ticket));
        tree.gate.close_below(&tree.b);
        tree.gate.wait_quiet_below(&tree.b, None).unwrap();
        other.join().unwrap();
        tree.run_root_and_give();
        tree.assert_quiet(1);
    });
}

/// The root is shut down, and who drains a child hears of it, whatever else runs at the root.
#[test]
fn child_drain_races_shutdown_of_root() {
    model("child_drain_races_shutdown_of_root", Size::Proof, 5..=12, || {
        let tree = Tree::new(2, 1);
        tree.carry_out(tree.gate.set_limit_below(&tree.a, 0));
        tree.push(&tree.a, 0).unwrap();
        let drain = tree.beside(|tree| {
            tree.gate.close_below(&tree.a);
            tree.gate.wait_quiet_below(&tree.a, None).unwrap();
        });
        tree.gate.close_and_take().into_iter().for_each(|(_, job)| tree.end(job));
        drain.join().unwrap();
        tree.run_root_and_give();
        tree.assert_quiet(1);
    });
}

/// The root is shut down while a task is queued below and a waiter stands there.
#[test]
fn shutdown_races_child_push_and_waiter() {
    model("shutdown_races_child_push_and_waiter", Size::Wide, 5_900..=14_000, || {
        let tree = Tree::new(1, 0);
        let waiter = tree.beside(|tree| {
            assert!(matches!(tree.stand(&tree.a, false), Out::Ran | Out::Gone));
        });
        let pusher = tree.beside(|tree| {
            if tree.push(&tree.a, 0).is_err() {
                tree.end(0);
            }
        });
        for (_, job) in tree.gate.close_and_take() {
            tree.end(job);
        }
        tree.gate.wait_quiet(None).unwrap();
        waiter.join().unwrap();
        pusher.join().unwrap();
        tree.assert_quiet(1);
    });
}

/// A child is shut down while the root's permit comes back to it: its sibling is served.
#[test]
fn child_shutdown_races_root_give() {
    model("child_shutdown_races_root_give", Size::Wide, 14..=32, || {
        let tree = Tree::new(1, 1);
        tree.push(&tree.deep, 0).unwrap();
        tree.push(&tree.a, 1).unwrap();
        let holder = tree.beside(|tree| tree.run_root_and_give());
        let (taken, errand) = tree.gate.close_and_take_below(&tree.b);
        taken.into_iter().for_each(|(_, job)| tree.end(job));
        tree.carry_out(errand);
        holder.join().unwrap();
        tree.assert_quiet(2);
    });
}
