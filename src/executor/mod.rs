//! The public handle of an executor: the verbs.
#![forbid(unsafe_code)]

mod all;
mod children;
mod guards;
mod life;
mod scoped;
mod speculate;

use crate::counters::{Kind, Why};
use crate::dispatched::Dispatched;
use crate::engine::Engine;
use crate::error::{Reason, Rejected};
use crate::join::JoinHandle;
use crate::permits::state::{MAX_LIMIT, Refusal};
use crate::pool_handle::Pool;
use crate::sync::{Arc, deadline_after};
use crate::task::cell::{End, Joinable, Runnable, Task, TaskCell};
use crate::task::closure::Closure;
use crate::task::context::{Id, Standing};
use std::fmt;
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
/// | [`scope`](Self::scope) | its tasks: as `spawn` and `dispatch`, and they may borrow | queued |
/// | [`run_all`](Self::run_all) | one here, the others on workers or here | waits its turn, the others are queued |
/// | [`speculate`](Self::speculate) | the attempt here, under no permit; the rest as `spawn` | the rest is queued |
///
/// *Inside a task* of the executor, `run`, `try_run` and `dispatch` run at once under that task's permit.
///
/// *Beware of locks.* A verb that runs work here runs it inside of whatever this thread holds: a closure that
/// locks what its caller has locked waits for ever. Use `spawn` or `execute` there, or declare it with
/// [`fitness::no_inline`](crate::fitness::no_inline).
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
    /// Keeps it open.
    parent: Option<Executor>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.engine.close();
        if self.engine.limit() == 0 {
            // Nobody is left to raise the limit.
            for (_, task) in self.engine.close_and_take() {
                Engine::end_task(task, End::Closed);
            }
        }
        // This may be the last handle of the parent too, and so on, however many there are: one after the other.
        let mut next = self.parent.take();
        while let Some(mut parent) = next.and_then(|parent| Arc::into_inner(parent.shared)) {
            next = parent.parent.take();
        }
    }
}

/// Why a dispatched task did not run on its caller's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotHere {
    /// It is to be queued.
    Queue(Why),
    /// No new work is accepted.
    Closed,
}

impl Executor {
    /// Largest limit: 2,147,483,647.
    pub const MAX_LIMIT: usize = MAX_LIMIT;

    pub(crate) fn from_parts(engine: Arc<Engine>, pool: Pool, parent: Option<Executor>) -> Self {
        Self { shared: Arc::new(Shared { engine, pool, parent }) }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    #[cold]
    pub(crate) fn reject<F>(&self, task: F, reason: Reason) -> Rejected<F> {
        self.engine().counters.refused(reason);
        Rejected::new(task, reason)
    }

    /// Runs `f` at once inside of a task, refuses it on a thread that is not fit, else does what `outside` says.
    #[inline]
    fn run_as_it_stands<F, R>(
        &self,
        f: F,
        outside: impl FnOnce(F) -> Result<R, Rejected<F>>,
    ) -> Result<R, Rejected<F>>
    where
        F: FnOnce() -> R,
    {
        match self.engine().standing() {
            Standing::Outside => outside(f),
            Standing::Inside => Ok(self.run_nested(f)),
            Standing::Unfit => Err(self.reject(f, Reason::NotFit)),
        }
    }

    #[inline]
    fn run_nested<R>(&self, f: impl FnOnce() -> R) -> R {
        self.engine().run_here(Kind::Nested, Id::NONE, f)
    }

    /// Runs `f` here if a permit is free. Never queues, never waits; `f` may borrow.
    ///
    /// # Errors
    /// `f` comes back: [`Reason::Saturated`] when every permit was taken or waiting work had the better claim,
    /// [`Reason::Closed`], [`Reason::NotFit`].
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
        self.run_as_it_stands(f, |f| {
            self.engine().run_inline(f).map_err(|(f, refusal)| match refusal {
                Refusal::Saturated => self.reject(f, Reason::Saturated),
                Refusal::Closed => self.reject(f, Reason::Closed),
            })
        })
    }

    /// Runs `f` here; with no permit free this thread first waits its turn in the queue. `f` may borrow.
    ///
    /// # Errors
    /// `f` comes back: [`Reason::Closed`], [`Reason::NotFit`], or [`Reason::Deadlock`] when this thread itself holds
    /// all the permits as guards.
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
        self.run_as_it_stands(f, |f| {
            self.engine().run_inline(f).or_else(|(f, _)| self.run_waiting(f, None))
        })
    }

    #[cold]
    fn run_waiting<F, R>(&self, f: F, deadline: Option<Instant>) -> Result<R, Rejected<F>>
    where
        F: FnOnce() -> R,
    {
        match self.engine().wait_to_run(deadline) {
            Ok(()) => Ok(self.engine().run_taken(f)),
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
        self.run_as_it_stands(f, |f| {
            let engine = self.engine();
            if timeout.is_zero() {
                return Err(self.reject(f, Reason::TimedOut));
            }
            match engine.try_take_to_run() {
                Ok(()) => Ok(engine.run_taken(f)),
                Err(_) => self.run_waiting(f, deadline_after(timeout)),
            }
        })
    }

    /// Runs `f` here if this thread may, else queues it.
    ///
    /// It queues when no permit is free or waiting work has the better claim, when this thread is not fit
    /// ([`fitness`](crate::fitness)) or inside of [`max_inline_depth`](crate::ExecutorBuilder::max_inline_depth)
    /// tasks, and under [`Inline::Never`](crate::Inline::Never).
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
        match self.run_here_or_say_why(f) {
            Ok(value) => Ok(Dispatched::Inline(value)),
            Err((f, NotHere::Queue(why))) => self.dispatch_queued(f, why),
            Err((f, NotHere::Closed)) => Err(self.reject(f, Reason::Closed)),
        }
    }

    /// The inline half of every `dispatch`.
    #[inline]
    pub(crate) fn run_here_or_say_why<F, R>(&self, f: F) -> Result<R, (F, NotHere)>
    where
        F: FnOnce() -> R,
    {
        match self.engine().may_inline() {
            Ok(Standing::Inside) => return Ok(self.run_nested(f)),
            Ok(_) => {}
            Err(why) => return Err((f, NotHere::Queue(why))),
        }
        self.engine().run_inline(f).map_err(|(f, refusal)| match refusal {
            Refusal::Saturated => (f, NotHere::Queue(Why::NoPermit)),
            Refusal::Closed => (f, NotHere::Closed),
        })
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
        self.spawn_since(f, why, self.engine().waits.now_ns())
    }

    fn spawn_since<F, R>(&self, f: F, why: Why, came_ns: u64) -> Result<JoinHandle<R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let cell = Arc::new(TaskCell::new(f));
        let task = Task::Cell(Arc::clone(&cell) as Arc<dyn Runnable>);
        match self.engine().enqueue_since(task, why, came_ns) {
            Ok(ticket) => {
                let engine = Arc::clone(self.engine());
                Ok(JoinHandle::new(cell as Arc<dyn Joinable<R>>, engine, ticket))
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
        let task = Task::Closure(Closure::new(f));
        match self.engine().enqueue(task, Why::Asked) {
            Ok(_) => Ok(()),
            Err((Task::Closure(closure), reason)) => match closure.into_inner::<F>() {
                Some(f) => Err(self.reject(f, reason)),
                None => unreachable!("the closure that comes back is the one that went in"),
            },
            Err((Task::Cell(_), _)) => {
                unreachable!("the task that comes back is the one that went in")
            }
        }
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
