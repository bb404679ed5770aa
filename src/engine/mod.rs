//! An executor from the inside: its gate, its counters, and the one function through which everything runs.
#![forbid(unsafe_code)]

mod child;
mod inline;
mod life;
mod many;
mod nested;
mod waiting;

use crate::counters::{self, Counters, Kind, Why};
use crate::error::Reason;
use crate::gate::{Claim, Errand, Gate, Hand, Ledger, Level, NotQueued, Onward};
use crate::lease::Leases;
use crate::line::Ticket;
use crate::operations::Operations;
use crate::pool::worker::Worker;
use crate::pool::{PoolCore, Serve};
use crate::sync::{Arc, Barrier};
use crate::task::cell::{End, Task};
use crate::task::context::{self, Id};
use crate::task::unwind::drop_payload;
use crate::waits::Waits;
use child::ALL_LEVELS;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What an executor is, apart from its numbers. Small, since a child has it too.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) name: Box<str>,
    /// What a thread must allow to run work inline.
    pub(crate) requires: Operations,
    /// More than `u32` would hold is never reached.
    pub(crate) max_inline_depth: u32,
    pub(crate) never_inline: bool,
    pub(crate) is_strand: bool,
    /// It has a parent. See [`child`].
    pub(crate) is_child: bool,
    /// No setting keeps `dispatch` from running work on a thread of which nothing is special.
    pub(crate) dispatches_freely: bool,
}

/// What an executor is built with besides.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) limit: usize,
    pub(crate) max_overtakes: u16,
    pub(crate) capacity: usize,
    pub(crate) record_waits: bool,
    pub(crate) leases: bool,
}

/// Queued tasks are owed to the pool's threads.
#[derive(Debug)]
struct OwedToPool(Arc<PoolCore>);

impl Ledger for OwedToPool {
    fn owe(&self) -> bool {
        self.0.owe()
    }

    fn settle(&self) {
        self.0.settle();
    }
}

/// See the module's text.
pub(crate) struct Engine {
    id: Id,
    /// Its own, or that of the root of its tree.
    gate: Arc<Gate<Task, OwedToPool>>,
    /// `None`: it is a root. See [`child`].
    parent: Option<Arc<Engine>>,
    /// What a child has in place of a gate.
    level: Level,
    pub(crate) counters: Counters,
    pub(crate) settings: Settings,
    pub(crate) waits: Waits,
}

impl Engine {
    pub(crate) fn new(settings: Settings, plan: &Plan, pool: Arc<PoolCore>) -> Arc<Self> {
        let slots = counters::slots();
        let leases = if plan.leases { Leases::new(Barrier::detect()) } else { Leases::off() };
        let owed = OwedToPool(pool);
        let Plan { limit, max_overtakes, capacity, .. } = *plan;
        let gate =
            Gate::with_leases(limit, max_overtakes, capacity, owed, leases, Arc::clone(&slots));
        Arc::new(Self {
            id: Id::new_executor(),
            gate: Arc::new(gate),
            parent: None,
            level: Level::new(0, 0, 0),
            counters: Counters::new(slots),
            waits: Waits::new(plan.record_waits),
            settings,
        })
    }

    /// The name by which frames and guards know this executor.
    #[inline]
    pub(crate) fn id(&self) -> Id {
        self.id
    }

    fn pool(&self) -> &Arc<PoolCore> {
        &self.gate.ledger().0
    }

    /// Does what a visit at the gate left to do.
    #[inline]
    pub(crate) fn carry_out(self: &Arc<Self>, errand: Errand) {
        if errand == Errand::SendWorker {
            self.pool().submit(Arc::clone(self.root()) as Arc<dyn Serve>);
        }
    }

    /// The permit goes back; a child's with one of each level above it.
    #[inline]
    pub(crate) fn give_back(self: &Arc<Self>) {
        if self.is_child() {
            return self.give_levels(ALL_LEVELS);
        }
        self.carry_out(self.gate.give());
    }

