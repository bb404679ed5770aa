//! A task with a handle: header, closure and result in one allocation.
//!
//! Who may run the closure is not decided here but in the line: whoever takes the task out of it owns the
//! closure. The cell carries the result from there to the handle.
//!
//! | state | meaning | who moves on |
//! |---|---|---|
//! | 0 | queued or running; the closure or nothing | the owner of the task |
//! | `STORED` | the outcome is written; the permit is on its way back | the owner of the task |
//! | `STORED`, `DONE` | the permit is back and all is counted; the handle may take the outcome | the handle |
//! | `WATCHED` | somebody left a signal to be told of `DONE`; comes with any of the above | both |
//!
//! *Orders.* The outcome is written before `STORED` (Release) and read after `DONE` (Acquire) by the one handle.
//! `WATCHED` and `DONE` are set by read-modify-writes of one word, so either the watcher sees `DONE`, or the
//! owner sees `WATCHED` and signals.

use crate::error::{JoinError, Panic};
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{Arc, AtomicU32, Mutex, Unparker, UnsafeCell};
use crate::task::closure::Closure;
use crate::task::context::Id;
use crate::task::unwind::{call_quietly, drop_quietly};
use std::any::Any;
use std::fmt;
use std::mem;
use std::task::Waker;
use std::thread::Result as Caught;

const STORED: u32 = 1;
const DONE: u32 = 2;
const WATCHED: u32 = 4;

/// How a task ended without running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Cancelled,
    Closed,
    /// Nobody could have started it: see [`Scope`](crate::scope::Scope).
    Deadlock,
}

enum Outcome<R> {
    Pending,
    Ran(Caught<R>),
    Ended(End),
    Taken,
}

/// Whom to tell that a task is done.
#[derive(Debug, Clone)]
pub(crate) enum Watcher {
    Thread(Unparker),
    Future(Waker),
}

impl Watcher {
    fn tell(self) {
        match self {
            Watcher::Thread(unparker) => unparker.unpark(),
            Watcher::Future(waker) => {
                // A waker is foreign code: its panic must not reach a worker.
                call_quietly(|| waker.wake());
            }
        }
    }
}

/// See the module's text.
pub(crate) struct TaskCell<F, R> {
    state: AtomicU32,
    closure: UnsafeCell<Option<F>>,
    outcome: UnsafeCell<Outcome<R>>,
    watcher: Mutex<Option<Watcher>>,
}

// SAFETY: the closure is reached only by the owner of the task (one at a time, handed over under the line's
// lock), the outcome first by that owner and, after DONE, by the one handle. Both move between threads, so `F`
// and `R` must be Send; neither is ever shared, so they need not be Sync.
unsafe impl<F: Send, R: Send> Sync for TaskCell<F, R> {}

impl<F, R> TaskCell<F, R>
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    pub(crate) fn new(closure: F) -> Self {
        Self {
            state: AtomicU32::new(0),
            closure: UnsafeCell::new(Some(closure)),
            outcome: UnsafeCell::new(Outcome::Pending),
            watcher: Mutex::new(None),
        }
    }

    /// Takes the closure back out of a cell that never got into the line.
    pub(crate) fn take_closure(&self) -> Option<F> {
        // SAFETY: the caller owns the task (see `Sync` above), so nobody else reaches the closure.
        self.closure.with_mut(|closure| unsafe { (*closure).take() })
    }

    fn store_outcome(&self, outcome: Outcome<R>) {
        // SAFETY: the caller owns the task, and the handle does not look before DONE, which only the owner sets.
        self.outcome.with_mut(|place| unsafe { *place = outcome });
        self.state.fetch_or(STORED, Release); // pairs with the load in `is_finished`
    }

    /// Drops an outcome that nobody took, in the place of a handle that was forgotten. Should the handle turn up
    /// after all, in something else that is dropped, it says `Closed`.
    pub(crate) fn discard(&self) {
        if self.is_done() {
            let closed = Outcome::Ended(End::Closed);
            // SAFETY: as in `take`; the caller stands for the one handle, which nobody uses meanwhile.
            let outcome =
                self.outcome.with_mut(|place| unsafe { mem::replace(&mut *place, closed) });
            drop_quietly(outcome);
        }
    }

    /// Lets the handle have the outcome.
    pub(crate) fn set_done(&self) {
        // Release: pairs with `is_done` and `watch`, for the outcome and for all that was counted. What `watch`
        // left is ordered by its lock: had our lock come first, `watch` would have seen DONE.
        let before = self.state.fetch_or(DONE, Release);
        if before & WATCHED != 0 {
            let watcher = self.watcher.lock().take();
            if let Some(watcher) = watcher {
                watcher.tell();
            }
        }
    }
}

/// The owner's side of a task, whatever its types.
pub(crate) trait Runnable: Send + Sync {
    /// Runs the closure inside `around` and stores what came of it. The text of a panic goes to `on_panic`.
    fn run(&self, around: &dyn Fn(&mut dyn FnMut()), on_panic: &dyn Fn(&(dyn Any + Send)));

    /// Stores an end without a run, after the closure is dropped.
    fn end(&self, end: End);

    /// Lets the handle have the outcome: the last thing that the owner does, with the only reference that he
    /// has.
    fn publish(self: Arc<Self>);

    /// It borrows from a call that waits for it: it must not leave the executor without an end.
    fn borrows(&self) -> bool {
        false
    }

