//! What a scope gives for its tasks.
#![forbid(unsafe_code)]

use super::cell::ScopedCell;
use crate::error::JoinError;
use crate::executor::Executor;
use crate::join::Handle;
use crate::line::Ticket;
use crate::sync::Arc;
use crate::task::cell::Joinable;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The handle of a task of a [`Scope`](crate::Scope), from [`Scope::spawn`](crate::Scope::spawn) or inside
/// [`ScopedDispatched::Queued`].
///
/// It is a [`JoinHandle`](crate::JoinHandle) that cannot leave its scope: all that is said there of who runs the
/// task, and of memory ordering, holds here too. Dropping or forgetting it detaches the task, which still ends
/// before the scope returns; a result that nobody took is dropped by then.
///
/// ```
/// let exec = work_permit::Pool::global().executor("sums").limit(2).build()?;
/// let numbers = [1, 2, 3, 4];
/// let sum = exec.scope(|s| {
///     let (left, right) = numbers.split_at(2);
///     let left = s.spawn(|| left.iter().sum::<i32>()).unwrap();
///     let right: i32 = right.iter().sum();
///     left.join().unwrap() + right
/// });
/// assert_eq!(sum, 10);
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
pub struct ScopedJoinHandle<'scope, R>(Handle<'scope, R>);

impl<'scope, R> ScopedJoinHandle<'scope, R> {
    pub(super) fn new<F>(cell: Arc<ScopedCell<F, R>>, exec: &Executor, ticket: Ticket) -> Self
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        let cell: Arc<dyn Joinable<R> + 'scope> = cell;
        Self(Handle::new(cell, Arc::clone(exec.engine()), ticket))
    }

    /// The result of the task, which runs here if it has not started: see
    /// [`JoinHandle::join`](crate::JoinHandle::join).
    ///
    /// # Errors
    /// Those of [`JoinHandle::join`](crate::JoinHandle::join). A panic that is taken here is not the scope's any
    /// more.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("jobs").limit(1).build()?;
    /// let word = String::from("borrowed");
    /// let length = exec.scope(|s| s.spawn(|| word.len()).unwrap().join().unwrap());
    /// assert_eq!(length, 8);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn join(self) -> Result<R, JoinError> {
        self.0.join()
    }

    /// As [`join`](Self::join), for `timeout` at most: see
    /// [`JoinHandle::join_timeout`](crate::JoinHandle::join_timeout).
    ///
    /// # Errors
    /// The handle, if the task has not ended in time; inside, the errors of [`join`](Self::join).
    ///
    /// ```
    /// use std::time::Duration;
    /// let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// exec.scope(|s| {
    ///     let handle = s.spawn(|| "done").unwrap();
    ///     let handle = handle.join_timeout(Duration::from_millis(1)).unwrap_err();
    ///     exec.set_limit(1).unwrap();
    ///     assert_eq!(handle.join_timeout(Duration::MAX).unwrap().unwrap(), "done");
    /// });
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn join_timeout(self, timeout: Duration) -> Result<Result<R, JoinError>, Self> {
        self.0.join_timeout(timeout).map_err(Self)
    }

    /// Whether the task has ended, one way or another: then `join` does not wait for it.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// exec.scope(|s| {
    ///     let handle = s.spawn(|| ()).unwrap();
    ///     assert!(!handle.is_finished());
    ///     assert!(handle.cancel() && handle.is_finished());
    /// });
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
    /// exec.scope(|s| {
    ///     let handle = s.spawn(|| unreachable!()).unwrap();
    ///     assert!(handle.cancel());
    ///     assert!(matches!(handle.join(), Err(JoinError::Cancelled)));
    /// });
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }
}

impl<R> Future for ScopedJoinHandle<'_, R> {
    type Output = Result<R, JoinError>;

    /// # Panics
    /// When it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx)
    }
}

impl<R> fmt::Debug for ScopedJoinHandle<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(f, "ScopedJoinHandle")
    }
}

/// What became of a task dispatched in a [`Scope`](crate::Scope): it ran here, or it is queued.
///
/// ```
/// use work_permit::ScopedDispatched;
/// let exec = work_permit::Pool::global().executor("reads").limit(1).build()?;
/// let key = String::from("key");
/// exec.scope(|s| match s.dispatch(|| key.len()).unwrap() {
///     ScopedDispatched::Inline(length) => assert_eq!(length, 3),
///     ScopedDispatched::Queued(handle) => assert_eq!(handle.join().unwrap(), 3),
/// });
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[must_use = "the result is in here, or the handle to it"]
#[derive(Debug)]
pub enum ScopedDispatched<'scope, R> {
    /// It ran on this thread, under a permit, before the call returned.
    Inline(R),
    /// It is in the queue; a worker will run it, or whoever joins it, or the scope at its end.
    Queued(ScopedJoinHandle<'scope, R>),
}

impl<R> ScopedDispatched<'_, R> {
    /// The result, wherever the task runs; see [`ScopedJoinHandle::join`].
    ///
    /// # Errors
    /// Those of [`ScopedJoinHandle::join`]. An inline task has none: its panic went on to the caller.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("reads").limit(1).build()?;
    /// let answer = 2;
    /// assert_eq!(exec.scope(|s| s.dispatch(|| &answer).unwrap().join().unwrap()), &2);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn join(self) -> Result<R, JoinError> {
        match self {
            ScopedDispatched::Inline(value) => Ok(value),
            ScopedDispatched::Queued(handle) => handle.join(),
        }
    }

    /// It ran on this thread.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("reads").limit(1).build()?;
    /// assert!(exec.scope(|s| s.dispatch(|| ()).unwrap().is_inline()), "a permit was free");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn is_inline(&self) -> bool {
        matches!(self, ScopedDispatched::Inline(_))
    }
}
