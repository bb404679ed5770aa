//! The threads: a run queue of executors that have work and a permit, and workers that serve them.
//!
//! An entry of the run queue brings an executor's token (I5 of [`crate::permits::state`]), of which there is one;
//! an entry whose token went over to a waiting thread meanwhile finds nothing to do. So the run queue is about as
//! long as there are executors with startable work, whatever their backlog, and executors get turns.
#![forbid(unsafe_code)]

pub(crate) mod headcount;
pub(crate) mod run_queue;
pub(crate) mod sched;
pub(crate) mod worker;

use crate::error::{Reason, Unfinished};
use crate::sync::Ordering::Relaxed;
use crate::sync::{
    self, Arc, AtomicBool, Condvar, Mutex, MutexGuard, Parker, Weak, published_then_check,
    stood_down_then_check,
};
use headcount::Headcount;
use run_queue::RunQueue;
use sched::{Role, Sched, Send as Whom, WorkerShared};
use std::any::Any;
use std::fmt;
use std::time::{Duration, Instant};
use worker::Worker;

/// What the pool serves: an executor, seen from below.
pub(crate) trait Serve: Send + Sync {
    /// Claims work with the token that came with this call, and runs it.
    fn serve(self: Arc<Self>, worker: &Worker<'_>);
}

/// A member of a pool, for its shutdown.
pub(crate) trait Member: Send + Sync {
    fn close(self: Arc<Self>);
    /// Waits for the last task. `Err`: what was left at `deadline`.
    fn wait_quiet(&self, deadline: Option<Instant>) -> Result<(), Unfinished>;
    /// What is left now.
    fn left(&self, reason: Reason) -> Unfinished;
    /// This thread holds a permit of it.
    fn is_held(self: Arc<Self>) -> bool;
}

type Hook = Box<dyn Fn() + Send + Sync>;
type PanicHook = Box<dyn Fn(&(dyn Any + Send)) + Send + Sync>;

/// What a pool is built with.
pub(crate) struct PoolConfig {
    pub(crate) name: String,
    pub(crate) max_threads: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) stack_size: Option<usize>,
    pub(crate) on_thread_start: Option<Hook>,
    pub(crate) on_thread_stop: Option<Hook>,
    pub(crate) on_panic: Option<PanicHook>,
    pub(crate) cores: usize,
}

struct Members {
    list: Vec<Weak<dyn Member>>,
    /// The list's length at which entries of dropped executors are swept next.
    sweep_at: usize,
    shut: bool,
}

/// What workers and executors share of a pool.
pub(crate) struct PoolCore {
    pub(crate) config: PoolConfig,
    headcount: Headcount,
    run_queue: RunQueue<Arc<dyn Serve>>,
    /// Somebody searches or watches: a copy of `Sched::is_attended` for those who push.
    attended: AtomicBool,
    /// The system refused a thread, and gave none since.
    short: AtomicBool,
    sched: Mutex<Sched>,
    all_left: Condvar,
    members: Mutex<Members>,
}

impl PoolCore {
    pub(crate) fn new(config: PoolConfig) -> Arc<Self> {
        Arc::new(Self {
            headcount: Headcount::new(),
            run_queue: RunQueue::new(),
            attended: AtomicBool::new(false),
            short: AtomicBool::new(false),
            sched: Mutex::new(Sched::new(config.max_threads, config.cores)),
            all_left: Condvar::new(),
            members: Mutex::new(Members { list: Vec::new(), sweep_at: 16, shut: false }),
            config,
        })
    }

    /// Puts an executor with its token into the run queue, and sees that somebody looks there.
    pub(crate) fn submit(self: &Arc<Self>, token: Arc<dyn Serve>) {
        self.run_queue.push(token);
        self.see_to_run_queue();
    }

    /// As `submit`, by a worker that looks into the run queue next.
    fn submit_to_self(&self, token: Arc<dyn Serve>) {
        self.run_queue.push(token);
    }

    /// Something was pushed: if nobody searches or watches, sends somebody. Case 1, our fence is first: who stops
    /// looking sees what was pushed. Case 2, his is first: we see that nobody looks. Without the fence:
    /// model `submit_races_rest` fails.
    fn see_to_run_queue(self: &Arc<Self>) {
        published_then_check();
        if !self.attended.load(Relaxed) {
            self.attend(self.sched.lock());
        }
    }

    /// Sends somebody for what is in the run queue, if nobody is on the way. Wakes outside of the lock, which is
    /// the first thing that the woken one needs.
    fn attend(self: &Arc<Self>, mut sched: MutexGuard<'_, Sched>) {
        if self.run_queue.is_empty() {
            return;
        }
        match sched.send() {
            Whom::Nobody => {}
            Whom::Resting(worker) => {
                self.attended.store(true, Relaxed);
                drop(sched);
                worker.unparker.unpark();
            }
            Whom::New(role) => {
                self.attended.store(true, Relaxed);
                let created = self.create(&mut sched, role);
                if !created {
                    self.note_attended(&sched);
                }
            }
        }
    }

    /// Copies what the lock protects to where those who push look. With nobody left to look, the caller checks
    /// the run queue afterwards: the other side of [`see_to_run_queue`](Self::see_to_run_queue), and the same two
    /// cases. Without the fence model `submit_races_rest` fails.
    fn note_attended(&self, sched: &Sched) {
        self.attended.store(sched.is_attended(), Relaxed);
        stood_down_then_check();
    }

