//! Order by key, with a fixed number of strands.
#![forbid(unsafe_code)]

use crate::dispatched::Dispatched;
use crate::error::{ConfigError, Rejected};
use crate::executor::Executor;
use crate::join::JoinHandle;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// A number of [strands](Executor::strand) of one executor, of which a key always gets the same one: tasks of one key
/// run one after the other, in the order in which they were given, inline ones too; tasks of other keys run beside
/// them, as far as the executor's limit lets them.
///
/// A call runs inline while the stripe of its key is idle. Two keys may share a stripe, and then wait for each other:
/// with as many stripes as tasks that run at a time, every other one finds its stripe busy; take some times as many.
/// (Where every key must be alone, give each a strand of its own.)
///
/// Keys are hashed with a random seed, so nobody can choose keys that all fall on one stripe.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use work_permit::{Pool, Stripes};
/// let writes = Pool::global().executor("writes").limit(4).build()?;
/// let by_key = Stripes::new(&writes, 64)?;
/// let log = Arc::new(Mutex::new(Vec::new()));
///
/// let mut last = None;
/// for (n, key) in ["a", "b", "a", "a", "b"].into_iter().enumerate() {
///     let log = Arc::clone(&log);
///     last = Some(by_key.dispatch(key, move || log.lock().unwrap().push((key, n))).unwrap());
/// }
/// last.unwrap().join().unwrap();
/// let of_b: Vec<_> = log.lock().unwrap().iter().copied().filter(|(key, _)| *key == "b").collect();
/// assert_eq!(of_b, [("b", 1), ("b", 4)]);
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Stripes {
    strands: Box<[Executor]>,
    hasher: RandomState,
}

impl Stripes {
    /// Most stripes that there can be.
    ///
    /// ```
    /// use work_permit::{Pool, Stripes};
    /// let exec = Pool::global().executor("writes").build()?;
    /// assert!(Stripes::new(&exec, Stripes::MAX + 1).is_err());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub const MAX: usize = 1 << 20;

    /// So many stripes below `executor`.
    ///
    /// # Errors
    /// [`ConfigError`] for 0 of them, for more than [`MAX`](Self::MAX), and when the pool is shut down.
    ///
    /// ```
    /// use work_permit::{Pool, Stripes};
    /// let exec = Pool::global().executor("writes").build()?;
    /// assert_eq!(Stripes::new(&exec, 16)?.all().len(), 16);
    /// assert!(Stripes::new(&exec, 0).is_err());
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn new(executor: &Executor, stripes: usize) -> Result<Self, ConfigError> {
        if stripes == 0 {
            return Err(ConfigError::new("0 stripes: there must be at least one".to_owned()));
        }
        if stripes > Self::MAX {
            let text = format!("{stripes} stripes are more than the most, {}", Self::MAX);
            return Err(ConfigError::new(text));
        }
        let name = executor.name();
        let strands = (0..stripes).map(|n| executor.strand(format!("{name} {n}")).build());
        Ok(Self { strands: strands.collect::<Result<_, _>>()?, hasher: RandomState::new() })
    }

    /// The stripe of a key: for the verbs that are not here, and for its statistics.
    ///
    /// ```
    /// # use work_permit::{Pool, Stripes};
    /// # let exec = Pool::global().executor("writes").build()?;
    /// let by_key = Stripes::new(&exec, 16)?;
    /// by_key.run("key", || assert!(by_key.of("key").is_held())).unwrap();
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn of<K: Hash + ?Sized>(&self, key: &K) -> &Executor {
        let hash = u128::from(self.hasher.hash_one(key));
        // As many parts of all hashes as there are stripes.
        &self.strands[((hash * self.strands.len() as u128) >> u64::BITS) as usize]
    }

    /// All stripes.
    ///
    /// ```
    /// # use work_permit::{Pool, Stripes};
    /// # let exec = Pool::global().executor("writes").build()?;
    /// let by_key = Stripes::new(&exec, 16)?;
    /// let queued: usize = by_key.all().iter().map(|stripe| stripe.stats().queued).sum();
    /// assert_eq!(queued, 0);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn all(&self) -> &[Executor] {
        &self.strands
    }

    /// [`Executor::try_run`] on the stripe of `key`.
    ///
    /// # Errors
    /// Those of [`Executor::try_run`].
    ///
    /// # Panics
    /// With the panic of `f`.
    ///
    /// ```
    /// # use work_permit::{Pool, Stripes};
    /// # let exec = Pool::global().executor("writes").build()?;
    /// assert_eq!(Stripes::new(&exec, 16)?.try_run(&7, || 49).unwrap(), 49);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[inline]
    pub fn try_run<K, F, R>(&self, key: &K, f: F) -> Result<R, Rejected<F>>
    where
        K: Hash + ?Sized,
        F: FnOnce() -> R,
    {
        self.of(key).try_run(f)
    }

    /// [`Executor::run`] on the stripe of `key`.
    ///
    /// # Errors
    /// Those of [`Executor::run`].
    ///
    /// # Panics
    /// With the panic of `f`.
    ///
    /// ```
    /// # use work_permit::{Pool, Stripes};
    /// # let exec = Pool::global().executor("writes").build()?;
    /// assert_eq!(Stripes::new(&exec, 16)?.run("key", || "value").unwrap(), "value");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[inline]
    pub fn run<K, F, R>(&self, key: &K, f: F) -> Result<R, Rejected<F>>
    where
        K: Hash + ?Sized,
        F: FnOnce() -> R,
    {
        self.of(key).run(f)
    }

    /// [`Executor::dispatch`] on the stripe of `key`.
    ///
    /// # Errors
    /// Those of [`Executor::dispatch`].
    ///
    /// # Panics
    /// With the panic of `f` when it ran here.
    ///
    /// ```
    /// # use work_permit::{Pool, Stripes};
    /// # let exec = Pool::global().executor("writes").build()?;
    /// let by_key = Stripes::new(&exec, 16)?;
    /// assert!(by_key.dispatch("key", || ()).unwrap().is_inline(), "its stripe is idle");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[inline]
    pub fn dispatch<K, F, R>(&self, key: &K, f: F) -> Result<Dispatched<R>, Rejected<F>>
    where
        K: Hash + ?Sized,
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.of(key).dispatch(f)
    }

    /// [`Executor::spawn`] on the stripe of `key`.
    ///
    /// # Errors
    /// Those of [`Executor::spawn`].
    ///
    /// ```
    /// # use work_permit::{Pool, Stripes};
    /// # let exec = Pool::global().executor("writes").build()?;
    /// assert_eq!(Stripes::new(&exec, 16)?.spawn("key", || 1).unwrap().join().unwrap(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn<K, F, R>(&self, key: &K, f: F) -> Result<JoinHandle<R>, Rejected<F>>
    where
        K: Hash + ?Sized,
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.of(key).spawn(f)
    }

    /// [`Executor::execute`] on the stripe of `key`.
    ///
    /// # Errors
    /// Those of [`Executor::execute`].
    ///
    /// ```
    /// # use work_permit::{Pool, Stripes};
    /// # let exec = Pool::global().executor("writes").build()?;
    /// Stripes::new(&exec, 16)?.execute("key", || ()).unwrap();
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn execute<K, F>(&self, key: &K, f: F) -> Result<(), Rejected<F>>
    where
        K: Hash + ?Sized,
        F: FnOnce() + Send + 'static,
    {
        self.of(key).execute(f)
    }
}

impl fmt::Debug for Stripes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stripes").field("stripes", &self.strands.len()).finish_non_exhaustive()
    }
}
