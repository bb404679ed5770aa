//! The public handle of an executor: the verbs.
#![forbid(unsafe_code)]

use crate::builder::check_limit;
use crate::counters::{Kind, Why};
use crate::dispatched::Dispatched;
use crate::engine::{Engine, Held};
use crate::error::{ConfigError, Reason, Rejected, Unfinished};
use crate::join::JoinHandle;
use crate::permit::Permit;
use crate::permits::state::{MAX_LIMIT, Refusal};
use crate::pool_handle::Pool;
use crate::stats::Stats;
use crate::sync::{Arc, deadline_after};
use crate::task::cell::{End, Joinable, Runnable, Task, TaskCell};
use crate::task::context;
use crate::unrun::Unrun;
use std::fmt;
use std::ptr;
use std::time::{Duration, Instant};

/// A name, a limit, a FIFO queue and its counters. It owns no threads: work runs on its caller's thread while a
/// permit is free, and on the pool's workers when it was queued.
///
/// It is a handle, cheap to clone. Dropping the last one closes the executor: what was accepted still runs, in
/// the background (at limit 0, where nothing could ever run, queued tasks end as
/// [`JoinError::Closed`](crate::JoinError::Closed)). No drop blocks.
///
/// | verb | where the closure runs | no permit free |
/// |---|---|---|
/// | [`try_run`](Self::try_run) | here | refused |
/// | [`run`](Self::run), [`run_timeout`](Self::run_timeout) | here | waits its turn in the queue |
/// | [`dispatch`](Self::dispatch) | here, or on a worker | queued |
/// | [`spawn`](Self::spawn), [`execute`](Self::execute) | on a worker, or on the joiner's thread | queued |
///
/// *Inside a task* of the executor, `run`, `try_run` and `dispatch` run at once under that task's permit.
///
/// *Beware of locks.* A verb that runs work here runs it inside of whatever this thread holds: a closure that
/// locks what its caller has locked waits for ever. Use `spawn` or `execute` there.
///
/// *Memory ordering.* A task sees what its submitter did before the call. What was done under a permit happens
/// before what is done under the same permit later; with limit 1, each task sees all that the tasks before it
/// did.
///
/// ```
/// use work_permit::{Dispatched, Pool};
/// let pool = Pool::new();
/// let reads = pool.executor("reads").limit(32).queue_capacity(4096).build()?;
/// let value = match reads.dispatch(|| "value of key").map_err(|refused| refused.into_reason())? {
///     Dispatched::Inline(value) => value,
///     Dispatched::Queued(handle) => handle.join()?,
/// };
/// assert_eq!(value, "value of key");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Executor {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Arc<Engine>,
    /// Keeps the pool in service.
    pool: Pool,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.engine.close();
        if self.engine.limit() == 0 {
            // Nobody is left to raise the limit.
            for task in self.engine.close_and_take() {
                Engine::end_task(task, End::Closed);
            }
        }
    }
}

impl Executor {
    /// Largest limit: 2,147,483,647.
    pub const MAX_LIMIT: usize = MAX_LIMIT;

