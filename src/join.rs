//! The handle of a queued task.
#![forbid(unsafe_code)]

use crate::engine::Engine;
use crate::error::{JoinError, Reason};
use crate::line::Ticket;
use crate::sync::{Arc, deadline_after, with_parker};
use crate::task::cell::{End, Joinable, Watcher};
use crate::task::context::{self, Id};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The handle of a queued task, from [`Executor::spawn`](crate::Executor::spawn) or inside
/// [`Dispatched::Queued`](crate::Dispatched::Queued).
///
/// [`join`](Self::join) waits on this thread, `.await` in any async runtime. A handle exists only for a task
/// that was accepted, and it always completes. Dropping it detaches the task, which still runs.
///
/// *Who runs it.* A thread that joins a task which has not started takes it back and runs it itself, as soon as
/// a permit is free and in the order of the queue; inside a task of the same executor at once, under that task's
/// permit. While it waits it runs nothing else. A future that is polled never runs the task.
///
/// *Memory ordering.* What the task did happens before `join` returns, or before the future is ready; the
/// permit is free again by then, and the task is counted as completed.
///
/// ```
/// let pool = work_permit::Pool::new();
/// let exec = pool.executor("jobs").limit(2).build()?;
/// let handles: Vec<_> = (0..4).map(|n| exec.spawn(move || n * n).unwrap()).collect();
/// let squares: Vec<i32> = handles.into_iter().map(|handle| handle.join().unwrap()).collect();
/// assert_eq!(squares, [0, 1, 4, 9]);
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[must_use = "dropping the handle detaches the task; use `execute` where no result is wanted"]
pub struct JoinHandle<R>(Handle<'static, R>);

impl<R> JoinHandle<R> {
    pub(crate) fn new(cell: Arc<dyn Joinable<R>>, engine: Arc<Engine>, ticket: Ticket) -> Self {
        Self(Handle::new(cell, engine, ticket))
    }

    /// The result of the task, which runs here if it has not started.
    ///
    /// # Errors
    /// [`JoinError::Panicked`] with the payload, [`JoinError::Closed`] when the executor was shut down first,
    /// [`JoinError::Cancelled`] after [`cancel`](Self::cancel), and [`JoinError::Deadlock`] when the task joins
    /// itself, or has not started and this thread holds, as guards, all the permits it could start under.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("jobs").limit(1).build()?;
    /// assert_eq!(exec.spawn(|| 6 * 7).unwrap().join().unwrap(), 42);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn join(self) -> Result<R, JoinError> {
        self.0.join()
    }

    /// As [`join`](Self::join), for `timeout` at most: the outer error is the handle, when the time has passed.
    ///
    /// The task runs here only if that starts in time; a task that runs here is not interrupted. With
    /// [`Duration::ZERO`] it never runs here and the call never waits.
    ///
    /// # Errors
    /// The handle, if the task has not ended in time; inside, the errors of [`join`](Self::join).
    ///
    /// ```
    /// use std::time::Duration;
    /// let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// let handle = exec.spawn(|| "done").unwrap();
    /// let handle = handle.join_timeout(Duration::from_millis(1)).unwrap_err();
    /// exec.set_limit(1)?;
    /// assert_eq!(handle.join_timeout(Duration::MAX).unwrap().unwrap(), "done");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn join_timeout(self, timeout: Duration) -> Result<Result<R, JoinError>, Self> {
        self.0.join_timeout(timeout).map_err(Self)
    }

    /// Whether the task has ended, one way or another: then `join` waits for no more than its permit to go back.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// let handle = exec.spawn(|| ()).unwrap();
    /// assert!(!handle.is_finished());
    /// assert!(handle.cancel() && handle.is_finished());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Takes the task back if it has not started. `true`: it will never run, and its closure is dropped already.
    /// `false`: it has started or ended.
    ///
    /// ```
    /// use work_permit::JoinError;
    /// # let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// let handle = exec.spawn(|| unreachable!()).unwrap();
    /// assert!(handle.cancel());
    /// assert!(!handle.cancel(), "only once");
    /// assert!(matches!(handle.join(), Err(JoinError::Cancelled)));
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }
}

impl<R> Future for JoinHandle<R> {
    type Output = Result<R, JoinError>;

    /// # Panics
    /// When it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx)
    }
}

impl<R> fmt::Debug for JoinHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(f, "JoinHandle")
    }
}

/// The handle of a queued task, whatever it borrows: what is behind [`JoinHandle`] and
/// [`ScopedJoinHandle`](crate::scope::ScopedJoinHandle).
pub(crate) struct Handle<'a, R> {
    cell: Arc<dyn Joinable<R> + 'a>,
    engine: Arc<Engine>,
    ticket: Ticket,
}

impl<'a, R> Handle<'a, R> {
    pub(crate) fn new(
        cell: Arc<dyn Joinable<R> + 'a>,
        engine: Arc<Engine>,
        ticket: Ticket,
    ) -> Self {
        Self { cell, engine, ticket }
    }

    pub(crate) fn join(self) -> Result<R, JoinError> {
        match self.join_until(None) {
            Ok(result) => result,
            Err(_) => unreachable!("without a deadline a join does not time out"),
        }
    }

    pub(crate) fn join_timeout(self, timeout: Duration) -> Result<Result<R, JoinError>, Self> {
        if timeout.is_zero() {
            return if self.cell.is_done() { Ok(self.cell.take()) } else { Err(self) };
        }
        self.join_until(deadline_after(timeout))
    }

    fn join_until(self, deadline: Option<Instant>) -> Result<Result<R, JoinError>, Self> {
        if self.cell.is_done() {
            return Ok(self.cell.take());
        }
        if context::is_running(Id::of_task(Arc::as_ptr(&self.cell))) {
            return Ok(Err(JoinError::Deadlock));
        }
        match self.engine.join_queued(self.ticket, deadline) {
            Ok(()) => {}
            Err(Reason::Deadlock) => return Ok(Err(JoinError::Deadlock)),
            Err(_) => return Err(self),
        }
        if self.wait_until_done(deadline) { Ok(self.cell.take()) } else { Err(self) }
    }

    fn wait_until_done(&self, deadline: Option<Instant>) -> bool {
        with_parker(|parker| {
            if self.cell.is_done() || !self.cell.watch(Watcher::Thread(parker.unparker())) {
                return true;
            }
            loop {
                if self.cell.is_done() {
                    return true;
                }
                if deadline.is_some_and(|at| at <= Instant::now()) {
                    return false;
                }
                parker.park_until(deadline);
            }
        })
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.cell.is_finished()
    }

    pub(crate) fn cancel(&self) -> bool {
        match self.engine.cancel(self.ticket) {
            Some(task) => {
                Engine::end_task(task, End::Cancelled);
                true
            }
            None => false,
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<R, JoinError>> {
        if self.cell.is_done() || !self.cell.watch(Watcher::Future(cx.waker().clone())) {
            return Poll::Ready(self.cell.take());
        }
        Poll::Pending
    }

    pub(crate) fn debug(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        f.debug_struct(name)
            .field("executor", &self.engine.settings.name)
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

impl<R> Drop for Handle<'_, R> {
    fn drop(&mut self) {
        self.cell.detach();
    }
}
