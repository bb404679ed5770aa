//! Executors below others: permits of several levels, taken and given back as one.
//!
//! A child takes its own permit first and then that of each level above, and gives them back in the same order: on
//! the words alone, and with nothing in hand while anybody waits. Who waits is served by the tree
//! (`gate::chain`), which hands over all of them in one step.
//!
//! *How many levels.* A thread inside of a task of some level above has that permit and those further up already, so
//! a run needs those below it only. A guard may outlive the task around it, so it takes all.
#![forbid(unsafe_code)]

use super::{Engine, Plan, Settings, Stored};
use crate::counters::{Books, Counters, Kind};
use crate::gate::{Errand, Hand, Kin, Level, NotQueued, Onward, Work};
use crate::line::Ticket;
use crate::permits::state::{Refusal, Take};
use crate::pool::Serve;
use crate::pool::worker::Worker;
use crate::sync::{Arc, Weak};
use crate::task::cell::Task;
use crate::task::context::{self, Id, Lineage};
use crate::waits::Waits;
use std::mem;

/// From the child up to the root.
pub(super) const ALL_LEVELS: usize = usize::MAX;

impl Work for Task {
    type Kin = Arc<Engine>;
}

impl Kin for Arc<Engine> {
    fn level(&self) -> &Level {
        &self.level
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn parent(&self) -> Option<&Self> {
        self.parent.as_ref().filter(|parent| parent.is_child())
    }
}

impl Lineage for Engine {
    fn levels_up_to(&self, executor: Id) -> Option<usize> {
        let above = std::iter::successors(Some(self), |engine| engine.parent.as_deref());
        above.map(Engine::id).position(|id| id == executor)
    }
}

/// A run of a child on its way: counted, and its permits given back, at its end. It is dropped only by a panic.
struct Run<'a> {
    engine: &'a Arc<Engine>,
    kind: Kind,
    /// Levels whose permits go back with it; 0: the caller sees to that.
    gives: usize,
}

impl Run<'_> {
    #[inline(always)]
    fn end(&self) {
        self.engine.counters.end_in_child(self.kind);
        self.engine.give_levels(self.gives);
    }
}

impl Drop for Run<'_> {
    #[cold]
    fn drop(&mut self) {
        self.engine.counters.panicked();
        self.end();
    }
}

impl Engine {
    pub(crate) fn new_child(settings: Settings, plan: &Plan, parent: &Arc<Self>) -> Arc<Self> {
        let Plan { limit, max_overtakes, capacity, .. } = *plan;
        Arc::new(Self {
            id: Id::new_executor(),
            gate: Arc::clone(&parent.gate),
            parent: Some(Arc::clone(parent)),
            level: Level::new(limit, max_overtakes, capacity),
            counters: Counters::of_child(),
            waits: Waits::new(plan.record_waits),
            settings,
        })
    }

    #[inline]
    pub(crate) fn is_child(&self) -> bool {
        self.settings.is_child
    }

    /// Runs foreign code that is no task inside of this executor.
    pub(super) fn enter_frame<R>(self: &Arc<Self>, task: Id, f: impl FnOnce() -> R) -> R {
        if self.is_child() {
            return context::enter_child(self.id(), &**self, task, self.levels_to_run(), f);
        }
        context::enter(self.id(), task, true, f)
    }

    /// The one above all.
    pub(super) fn root(self: &Arc<Self>) -> &Arc<Self> {
        let mut root = self;
        while let Some(parent) = &root.parent {
            root = parent;
        }
        root
    }

    /// This one and those above it, so many in all.
    pub(super) fn levels(self: &Arc<Self>, many: usize) -> impl Iterator<Item = &Arc<Self>> {
        std::iter::successors(Some(self), |engine| engine.parent.as_ref()).take(many)
    }

