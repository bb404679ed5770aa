//! Permits as guards.
#![forbid(unsafe_code)]

use crate::executor::Executor;
use std::fmt;
use std::marker::PhantomData;

/// A permit of an executor, held by this thread until it is dropped.
///
/// For work that does not fit into one closure. It counts against the limit like a running task, but work that
/// this thread gives to the executor meanwhile needs a permit of its own. It stays on its thread;
/// [`into_owned`](Self::into_owned) makes one that can be sent.
///
/// Bind it to a name: `let _ = exec.acquire()` gives it back at once.
///
/// ```
/// let exec = work_permit::Pool::global().executor("files").limit(1).build()?;
/// let permit = exec.acquire().unwrap();
/// assert!(exec.is_held() && exec.try_run(|| ()).is_err(), "the only permit is taken");
/// drop(permit);
/// assert!(exec.try_run(|| ()).is_ok());
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
///
/// ```compile_fail
/// # let exec = work_permit::Pool::global().executor("files").limit(1).build().unwrap();
/// let permit = exec.acquire().unwrap();
/// std::thread::scope(|s| { s.spawn(move || drop(permit)); }); // a `Permit` stays on its thread
/// ```
#[must_use = "a permit that is not bound to a name goes back at once"]
#[clippy::has_significant_drop]
pub struct Permit<'a> {
    executor: &'a Executor,
    stays_here: PhantomData<*const ()>,
}

impl<'a> Permit<'a> {
    pub(crate) fn new(executor: &'a Executor) -> Self {
        executor.engine().guard_came();
        Self { executor, stays_here: PhantomData }
    }

    /// The same permit, no longer bound to this thread or to a borrow.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("files").limit(1).build()?;
    /// let permit = exec.acquire().unwrap().into_owned();
    /// std::thread::spawn(move || drop(permit)).join().unwrap();
    /// assert_eq!(exec.stats().free, 1);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn into_owned(self) -> OwnedPermit {
        let executor = self.executor;
        std::mem::forget(self);
        executor.engine().guard_left();
        OwnedPermit { executor: executor.clone() }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.executor.engine().guard_left();
        self.executor.engine().give_back();
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("executor", &self.executor.name()).finish_non_exhaustive()
    }
}

/// A permit that can go to another thread or live in a struct: `Send + 'static`.
///
/// It keeps its executor alive, and no thread counts as its holder.
///
/// ```
/// use work_permit::{OwnedPermit, Pool};
/// struct Connection { _permit: OwnedPermit }
/// let exec = Pool::global().executor("connections").limit(1).build()?;
/// let open = Connection { _permit: exec.try_acquire().unwrap().into_owned() };
/// assert!(exec.try_acquire().is_err());
/// drop(open);
/// assert!(exec.try_acquire().is_ok());
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
#[must_use = "a permit that is not bound to a name goes back at once"]
#[clippy::has_significant_drop]
pub struct OwnedPermit {
    executor: Executor,
}

impl OwnedPermit {
    /// The executor whose permit this is.
    ///
    /// ```
    /// # let exec = work_permit::Pool::global().executor("files").limit(1).build()?;
    /// let permit = exec.acquire().unwrap().into_owned();
    /// assert_eq!(permit.executor().name(), "files");
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }
}

impl Drop for OwnedPermit {
    fn drop(&mut self) {
        self.executor.engine().give_back();
    }
}

impl fmt::Debug for OwnedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit")
            .field("executor", &self.executor.name())
            .finish_non_exhaustive()
    }
}
