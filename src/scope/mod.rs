//! Tasks that borrow.

mod cell;
mod erase;
pub(crate) mod frame;
mod handle;

pub(crate) use cell::{Kept, ScopedCell};
pub(crate) use erase::hold;
pub use handle::{ScopedDispatched, ScopedJoinHandle};

use crate::counters::Why;
use crate::engine::Engine;
use crate::error::{Reason, Rejected};
use crate::executor::{Executor, NotHere};
use crate::sync::Arc;
use frame::Frame;
use std::fmt;
use std::marker::PhantomData;

/// Where tasks that borrow are given to an executor: see [`Executor::scope`].
///
/// Tasks get it by reference, as they get anything else that they borrow, so they can add tasks themselves.
///
/// ```
/// let exec = work_permit::Pool::global().executor("tree").limit(2).build()?;
/// let leaves = std::sync::atomic::AtomicU32::new(0);
/// exec.scope(|s| {
///     let leaf = || drop(leaves.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
///     let branch = move || {
///         s.spawn(leaf).unwrap();
///         s.spawn(leaf).unwrap();
///     };
///     s.spawn(branch).unwrap();
/// });
/// assert_eq!(leaves.into_inner(), 2);
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
///
/// What was made inside the closure is gone before the scope ends, so tasks cannot borrow it:
///
/// ```compile_fail,E0373
/// # let exec = work_permit::Pool::global().executor("sums").build().unwrap();
/// exec.scope(|s| {
///     let inside = vec![1, 2, 3];
///     s.spawn(|| inside.len()).unwrap().join().unwrap()
/// });
/// ```
///
/// And no handle gets out:
///
/// ```compile_fail
/// # let exec = work_permit::Pool::global().executor("sums").build().unwrap();
/// let outside = vec![1, 2, 3];
/// let handle = exec.scope(|s| s.spawn(|| outside.len()).unwrap());
/// ```
///
/// What a task borrows stays borrowed until the scope ends:
///
/// ```compile_fail,E0506
/// # let exec = work_permit::Pool::global().executor("sums").build().unwrap();
/// let mut total = 1;
/// exec.scope(|s| {
///     let handle = s.spawn(|| total + 1).unwrap();
///     total = 2;
///     handle.join().unwrap()
/// });
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    exec: Executor,
    frame: Arc<Frame>,
    /// Invariant: with a shorter `'scope` a task could borrow what the scope does not wait for.
    scope: PhantomData<&'scope mut &'scope ()>,
    /// Invariant, as in the standard library's.
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    fn engine(&self) -> &Arc<Engine> {
        self.exec.engine()
    }

    /// Where a cell that is made for [`queue_many`](Self::queue_many) belongs.
    pub(crate) fn frame(&self) -> &Arc<Frame> {
        &self.frame
    }

    /// Queues `f`, which may borrow: [`Executor::spawn`] in a scope.
    ///
    /// # Errors
    /// `f` comes back: [`Reason::QueueFull`], [`Reason::Closed`], [`Reason::NoThread`].
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("jobs").limit(2).build()?;
    /// let mut pages = [String::from("a"), String::from("b")];
    /// exec.scope(|s| {
    ///     for page in &mut pages {
    ///         s.spawn(|| page.push_str(" written")).unwrap();
    ///     }
    /// });
    /// assert_eq!(pages, ["a written", "b written"]);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn spawn<F, R>(&'scope self, f: F) -> Result<ScopedJoinHandle<'scope, R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        self.spawn_because(f, Why::Asked)
    }

    fn spawn_because<F, R>(
        &'scope self,
        f: F,
        why: Why,
    ) -> Result<ScopedJoinHandle<'scope, R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        let cell = Arc::new(ScopedCell::new(f, Arc::clone(&self.frame)));
        match self.queue(Arc::clone(&cell) as _, why) {
            Ok(ticket) => Ok(ScopedJoinHandle::new(cell, &self.exec, ticket)),
            Err(reason) => match cell.take_closure() {
                Some(f) => Err(self.exec.reject(f, reason)),
                None => unreachable!("nobody ran what was refused"),
            },
        }
    }

    /// Runs `f` here if this thread may, else queues it; `f` may borrow: [`Executor::dispatch`] in a scope.
    ///
    /// # Errors
    /// `f` comes back: [`Reason::QueueFull`], [`Reason::Closed`], [`Reason::NoThread`].
    ///
    /// # Panics
    /// With the panic of `f` when it ran here, after the permit went back.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("reads").limit(1).build()?;
    /// let key = String::from("key");
    /// exec.scope(|s| {
    ///     assert!(s.dispatch(|| key.len()).unwrap().is_inline());
    ///     let permit = exec.acquire().unwrap();
    ///     let queued = s.dispatch(|| key.len()).unwrap();
    ///     drop(permit);
    ///     assert_eq!(queued.join().unwrap(), 3);
    /// });
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn dispatch<F, R>(&'scope self, f: F) -> Result<ScopedDispatched<'scope, R>, Rejected<F>>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        match self.exec.run_here_or_say_why(f) {
            Ok(value) => Ok(ScopedDispatched::Inline(value)),
            Err((f, NotHere::Queue(why))) => {
                self.spawn_because(f, why).map(ScopedDispatched::Queued)
            }
            Err((f, NotHere::Closed)) => Err(self.exec.reject(f, Reason::Closed)),
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("executor", &self.exec.name())
            .field("frame", &self.frame)
            .finish_non_exhaustive()
    }
}
