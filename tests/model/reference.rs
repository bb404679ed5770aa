//! The reference: what an executor is, as plain sequential code.
//!
//! Time stands still in it. After each call everything that can start has started, every started job but the
//! gated ones has ended, and a gated one ends when its gate opens.
#![forbid(unsafe_code)]

mod serving;

use crate::counts::{Counts, Why};
use crate::jobs::{Id, Kind};
use crate::ops::{Setup, Wait};
use crate::tally;
use std::collections::VecDeque;
use work_permit::Reason;

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing yet, or it is inline on the driver's thread.
    Made,
    /// In a queue, as a task or as another thread's call.
    Queued,
    /// Under a permit, waiting for its gate; on a worker, or on a thread of its own.
    Running,
    /// Taken out by `shutdown_now`.
    Unrun,
    Ended(End),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Ran,
    Panicked,
    Cancelled,
    Closed,
    Refused(Reason),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct JobState {
    pub(crate) exec: usize,
    pub(crate) kind: Kind,
    pub(crate) open: bool,
    pub(crate) fate: Fate,
}

/// What stands in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A task; it needs a permit and a worker.
    Task(Id),
    /// A task that the driver joins; it needs a permit.
    Joined(Id),
    /// The driver, who wants a permit.
    Driver,
    /// Another thread in `run`.
    OtherRun(Id),
    /// Another thread in `acquire`.
    OtherGuard(Id),
}

impl Entry {
    pub(crate) fn task(self) -> Option<Id> {
        match self {
            Entry::Task(id) | Entry::Joined(id) => Some(id),
            _ => None,
        }
    }
}

/// One executor.
#[derive(Debug, Clone)]
pub(crate) struct Exec {
    pub(crate) limit: usize,
    capacity: usize,
    max_overtakes: usize,
    max_inline_depth: usize,
    never_inline: bool,
    pub(crate) closed: bool,
    pub(crate) guards: usize,
    pub(crate) owned: usize,
    pub(crate) line: VecDeque<Entry>,
    pub(crate) on_workers: Vec<Id>,
    /// Gated calls of other threads, and whether each holds a guard.
    pub(crate) on_others: Vec<(Id, bool)>,
    /// The driver stood in the line, and the permit is his.
    pub(crate) granted: bool,
    overtaken: usize,
    pub(crate) counts: Counts,
    /// Starts since the last comparison, and whether their order is certain.
    pub(crate) started: Vec<Id>,
    pub(crate) in_order: bool,
}

impl Exec {
    fn new(setup: &Setup, exec: usize) -> Self {
        let one_queue = setup.max_threads.is_some() && exec > 0;
        Self {
            limit: setup.limits[exec],
            capacity: if one_queue { 0 } else { setup.capacity },
            max_overtakes: setup.max_overtakes,
            max_inline_depth: setup.max_inline_depth,
            never_inline: setup.never_inline,
            closed: false,
            guards: 0,
            owned: 0,
            line: VecDeque::new(),
            on_workers: Vec::new(),
            on_others: Vec::new(),
            granted: false,
            overtaken: 0,
            counts: Counts::default(),
            started: Vec::new(),
            in_order: true,
        }
    }

    pub(crate) fn tasks(&self) -> usize {
        self.line.iter().filter(|entry| entry.task().is_some()).count()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.line.len() - self.tasks()
    }

    /// The head was served: it counts anew how often the next one is overtaken.
    pub(crate) fn line_was_served(&mut self, with_permit_of_its_own: bool) {
        if with_permit_of_its_own {
            self.overtaken = 0;
        }
    }

    fn left_line(&mut self) {
        if self.line.is_empty() {
            self.overtaken = 0;
        }
    }
}

/// The two executors, the driver's thread, and the threads of the pool.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) execs: [Exec; 2],
    /// Tasks the driver is inside of: the executor, and whether the task has a permit of its own.
    pub(crate) frames: Vec<(usize, bool)>,
    /// Attempts the driver is inside of, by executor; each has a frame of nobody's.
    pub(crate) attempts: Vec<usize>,
    pub(crate) jobs: Vec<JobState>,
    max_threads: Option<usize>,
    /// Somebody may stand in a line and wait.
    pub(crate) may_wait: bool,
    /// Threads that are busy for somebody else.
    pub(crate) stalled: usize,
    /// Panics of queued tasks.
    pub(crate) reported: u64,
}

