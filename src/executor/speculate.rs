//! Work that is tried here, and queued when it turns out to block.
#![forbid(unsafe_code)]

use super::Executor;
use crate::counters::Why;
use crate::dispatched::Dispatched;
use crate::error::Rejected;

impl Executor {
    /// Tries the work here, without a permit; what cannot be done at once is queued.
    ///
    /// `attempt` does the work, or finds that it would block and answers `Err(rest)`: whatever is left to do, which is
    /// then queued as by [`spawn`](Self::spawn), with the arrival time of this call. For work that is usually quick and
    /// only the work itself can tell: a page that is cached or on the disk, a lock that is free or not.
    ///
    /// *The attempt* is the caller's own code in the caller's own time. It needs no permit and waits for nothing, so
    /// it runs whatever the limit, the queue, the thread's [`fitness`](crate::fitness), also under
    /// [`Inline::Never`](crate::Inline::Never) and on a closed executor; it may borrow. It is not inside of a task of
    /// this executor (unless its caller is): a `run` in it takes a permit. It must not block: nothing counts against
    /// the limit, and [`drain`](Self::drain) does not wait for it. [`Stats::attempts`](crate::Stats) says how many are
    /// under way.
    ///
    /// *Counted* as a task that ran inline when it is done (`accepted`, `completed`, `ran_inline`, and `speculated`);
    /// else only its rest is, as a queued one (`would_block`).
    ///
    /// To try the work where it stands, and move it only when it has to wait, is what users of bevy (#2725) and of
    /// DataFusion (#13692) asked of their pools.
    ///
    /// # Errors
    /// The rest comes back, for the caller to run or to drop: [`Reason::QueueFull`](crate::Reason::QueueFull),
    /// [`Reason::Closed`](crate::Reason::Closed), [`Reason::NoThread`](crate::Reason::NoThread).
    ///
    /// # Panics
    /// With the panic of `attempt`. One of the rest is in its handle.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// let exec = work_permit::Pool::global().executor("totals").limit(1).build()?;
    /// let total = Arc::new(Mutex::new(0));
    /// let add = |n: u32| {
    ///     exec.speculate(|| match total.try_lock() {
    ///         Ok(mut total) => Ok({ *total += n; *total }),
    ///         Err(_) => {
    ///             let total = Arc::clone(&total);
    ///             Err(move || { let mut total = total.lock().unwrap(); *total += n; *total })
    ///         }
    ///     })
    /// };
    /// assert!(add(1).unwrap().is_inline());
    /// let held = total.lock().unwrap();
    /// let queued = add(2).unwrap();
    /// assert!(!queued.is_inline());
    /// drop(held);
    /// assert_eq!(queued.join().unwrap(), 3);
    /// let stats = exec.stats();
    /// assert_eq!((stats.speculated, stats.would_block), (1, 1));
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[inline]
    pub fn speculate<A, R, Rest>(&self, attempt: A) -> Result<Dispatched<R>, Rejected<Rest>>
    where
        A: FnOnce() -> Result<R, Rest>,
        Rest: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let came_ns = self.engine().waits.now_ns();
        match self.engine().attempt(attempt) {
            Ok(value) => Ok(Dispatched::Inline(value)),
            Err(rest) => self.spawn_since(rest, Why::WouldBlock, came_ns).map(Dispatched::Queued),
        }
    }
}
