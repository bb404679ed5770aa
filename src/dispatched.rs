//! What became of a dispatched task.
#![forbid(unsafe_code)]

use crate::error::JoinError;
use crate::join::JoinHandle;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

/// What became of a dispatched task: it ran here, or it is queued.
///
/// ```
/// use work_permit::Dispatched;
/// let exec = work_permit::Pool::global().executor("reads").limit(1).build()?;
/// match exec.dispatch(|| 1 + 1).unwrap() {
///     Dispatched::Inline(sum) => assert_eq!(sum, 2),
///     Dispatched::Queued(handle) => assert_eq!(handle.join().unwrap(), 2),
/// }
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[must_use = "the result is in here, or the handle to it"]
#[derive(Debug)]
pub enum Dispatched<R> {
    /// It ran on this thread, under a permit, before the call returned.
    Inline(R),
    /// It is in the queue; a worker will run it, or whoever joins it.
    Queued(JoinHandle<R>),
}

impl<R> Dispatched<R> {
    /// The result, wherever the task runs; see [`JoinHandle::join`].
    ///
    /// # Errors
    /// Those of [`JoinHandle::join`]. An inline task has none: its panic went on to the caller.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("reads").limit(1).build()?;
    /// assert_eq!(exec.dispatch(|| 2).unwrap().join().unwrap(), 2);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn join(self) -> Result<R, JoinError> {
        match self {
            Dispatched::Inline(value) => Ok(value),
            Dispatched::Queued(handle) => handle.join(),
        }
    }

    /// It ran on this thread.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("reads").limit(1).build()?;
    /// assert!(exec.dispatch(|| ()).unwrap().is_inline(), "a permit was free");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn is_inline(&self) -> bool {
        matches!(self, Dispatched::Inline(_))
    }
}

/// The future of a [`Dispatched`] task.
///
/// ```
/// # async fn handler(exec: work_permit::Executor) -> Result<u32, Box<dyn std::error::Error>> {
/// let answer = exec.dispatch(|| 42).map_err(|refused| refused.into_reason())?.await?;
/// # Ok(answer)
/// # }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct DispatchedFuture<R>(State<R>);

enum State<R> {
    Inline(Option<R>),
    Queued(JoinHandle<R>),
}

// Nothing in it is pinned: the value is only ever moved out.
impl<R> Unpin for DispatchedFuture<R> {}

impl<R> Future for DispatchedFuture<R> {
    type Output = Result<R, JoinError>;

    /// # Panics
    /// When it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Inline(value) => {
                Poll::Ready(Ok(value.take().expect("polled again after it was ready")))
            }
            State::Queued(handle) => Pin::new(handle).poll(cx),
        }
    }
}

impl<R> IntoFuture for Dispatched<R> {
    type Output = Result<R, JoinError>;
    type IntoFuture = DispatchedFuture<R>;

    fn into_future(self) -> Self::IntoFuture {
        DispatchedFuture(match self {
            Dispatched::Inline(value) => State::Inline(Some(value)),
            Dispatched::Queued(handle) => State::Queued(handle),
        })
    }
}

impl<R> fmt::Debug for DispatchedFuture<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inline = matches!(self.0, State::Inline(_));
        f.debug_struct("DispatchedFuture").field("inline", &inline).finish_non_exhaustive()
    }
}