    pub(crate) fn from_parts(engine: Arc<Engine>, pool: Pool) -> Self {
        Self {
            shared: Arc::new(Shared { engine, pool }),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    #[cold]
    fn reject<F>(&self, task: F, reason: Reason) -> Rejected<F> {
        self.engine().counters.refused(reason);
        Rejected::new(task, reason)
    }

    /// Runs `f` here, with the permit that is taken already.
    #[inline]
    fn run_inline<R>(&self, f: impl FnOnce() -> R) -> R {
        let _permit = Held(self.engine());
        self.engine().run_here(Kind::Inline, ptr::null(), f)
    }

    #[inline]
    fn run_nested<R>(&self, f: impl FnOnce() -> R) -> R {
        self.engine().run_here(Kind::Nested, ptr::null(), f)
    }

    /// Runs `f` here if a permit is free. Never queues, never waits; `f` may borrow.
    ///
    /// # Errors
    /// `f` comes back: [`Reason::Saturated`] when every permit was taken or waiting work had the better claim,
    /// [`Reason::Closed`].
    ///
    /// # Panics
    /// With the panic of `f`, after the permit went back.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("sums").limit(2).build()?;
    /// let numbers = vec![1, 2, 3];
    /// assert_eq!(exec.try_run(|| numbers.iter().sum::<i32>()).unwrap(), 6);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[inline]
    pub fn try_run<F, R>(&self, f: F) -> Result<R, Rejected<F>>
    where
        F: FnOnce() -> R,
    {
        if context::is_inside(self.engine().id()) {
            return Ok(self.run_nested(f));
        }
        match self.engine().try_take() {
            Ok(()) => Ok(self.run_inline(f)),
            Err(Refusal::Saturated) => Err(self.reject(f, Reason::Saturated)),
            Err(Refusal::Closed) => Err(self.reject(f, Reason::Closed)),
        }
    }

    /// Runs `f` here; with no permit free this thread first waits its turn in the queue. `f` may borrow.
    ///
    /// # Errors
    /// `f` comes back: [`Reason::Closed`], or [`Reason::Deadlock`] when this thread itself holds all the permits
    /// as guards.
    ///
    /// # Panics
    /// With the panic of `f`, after the permit went back.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("sums").limit(1).build()?;
    /// let mut log = Vec::new();
    /// exec.run(|| log.push("one at a time")).unwrap();
    /// assert_eq!(log.len(), 1);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[inline]
    pub fn run<F, R>(&self, f: F) -> Result<R, Rejected<F>>
    where
        F: FnOnce() -> R,
    {
        if context::is_inside(self.engine().id()) {
            return Ok(self.run_nested(f));
        }
        match self.engine().try_take() {
            Ok(()) => Ok(self.run_inline(f)),
            Err(_) => self.run_waiting(f, None),
        }
    }

    #[cold]
    fn run_waiting<F, R>(&self, f: F, deadline: Option<Instant>) -> Result<R, Rejected<F>>
    where
        F: FnOnce() -> R,
    {
        match self.engine().wait_for_permit(deadline) {
            Ok(()) => Ok(self.run_inline(f)),
            Err(reason) => Err(self.reject(f, reason)),
        }
    }

    /// As [`run`](Self::run), but gives `f` back when it has not started after `timeout`. A zero timeout has
    /// passed already: then `f` never runs, except inside a task of this executor.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Reason::TimedOut`].
    ///
    /// # Panics
    /// With the panic of `f`, after the permit went back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use work_permit::{Pool, Reason};
    /// let exec = Pool::global().executor("busy").limit(0).build()?;
    /// let refused = exec.run_timeout(Duration::from_millis(1), || ()).unwrap_err();
    /// assert_eq!(refused.reason(), Reason::TimedOut);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn run_timeout<F, R>(&self, timeout: Duration, f: F) -> Result<R, Rejected<F>>
    where
        F: FnOnce() -> R,
    {
        if context::is_inside(self.engine().id()) {
            return Ok(self.run_nested(f));
        }
        match self.take_timeout(timeout) {
            Ok(()) => Ok(self.run_inline(f)),
            Err(reason) => Err(self.reject(f, reason)),
        }
    }

    /// Runs `f` here if this thread may, else queues it.
    ///
    /// It queues when no permit is free or waiting work has the better claim, when this thread is inside of
    /// [`max_inline_depth`](crate::ExecutorBuilder::max_inline_depth) tasks, and under
    /// [`Inline::Never`](crate::Inline::Never).
    ///
    /// # Errors
    /// `f` comes back: [`Reason::QueueFull`], [`Reason::Closed`], [`Reason::NoThread`].
    ///
    /// # Panics
    /// With the panic of `f` when it ran here, after the permit went back.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("reads").limit(1).build()?;
    /// assert!(exec.dispatch(|| ()).unwrap().is_inline());
    /// let permit = exec.acquire().unwrap();
    /// let queued = exec.dispatch(|| "later").unwrap();
    /// assert!(!queued.is_inline());
    /// drop(permit);
    /// assert_eq!(queued.join().unwrap(), "later");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[inline]
    pub fn dispatch<F, R>(&self, f: F) -> Result<Dispatched<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let settings = &self.engine().settings;
        if settings.never_inline {
            return self.dispatch_queued(f, Why::Asked);
        }
        if context::depth() >= settings.max_inline_depth {
            return self.dispatch_queued(f, Why::TooDeep);
        }
        if context::is_inside(self.engine().id()) {
            return Ok(Dispatched::Inline(self.run_nested(f)));
        }
        match self.engine().try_take() {
            Ok(()) => Ok(Dispatched::Inline(self.run_inline(f))),
            Err(Refusal::Saturated) => self.dispatch_queued(f, Why::NoPermit),
            Err(Refusal::Closed) => Err(self.reject(f, Reason::Closed)),
        }
    }

    #[cold]
    fn dispatch_queued<F, R>(&self, f: F, why: Why) -> Result<Dispatched<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_because(f, why).map(Dispatched::Queued)
    }

