//! A gate with everything around it that an executor would have: callers, waiters, joiners, workers
//! that come for a token, and books about the pool's debts.

use super::Floor;
use super::child::Kid;
use crate::gate::{Arrival, Claim, Errand, Gate, Hand, Ledger, NotQueued, Onward, Turn, Work};
use crate::line::Ticket;
use crate::sync::Parker;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A task: its place in the list of those that were accepted.
pub(super) type Job = usize;

impl Work for Job {
    type Kin = Arc<Kid>;
}

/// Most jobs in a model.
const JOBS: usize = 4;

/// Whether a line owes a thread for its tasks: never twice, never settled without a debt.
#[derive(Debug, Default, Clone)]
pub(super) struct Books(Arc<AtomicUsize>);

impl Ledger for Books {
    fn owe(&self) -> bool {
        assert_eq!(self.0.fetch_add(1, Relaxed), 0, "owed twice");
        true
    }

    fn settle(&self) {
        assert_eq!(self.0.fetch_sub(1, Relaxed), 1, "settled without a debt");
    }
}

/// How somebody who stood in the line came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    /// He ran under a permit.
    Ran,
    /// He left as he had asked to.
    Left,
    /// His place was gone.
    Gone,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Yard {
    pub(super) gate: Gate<Job, Books>,
    books: Books,
    pub(super) floor: Floor,
    /// How often each job ended, with a run or without.
    ends: [AtomicUsize; JOBS],
    /// Workers go on under their permit (T6), as long as they may.
    goes_on: bool,
    /// Workers look at the limit before they ask for a task: at 0 they must get none.
    may_pause: bool,
    /// Workers come when the model lets them, not at once.
    late_workers: bool,
    /// Workers that are on their way.
    on_the_way: AtomicUsize,
}

/// A yard's size: the limit, who runs at most at a time, and the numbers of the gate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) limit: usize,
    pub(super) at_most: usize,
    pub(super) taken: usize,
    pub(super) max_overtakes: u16,
    pub(super) capacity: usize,
    pub(super) goes_on: bool,
    pub(super) may_pause: bool,
    pub(super) late_workers: bool,
}

impl Plan {
    /// A strict gate with `limit` permits, `taken` of them in the hands of the model.
    pub(super) fn new(limit: usize, taken: usize) -> Self {
        let at_most = limit;
        Self {
            limit,
            at_most,
            taken,
            max_overtakes: 0,
            capacity: JOBS,
            goes_on: false,
            may_pause: false,
            late_workers: false,
        }
    }

    pub(super) fn build(self) -> Arc<Yard> {
        let books = Books::default();
        let gate = Gate::new(self.limit, self.max_overtakes, self.capacity, books.clone());
        for _ in 0..self.taken {
            gate.try_take().unwrap();
        }
        let floor = Floor::new(self.at_most);
        Arc::new(Yard {
            gate,
            books,
            floor,
            ends: Default::default(),
            goes_on: self.goes_on,
            may_pause: self.may_pause,
            late_workers: self.late_workers,
            on_the_way: AtomicUsize::new(0),
        })
    }
}

impl Yard {
    /// Runs `f` on another thread, with this yard.
    pub(super) fn beside(
        self: &Arc<Self>,
        f: impl FnOnce(&Yard) + 'static,
    ) -> thread::JoinHandle<()> {
        let yard = Arc::clone(self);
        thread::spawn(move || f(&yard))
    }

    /// The worker that an errand asks for comes at once, on the thread that got the errand, unless
    /// workers are late.
    pub(super) fn carry_out(&self, errand: Errand) {
        match errand {
            Errand::Nothing => {}
            Errand::SendWorker if self.late_workers => {
                self.on_the_way.fetch_add(1, Relaxed);
            }
            Errand::SendWorker => self.work(),
        }
    }

    /// The workers that are late come, and those that they send.
    pub(super) fn let_workers_come(&self) {
        while self.on_the_way.load(Relaxed) > 0 {
            self.on_the_way.fetch_sub(1, Relaxed);
            self.work();
        }
    }

    fn work(&self) {
        let paused = self.is_paused();
        let Claim::Run(job, _, errand) = self.gate.claim() else {
            return;
        };
        assert!(!paused, "G1: a start at limit 0");
        self.carry_out(errand);
        self.floor.body();
        self.end(job);
        self.go_on_and_give();
    }

    /// A worker that is done with a job goes on under its permit as long as it may, and gives it back.
    pub(super) fn go_on_and_give(&self) {
        while let Some(job) = if self.goes_on { self.hand_on() } else { None } {
            self.floor.body();
            self.end(job);
        }
        self.carry_out(self.gate.give());
    }

