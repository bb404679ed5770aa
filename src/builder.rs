//! Builders of pools and executors. A value that makes no sense is refused by `build`, which names it.
#![forbid(unsafe_code)]

use crate::engine::{Engine, Settings};
use crate::error::ConfigError;
use crate::executor::Executor;
use crate::permits::state::{MAX_LIMIT, MAX_OVERTAKES};
use crate::pool::{Member, PoolConfig};
use crate::pool_handle::Pool;
use crate::sync::{Arc, Weak};
use std::any::Any;
use std::fmt;
use std::io;
use std::time::Duration;

const DEFAULT_KEEP_ALIVE: Duration = Duration::from_secs(10);
const DEFAULT_QUEUE_CAPACITY: usize = 65_536;
const DEFAULT_MAX_OVERTAKES: usize = 16;
const DEFAULT_MAX_INLINE_DEPTH: usize = 16;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Settings of a [`Pool`], from [`Pool::builder`].
///
/// ```
/// use std::time::Duration;
/// let pool = work_permit::Pool::builder()
///     .name("storage")
///     .max_threads(64)
///     .keep_alive(Duration::from_secs(2))
///     .on_panic(|_| eprintln!("a storage task panicked"))
///     .build()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct PoolBuilder {
    config: PoolConfig,
}

impl PoolBuilder {
    pub(crate) fn new() -> Self {
        Self {
            config: PoolConfig {
                name: "work-permit".to_owned(),
                max_threads: usize::MAX,
                keep_alive: DEFAULT_KEEP_ALIVE,
                stack_size: None,
                on_thread_start: None,
                on_thread_stop: None,
                on_panic: None,
                cores: cores(),
            },
        }
    }

    /// First part of the threads' names; the second is a number. Default: `work-permit`.
    ///
    /// ```
    /// let pool = work_permit::Pool::builder().name("db").build()?;
    /// let exec = pool.executor("jobs").build().unwrap();
    /// let name = exec.spawn(|| std::thread::current().name().map(str::to_owned)).unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = name.into();
        self
    }

    /// Most threads at a time. Default: no cap of its own, so at most the sum of the executors' limits.
    ///
    /// A cap can make work wait beside free permits; tasks that wait for each other may then never end.
    ///
    /// ```
    /// assert!(work_permit::Pool::builder().max_threads(0).build().is_err(), "nobody could serve");
    /// ```
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.config.max_threads = threads;
        self
    }

    /// How long a thread without work stays. Default: 10 seconds. Zero: it leaves at once;
    /// [`Duration::MAX`]: it stays.
    ///
    /// ```
    /// use std::time::Duration;
    /// let pool = work_permit::Pool::builder().keep_alive(Duration::MAX).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn keep_alive(mut self, time: Duration) -> Self {
        self.config.keep_alive = time;
        self
    }

    /// Bytes of stack for each thread. Default: the standard library's.
    ///
    /// ```
    /// let pool = work_permit::Pool::builder().stack_size(256 * 1024).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.config.stack_size = Some(bytes);
        self
    }

    /// Called on each new thread before its first task. A panic in it is ignored.
    ///
    /// ```
    /// let pool = work_permit::Pool::builder().on_thread_start(|| println!("hello")).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.config.on_thread_start = Some(Box::new(hook));
        self
    }

    /// Called on each thread after its last task. A panic in it is ignored.
    ///
    /// ```
    /// let pool = work_permit::Pool::builder().on_thread_stop(|| println!("bye")).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_stop(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.config.on_thread_stop = Some(Box::new(hook));
        self
    }

    /// Called with the payload of each panic of a queued task, on the thread that ran it, before its handle
    /// completes. An inline panic goes on to the caller and is not reported here. A panic in it is ignored.
    ///
    /// ```
    /// let pool = work_permit::Pool::builder()
    ///     .on_panic(|payload| eprintln!("{:?}", payload.downcast_ref::<&str>()))
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_panic(mut self, hook: impl Fn(&(dyn Any + Send)) + Send + Sync + 'static) -> Self {
        self.config.on_panic = Some(Box::new(hook));
        self
    }

    /// The pool. No thread is started yet.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for no threads at all, or a name with a NUL byte.
    ///
    /// ```
    /// let error = work_permit::Pool::builder().name("a\0b").build().unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// ```
    pub fn build(self) -> io::Result<Pool> {
        let wrong = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text.to_owned()));
        if self.config.max_threads == 0 {
            return wrong("max_threads 0: a pool needs at least one thread");
        }
        if self.config.name.contains('\0') {
            return wrong("name: a thread's name has no NUL byte in it");
        }
        Ok(self.build_checked())
    }

    pub(crate) fn build_checked(self) -> Pool {
        Pool::from_config(self.config)
    }
}

