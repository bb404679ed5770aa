//! The public face of the threads.
#![forbid(unsafe_code)]

use crate::builder::ExecutorBuilder;
use crate::error::Unfinished;
use crate::pool::{PoolConfig, PoolCore};
use crate::pool_builder::PoolBuilder;
use crate::stats::PoolStats;
use crate::sync::{Arc, OnceLock};
use std::fmt;
use std::time::Duration;

/// Worker threads, shared by many executors.
///
/// Threads start when queued work needs them and leave after `keep_alive` without work; an idle pool uses no
/// CPU time. A worker serves whichever executor has both work and a permit.
///
/// It is a handle, cheap to clone. When the last handle and the last executor of a pool are dropped, what is
/// queued still runs and the threads leave; no drop blocks.
///
/// ```
/// use work_permit::Pool;
/// let pool = Pool::new();
/// let reads = pool.executor("reads").limit(8).build()?;
/// let writes = pool.executor("writes").limit(2).build()?;
/// let sum = reads.spawn(|| 1).unwrap().join().unwrap() + writes.run(|| 2).unwrap();
/// assert_eq!(sum, 3);
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Pool {
    handle: Arc<Handle>,
}

struct Handle {
    core: Arc<PoolCore>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.core.retire();
    }
}

impl Pool {
    /// A pool with the defaults of [`PoolBuilder`]. It cannot fail, since threads start on demand.
    ///
    /// ```
    /// let pool = work_permit::Pool::new();
    /// assert_eq!(pool.stats().created, 0);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        PoolBuilder::new().build_checked()
    }

    /// A pool with settings of its own.
    ///
    /// ```
    /// let pool = work_permit::Pool::builder().name("db").max_threads(16).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn builder() -> PoolBuilder {
        PoolBuilder::new()
    }

    /// The pool of the process, made on first use and never shut down by a drop.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("small jobs").build()?;
    /// assert_eq!(exec.run(|| 5).unwrap(), 5);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn global() -> &'static Pool {
        static GLOBAL: OnceLock<Pool> = OnceLock::new();
        GLOBAL.get_or_init(Pool::new)
    }

    /// Begins an executor on this pool. The name is for people: statistics, `Debug`, error texts.
    ///
    /// ```
    /// let pool = work_permit::Pool::new();
    /// let exec = pool.executor("reads").limit(32).queue_capacity(4096).build()?;
    /// assert_eq!((exec.name(), exec.limit()), ("reads", 32));
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn executor(&self, name: impl Into<String>) -> ExecutorBuilder {
        ExecutorBuilder::new(self.clone(), name.into())
    }

    /// The pool's threads in numbers.
    ///
    /// ```
    /// let pool = work_permit::Pool::new();
    /// let exec = pool.executor("jobs").build()?;
    /// exec.spawn(|| ()).unwrap().join().unwrap();
    /// let stats = pool.stats();
    /// assert_eq!(stats.created - stats.left, stats.alive as u64);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.handle.core.stats()
    }

    /// Closes every executor of the pool, waits for what was accepted, then for the threads to leave; for
    /// `timeout` at most. After it no executor can be built on the pool. A second call goes on waiting.
    ///
    /// # Errors
    /// [`Unfinished`] says what is left when the time has passed. From a worker of this pool, or under a permit
    /// of one of its executors, the wait would be for itself: all is closed, and the answer comes at once, with
    /// [`Reason::Deadlock`](crate::Reason::Deadlock).
    ///
    /// ```
    /// use std::time::Duration;
    /// let pool = work_permit::Pool::new();
    /// let exec = pool.executor("jobs").build()?;
    /// let handle = exec.spawn(|| 3).unwrap();
    /// pool.shutdown(Duration::MAX).unwrap();
    /// assert_eq!(pool.stats().alive, 0);
    /// assert_eq!(handle.join().unwrap(), 3, "what was accepted has run");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn shutdown(&self, timeout: Duration) -> Result<(), Unfinished> {
        self.handle.core.shutdown(timeout)
    }

    pub(crate) fn from_config(config: PoolConfig) -> Self {
        Self { handle: Arc::new(Handle { core: PoolCore::new(config) }) }
    }

    pub(crate) fn core(&self) -> &Arc<PoolCore> {
        &self.handle.core
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("name", &self.core().config.name)
            .field("threads", &self.stats())
            .finish_non_exhaustive()
    }
}