    /// Queues `f`.
    ///
    /// # Errors
    /// `f` comes back: [`Reason::QueueFull`], [`Reason::Closed`], [`Reason::NoThread`].
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("jobs").limit(1).build()?;
    /// let handle = exec.spawn(|| std::thread::current().id()).unwrap();
    /// handle.join().unwrap();
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn spawn<F, R>(&self, f: F) -> Result<JoinHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_because(f, Why::Asked)
    }

    fn spawn_because<F, R>(&self, f: F, why: Why) -> Result<JoinHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let cell = Arc::new(TaskCell::new(f));
        let task = Task::Cell(Arc::clone(&cell) as Arc<dyn Runnable>);
        match self.engine().enqueue(task, why) {
            Ok(ticket) => {
                let engine = Arc::clone(self.engine());
                Ok(JoinHandle::new(
                    cell as Arc<dyn Joinable<R>>,
                    engine,
                    ticket,
                ))
            }
            Err((task, reason)) => {
                drop(task);
                match cell.take_closure() {
                    Some(f) => Err(self.reject(f, reason)),
                    None => unreachable!("nobody ran what was refused"),
                }
            }
        }
    }

    /// Queues `f`, without a handle. Its panic is counted and goes to the pool's
    /// [`on_panic`](crate::PoolBuilder::on_panic).
    ///
    /// # Errors
    /// `f` comes back: [`Reason::QueueFull`], [`Reason::Closed`], [`Reason::NoThread`].
    ///
    /// ```
    /// use std::sync::mpsc;
    /// let exec = work_permit::Pool::global().executor("jobs").limit(1).build()?;
    /// let (done, wait) = mpsc::channel();
    /// exec.execute(move || done.send("ran").unwrap()).unwrap();
    /// assert_eq!(wait.recv().unwrap(), "ran");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn execute<F>(&self, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let task = Task::Closure(Box::new(f));
        match self.engine().enqueue(task, Why::Asked) {
            Ok(_) => Ok(()),
            Err((Task::Closure(closure), reason)) => match closure.into_any().downcast::<F>() {
                Ok(f) => Err(self.reject(*f, reason)),
                Err(_) => unreachable!("the closure that comes back is the one that went in"),
            },
            Err((Task::Cell(_), _)) => {
                unreachable!("the task that comes back is the one that went in")
            }
        }
    }

    /// A permit as a guard, if one is free.
    ///
    /// # Errors
    /// [`Reason::Saturated`], [`Reason::Closed`].
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("files").limit(1).build()?;
    /// let permit = exec.try_acquire().unwrap();
    /// assert!(exec.try_acquire().is_err());
    /// drop(permit);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn try_acquire(&self) -> Result<Permit<'_>, Rejected<()>> {
        match self.engine().try_take() {
            Ok(()) => Ok(Permit::new(self)),
            Err(Refusal::Saturated) => Err(self.reject((), Reason::Saturated)),
            Err(Refusal::Closed) => Err(self.reject((), Reason::Closed)),
        }
    }

    /// A permit as a guard; with none free this thread waits its turn in the queue.
    ///
    /// # Errors
    /// [`Reason::Closed`], or [`Reason::Deadlock`] when this thread itself holds all the permits, as guards or
    /// by the task it is inside of.
    ///
    /// ```
    /// use work_permit::{Pool, Reason};
    /// let exec = Pool::global().executor("files").limit(1).build()?;
    /// let permit = exec.acquire().unwrap();
    /// assert_eq!(exec.acquire().unwrap_err().reason(), Reason::Deadlock);
    /// drop(permit);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn acquire(&self) -> Result<Permit<'_>, Rejected<()>> {
        match self
            .engine()
            .try_take()
            .or_else(|_| self.engine().wait_for_permit(None))
        {
            Ok(()) => Ok(Permit::new(self)),
            Err(reason) => Err(self.reject((), reason)),
        }
    }

    /// As [`acquire`](Self::acquire), for `timeout` at most. A zero timeout has passed already.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), and [`Reason::TimedOut`].
    ///
    /// ```
    /// use std::time::Duration;
    /// let exec = work_permit::Pool::global().executor("files").limit(1).build()?;
    /// assert!(exec.acquire_timeout(Duration::from_secs(1)).is_ok());
    /// assert!(exec.acquire_timeout(Duration::ZERO).is_err());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Permit<'_>, Rejected<()>> {
        match self.take_timeout(timeout) {
            Ok(()) => Ok(Permit::new(self)),
            Err(reason) => Err(self.reject((), reason)),
        }
    }

    fn take_timeout(&self, timeout: Duration) -> Result<(), Reason> {
        if timeout.is_zero() {
            return Err(Reason::TimedOut);
        }
        self.engine()
            .try_take()
            .or_else(|_| self.engine().wait_for_permit(deadline_after(timeout)))
    }

    /// How many tasks may run at a time.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("reads").limit(3).build()?;
    /// assert_eq!(exec.limit(), 3);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn limit(&self) -> usize {
        self.engine().limit()
    }

    /// Changes the limit, from 0 (paused) to [`MAX_LIMIT`](Self::MAX_LIMIT). Returns at once, whatever runs: a
    /// raise starts waiting work, a lower limit takes effect as running work ends.
    ///
    /// # Errors
    /// [`ConfigError`] for a larger number; the limit stays what it was.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// let handle = exec.spawn(|| "runs after the raise").unwrap();
    /// exec.set_limit(1)?;
    /// assert_eq!(handle.join().unwrap(), "runs after the raise");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn set_limit(&self, permits: usize) -> Result<(), ConfigError> {
        check_limit(permits)?;
        self.engine().set_limit(permits);
        Ok(())
    }

    /// Gauges and counters.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("reads").limit(2).build()?;
    /// exec.run(|| assert_eq!(exec.stats().inline, 1)).unwrap();
    /// assert_eq!(exec.stats().ran_inline, 1);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let engine = self.engine();
        let gate = engine.gate_stats();
        let sums = engine.counters.sums();
        let inline = (sums.inline_now as usize).min(gate.taken);
        let on_workers = (sums.on_workers_now as usize).min(gate.taken - inline);
        Stats {
            limit: gate.limit,
            active: gate.taken,
            inline,
            on_workers,
            guards: gate.taken - inline - on_workers,
            free: gate.free,
            queued: gate.tasks,
            waiting: gate.waiters,
            accepted: gate.tally.accepted + sums.inline_begun,
            completed: sums.inline_ended + sums.queued_ended,
            ran_inline: sums.inline_ended,
            ran_queued: sums.queued_ended,
            overtakes: engine.counters.overtakes(),
            panicked: engine.counters.panics(),
            cancelled: gate.tally.cancelled,
            expired: 0,
            unrun: gate.tally.unrun,
            refused: engine.counters.refusals(),
            no_permit: engine.counters.why(Why::NoPermit),
            not_fit: 0,
            too_deep: engine.counters.why(Why::TooDeep),
            asked: engine.counters.why(Why::Asked),
            #[cfg(feature = "histogram")]
            queue_wait: engine.waits.summary(),
        }
    }

    /// The name it was built with.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("reads").build()?;
    /// assert_eq!(exec.name(), "reads");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.engine().settings.name
    }

    /// Whether this thread runs under a permit of this executor: inside one of its tasks, or with a
    /// [`Permit`] of it.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("reads").build()?;
    /// assert!(!exec.is_held());
    /// assert!(exec.run(|| exec.is_held()).unwrap());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.engine().is_held()
    }

    /// The pool whose workers run its queued tasks.
    ///
    /// ```
    /// let pool = work_permit::Pool::new();
    /// let exec = pool.executor("reads").build()?;
    /// assert_eq!(exec.pool().stats().alive, 0);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    /// Accepts nothing new from now on. What was accepted runs, and waiting threads keep their turn; inside a
    /// task of the executor, nested inline runs go on.
    ///
    /// ```
    /// use work_permit::{Pool, Reason};
    /// let exec = Pool::global().executor("reads").build()?;
    /// exec.close();
    /// assert_eq!(exec.run(|| ()).unwrap_err().reason(), Reason::Closed);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn close(&self) {
        self.engine().close();
    }

    /// Closes, and waits until all that was accepted has ended and every permit is back; for `timeout` at most.
    ///
    /// # Errors
    /// [`Unfinished`] says what is left: when the time has passed, or at once, with
    /// [`Reason::Deadlock`], under a permit of this very executor.
    ///
    /// ```
    /// use std::time::Duration;
    /// let exec = work_permit::Pool::global().executor("jobs").build()?;
    /// let handle = exec.spawn(|| 1).unwrap();
    /// exec.drain(Duration::MAX).unwrap();
    /// assert!(handle.is_finished());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn drain(&self, timeout: Duration) -> Result<(), Unfinished> {
        self.engine().drain(deadline_after(timeout))
    }

    /// Closes, and takes the queued tasks out, oldest first: each can be run or dropped. What runs goes on;
    /// waiting threads get [`Reason::Closed`].
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// exec.execute(|| ()).unwrap();
    /// assert_eq!(exec.shutdown_now().len(), 1);
    /// assert_eq!(exec.stats().unrun, 1);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn shutdown_now(&self) -> Vec<Unrun> {
        let tasks = self.engine().close_and_take();
        tasks
            .into_iter()
            .map(|task| Unrun::new(task, Arc::clone(self.engine())))
            .collect()
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("name", &self.name())
            .field("gate", &self.engine().gate_stats())
            .finish_non_exhaustive()
    }
}
