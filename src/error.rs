//! Every way in which a call can be refused or a task can end without a result.

use std::any::Any;
use std::error::Error;
use std::fmt;

/// Why a call was refused.
///
/// It borrows nothing, so it is also the error to pass on where the refused closure borrows:
///
/// ```
/// fn checksum(exec: &work_permit::Executor, bytes: &[u8]) -> Result<u32, Box<dyn std::error::Error>> {
///     let sum = exec.try_run(|| bytes.iter().map(|b| u32::from(*b)).sum());
///     Ok(sum.map_err(|refused| refused.into_reason())?)
/// }
/// let exec = work_permit::Pool::global().executor("sums").limit(1).build()?;
/// assert_eq!(checksum(&exec, &[1, 2, 3]).unwrap(), 6);
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Every permit was taken, or waiting work had the better claim.
    Saturated,
    /// The queue holds as many tasks as it may.
    QueueFull,
    /// The executor was closed.
    Closed,
    /// The time given for waiting has passed.
    TimedOut,
    /// The executor requires operations that this thread does not allow.
    NotFit,
    /// The wait could never end: this thread itself holds what it would wait for.
    Deadlock,
    /// The system gave the pool no thread that could serve the queue.
    NoThread,
    /// More permits were asked for than the executor has.
    TooMany,
}

impl Reason {
    pub(crate) const COUNT: usize = 8;

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Saturated => "no work permit is free",
            Reason::QueueFull => "the executor's queue is full",
            Reason::Closed => "the executor is closed",
            Reason::TimedOut => "no work permit became free in the time given",
            Reason::NotFit => "this thread is not fit for the executor's work",
            Reason::Deadlock => "this thread would wait for a permit that it holds itself",
            Reason::NoThread => "the system gave the pool no thread",
            Reason::TooMany => "more permits than the executor has",
        })
    }
}

impl Error for Reason {}

/// A refused call: the task comes back, with the reason.
///
/// ```
/// use work_permit::{Pool, Reason};
/// let exec = Pool::global().executor("paused").limit(0).build()?;
/// let refused = exec.try_run(|| "later").unwrap_err();
/// assert_eq!(refused.reason(), Reason::Saturated);
/// assert_eq!(refused.to_string(), "no work permit is free");
/// let task = refused.into_task();
/// assert_eq!(task(), "later");
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[must_use = "a refused task is lost when this is dropped"]
pub struct Rejected<F> {
    task: F,
    reason: Reason,
}

// SAFETY: no method reaches the task through a shared reference: `reason`, `Debug` and `Display` read only the
// reason, and `into_task` takes the whole value. So sharing `&Rejected<F>` gives no thread access to an `F`
// that another thread can reach, and moving it needs only the `F: Send` asked for here.
unsafe impl<F: Send> Sync for Rejected<F> {}

impl<F> Rejected<F> {
    pub(crate) fn new(task: F, reason: Reason) -> Self {
        Self { task, reason }
    }

    /// The task that was refused.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// let task = exec.try_run(|| 7).unwrap_err().into_task();
    /// assert_eq!(task(), 7);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn into_task(self) -> F {
        self.task
    }

    /// Why it was refused.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// assert_eq!(exec.try_run(|| 7).unwrap_err().reason(), work_permit::Reason::Saturated);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Drops the task and keeps the reason, an error that borrows nothing.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("paused").limit(0).build()?;
    /// let reason = exec.try_run(|| 7).unwrap_err().into_reason();
    /// assert_eq!(reason, work_permit::Reason::Saturated);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn into_reason(self) -> Reason {
        self.reason
    }
}

impl<F> fmt::Debug for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<F> Error for Rejected<F> {}