    /// The call that it borrows from is about to return: an outcome that nobody took is dropped.
    fn discard(&self) {}
}

impl<F, R> Runnable for TaskCell<F, R>
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    fn run(&self, around: &dyn Fn(&mut dyn FnMut()), on_panic: &dyn Fn(&(dyn Any + Send))) {
        let Some(closure) = self.take_closure() else {
            unreachable!("a task that was taken out of the line twice");
        };
        let mut closure = Some(closure);
        let mut value = None;
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            around(&mut || value = closure.take().map(|closure| closure()));
        }));
        let outcome = match (caught, value) {
            (Ok(()), Some(value)) => Ok(value),
            (Err(payload), value) => {
                drop_quietly(value);
                on_panic(&*payload);
                Err(payload)
            }
            (Ok(()), None) => unreachable!("`around` calls what it is given, once"),
        };
        self.store_outcome(Outcome::Ran(outcome));
    }

    fn end(&self, end: End) {
        drop_quietly(self.take_closure());
        self.store_outcome(Outcome::Ended(end));
    }

    fn publish(self: Arc<Self>) {
        self.set_done();
    }
}

/// The handle's side of a task, whatever its closure.
pub(crate) trait Joinable<R>: Send + Sync {
    /// The outcome is there, whether or not the permit is back yet.
    fn is_finished(&self) -> bool;

    /// The handle may take the outcome.
    fn is_done(&self) -> bool;

    /// Leaves a signal for `DONE`, in place of an earlier one. `false`: it is done already.
    fn watch(&self, watcher: Watcher) -> bool;

    /// The outcome; only after `DONE`, once, by the one handle.
    fn take(&self) -> Result<R, JoinError>;

    /// The handle goes: an outcome that is there is dropped here.
    fn detach(&self);
}

impl<F, R> Joinable<R> for TaskCell<F, R>
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    fn is_finished(&self) -> bool {
        self.state.load(Acquire) & STORED != 0 // pairs with `store_outcome`
    }

    fn is_done(&self) -> bool {
        self.state.load(Acquire) & DONE != 0 // pairs with `publish`
    }

    fn watch(&self, watcher: Watcher) -> bool {
        let old = self.watcher.lock().replace(watcher);
        drop(old);
        // Acquire: pairs with `publish`, whose DONE may be seen here.
        self.state.fetch_or(WATCHED, Acquire) & DONE == 0
    }

    fn take(&self) -> Result<R, JoinError> {
        debug_assert!(self.is_done());
        // SAFETY: DONE was seen with Acquire, so the owner's write is before this, and the owner does not reach
        // the outcome again. There is one handle, so nobody else is here.
        let outcome =
            self.outcome.with_mut(|place| unsafe { mem::replace(&mut *place, Outcome::Taken) });
        match outcome {
            Outcome::Ran(Ok(value)) => Ok(value),
            Outcome::Ran(Err(payload)) => Err(JoinError::Panicked(Panic::new(payload))),
            Outcome::Ended(End::Cancelled) => Err(JoinError::Cancelled),
            Outcome::Ended(End::Closed) => Err(JoinError::Closed),
            Outcome::Ended(End::Deadlock) => Err(JoinError::Deadlock),
            Outcome::Pending | Outcome::Taken => {
                unreachable!("taken before it was there, or twice")
            }
        }
    }

    fn detach(&self) {
        let watcher = self.watcher.lock().take();
        drop_quietly(watcher);
        if self.is_done() {
            // SAFETY: as in `take`.
            let outcome =
                self.outcome.with_mut(|place| unsafe { mem::replace(&mut *place, Outcome::Taken) });
            drop_quietly(outcome);
        }
    }
}

impl<F, R> Drop for TaskCell<F, R> {
    fn drop(&mut self) {
        // A closure or an outcome that nobody took: its Drop is the user's.
        let closure = self.closure.get_mut().take();
        let outcome = mem::replace(self.outcome.get_mut(), Outcome::Taken);
        drop_quietly(closure);
        drop_quietly(outcome);
        let watcher = self.watcher.lock().take();
        drop_quietly(watcher);
    }
}

impl<F, R> fmt::Debug for TaskCell<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Relaxed);
        f.debug_struct("TaskCell")
            .field("stored", &(state & STORED != 0))
            .field("done", &(state & DONE != 0))
            .field("watched", &(state & WATCHED != 0))
            .finish_non_exhaustive()
    }
}

/// What stands in the line as a task.
pub(crate) enum Task {
    /// With a handle.
    Cell(Arc<dyn Runnable>),
    /// Without one.
    Closure(Closure),
}

impl Task {
    /// Takes it out of its place, where one is left that is done.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        mem::replace(self, Task::Closure(Closure::called()))
    }

    /// The name by which a frame knows the task.
    pub(crate) fn id(&self) -> Id {
        match self {
            Task::Cell(cell) => Id::of_task(Arc::as_ptr(cell)),
            Task::Closure(_) => Id::NONE,
        }
    }

    /// See [`Runnable::borrows`].
    pub(crate) fn borrows(&self) -> bool {
        match self {
            Task::Cell(cell) => cell.borrows(),
            Task::Closure(_) => false,
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Task::Cell(_) => "Task::Cell",
            Task::Closure(_) => "Task::Closure",
        })
    }
}
