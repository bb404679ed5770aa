//! What a thread may run: guards that describe the current thread to the executors.
//!
//! A thread that accepts connections must not wait for a disk; one that holds a lock must not run a closure that may
//! want it. Such a thread is *unfit*, for some work or for all, and says so with a guard:
//!
//! | the innermost guard of the thread | an executor that requires nothing | one that [`requires`] operations |
//! |---|---|---|
//! | none | fit | unfit |
//! | [`allow(ops)`](allow) | fit | fit if `ops` contain them all |
//! | [`no_inline()`](no_inline) | unfit | unfit |
//! | none, on a worker of a pool | fit | fit |
//!
//! On an unfit thread [`dispatch`] queues, [`try_run`], [`run`] and [`run_timeout`] are refused as
//! [`Reason::NotFit`](crate::Reason::NotFit), and [`join`] waits for a worker where it would run the task itself,
//! even with a permit free. `spawn` and `execute` queue as always. `acquire` and its relatives run nothing and ask for
//! no fitness: who works under a [`Permit`](crate::Permit) answers for the thread himself, and so does who calls
//! [`Unrun::run`](crate::Unrun::run), or has an attempt run by [`speculate`].
//!
//! *Inside a task* the same holds: a task that runs here found the thread fit, so what it calls under its own permit
//! finds it fit as well, unless the task made a guard that says otherwise. A guard inside of a task counts until it is
//! dropped or the task ends, whichever is first: a task leaves the fitness of its thread as it was, also by a panic,
//! and with a guard that it forgot or returned.
//!
//! *Why an undescribed thread allows nothing.* A needless hop costs microseconds; a disk read on a thread that serves a
//! thousand connections costs all of them. So who does not know is unfit, as in Apache Ignite 3, whose
//! `ThreadOperation` this is. (Ignite lets the outermost role count; here it is the innermost, so that a lock taken
//! deep inside can be declared.) That guards stack up and the latest counts is folly's way, whose threads permit or
//! prohibit blocking so.
//!
//! ```
//! use work_permit::{Operations, Pool, Reason, fitness};
//! const READ_DISK: Operations = Operations::only(0).unwrap();
//!
//! let reads = Pool::global().executor("reads").limit(2).requires(READ_DISK).build()?;
//! // A thread of the network: reads are queued.
//! assert!(!reads.dispatch(|| "page").unwrap().is_inline());
//! assert_eq!(reads.run(|| "page").unwrap_err().reason(), Reason::NotFit);
//! // A thread that waits for its answer anyway: reads run here.
//! let patient = fitness::allow(READ_DISK);
//! assert!(reads.dispatch(|| "page").unwrap().is_inline());
//! {
//!     let _locked = fitness::no_inline();
//!     assert!(!reads.dispatch(|| "page").unwrap().is_inline());
//! }
//! assert!(reads.run(|| "page").is_ok());
//! drop(patient);
//! # Ok::<(), work_permit::ConfigError>(())
//! ```
//!
//! [`requires`]: crate::ExecutorBuilder::requires
//! [`dispatch`]: crate::Executor::dispatch
//! [`try_run`]: crate::Executor::try_run
//! [`run`]: crate::Executor::run
//! [`run_timeout`]: crate::Executor::run_timeout
//! [`speculate`]: crate::Executor::speculate
//! [`join`]: crate::JoinHandle::join
#![forbid(unsafe_code)]

use crate::operations::Operations;
use crate::task::fit::{self, Fitness, Number};
use std::fmt;
use std::marker::PhantomData;

/// From now on, and while the guard lives, this thread allows `operations` and no others.
///
/// ```
/// use work_permit::{Operations, Pool, fitness};
/// const READ: Operations = Operations::only(0).unwrap();
/// const WRITE: Operations = Operations::only(1).unwrap();
/// let writes = Pool::global().executor("writes").limit(1).requires(READ | WRITE).build()?;
/// let _both = fitness::allow(READ | WRITE);
/// assert!(writes.try_run(|| ()).is_ok());
/// let _less = fitness::allow(READ);
/// assert!(writes.try_run(|| ()).is_err(), "the innermost counts");
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
pub fn allow(operations: Operations) -> Guard {
    Guard::new(Fitness::allowing(operations))
}

/// From now on, and while the guard lives, nothing runs inline on this thread, whatever an executor requires.
///
/// For a caller that holds a lock which a closure might want, and for tests of the other path.
///
/// ```
/// use std::sync::Mutex;
/// use work_permit::{Pool, fitness};
/// let log = std::sync::Arc::new(Mutex::new(Vec::new()));
/// let exec = Pool::global().executor("log").limit(1).build()?;
/// let queued = {
///     let _no_inline = fitness::no_inline();
///     let mut held = log.lock().unwrap();
///     held.push("first");
///     let log = std::sync::Arc::clone(&log);
///     exec.dispatch(move || log.lock().unwrap().push("second")).unwrap()
/// };
/// assert!(!queued.is_inline(), "here it would wait for its own caller");
/// queued.join().unwrap();
/// assert_eq!(*log.lock().unwrap(), ["first", "second"]);
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
pub fn no_inline() -> Guard {
    Guard::new(Fitness::NO_INLINE)
}

/// Describes the thread that made it, while it lives: from [`allow`] or [`no_inline`].
///
/// Guards nest, and may be dropped in any order: the youngest that is left counts. One that is forgotten
/// (`mem::forget`) counts to the end of the task that it was made in, or of the thread. In the destructors of
/// thread-locals a guard may come too late to be kept: then the thread runs nothing inline until it is gone.
///
/// ```
/// use work_permit::{Operations, fitness};
/// let outer = fitness::allow(Operations::ALL);
/// let inner = fitness::no_inline();
/// drop(outer);
/// let exec = work_permit::Pool::global().executor("jobs").build()?;
/// assert!(exec.try_run(|| ()).is_err(), "the inner one is there still");
/// drop(inner);
/// assert!(exec.try_run(|| ()).is_ok());
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
///
/// It stays on its thread:
///
/// ```compile_fail
/// let guard = work_permit::fitness::no_inline();
/// std::thread::spawn(move || drop(guard));
/// ```
#[must_use = "a guard that is not bound to a name ends at once"]
#[clippy::has_significant_drop]
pub struct Guard {
    number: Number,
    fitness: Fitness,
    stays_here: PhantomData<*const ()>,
}

impl Guard {
    fn new(fitness: Fitness) -> Self {
        Self { number: fit::describe(fitness), fitness, stays_here: PhantomData }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        fit::withdraw(self.number);
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.fitness).finish()
    }
}
