//! What an executor and a pool say about themselves.
#![forbid(unsafe_code)]

/// A look at an executor's gauges and counters, from [`Executor::stats`](crate::Executor::stats).
///
/// Gauges are numbers of now, counters run since the executor was built. While work runs the numbers are of
/// slightly different moments; when the executor is quiet they are exact, and
/// `accepted = completed + cancelled + expired + unrun`.
///
/// ```
/// let pool = work_permit::Pool::new();
/// let exec = pool.executor("sums").limit(2).build()?;
/// exec.run(|| 1 + 1).unwrap();
/// let stats = exec.stats();
/// assert_eq!((stats.accepted, stats.completed, stats.ran_inline), (1, 1, 1));
/// assert_eq!((stats.active, stats.free, stats.queued), (0, 2, 0));
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Permits in all.
    pub limit: usize,
    /// Permits taken: `inline + on_workers + guards + below`.
    pub active: usize,
    /// Of these, taken for work on its caller's thread.
    pub inline: usize,
    /// Of these, taken for work on a pool worker.
    pub on_workers: usize,
    /// Of these, held as [`Permit`](crate::Permit) or [`OwnedPermit`](crate::OwnedPermit).
    pub guards: usize,
    /// Of these, taken for work and guards of [children](crate::Executor::child). What they accept and complete is in
    /// their own statistics, not in these.
    pub below: usize,
    /// Permits that nobody holds.
    pub free: usize,
    /// Tasks in the queue.
    pub queued: usize,
    /// Threads that stand in the queue for a permit.
    pub waiting: usize,
    /// Attempts of [`speculate`](crate::Executor::speculate) that are under way. They hold no permit.
    pub attempts: usize,
    /// Tasks accepted: run inline, or put into the queue.
    pub accepted: u64,
    /// Tasks that ended, panicked ones included.
    pub completed: u64,
    /// Tasks that ran on their caller's thread without being queued; `speculated` ones included.
    pub ran_inline: u64,
    /// Tasks that were queued, and ran.
    pub ran_queued: u64,
    /// Attempts of [`speculate`](crate::Executor::speculate) that did the work themselves, panicked ones included.
    pub speculated: u64,
    /// Starts on a caller's thread ahead of waiting work.
    pub overtakes: u64,
    /// Tasks that ended in a panic.
    pub panicked: u64,
    /// Queued tasks taken back by [`JoinHandle::cancel`](crate::JoinHandle::cancel).
    pub cancelled: u64,
    /// Queued tasks that were too old to start.
    pub expired: u64,
    /// Queued tasks that [`shutdown_now`](crate::Executor::shutdown_now) took out.
    pub unrun: u64,
    /// Calls refused, by reason.
    pub refused: Refused,
    /// `dispatch` calls that queued because no permit was free, or waiting work had the better claim.
    pub no_permit: u64,
    /// `dispatch` calls that queued because the thread was not fit.
    pub not_fit: u64,
    /// `dispatch` calls that queued because inline runs were nested too deep.
    pub too_deep: u64,
    /// Tasks queued because the caller asked for it: `spawn`, `execute`, and `dispatch` under
    /// [`Inline::Never`](crate::Inline::Never).
    pub asked: u64,
    /// [`speculate`](crate::Executor::speculate) calls that queued because the attempt would have blocked.
    pub would_block: u64,
    /// How long tasks and threads waited in the queue, for an executor built with
    /// [`record_waits(true)`](crate::ExecutorBuilder::record_waits).
    #[cfg(feature = "histogram")]
    pub queue_wait: Option<QueueWait>,
}

/// Calls that were refused, one count for each [`Reason`](crate::Reason).
///
/// ```
/// let refused = work_permit::Refused::default();
/// assert_eq!(refused.total(), 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Refused {
    /// [`Reason::Saturated`](crate::Reason::Saturated).
    pub saturated: u64,
    /// [`Reason::QueueFull`](crate::Reason::QueueFull).
    pub queue_full: u64,
    /// [`Reason::Closed`](crate::Reason::Closed).
    pub closed: u64,
    /// [`Reason::TimedOut`](crate::Reason::TimedOut).
    pub timed_out: u64,
    /// [`Reason::NotFit`](crate::Reason::NotFit).
    pub not_fit: u64,
    /// [`Reason::Deadlock`](crate::Reason::Deadlock).
    pub deadlock: u64,
    /// [`Reason::NoThread`](crate::Reason::NoThread).
    pub no_thread: u64,
    /// [`Reason::TooMany`](crate::Reason::TooMany).
    pub too_many: u64,
}

impl Refused {
    /// Refused calls in all.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("none").limit(0).build()?;
    /// assert!(exec.try_run(|| ()).is_err());
    /// assert_eq!(exec.stats().refused.total(), 1);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn total(&self) -> u64 {
        self.saturated
            + self.queue_full
            + self.closed
            + self.timed_out
            + self.not_fit
            + self.deadlock
            + self.no_thread
            + self.too_many
    }
}

/// Time in the queue, in nanoseconds, with three significant digits.
///
/// ```
/// let pool = work_permit::Pool::new();
/// let exec = pool.executor("timed").record_waits(true).build()?;
/// exec.spawn(|| ()).unwrap().join().unwrap();
/// let waits = exec.stats().queue_wait.expect("asked for");
/// assert_eq!(waits.count, 1);
/// assert!(waits.p50_ns <= waits.p99_ns && waits.p99_ns <= waits.max_ns);
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[cfg(feature = "histogram")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueueWait {
    /// Starts recorded.
    pub count: u64,
    /// Half waited no longer, in nanoseconds.
    pub p50_ns: u64,
    /// 99 of 100 waited no longer, in nanoseconds.
    pub p99_ns: u64,
    /// The longest wait, in nanoseconds.
    pub max_ns: u64,
}

/// A look at a pool's threads, from [`Pool::stats`](crate::Pool::stats).
///
/// ```
/// let pool = work_permit::Pool::new();
/// assert_eq!(pool.stats().alive, 0, "threads start on demand");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Threads that exist now.
    pub alive: usize,
    /// Of these, parked without work.
    pub idle: usize,
    /// Threads created since the start.
    pub created: u64,
    /// Threads that left since the start.
    pub left: u64,
    /// Threads that the system refused to create.
    pub refused: u64,
}