    /// Runs a task that came out of the line, up to the point where its outcome is stored.
    pub(crate) fn run_task(self: &Arc<Self>, kind: Kind, task: &mut Task) -> Stored {
        let id = task.id();
        let report = |payload: &(dyn std::any::Any + Send)| {
            self.inside(|| self.pool().report_panic(payload));
        };
        match task {
            Task::Cell(cell) => {
                cell.run(&|body| self.run_here(kind, id, body), &report);
                Stored(Some(task.take()))
            }
            Task::Closure(closure) => {
                let run = || self.run_here(kind, id, || closure.call());
                if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
                    report(&*payload);
                    self.inside(|| drop_payload(payload));
                }
                Stored(None)
            }
        }
    }

    /// Runs foreign code that is no task (a hook, a waker, the Drop of what nobody wants) while this thread has
    /// a permit: it may use this executor, and would wait for the permit of its own thread.
    fn inside(self: &Arc<Self>, f: impl FnOnce()) {
        self.enter_frame(Id::NONE, f);
    }

    /// Ends a task that never ran.
    pub(crate) fn end_task(task: Task, end: End) {
        match task {
            Task::Cell(cell) => {
                cell.end(end);
                cell.publish();
            }
            Task::Closure(closure) => crate::task::unwind::drop_quietly(closure),
        }
    }

    /// Runs a task without a permit, on behalf of whoever took it out at shutdown.
    pub(crate) fn run_unrun(self: &Arc<Self>, task: Task) {
        let report = |payload: &(dyn std::any::Any + Send)| self.pool().report_panic(payload);
        let id = task.id();
        match task {
            Task::Cell(cell) => {
                // Inside of the task, so that it cannot join itself, and of no executor.
                cell.run(&|body| context::enter(Id::NONE, id, false, body), &report);
                cell.publish();
            }
            Task::Closure(mut closure) => {
                let run = || context::enter(Id::NONE, id, false, || closure.call());
                if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
                    report(&*payload);
                    drop_payload(payload);
                }
            }
        }
    }

    /// Puts a task into the queue, with a thread to serve it.
    #[inline]
    pub(crate) fn enqueue(
        self: &Arc<Self>,
        task: Task,
        why: Why,
    ) -> Result<Ticket, (Task, Reason)> {
        self.enqueue_since(task, why, self.waits.now_ns())
    }

    /// As `enqueue`, for a task that came at this moment.
    #[inline]
    pub(crate) fn enqueue_since(
        self: &Arc<Self>,
        task: Task,
        why: Why,
        came_ns: u64,
    ) -> Result<Ticket, (Task, Reason)> {
        match self.push(task, came_ns) {
            Ok((ticket, errand)) => {
                self.counters.queued(why);
                self.after_push(errand);
                Ok(ticket)
            }
            Err((task, refusal)) => self.enqueue_refused(task, why, came_ns, refusal),
        }
    }

    /// Tries again with a thread that stays until it has been tried. `Err`: no thread is to be had.
    fn with_thread<A, R>(&self, arg: A, again: impl FnOnce(A) -> R) -> Result<R, A> {
        if !self.pool().hold_thread() {
            return Err(arg);
        }
        let answer = again(arg);
        self.pool().settle();
        Ok(answer)
    }

    #[inline]
    fn after_push(self: &Arc<Self>, errand: Errand) {
        self.carry_out(errand);
        if errand == Errand::Nothing {
            self.pool().ask_again_if_short();
        }
    }

    #[cold]
    fn enqueue_refused(
        self: &Arc<Self>,
        task: Task,
        why: Why,
        came_ns: u64,
        refusal: NotQueued,
    ) -> Result<Ticket, (Task, Reason)> {
        let pushed = match refusal {
            NotQueued::NoThread => self
                .with_thread(task, |task| self.push(task, came_ns))
                .unwrap_or_else(|task| Err((task, refusal))),
            _ => Err((task, refusal)),
        };
        match pushed {
            Ok((ticket, errand)) => {
                self.counters.queued(why);
                self.after_push(errand);
                Ok(ticket)
            }
            Err((task, NotQueued::Full)) => Err((task, Reason::QueueFull)),
            Err((task, NotQueued::Closed)) => Err((task, Reason::Closed)),
            Err((task, NotQueued::NoThread)) => Err((task, Reason::NoThread)),
        }
    }

    /// A worker runs the task in its `hand`, under the permit that it has. Says whether it goes on, with what is in its
    /// hand then.
    #[inline(always)]
    fn serve_one(self: &Arc<Self>, hand: &mut Hand<Task>, worker: &Worker<'_>) -> Onward {
        self.waits.record(hand.came_ns);
        let stored = self.run_task(Kind::Worker, hand.task());
        hand.clear();
        let mut onward = Onward::Stop;
        if stored.calls_foreign_code() {
            // It may take any time, and may wait for the next task: nothing is claimed meanwhile, and
            // somebody else knows of the token.
            if self.gate.give() == Errand::SendWorker {
                worker.share(Arc::clone(self) as Arc<dyn Serve>);
            }
            stored.publish();
        } else {
            onward = self.gate.hand_on(hand, |ours| worker.is_wanted_elsewhere(ours));
            if onward == Onward::Stop && self.gate.give() == Errand::SendWorker {
                worker.keep(Arc::clone(self) as Arc<dyn Serve>);
            }
        }
        worker.finished_one();
        onward
    }

    /// Takes a task back that has not started.
    pub(crate) fn cancel(self: &Arc<Self>, ticket: Ticket) -> Option<Task> {
        let (task, errand) = match self.is_child() {
            false => self.gate.remove_cancelled(ticket)?,
            true => self.remove_cancelled_below(ticket)?,
        };
        self.carry_out(errand);
        Some(task)
    }
}

/// A task whose outcome is stored and not yet published: in between its permit goes back.
#[must_use = "a handle waits for this"]
pub(crate) struct Stored(Option<Task>);

impl Stored {
    /// Publishing may call a waker, or drop a result.
    fn calls_foreign_code(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn publish(self) {
        if let Some(Task::Cell(cell)) = self.0 {
            cell.publish();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Only a permit that leaked can leave tasks behind: they end, and the pool owes nobody a thread.
        if self.is_child() {
            return self.drop_parents();
        }
        for (_, task) in self.gate.close_and_take() {
            Engine::end_task(task, End::Closed);
        }
    }
}

impl Serve for Engine {
    fn serve(self: Arc<Self>, worker: &Worker<'_>) {
        let (of, task, came_ns, errand) = match self.gate.claim() {
            Claim::Nothing => return,
            Claim::Run(task, came_ns, errand) => (None, task, came_ns, errand),
            Claim::Below(child, task, came_ns, errand) => (Some(child), task, came_ns, errand),
        };
        if errand == Errand::SendWorker {
            worker.share(Arc::clone(&self) as Arc<dyn Serve>);
        }
        let mut hand = Hand::of(of, task, came_ns);
        loop {
            let onward = match hand.of.take() {
                None => self.serve_one(&mut hand, worker),
                Some(child) => self.serve_child(&child, &mut hand, worker),
            };
            if onward == Onward::Stop {
                return;
            }
        }
    }
}
