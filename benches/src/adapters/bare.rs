//! The limits: what the question costs when it is answered by nothing, or by the least that could do.

use crate::adapter::{Adapter, Ask, Execute, Job, Run, TryRun};
use crate::groups::Role;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

/// A bare call, under no limit at all.
#[derive(Clone)]
pub(crate) struct BareCall;

impl Adapter for BareCall {
    const NAME: &'static str = "no limit";
    const ROLE: Role = Role::Bare;

    fn new(_limit: usize) -> Self {
        Self
    }
}

impl TryRun for BareCall {
    #[inline]
    fn try_run(&mut self, work: impl FnOnce()) -> bool {
        work();
        true
    }
}

impl Run for BareCall {
    #[inline]
    fn run(&mut self, work: impl FnOnce() + Send) {
        work();
    }
}

impl Ask for BareCall {
    #[inline]
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        work()
    }
}

/// The least a counted permit can cost on one word: a compare-exchange to take, a `fetch_add` to give back.
/// Nobody can wait, nothing is counted, a panic loses the permit.
#[derive(Clone)]
pub(crate) struct BarePair {
    free: Arc<AtomicU64>,
}

impl Adapter for BarePair {
    const NAME: &'static str = "CAS + fetch_add";
    const ROLE: Role = Role::Bare;

    fn new(limit: usize) -> Self {
        Self { free: Arc::new(AtomicU64::new(limit as u64)) }
    }
}

impl TryRun for BarePair {
    #[inline]
    fn try_run(&mut self, work: impl FnOnce()) -> bool {
        let take = |free: u64| free.checked_sub(1);
        if self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, take).is_err() {
            return false;
        }
        work();
        self.free.fetch_add(1, Ordering::Release);
        true
    }
}

struct Shared {
    queue: Mutex<Queue>,
    work_came: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                job();
                queue = self.lock();
            } else if queue.closed {
                return;
            } else {
                queue.idle += 1;
                queue = self.work_came.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            }
        }
    }
}

/// Ends the threads when the last handle goes.
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work_came.notify_all();
    }
}

/// A bare pool: a queue under a mutex, a condition variable, `limit` threads; it signals only sleepers.
#[derive(Clone)]
pub(crate) struct BarePool {
    owner: Arc<Owner>,
}

impl Adapter for BarePool {
    const NAME: &'static str = "condvar pool";
    const ROLE: Role = Role::Bare;

    fn new(limit: usize) -> Self {
        let shared =
            Arc::new(Shared { queue: Mutex::new(Queue::default()), work_came: Condvar::new() });
        for _ in 0..limit {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work());
        }
        Self { owner: Arc::new(Owner(shared)) }
    }
}

impl Execute for BarePool {
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        let shared = &self.owner.0;
        let mut queue = shared.lock();
        queue.jobs.push_back(Box::new(work));
        let somebody_sleeps = queue.idle > 0;
        drop(queue);
        if somebody_sleeps {
            shared.work_came.notify_one();
        }
    }
}

impl Ask for BarePool {
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        super::channels::reply(|job| self.execute(job), work)
    }
}

/// One thread, its inbox and one `unpark`: the least that starting work elsewhere can cost.
#[derive(Clone)]
pub(crate) struct OneUnpark {
    inbox: Arc<Inbox>,
}

struct Inbox {
    jobs: Arc<Mutex<Option<Job>>>,
    thread: Thread,
}

impl Adapter for OneUnpark {
    const NAME: &'static str = "one unpark";
    const ROLE: Role = Role::Bare;

    fn new(_limit: usize) -> Self {
        let jobs = Arc::new(Mutex::new(None::<Job>));
        let inbox = Arc::clone(&jobs);
        let spawned = thread::spawn(move || {
            // The other end is gone when nobody else holds the inbox.
            while Arc::strong_count(&inbox) > 1 {
                thread::park();
                let job = inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(job) = job {
                    job();
                }
            }
        });
        Self { inbox: Arc::new(Inbox { jobs, thread: spawned.thread().clone() }) }
    }
}

impl Execute for OneUnpark {
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        let jobs = &self.inbox.jobs;
        *jobs.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(work));
        self.inbox.thread.unpark();
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // The count that the thread looks at must be down before it looks.
        self.jobs = Arc::default();
        self.thread.unpark();
    }
}

/// No pool: what the measuring itself costs.
#[derive(Clone)]
pub(crate) struct NoPool;

impl Adapter for NoPool {
    const NAME: &'static str = "no pool";
    const ROLE: Role = Role::Bare;

    fn new(_limit: usize) -> Self {
        Self
    }
}

impl Execute for NoPool {
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        work();
    }
}