    /// Creates a thread. The lock is held meanwhile, so that the thread is counted before it can leave; no
    /// foreign code runs in between.
    fn create(self: &Arc<Self>, sched: &mut Sched, role: Role) -> bool {
        let parker = Parker::new();
        let id = sched.created;
        let me = Arc::new(WorkerShared::new(id, parker.unparker()));
        let (pool, shared) = (Arc::clone(self), Arc::clone(&me));
        let name = format!("{}-{id}", self.config.name);
        let main = move || Worker::new(&pool, &shared, &parker).main(role);
        match sync::spawn_thread(name, self.config.stack_size, main) {
            Ok(()) => {
                sched.created(me);
                self.short.store(false, Relaxed);
                self.headcount.join();
                true
            }
            Err(_) => {
                sched.not_created(role);
                self.short.store(true, Relaxed);
                false
            }
        }
    }

    /// Makes sure that a thread exists, and keeps it until [`Ledger::settle`](crate::gate::Ledger::settle).
    /// `false`: there is none to be had.
    pub(crate) fn hold_thread(self: &Arc<Self>) -> bool {
        self.headcount.hold();
        if self.headcount.alive() > 0 {
            return true;
        }
        let mut sched = self.sched.lock();
        if self.headcount.alive() > 0 {
            return true;
        }
        // Nobody is alive, so nobody searches.
        sched.searching = true;
        self.attended.store(true, Relaxed);
        let created = self.create(&mut sched, Role::Search);
        if !created {
            self.note_attended(&sched);
            drop(sched);
            self.settle();
        }
        created
    }

    /// Work may be left in the run queue for want of a thread: asks for one again.
    #[inline]
    pub(crate) fn ask_again_if_short(self: &Arc<Self>) {
        if self.short.load(Relaxed) {
            self.see_to_run_queue();
        }
    }

    pub(crate) fn owe(&self) -> bool {
        self.headcount.owe()
    }

    pub(crate) fn settle(&self) {
        if self.headcount.settle() {
            // The last thread wanted to leave and may now.
            let sched = self.sched.lock();
            sched.resting.iter().for_each(|worker| worker.unparker.unpark());
        }
    }

    /// Threads alive, idle, created, left and refused.
    pub(crate) fn stats(&self) -> crate::stats::PoolStats {
        let sched = self.sched.lock();
        crate::stats::PoolStats {
            alive: sched.present,
            idle: sched.resting.len(),
            created: sched.created,
            left: sched.left,
            refused: sched.refused,
        }
    }

    /// The last handle is gone, or the pool is shut down: workers leave as soon as nothing is queued.
    pub(crate) fn retire(&self) {
        let mut sched = self.sched.lock();
        sched.retired = true;
        sched.resting.iter().for_each(|worker| worker.unparker.unpark());
    }

    /// Adds an executor. `false`: the pool is shut down.
    pub(crate) fn admit(&self, member: Weak<dyn Member>) -> bool {
        let mut members = self.members.lock();
        if members.shut {
            return false;
        }
        if members.list.len() >= members.sweep_at {
            members.list.retain(|member| member.strong_count() > 0);
            members.sweep_at = 16.max(2 * members.list.len());
        }
        members.list.push(member);
        true
    }

    /// It takes no executor any more.
    pub(crate) fn is_shut(&self) -> bool {
        self.members.lock().shut
    }

    pub(crate) fn shutdown(&self, timeout: Duration) -> Result<(), Unfinished> {
        let deadline = sync::deadline_after(timeout);
        let members: Vec<_> = {
            let mut members = self.members.lock();
            members.shut = true;
            members.list.iter().filter_map(Weak::upgrade).collect()
        };
        members.iter().for_each(|member| Arc::clone(member).close());
        self.retire();
        if worker::is_worker_of(self) || members.iter().any(|member| Arc::clone(member).is_held()) {
            return Err(sum(members.iter().map(|m| m.left(Reason::Deadlock)), Reason::Deadlock));
        }
        let late: Vec<_> = members.iter().filter_map(|m| m.wait_quiet(deadline).err()).collect();
        if !late.is_empty() {
            return Err(sum(late.into_iter(), Reason::TimedOut));
        }
        drop(members);
        self.wait_until_all_left(deadline)
    }

    fn wait_until_all_left(&self, deadline: Option<Instant>) -> Result<(), Unfinished> {
        let mut sched = self.sched.lock();
        while sched.present > 0 {
            if deadline.is_some_and(|at| at <= Instant::now()) {
                return Err(sum(std::iter::empty(), Reason::TimedOut));
            }
            sched = self.all_left.wait_until(sched, deadline);
        }
        Ok(())
    }

    fn lock_sched(&self) -> MutexGuard<'_, Sched> {
        self.sched.lock()
    }

    /// Tells the user's hook of a panic in a queued task.
    pub(crate) fn report_panic(&self, payload: &(dyn Any + Send)) {
        if let Some(hook) = &self.config.on_panic {
            crate::task::unwind::call_quietly(|| hook(payload));
        }
    }
}

fn sum(parts: impl Iterator<Item = Unfinished>, reason: Reason) -> Unfinished {
    let none = Unfinished { active: 0, queued: 0, reason };
    parts.fold(none, |sum, part| Unfinished {
        active: sum.active + part.active,
        queued: sum.queued + part.queued,
        reason,
    })
}

impl fmt::Debug for PoolCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolCore")
            .field("name", &self.config.name)
            .field("headcount", &self.headcount)
            .finish_non_exhaustive()
    }
}
