//! The builder of pools.
#![forbid(unsafe_code)]

use crate::builder::cores;
use crate::pool::PoolConfig;
use crate::pool_handle::Pool;
use std::any::Any;
use std::fmt;
use std::io;
use std::time::Duration;

const DEFAULT_KEEP_ALIVE: Duration = Duration::from_secs(10);

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

    /// Called on each new thread before its first task; the next thread is created after it returns, so it must
    /// not wait for work of this pool. A panic in it is ignored.
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
    /// (Should the `Drop` of a payload panic, what that panic carries is leaked: dropping it could go on so for ever.)
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