impl fmt::Debug for PoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolBuilder")
            .field("name", &self.config.name)
            .field("max_threads", &self.config.max_threads)
            .field("keep_alive", &self.config.keep_alive)
            .field("stack_size", &self.config.stack_size)
            .finish_non_exhaustive()
    }
}

/// Whether `dispatch` may run work on its caller's thread.
///
/// ```
/// use work_permit::{Inline, Pool};
/// let exec = Pool::new().executor("hops").inline(Inline::Never).build()?;
/// assert!(!exec.dispatch(|| ()).unwrap().is_inline());
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Inline {
    /// When a permit is free and the thread may: the default.
    #[default]
    WhenFree,
    /// Never: `dispatch` always queues. The switch with which a user tests both paths.
    Never,
}

/// Settings of an [`Executor`], from [`Pool::executor`].
///
/// ```
/// let pool = work_permit::Pool::new();
/// let exec = pool.executor("reads").limit(32).queue_capacity(4096).max_overtakes(8).build()?;
/// assert_eq!(exec.limit(), 32);
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
#[derive(Debug, Clone)]
pub struct ExecutorBuilder {
    pool: Pool,
    name: String,
    limit: usize,
    queue_capacity: usize,
    max_overtakes: usize,
    max_inline_depth: usize,
    inline: Inline,
    record_waits: bool,
}

impl ExecutorBuilder {
    pub(crate) fn new(pool: Pool, name: String) -> Self {
        Self {
            pool,
            name,
            limit: cores(),
            queue_capacity: DEFAULT_QUEUE_CAPACITY,
            max_overtakes: DEFAULT_MAX_OVERTAKES,
            max_inline_depth: DEFAULT_MAX_INLINE_DEPTH,
            inline: Inline::WhenFree,
            record_waits: false,
        }
    }