    /// How many levels a run on this thread needs permits of.
    #[inline]
    pub(crate) fn levels_to_run(self: &Arc<Self>) -> usize {
        if context::is_plain() { ALL_LEVELS } else { self.levels_to_run_inside() }
    }

    fn levels_to_run_inside(self: &Arc<Self>) -> usize {
        let mut levels = self.levels(ALL_LEVELS);
        levels.position(|engine| context::is_inside(engine.id())).unwrap_or(ALL_LEVELS)
    }

    /// A permit of each of so many levels, if all are free for a caller that does not stand in a queue.
    #[inline(never)]
    pub(crate) fn take_levels(self: &Arc<Self>, many: usize) -> Result<(), Refusal> {
        // Overtakes are counted when it is known that there is a start.
        let mut overtook = 0_u64;
        let (mut next, mut n) = (Some(self), 0);
        while let Some(engine) = next.filter(|_| n < many) {
            next = engine.parent.as_ref();
            let taken = match next {
                Some(_) => self.gate.try_take_below(engine),
                None => engine.try_take().map(|()| Take::Taken),
            };
            match taken {
                Ok(Take::Taken) => {}
                Ok(Take::Overtook) => overtook |= 1_u64.checked_shl(n as u32).unwrap_or(0),
                Err(refusal) => return Err(self.taken_in_vain(n, many, refusal)),
            }
            n += 1;
        }
        if overtook != 0 {
            self.note_overtakes(many, overtook);
        }
        self.note_taken(many);
        Ok(())
    }

    /// `which`: a bit for each level.
    #[cold]
    fn note_overtakes(self: &Arc<Self>, many: usize, which: u64) {
        let levels = self.levels(many).take(u64::BITS as usize).enumerate();
        levels.filter(|(n, _)| which >> n & 1 == 1).for_each(|(_, e)| e.counters.overtook());
    }

    /// One of so many levels has no permit, and those below it, already taken, go back.
    #[cold]
    fn taken_in_vain(self: &Arc<Self>, taken: usize, many: usize, refusal: Refusal) -> Refusal {
        for engine in self.levels(taken) {
            self.carry_out(self.gate.give_below(engine));
        }
        let closed = self.levels(many).any(|engine| engine.is_closed_itself());
        if closed { Refusal::Closed } else { refusal }
    }

    fn is_closed_itself(&self) -> bool {
        if self.is_child() { self.level.is_closed() } else { self.gate.is_closed() }
    }

    /// The levels above have work of a child under so many permits.
    #[inline]
    pub(crate) fn note_taken(self: &Arc<Self>, many: usize) {
        let (mut next, mut left) = (self.parent.as_ref(), many);
        while let Some(engine) = next.filter(|_| left > 1) {
            next = engine.parent.as_ref();
            engine.counters.begin_below(self.gate.slot(), next.is_none());
            left -= 1;
        }
    }

    /// The permits go back: its own, its parent's and so on, so many in all.
    #[inline(never)]
    pub(crate) fn give_levels(self: &Arc<Self>, many: usize) {
        let (mut next, mut n) = (Some(self), 0);
        while let Some(engine) = next.filter(|_| n < many) {
            next = engine.parent.as_ref();
            if n > 0 {
                engine.counters.end_below(self.gate.slot(), next.is_none());
            }
            let errand = match next {
                Some(_) => self.gate.give_below(engine),
                None => self.gate.give(),
            };
            self.carry_out(errand);
            n += 1;
        }
    }

    /// This thread has a guard: of a child, one of each level.
    #[inline]
    pub(crate) fn guard_came(self: &Arc<Self>) {
        if !self.is_child() {
            return context::guard_came(self.id());
        }
        let lineage: Weak<Self> = Arc::downgrade(self);
        context::child_guard_came(self.id(), lineage);
    }

    #[inline]
    pub(crate) fn guard_left(&self) {
        if !self.is_child() {
            return context::guard_left(self.id());
        }
        context::child_guard_left(self.id());
    }