/// What will come of a call that wants a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// It runs under the permit of the task around it.
    Nested,
    /// A permit at once.
    Taken,
    /// A permit, when all gates are opened while it waits.
    Waits,
    Refused(Reason),
    /// It would wait for ever: the driver does not call.
    Never,
}

impl Model {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self {
            execs: [Exec::new(setup, 0), Exec::new(setup, 1)],
            frames: Vec::new(),
            attempts: Vec::new(),
            jobs: Vec::new(),
            max_threads: setup.max_threads,
            may_wait: setup.may_wait(),
            stalled: 0,
            reported: 0,
        }
    }

    pub(crate) fn add_job(&mut self, exec: usize, kind: Kind) {
        self.jobs.push(JobState { exec, kind, open: false, fate: Fate::Made });
    }

    /// The driver begins an attempt: it is inside of one task more, which is no executor's.
    pub(crate) fn begin_attempt(&mut self, exec: usize) {
        self.attempts.push(exec);
        self.frames.push((usize::MAX, false));
    }

    pub(crate) fn end_attempt(&mut self) {
        self.attempts.pop();
        self.frames.pop();
    }

    pub(crate) fn attempts(&self, exec: usize) -> usize {
        self.attempts.iter().filter(|of| **of == exec).count()
    }

    pub(crate) fn is_inside(&self, exec: usize) -> bool {
        self.frames.iter().any(|frame| frame.0 == exec)
    }

    fn own_frames(&self, exec: usize) -> usize {
        self.frames.iter().filter(|frame| **frame == (exec, true)).count()
    }

    /// Permits that the driver's thread itself holds.
    fn held(&self, exec: usize) -> usize {
        self.own_frames(exec) + self.execs[exec].guards
    }

    pub(crate) fn is_held(&self, exec: usize) -> bool {
        self.is_inside(exec) || self.execs[exec].guards > 0
    }

    pub(crate) fn taken(&self, exec: usize) -> usize {
        let e = &self.execs[exec];
        self.held(exec) + e.owned + e.on_workers.len() + e.on_others.len() + usize::from(e.granted)
    }

    fn is_free(&self, exec: usize) -> bool {
        self.taken(exec) < self.execs[exec].limit
    }

    /// Threads of the pool that may take work.
    pub(crate) fn idle(&self) -> usize {
        let busy = self.stalled + self.execs.iter().map(|e| e.on_workers.len()).sum::<usize>();
        self.max_threads.map_or(usize::MAX, |cap| cap - busy)
    }

    /// Inline, guards, on workers: where the taken permits are.
    pub(crate) fn places(&self, exec: usize) -> [usize; 3] {
        let e = &self.execs[exec];
        let others_guards = e.on_others.iter().filter(|other| other.1).count();
        let inline = self.own_frames(exec) + e.on_others.len() - others_guards;
        [inline, e.guards + e.owned + others_guards, e.on_workers.len()]
    }

    /// T1: a permit for somebody who does not stand in the line.
    pub(crate) fn take(&mut self, exec: usize) -> Result<(), Reason> {
        let is_free = self.is_free(exec);
        let e = &mut self.execs[exec];
        if e.closed {
            return Err(Reason::Closed);
        }
        if !is_free {
            return Err(Reason::Saturated);
        }
        if !e.line.is_empty() {
            if e.overtaken >= e.max_overtakes {
                return Err(Reason::Saturated);
            }
            e.overtaken += 1;
            e.counts.overtakes += 1;
            tally::note("overtook");
        }
        Ok(())
    }

    /// What comes of `run` and its like (`runs`), or of `acquire` and its like. A permit that is free is taken.
    pub(crate) fn plan(&mut self, exec: usize, wait: Wait, runs: bool) -> Plan {
        if runs && self.is_inside(exec) {
            return Plan::Nested;
        }
        if wait == Wait::Zero {
            return Plan::Refused(Reason::TimedOut);
        }
        match self.take(exec) {
            Ok(()) => Plan::Taken,
            Err(Reason::Saturated) if wait != Wait::Never => {
                if self.would_deadlock(exec) {
                    Plan::Refused(Reason::Deadlock)
                } else if wait == Wait::Short {
                    Plan::Refused(Reason::TimedOut)
                } else if self.would_be_served(exec, |e| e.line.push_back(Entry::Driver)) {
                    Plan::Waits
                } else {
                    Plan::Never
                }
            }
            Err(reason) => Plan::Refused(reason),
        }
    }

    pub(crate) fn would_deadlock(&self, exec: usize) -> bool {
        let held = self.held(exec);
        held > 0 && held >= self.execs[exec].limit
    }

    /// Whether the driver's entry would be served after `line_up`, with every gate open.
    pub(crate) fn would_be_served(&self, exec: usize, line_up: impl FnOnce(&mut Exec)) -> bool {
        if !self.may_wait {
            return false;
        }
        let mut future = self.clone();
        line_up(&mut future.execs[exec]);
        future.open_all(exec);
        let line = &future.execs[exec].line;
        !line.iter().any(|entry| matches!(entry, Entry::Driver | Entry::Joined(_)))
    }

    /// Opens every gate of an executor, and says which were shut.
    pub(crate) fn open_all(&mut self, exec: usize) -> Vec<Id> {
        let shut = |job: &JobState| job.exec == exec && job.kind == Kind::Gated && !job.open;
        let ids: Vec<Id> = (0..self.jobs.len()).filter(|id| shut(&self.jobs[*id])).collect();
        for id in &ids {
            self.jobs[*id].open = true;
        }
        self.settle();
        ids
    }

    /// Why a task is queued; `None`: it runs here, nested where the flag says so.
    pub(crate) fn plan_dispatch(&mut self, exec: usize) -> Result<bool, Why> {
        let e = &self.execs[exec];
        if e.never_inline {
            return Err(Why::Asked);
        }
        if self.frames.len() >= e.max_inline_depth {
            return Err(Why::TooDeep);
        }
        if self.is_inside(exec) {
            return Ok(true);
        }
        // A closed executor refuses the queue as well.
        self.take(exec).map(|()| false).map_err(|_| Why::NoPermit)
    }

    pub(crate) fn queue(&mut self, exec: usize, id: Id, why: Why) -> Result<(), Reason> {
        let e = &mut self.execs[exec];
        let refused = match () {
            () if e.closed => Some(Reason::Closed),
            () if e.tasks() >= e.capacity => Some(Reason::QueueFull),
            () => None,
        };
        if let Some(reason) = refused {
            return Err(reason);
        }
        e.counts.queued(why);
        e.line.push_back(Entry::Task(id));
        self.jobs[id].fate = Fate::Queued;
        self.settle();
        Ok(())
    }

    pub(crate) fn refuse(&mut self, exec: usize, reason: Reason) {
        self.execs[exec].counts.refuse(reason);
    }

    /// Takes a task out of the line. `false`: it is not there.
    pub(crate) fn remove(&mut self, id: Id) -> bool {
        let e = &mut self.execs[self.jobs[id].exec];
        let at = e.line.iter().position(|entry| entry.task() == Some(id));
        if let Some(at) = at {
            e.line.remove(at);
            e.left_line();
        }
        at.is_some()
    }

    pub(crate) fn close(&mut self, exec: usize) {
        self.execs[exec].closed = true;
    }

    /// Closes, and empties the line: the tasks, in order; other threads are refused.
    pub(crate) fn shutdown_now(&mut self, exec: usize) -> Vec<Id> {
        self.close(exec);
        let e = &mut self.execs[exec];
        let line = std::mem::take(&mut e.line);
        e.left_line();
        let mut tasks = Vec::new();
        for entry in line {
            match entry {
                Entry::Task(id) | Entry::Joined(id) => {
                    self.execs[exec].counts.unrun += 1;
                    self.jobs[id].fate = Fate::Unrun;
                    tasks.push(id);
                }
                Entry::OtherRun(id) | Entry::OtherGuard(id) => {
                    self.refuse(exec, Reason::Closed);
                    self.jobs[id].fate = Fate::Ended(End::Refused(Reason::Closed));
                }
                Entry::Driver => unreachable!("the driver is here"),
            }
        }
        tasks
    }
}

pub(crate) fn ended(kind: Kind) -> End {
    if kind.panics() { End::Panicked } else { End::Ran }
}