    fn hand_on(&self) -> Option<Job> {
        let paused = self.is_paused();
        let mut hand = Hand::empty();
        let goes_on = self.gate.hand_on(&mut hand, |_| false) != Onward::Stop;
        let next = goes_on.then(|| *hand.task());
        assert!(next.is_none() || !paused, "G1: a start at limit 0");
        next
    }

    /// The limit is 0, as it stays until the model has joined its threads.
    fn is_paused(&self) -> bool {
        self.may_pause && self.gate.limit() == 0
    }

    /// Sets the limit and does what is left to do.
    pub(super) fn set_limit(&self, limit: usize) {
        self.carry_out(self.gate.set_limit(limit));
    }

    /// A job ended, with a run or without.
    pub(super) fn end(&self, job: Job) {
        self.ends[job].fetch_add(1, Relaxed);
    }

    /// Runs under a permit that the caller has, and gives it back.
    pub(super) fn run_and_give(&self) {
        self.floor.body();
        self.carry_out(self.gate.give());
    }

    /// Runs here if a permit is free. Says whether it was.
    pub(super) fn try_run(&self) -> bool {
        let taken = self.gate.try_take().is_ok();
        if taken {
            self.run_and_give();
        }
        taken
    }

    /// Puts a job into the line and does what is left to do.
    pub(super) fn push(&self, job: Job) -> Result<Ticket, NotQueued> {
        let (ticket, errand) = self.gate.push(job, 0).map_err(|(_, why)| why)?;
        self.carry_out(errand);
        Ok(ticket)
    }

    /// Stands in the line until it is its turn, or takes one look and leaves.
    pub(super) fn stand(&self, leave: bool) -> Out {
        let parker = Parker::new();
        match self.gate.arrive(&parker.unparker(), 0) {
            Arrival::Standing(ticket) => self.turns(&parker, ticket, leave),
            Arrival::Closed => Out::Gone,
            Arrival::Taken(_) => {
                self.run_and_give();
                Out::Ran
            }
        }
    }

    /// Waits for a job's turn and runs it here, or takes one look and leaves.
    pub(super) fn join(&self, ticket: Ticket, leave: bool) -> Out {
        let parker = Parker::new();
        if !self.gate.join(ticket, &parker.unparker()) {
            return Out::Gone;
        }
        self.turns(&parker, ticket, leave)
    }

    /// Looks at the line from `ticket` until something comes of it.
    pub(super) fn turns(&self, parker: &Parker, ticket: Ticket, leave: bool) -> Out {
        loop {
            match self.gate.turn(ticket, leave) {
                Turn::Granted { task, errand, .. } => {
                    self.carry_out(errand);
                    self.run_and_give();
                    task.into_iter().for_each(|job| self.end(job));
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

    /// Takes a job out of the line that will never run. Says whether it was there.
    pub(super) fn cancel(&self, ticket: Ticket) -> bool {
        let Some((job, errand)) = self.gate.remove_cancelled(ticket) else {
            return false;
        };
        self.end(job);
        self.carry_out(errand);
        true
    }

    /// Everything that was accepted has ended once, every permit is back and nobody waits.
    pub(super) fn assert_quiet(&self, jobs: usize, ran: usize) {
        let stats = self.gate.stats();
        assert_eq!((stats.free, stats.taken), (stats.limit, 0), "G6: {stats:?}");
        assert_eq!((stats.tasks, stats.waiters), (0, 0), "G3: {stats:?}");
        let tally = stats.tally;
        assert_eq!(tally.accepted, tally.ran + tally.cancelled + tally.unrun, "{tally:?}");
        assert_eq!(tally.accepted, jobs as u64, "{tally:?}");
        for (job, ends) in self.ends.iter().enumerate() {
            assert_eq!(ends.load(Relaxed), usize::from(job < jobs), "G2: ends of job {job}");
        }
        assert_eq!(self.books.0.load(Relaxed), 0, "a debt is left");
        assert_eq!(self.floor.ran(), ran);
    }

    /// As [`assert_quiet`](Self::assert_quiet), and no token is left over: the next job makes one.
    pub(super) fn assert_as_new(&self, jobs: usize, ran: usize) {
        self.assert_quiet(jobs, ran);
        let (_, errand) = self.gate.push(jobs, 0).unwrap();
        assert_eq!(errand, Errand::SendWorker, "a token is left that nobody has");
        self.carry_out(errand);
        self.let_workers_come();
        self.assert_quiet(jobs + 1, ran + 1);
    }
}