    /// As [`run_inline`](Self::run_inline), of a child.
    #[inline(never)]
    pub(super) fn run_inline_in_child<F, R>(self: &Arc<Self>, f: F) -> Result<R, (F, Refusal)>
    where
        F: FnOnce() -> R,
    {
        let levels = self.levels_to_run();
        match self.take_levels(levels) {
            Ok(()) => Ok(self.run_in_child(Kind::Inline, levels, Id::NONE, f)),
            Err(refusal) => Err((f, refusal)),
        }
    }

    /// As [`run_here`](Self::run_here), of a child; `gives` so many permits back at the end.
    pub(super) fn run_in_child<R>(
        self: &Arc<Self>,
        kind: Kind,
        gives: usize,
        task: Id,
        f: impl FnOnce() -> R,
    ) -> R {
        let permits = match kind {
            Kind::Nested | Kind::JoinedNested | Kind::Attempt => 0,
            Kind::Inline | Kind::Leased if gives > 0 => gives,
            _ => self.levels_to_run(),
        };
        self.counters.begin_in_child(kind);
        let run = Run { engine: self, kind, gives };
        let result = context::enter_child(self.id(), &**self, task, permits, f);
        run.end();
        mem::forget(run);
        result
    }

    /// Puts a task into the line.
    #[inline]
    pub(super) fn push(
        self: &Arc<Self>,
        task: Task,
        came_ns: u64,
    ) -> Result<(Ticket, Errand), (Task, NotQueued)> {
        if self.is_child() {
            return self.gate.push_below(self, task, came_ns);
        }
        self.gate.push(task, came_ns)
    }

    pub(super) fn remove_cancelled_below(
        self: &Arc<Self>,
        ticket: Ticket,
    ) -> Option<(Task, Errand)> {
        let removed = self.gate.remove_below(self, ticket, Some(Books::Cancelled));
        removed.map(|(task, _, errand)| (task, errand))
    }

    /// A worker runs the child's task in its `hand`, under a permit of each level. Says whether it goes on, with the
    /// root's, with what is in its hand then.
    pub(super) fn serve_child(
        self: &Arc<Self>,
        child: &Arc<Self>,
        hand: &mut Hand<Task>,
        worker: &Worker<'_>,
    ) -> Onward {
        child.waits.record(hand.came_ns);
        child.note_taken(ALL_LEVELS);
        let stored: Stored = child.run_task(Kind::Worker, hand.task());
        hand.clear();
        let mut has_token = false;
        for (n, engine) in child.levels(ALL_LEVELS).enumerate() {
            if n > 0 {
                engine.counters.end_below(self.gate.slot(), !engine.is_child());
            }
            if engine.is_child() {
                has_token |= self.gate.give_below(engine) == Errand::SendWorker;
            }
        }
        let token = || Arc::clone(self) as Arc<dyn Serve>;
        let mut onward = Onward::Stop;
        if stored.calls_foreign_code() {
            // As with a task of the root's own.
            if self.gate.give() == Errand::SendWorker || has_token {
                worker.share(token());
            }
            stored.publish();
        } else {
            // The token, if there is one, is not in the run queue yet.
            let ours = usize::from(has_token);
            onward = self
                .gate
                .hand_on(hand, |tokens| worker.is_wanted_elsewhere(tokens.saturating_sub(ours)));
            match onward {
                // There is more than what this worker goes on with.
                Onward::Go if has_token => worker.share(token()),
                Onward::Go | Onward::GoLast => {}
                Onward::Stop => {
                    if self.gate.give() == Errand::SendWorker || has_token {
                        worker.keep(token());
                    }
                }
            }
        }
        worker.finished_one();
        onward
    }

    /// The last name of a child goes, and with it maybe that of its parent, and so on: one after the other, however
    /// many there are.
    pub(super) fn drop_parents(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut engine) = next.and_then(Arc::into_inner) {
            next = engine.parent.take();
        }
    }
}
