//! Which thread does what: plain data under the pool's lock, and the decision whom to send.
//!
//! | role | how many | what it does |
//! |---|---|---|
//! | searching | at most one | awake, looks for an executor with work |
//! | running | any | serves executors until the run queue is empty |
//! | watching | at most one | awake every [`TICK`] while work waits and enough threads run: do they get through it? |
//! | resting | any | parked; leaves after `keep_alive` |
//!
//! Work in the run queue is *attended* while somebody searches, or somebody watches and enough threads run;
//! otherwise who pushes it sends somebody. The number of threads that run without a second thought is `target`: the cores at first. Beyond
//! that a thread watches before it joins in. Nothing finished during a tick: the work blocks, and thread after
//! thread is sent until something finishes. Little finished for the threads that run (long tasks): half as many
//! again are sent. Much finished: more threads would only take turns on the cores, so none is sent.
#![forbid(unsafe_code)]

use crate::sync::plain::AtomicU64;
use crate::sync::{Arc, Ordering::Relaxed, Unparker};
use crossbeam_utils::CachePadded;
use std::time::{Duration, Instant};

/// How long work may wait beside busy threads before their progress is judged.
pub(crate) const TICK: Duration = Duration::from_millis(2);
/// Fewer tasks than this in a tick and thread: they are long (over half a millisecond), so more threads help.
const LONG_TASKS: u64 = 4;
/// More tasks than this in a tick and thread: they are short (under 50 microseconds).
const SHORT_TASKS: u64 = 40;
/// Ticks without progress that are not believed to be blocked work, after tasks were seen to be short.
const PATIENCE: u32 = 8;
/// After the system refused a thread, how long to do with those there are.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);

/// What a worker thread is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Search,
    Watch,
    /// `searched`: it was the searcher until now.
    Rest {
        searched: bool,
    },
}

/// What others may see of a worker.
#[derive(Debug)]
pub(crate) struct WorkerShared {
    pub(crate) id: u64,
    pub(crate) unparker: Unparker,
    /// Tasks finished; written by the worker alone.
    completed: CachePadded<AtomicU64>,
}

impl WorkerShared {
    pub(crate) fn new(id: u64, unparker: Unparker) -> Self {
        Self { id, unparker, completed: CachePadded::new(AtomicU64::new(0)) }
    }

    pub(crate) fn finished_one(&self) {
        self.completed.store(self.completed.load(Relaxed) + 1, Relaxed);
    }
}

/// Whom to send.
#[derive(Debug)]
pub(crate) enum Send {
    /// A resting worker, taken off the list and given a role: to be unparked.
    Resting(Arc<WorkerShared>),
    /// A new thread in this role.
    New(Role),
    /// Nobody: work is attended to, or all threads there may be are running and will look for themselves.
    Nobody,
}

/// What a watcher does after a tick.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// They get through it.
    WatchOn,
    /// One more thread is needed: the watcher itself.
    JoinIn,
}

/// The state of a pool's threads.
#[derive(Debug)]
pub(crate) struct Sched {
    pub(crate) searching: bool,
    pub(crate) watching: bool,
    pub(crate) running: usize,
    /// New threads in the user's start hook.
    starting: usize,
    pub(crate) resting: Vec<Arc<WorkerShared>>,
    assigned: Vec<(u64, Role)>,
    pub(crate) threads: Vec<Arc<WorkerShared>>,
    pub(crate) created: u64,
    pub(crate) left: u64,
    pub(crate) refused: u64,
    /// Threads whose main function has not returned yet.
    pub(crate) present: usize,
    /// No more work will come: rest is leaving.
    pub(crate) retired: bool,
    max_threads: usize,
    cores: usize,
    target: usize,
    /// Threads that may be sent beyond `target`; endless while nothing finishes.
    grow: usize,
    /// Ticks without progress that are still not believed.
    patience: u32,
    completed_at_stall: u64,
    completed_by_gone: u64,
    pause_until: Option<Instant>,
}

impl Sched {
    pub(crate) fn new(max_threads: usize, cores: usize) -> Self {
        Self {
            searching: false,
            watching: false,
            running: 0,
            starting: 0,
            resting: Vec::new(),
            assigned: Vec::new(),
            threads: Vec::new(),
            created: 0,
            left: 0,
            refused: 0,
            present: 0,
            retired: false,
            max_threads,
            cores,
            target: cores,
            grow: 0,
            patience: 1,
            completed_at_stall: 0,
            completed_by_gone: 0,
            pause_until: None,
        }
    }

    /// Somebody is on his way to what is in the run queue. A watcher counts only while enough threads run: once
    /// they rest, work would wait for his next tick.
    pub(crate) fn is_attended(&self) -> bool {
        self.searching || (self.watching && self.running >= self.target)
    }

    /// Tasks finished by workers so far.
    fn completed(&self) -> u64 {
        self.threads.iter().fold(self.completed_by_gone, |sum, w| sum + w.completed.load(Relaxed))
    }

