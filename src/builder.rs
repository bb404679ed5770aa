//! The builder of executors. A value that makes no sense is refused by `build`, which names it.
#![forbid(unsafe_code)]

use crate::engine::{Engine, Plan, Settings};
use crate::error::ConfigError;
use crate::executor::Executor;
use crate::operations::Operations;
use crate::permits::state::{MAX_LIMIT, MAX_OVERTAKES};
use crate::pool::Member;
use crate::pool_handle::Pool;
use crate::sync::{Arc, Weak};

const DEFAULT_QUEUE_CAPACITY: usize = 65_536;
/// By measurement: the group `overtakes` of `benches/`.
const DEFAULT_MAX_OVERTAKES: usize = 256;
const DEFAULT_MAX_INLINE_DEPTH: usize = 16;

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
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
    /// `None`: the cores, which it takes the system a while to count.
    limit: Option<usize>,
    queue_capacity: usize,
    max_overtakes: usize,
    max_inline_depth: usize,
    inline: Inline,
    requires: Operations,
    record_waits: bool,
    leases: bool,
    parent: Option<Executor>,
    is_strand: bool,
}

impl ExecutorBuilder {
    pub(crate) fn new(pool: Pool, name: String) -> Self {
        Self {
            pool,
            name,
            limit: None,
            queue_capacity: DEFAULT_QUEUE_CAPACITY,
            max_overtakes: DEFAULT_MAX_OVERTAKES,
            max_inline_depth: DEFAULT_MAX_INLINE_DEPTH,
            inline: Inline::WhenFree,
            requires: Operations::NONE,
            record_waits: false,
            // Models of leases name their slots; everywhere else leases would only multiply them.
            leases: cfg!(not(work_permit_loom)),
            parent: None,
            is_strand: false,
        }
    }

    /// A child starts from what its parent asks of threads.
    pub(crate) fn child(parent: &Executor, name: String) -> Self {
        let settings = &parent.engine().settings;
        Self {
            max_inline_depth: settings.max_inline_depth as usize,
            inline: if settings.never_inline { Inline::Never } else { Inline::WhenFree },
            parent: Some(parent.clone()),
            ..Self::new(parent.pool().clone(), name)
        }
    }

    pub(crate) fn strand(parent: &Executor, name: String) -> Self {
        Self { limit: Some(1), max_overtakes: 0, is_strand: true, ..Self::child(parent, name) }
    }

    /// How many tasks may run at a time, inline ones and guards included. 0 pauses: work queues until the limit
    /// is raised. Default: the available parallelism; of a strand 1, and no other is taken but 0.
    ///
    /// ```
    /// let paused = work_permit::Pool::new().executor("paused").limit(0).build()?;
    /// assert!(paused.try_run(|| ()).is_err());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn limit(mut self, permits: usize) -> Self {
        self.limit = Some(permits);
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
    /// anything waits, every call queues. Default: 256; a strand is strict.
    ///
    /// A larger number keeps callers running where a hand-over would cost a thread switch for each task, at the
    /// price of a longer wait in the queue: at most so many starts more. Measured on two cores with two permits and
    /// eight callers of 1 µs of work: 16 gives 0.40 of the rate without a limit, 64 gives 0.69, 256 gives 0.86 and
    /// 1,024 gives 0.94; but of 32 callers of 10 µs the one with the least then had no turn in 150 ms, as without
    /// a limit, where 256 left it 0.65 of the mean.
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

    /// What a thread must allow to run the executor's work inline. Default: [`Operations::NONE`], and any thread will
    /// do. A thread that nobody described allows nothing, a pool's worker everything: see
    /// [`fitness`](crate::fitness). A second call replaces the first.
    ///
    /// ```
    /// use work_permit::{Operations, Pool, Reason, fitness};
    /// const BLOCK: Operations = Operations::only(0).unwrap();
    /// let files = Pool::new().executor("files").requires(BLOCK).build()?;
    /// assert_eq!(files.run(|| "read").unwrap_err().reason(), Reason::NotFit);
    /// assert_eq!(files.spawn(|| "read").unwrap().join().unwrap(), "read");
    /// let _may_block = fitness::allow(BLOCK);
    /// assert_eq!(files.run(|| "read").unwrap(), "read");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn requires(mut self, operations: Operations) -> Self {
        self.requires = operations;
        self
    }

    /// Whether a permit may stay with its thread between two inline runs while nothing waits. It saves the
    /// atomic operations of taking it and giving it back, and changes no answer. Default: yes. The switch is
    /// there to compare. A child keeps none, whatever is said here.
    ///
    /// ```
    /// let plain = work_permit::Pool::new().executor("word only").leases(false).build()?;
    /// assert!(plain.try_run(|| ()).is_ok());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn leases(mut self, allow: bool) -> Self {
        self.leases = allow;
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
        let limit = self.limit.unwrap_or_else(cores);
        check_limit(limit, self.is_strand)?;
        let asked = self.max_overtakes;
        if self.is_strand && asked > 0 {
            return Err(ConfigError::new(format!(
                "max_overtakes {asked} of a strand, which is strict"
            )));
        }
        let Ok(max_overtakes) = u16::try_from(asked) else {
            return Err(ConfigError::new(format!(
                "max_overtakes {asked} is more than the largest, {MAX_OVERTAKES}"
            )));
        };
        let above = self.parent.as_ref().map(|parent| parent.engine().settings.requires);
        let requires = self.requires | above.unwrap_or_default();
        let never_inline = self.inline == Inline::Never;
        let settings = Settings {
            name: self.name.into_boxed_str(),
            requires,
            max_inline_depth: u32::try_from(self.max_inline_depth).unwrap_or(u32::MAX),
            never_inline,
            is_strand: self.is_strand,
            is_child: self.parent.is_some(),
            dispatches_freely: !never_inline && self.max_inline_depth > 0 && requires.is_empty(),
        };
        let plan = Plan {
            limit,
            max_overtakes,
            capacity: self.queue_capacity,
            record_waits: self.record_waits,
            leases: self.leases,
        };
        if let Some(parent) = self.parent {
            if self.pool.core().is_shut() {
                return Err(shut_down());
            }
            let engine = Engine::new_child(settings, &plan, parent.engine());
            return Ok(Executor::from_parts(engine, self.pool, Some(parent)));
        }
        let pool = Arc::clone(self.pool.core());
        let engine = Engine::new(settings, &plan, pool);
        let member: Weak<Engine> = Arc::downgrade(&engine);
        if !self.pool.core().admit(member as Weak<dyn Member>) {
            return Err(shut_down());
        }
        Ok(Executor::from_parts(engine, self.pool, None))
    }
}

fn shut_down() -> ConfigError {
    ConfigError::new("the pool is shut down".to_owned())
}

/// Refuses a limit that no executor can have, or no strand.
pub(crate) fn check_limit(limit: usize, is_strand: bool) -> Result<(), ConfigError> {
    if limit > MAX_LIMIT {
        return Err(ConfigError::new(format!(
            "limit {limit} is more than the largest, {MAX_LIMIT}"
        )));
    }
    if is_strand && limit > 1 {
        return Err(ConfigError::new(format!(
            "limit {limit} of a strand, which runs one task at a time"
        )));
    }
    Ok(())
}
