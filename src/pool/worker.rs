//! A worker thread: search, serve, watch, rest, leave. Nothing else.
#![forbid(unsafe_code)]

use super::headcount::Leave;
use super::sched::{Role, Sched, TICK, Verdict, WorkerShared};
use super::{PoolCore, Serve};
use crate::sync::{self, Arc, Parker, local, spin_hint};
use crate::task::fit;
use crate::task::unwind::call_quietly;
use std::cell::Cell;
use std::ptr;
use std::time::Instant;

/// Looks of a searcher at an empty run queue before it rests, for work that is just being queued. It does not yield:
/// starts after idleness came later with yields, as if the worker, still on its core, had sent the one who waited for
/// its task to another, to be woken across cores the next time.
#[cfg(not(work_permit_loom))]
const SEARCH: u32 = 64;
#[cfg(work_permit_loom)]
const SEARCH: u32 = 0;

local! {
    /// The pool that this thread works for.
    static POOL: Cell<*const PoolCore> = Cell::new(ptr::null())
}

/// This thread is a worker of `pool`.
pub(crate) fn is_worker_of(pool: &PoolCore) -> bool {
    POOL.with(|of| ptr::eq(of.get(), pool))
}

/// A worker, on its own thread.
pub(crate) struct Worker<'a> {
    pool: &'a Arc<PoolCore>,
    me: &'a Arc<WorkerShared>,
    parker: &'a Parker,
    served: Cell<u64>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        pool: &'a Arc<PoolCore>,
        me: &'a Arc<WorkerShared>,
        parker: &'a Parker,
    ) -> Self {
        Self { pool, me, parker, served: Cell::new(0) }
    }

    /// The thread's main function.
    pub(crate) fn main(&self, first: Role) {
        POOL.with(|of| of.set(Arc::as_ptr(self.pool)));
        fit::become_worker();
        let mut role = self.start(first);
        loop {
            role = match role {
                Role::Search => self.search(),
                Role::Watch => self.watch(),
                Role::Rest { searched } => match self.rest(searched) {
                    Some(role) => role,
                    None => break,
                },
            };
        }
        if let Some(hook) = &self.pool.config.on_thread_stop {
            call_quietly(hook);
        }
        let mut sched = self.pool.lock_sched();
        sched.present -= 1;
        if sched.present == 0 {
            self.pool.all_left.notify_all();
        }
    }

    /// Calls the start hook. It is foreign code and may take any time, so nobody counts on this thread meanwhile.
    fn start(&self, first: Role) -> Role {
        let Some(hook) = &self.pool.config.on_thread_start else {
            return first;
        };
        {
            let mut sched = self.pool.lock_sched();
            sched.begin_start(first);
            self.pool.note_attended(&sched);
            self.pool.attend(sched);
        }
        call_quietly(hook);
        self.pool.lock_sched().end_start();
        Role::Rest { searched: false }
    }

    /// More work of an executor can start: another worker may take it.
    pub(crate) fn share(&self, token: Arc<dyn Serve>) {
        self.pool.submit(token);
    }

    /// More work can start, and this worker looks for it next.
    pub(crate) fn keep(&self, token: Arc<dyn Serve>) {
        self.pool.submit_to_self(token);
    }

    /// Others wait for a worker than the one executor that has `ours` tokens in the run queue.
    pub(crate) fn is_wanted_elsewhere(&self, ours: usize) -> bool {
        !self.pool.run_queue.is_empty() && self.pool.run_queue.len() > ours
    }

    /// One task is done.
    pub(crate) fn finished_one(&self) {
        self.served.set(self.served.get() + 1);
        self.me.finished_one();
    }

    fn search(&self) -> Role {
        let mut left = SEARCH;
        loop {
            if let Some(token) = self.pool.run_queue.pop() {
                return self.run(token);
            }
            if left == 0 {
                return Role::Rest { searched: true };
            }
            left -= 1;
            spin_hint();
        }
    }

    /// Serves until the run queue is empty.
    fn run(&self, token: Arc<dyn Serve>) -> Role {
        {
            let mut sched = self.pool.lock_sched();
            sched.begin_run();
            self.pool.note_attended(&sched);
            // A worker that found work and sees more wakes the next before it runs.
            self.pool.attend(sched);
        }
        self.served.set(0);
        token.serve(self);
        while let Some(token) = self.pool.run_queue.pop() {
            token.serve(self);
        }
        let mut sched = self.pool.lock_sched();
        if sched.end_run(self.served.get()) {
            self.pool.note_attended(&sched);
            Role::Search
        } else {
            Role::Rest { searched: false }
        }
    }

    /// Work waits and enough threads run: are they getting through it?
    fn watch(&self) -> Role {
        let mut seen = self.pool.lock_sched().seen_now();
        loop {
            let tick = sync::deadline_after(TICK);
            while tick.is_some_and(|at| Instant::now() < at) {
                self.parker.park_until(tick);
            }
            let mut sched = self.pool.lock_sched();
            sched.watching = false;
            self.pool.note_attended(&sched);
            if self.pool.run_queue.is_empty() {
                return Role::Rest { searched: false };
            }
            let verdict = sched.judge(&mut seen);
            sched.watching = verdict == Verdict::WatchOn;
            self.pool.note_attended(&sched);
            if verdict == Verdict::JoinIn {
                return Role::Search;
            }
        }
    }

    /// Parks until there is a role again. `None`: the thread leaves.
    fn rest(&self, searched: bool) -> Option<Role> {
        let mut sched = self.pool.lock_sched();
        if searched {
            sched.searching = false;
        }
        // Also after a run: while another one searched, somebody may have found all threads busy, this one
        // among them, and have left his work to whoever looks next.
        self.pool.note_attended(&sched);
        if !self.pool.run_queue.is_empty() && !sched.is_attended() {
            sched.searching = true;
            self.pool.note_attended(&sched);
            return Some(Role::Search);
        }
        let keep_alive = self.pool.config.keep_alive;
        let leave_at = sync::deadline_after(keep_alive);
        let mut may_leave = true;
        loop {
            let is_time = sched.retired || leave_at.is_some_and(|at| at <= Instant::now());
            if is_time && may_leave {
                match self.leave(&mut sched) {
                    Leave::Left => return None,
                    // Tasks are queued that nobody can start yet. Whoever settles them wakes us.
                    Leave::Stay => may_leave = false,
                }
            }
            sched.resting.push(Arc::clone(self.me));
            drop(sched);
            self.parker.park_until(if may_leave { leave_at } else { None });
            sched = self.pool.lock_sched();
            if let Some(role) = sched.assignment(self.me.id) {
                return Some(role);
            }
            sched.stop_resting(self.me.id);
            may_leave = true;
        }
    }

    fn leave(&self, sched: &mut Sched) -> Leave {
        let leave = self.pool.headcount.leave();
        if leave == Leave::Left {
            sched.leave(self.me);
        }
        leave
    }
}

impl std::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("id", &self.me.id).finish_non_exhaustive()
    }
}
