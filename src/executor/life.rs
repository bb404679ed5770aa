//! The executor over its lifetime: limit, statistics, end.
#![forbid(unsafe_code)]

use super::Executor;
use crate::builder::check_limit;
use crate::counters::Why;
use crate::error::{ConfigError, Unfinished};
use crate::pool_handle::Pool;
use crate::stats::Stats;
use crate::sync::deadline_after;
use crate::unrun::Unrun;
use std::time::Duration;

impl Executor {
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
        check_limit(permits, self.engine().settings.is_strand)?;
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
        let below = (sums.below_now as usize).min(gate.taken - inline - on_workers);
        Stats {
            limit: gate.limit,
            active: gate.taken,
            inline,
            on_workers,
            below,
            guards: gate.taken - inline - on_workers - below,
            free: gate.free,
            queued: gate.tasks,
            waiting: gate.waiters,
            attempts: sums.attempts_now as usize,
            accepted: gate.tally.accepted + sums.inline_begun,
            completed: sums.inline_ended + sums.queued_ended,
            ran_inline: sums.inline_ended,
            ran_queued: sums.queued_ended,
            speculated: sums.attempts_done,
            overtakes: engine.counters.overtakes(),
            panicked: engine.counters.panics(),
            cancelled: gate.tally.cancelled,
            expired: 0,
            unrun: gate.tally.unrun,
            refused: engine.counters.refusals(),
            no_permit: engine.counters.why(Why::NoPermit),
            not_fit: engine.counters.why(Why::NotFit),
            too_deep: engine.counters.why(Why::TooDeep),
            asked: engine.counters.why(Why::Asked),
            would_block: engine.counters.why(Why::WouldBlock),
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
    /// [`Permit`](crate::Permit) of it.
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
    /// [`Reason::Deadlock`](crate::Reason::Deadlock), under a permit of this very executor.
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
    /// waiting threads get [`Reason::Closed`](crate::Reason::Closed). With children the executor's own come first, then
    /// those of one child after the other; [`Unrun::executor_name`](crate::Unrun::executor_name) tells whose each is.
    ///
    /// Tasks that borrow never come out. Those of a [`scope`](Self::scope) end before this returns, their closures
    /// dropped, as [`JoinError::Closed`](crate::JoinError::Closed); those of [`run_all`](Self::run_all) go back to
    /// its caller. Both are counted as `unrun`.
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
        tasks.into_iter().map(|(engine, task)| Unrun::new(task, engine)).collect()
    }
}