/// Why a [`JoinHandle`](crate::JoinHandle) has no result.
///
/// ```
/// use work_permit::{JoinError, Pool};
/// let exec = Pool::global().executor("jobs").limit(1).build()?;
/// let handle = exec.spawn(|| -> u8 { panic!("no such row") }).unwrap();
/// match handle.join().unwrap_err() {
///     JoinError::Panicked(panic) => assert_eq!(panic.message(), Some("no such row")),
///     other => unreachable!("{other}"),
/// }
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// The task panicked.
    Panicked(Panic),
    /// [`JoinHandle::cancel`](crate::JoinHandle::cancel) took it back.
    Cancelled,
    /// It was in the queue for too long.
    Expired,
    /// The executor was shut down before it ran.
    Closed,
    /// A task would have waited for itself, or a thread for a permit that it holds.
    Deadlock,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Panicked(panic) => match panic.message() {
                Some(message) => write!(f, "the task panicked: {message}"),
                None => f.write_str("the task panicked"),
            },
            JoinError::Cancelled => f.write_str("the task was cancelled"),
            JoinError::Expired => f.write_str("the task was queued for too long"),
            JoinError::Closed => f.write_str("the executor was shut down before the task ran"),
            JoinError::Deadlock => f.write_str("the join would wait for itself"),
        }
    }
}

impl Error for JoinError {}

/// The payload of a task's panic.
///
/// ```
/// use work_permit::{JoinError, Pool};
/// let exec = Pool::global().executor("jobs").limit(1).build()?;
/// let handle = exec.spawn(|| std::panic::panic_any(17_u8)).unwrap();
/// let Err(JoinError::Panicked(panic)) = handle.join() else { unreachable!() };
/// assert_eq!(panic.message(), None, "no text in it");
/// assert_eq!(*panic.into_payload().downcast::<u8>().unwrap(), 17);
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
pub struct Panic {
    message: Option<Box<str>>,
    payload: Payload,
}

struct Payload(Box<dyn Any + Send>);

// SAFETY: no method reaches the payload through a shared reference: the message was copied out when the panic
// was caught, and `into_payload` takes the whole value. Moving it needs only `Send`, which the payload is.
unsafe impl Sync for Payload {}

impl Panic {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        let text = match payload.downcast_ref::<&'static str>() {
            Some(text) => Some(*text),
            None => payload.downcast_ref::<String>().map(String::as_str),
        };
        Self { message: text.map(Box::from), payload: Payload(payload) }
    }

    /// The message, where the panic had one.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("jobs").limit(1).build()?;
    /// let error = exec.spawn(|| panic!("row {}", 3)).unwrap().join().unwrap_err();
    /// assert!(matches!(error, work_permit::JoinError::Panicked(p) if p.message() == Some("row 3")));
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The payload, to look into or to pass on with `std::panic::resume_unwind`.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("jobs").limit(1).build()?;
    /// let error = exec.spawn(|| panic!("pass it on")).unwrap().join().unwrap_err();
    /// if let work_permit::JoinError::Panicked(panic) = error {
    ///     let payload = panic.into_payload();
    ///     assert_eq!(payload.downcast_ref(), Some(&"pass it on"));
    /// }
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn into_payload(self) -> Box<dyn Any + Send> {
        self.payload.0
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Panic").field("message", &self.message).finish_non_exhaustive()
    }
}

/// A builder was given a value that makes no sense; the message names it.
///
/// ```
/// use work_permit::{Executor, Pool};
/// let error = Pool::global().executor("huge").limit(Executor::MAX_LIMIT + 1).build().unwrap_err();
/// assert!(error.to_string().starts_with("limit 2147483648"), "{error}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(String);

impl ConfigError {
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ConfigError {}

/// What was left when a drain or a shutdown gave up waiting.
///
/// ```
/// use std::time::Duration;
/// use work_permit::{Pool, Reason};
/// let exec = Pool::global().executor("slow").limit(1).build()?;
/// let guard = exec.try_acquire().unwrap();
/// let left = exec.drain(Duration::from_millis(1)).unwrap_err();
/// assert_eq!((left.active, left.queued, left.reason()), (1, 0, Reason::Deadlock));
/// drop(guard);
/// exec.drain(Duration::MAX).unwrap();
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// Permits still taken.
    pub active: usize,
    /// Tasks and threads still in the queue.
    pub queued: usize,
    pub(crate) reason: Reason,
}

impl Unfinished {
    /// [`Reason::TimedOut`], or [`Reason::Deadlock`] where the call came from the very work it would wait for.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("own").limit(1).build()?;
    /// let inside = exec.run(|| exec.drain(std::time::Duration::MAX)).unwrap();
    /// assert_eq!(inside.unwrap_err().reason(), work_permit::Reason::Deadlock);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { active, queued, reason } = self;
        write!(f, "{active} active and {queued} queued were left: {reason}")
    }
}

impl Error for Unfinished {}