    /// Work waits that nobody attends to: chooses whom to send, and notes that he is on his way.
    pub(crate) fn send(&mut self) -> Send {
        if self.is_attended() {
            return Send::Nobody;
        }
        let role = self.role_to_send();
        let send = match self.resting.pop() {
            Some(worker) => {
                self.assigned.push((worker.id, role));
                Send::Resting(worker)
            }
            None if self.may_create() => Send::New(role),
            None => return Send::Nobody,
        };
        self.mark(role, true);
        send
    }

    fn role_to_send(&mut self) -> Role {
        if self.running < self.target {
            return Role::Search;
        }
        if self.grow == usize::MAX && self.completed() != self.completed_at_stall {
            self.grow = 0;
        }
        if self.grow == 0 {
            return Role::Watch;
        }
        if self.grow != usize::MAX {
            self.grow -= 1;
        }
        Role::Search
    }

    fn mark(&mut self, role: Role, on: bool) {
        match role {
            Role::Search => self.searching = on,
            Role::Watch => self.watching = on,
            Role::Rest { .. } => {}
        }
    }

    /// One new thread at a time: the next is created when the start hook of this one has returned.
    fn may_create(&self) -> bool {
        self.threads.len() < self.max_threads && self.starting == 0 && !self.is_pausing()
    }

    /// A new thread calls the start hook, which may take any time: until then it has no role.
    pub(crate) fn begin_start(&mut self, role: Role) {
        self.mark(role, false);
        self.starting += 1;
    }

    /// The start hook returned.
    pub(crate) fn end_start(&mut self) {
        self.starting -= 1;
    }

    fn is_pausing(&self) -> bool {
        self.pause_until.is_some_and(|until| Instant::now() < until)
    }

    /// A thread that [`send`](Self::send) asked for exists.
    pub(crate) fn created(&mut self, worker: Arc<WorkerShared>) {
        self.threads.push(worker);
        self.created += 1;
        self.present += 1;
        self.pause_until = None;
    }

    /// The system gave no thread for this role.
    pub(crate) fn not_created(&mut self, role: Role) {
        self.mark(role, false);
        self.refused += 1;
        self.pause_until = Instant::now().checked_add(REFUSED_PAUSE);
    }

    /// The searcher found work.
    pub(crate) fn begin_run(&mut self) {
        self.searching = false;
        self.running += 1;
        self.target = self.target.max(self.running);
    }

    /// A running worker finds no more work. `true`: it searches from now on.
    pub(crate) fn end_run(&mut self, in_a_row: u64) -> bool {
        self.running -= 1;
        if in_a_row > SHORT_TASKS {
            self.target = self.cores;
            self.patience = PATIENCE;
        }
        !std::mem::replace(&mut self.searching, true)
    }

    /// The role given to a worker that was parked.
    pub(crate) fn assignment(&mut self, id: u64) -> Option<Role> {
        let at = self.assigned.iter().position(|(to, _)| *to == id)?;
        Some(self.assigned.swap_remove(at).1)
    }

    /// Takes a worker off the resting list. `false`: it is not there any more.
    pub(crate) fn stop_resting(&mut self, id: u64) -> bool {
        let at = self.resting.iter().position(|worker| worker.id == id);
        at.map(|at| self.resting.remove(at)).is_some()
    }

    /// A worker leaves.
    pub(crate) fn leave(&mut self, worker: &WorkerShared) {
        self.threads.retain(|other| other.id != worker.id);
        self.completed_by_gone += worker.completed.load(Relaxed);
        self.left += 1;
        self.target = self.target.min(self.threads.len()).max(self.cores);
    }

    /// Work waited for a whole tick, and `seen` tasks had finished at its start.
    pub(crate) fn judge(&mut self, seen: &mut u64) -> Verdict {
        let completed = self.completed();
        let finished = completed - std::mem::replace(seen, completed);
        let running = self.running as u64;
        if self.searching {
            return Verdict::WatchOn;
        }
        if self.running < self.target {
            return self.join_in(0);
        }
        if finished > running * SHORT_TASKS {
            self.target = self.cores;
            self.patience = PATIENCE;
            return Verdict::WatchOn;
        }
        if finished >= running * LONG_TASKS {
            return Verdict::WatchOn;
        }
        if self.patience > 0 {
            // Tasks were short a moment ago: rather the cores are somebody else's now than that all block.
            self.patience -= 1;
            return Verdict::WatchOn;
        }
        if finished == 0 {
            self.completed_at_stall = completed;
            return self.join_in(usize::MAX);
        }
        self.join_in(self.running / 2)
    }

    fn join_in(&mut self, grow: usize) -> Verdict {
        self.grow = grow;
        self.watching = false;
        self.searching = true;
        Verdict::JoinIn
    }

    pub(crate) fn seen_now(&self) -> u64 {
        self.completed()
    }
}

#[cfg(all(test, not(work_permit_loom)))]
#[path = "sched_tests.rs"]
mod tests;