    /// How many tasks may run at a time, inline ones and guards included. 0 pauses: work queues until the limit
    /// is raised. Default: the available parallelism.
    ///
    /// ```
    /// let paused = work_permit::Pool::new().executor("paused").limit(0).build()?;
    /// assert!(paused.try_run(|| ()).is_err());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn limit(mut self, permits: usize) -> Self {
        self.limit = permits;
        self
    }

    /// How many tasks may be queued; threads that wait for a permit do not count. Default: 65,536. 0: nothing is
    /// ever queued, so `dispatch` runs inline or is refused.
    ///
    /// ```
    /// use work_permit::{Pool, Reason};
    /// let exec = Pool::new().executor("strict").limit(0).queue_capacity(1).build()?;
    /// exec.execute(|| ()).unwrap();
    /// assert_eq!(exec.execute(|| ()).unwrap_err().reason(), Reason::QueueFull);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn queue_capacity(mut self, tasks: usize) -> Self {
        self.queue_capacity = tasks;
        self
    }

    /// As many queued tasks as memory holds. Nothing tells a producer then that it is too fast.
    ///
    /// ```
    /// let exec = work_permit::Pool::new().executor("trusting").unbounded_queue().build()?;
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn unbounded_queue(mut self) -> Self {
        self.queue_capacity = usize::MAX;
        self
    }

    /// How many times in a row a call on its caller's thread may start ahead of waiting work. 0 is strict: while
    /// anything waits, every call queues. Default: 16.
    ///
    /// A larger number keeps callers running where a hand-over would cost a thread switch for each task, at the
    /// price of a longer wait in the queue.
    ///
    /// ```
    /// let fair = work_permit::Pool::new().executor("fair").max_overtakes(0).build()?;
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn max_overtakes(mut self, times: usize) -> Self {
        self.max_overtakes = times;
        self
    }

    /// How many tasks a thread may be inside of, all executors together, for `dispatch` to run one more inline.
    /// 0: `dispatch` always queues. Default: 16.
    ///
    /// ```
    /// let flat = work_permit::Pool::new().executor("flat").limit(2).max_inline_depth(1).build()?;
    /// let inner = flat.run(|| flat.dispatch(|| ()).unwrap().is_inline()).unwrap();
    /// assert!(!inner, "one level only");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn max_inline_depth(mut self, tasks: usize) -> Self {
        self.max_inline_depth = tasks;
        self
    }

    /// Whether `dispatch` may run work inline. Default: [`Inline::WhenFree`].
    ///
    /// ```
    /// use work_permit::{Inline, Pool};
    /// let exec = Pool::new().executor("queued").inline(Inline::Never).build()?;
    /// assert!(!exec.dispatch(|| ()).unwrap().is_inline());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn inline(mut self, inline: Inline) -> Self {
        self.inline = inline;
        self
    }

    /// Whether to record how long tasks and threads wait in the queue, for
    /// [`Stats::queue_wait`](crate::Stats). It reads the clock twice for each queued task; inline runs read
    /// none. Default: no.
    ///
    /// ```
    /// let exec = work_permit::Pool::new().executor("timed").record_waits(true).build()?;
    /// assert_eq!(exec.stats().queue_wait.map(|waits| waits.count), Some(0));
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[cfg(feature = "histogram")]
    pub fn record_waits(mut self, record: bool) -> Self {
        self.record_waits = record;
        self
    }

    /// The executor.
    ///
    /// # Errors
    /// [`ConfigError`] names the value that makes no sense: a limit above [`Executor::MAX_LIMIT`], more than
    /// 65,535 overtakes; or says that the pool is shut down.
    ///
    /// ```
    /// use work_permit::{Executor, Pool};
    /// assert!(Pool::new().executor("max").limit(Executor::MAX_LIMIT).build().is_ok());
    /// let error = Pool::new().executor("more").max_overtakes(65_536).build().unwrap_err();
    /// assert!(error.to_string().contains("max_overtakes 65536"));
    /// ```
    pub fn build(self) -> Result<Executor, ConfigError> {
        check_limit(self.limit)?;
        let Ok(max_overtakes) = u16::try_from(self.max_overtakes) else {
            let asked = self.max_overtakes;
            return Err(ConfigError::new(format!(
                "max_overtakes {asked} is more than the largest, {MAX_OVERTAKES}"
            )));
        };
        let settings = Settings {
            name: self.name.into_boxed_str(),
            max_inline_depth: self.max_inline_depth,
            never_inline: self.inline == Inline::Never,
            record_waits: self.record_waits,
        };
        let pool = Arc::clone(self.pool.core());
        let engine = Engine::new(
            settings,
            self.limit,
            max_overtakes,
            self.queue_capacity,
            pool,
        );
        let member: Weak<Engine> = Arc::downgrade(&engine);
        if !self.pool.core().admit(member as Weak<dyn Member>) {
            return Err(ConfigError::new("the pool is shut down".to_owned()));
        }
        Ok(Executor::from_parts(engine, self.pool))
    }
}

/// Refuses a limit that no executor can have.
pub(crate) fn check_limit(limit: usize) -> Result<(), ConfigError> {
    if limit > MAX_LIMIT {
        return Err(ConfigError::new(format!(
            "limit {limit} is more than the largest, {MAX_LIMIT}"
        )));
    }
    Ok(())
}
