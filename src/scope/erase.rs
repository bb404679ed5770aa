//! **Erasure**: how a task that borrows gets into a queue for tasks that do not. All of the unsafe code of scopes
//! is here.
//!
//! The line, the workers and everybody between them have tasks as `Arc<dyn Runnable>`, which borrow nothing. A task
//! of a [`Scope`] may borrow for `'scope`. [`erase`] hides that from the compiler, and [`hold`], the only function
//! that makes a scope, waits until no erased reference exists any more. What makes that enough:
//!
//! - **E1** *Borrows outlive `hold`.* `'scope` is a lifetime that `hold` gives to a borrow of its own local, and the
//!   local is used after the wait; what a task borrows from further out is valid for `'env`, a parameter of `hold`.
//!   The body is called for whatever `'scope`, so nothing that it makes itself can be borrowed for that long, and
//!   neither its result nor anything of `'env` can have a handle in it.
//! - **E2** *Each erased reference is counted.* The frame's `open` goes up before [`erase`] is called, for each
//!   reference once. It goes down only after that reference is dropped: in
//!   [`publish`](crate::task::cell::Runnable::publish), which takes the owner's reference by value, or where the
//!   queue gives the reference back. Nobody clones one: an owner moves it, from the line to whoever claimed the
//!   task, through `run` or `end`, to `publish`. An owner that lost one without `publish` would make `hold` wait
//!   for ever; it could not make it return.
//! - **E3** *`hold` does not return or unwind before `open` is 0.* A panic of the body is caught before; one in the
//!   wait itself, which would be a fault of this crate, ends the process.
//! - **E4** *What is left then touches no borrow.* A closure is gone with the run or the end before `publish`. The
//!   outcome was in a cell whose references are the erased one (gone, by E2 and E3), the frame's, which are weak,
//!   and that of the handle or of the maker of the cell. Where the erased one was the last, the outcome was dropped
//!   with it, before `open` went down. A handle names `'scope`, so by E1 no code can use or drop it after `hold`;
//!   one that was forgotten is never dropped, and its cell was emptied by `discard`. That has the outcome to itself:
//!   it is called with nothing open, so no task runs that could have the handle, and what it drops may give the
//!   handle of the next cell to a new task, which is waited for before that cell is looked at.
//! - **E5** *What a task did is before the return.* `open` is counted under one lock.
//!
//! So nothing rests on a destructor that somebody could forget: handles, their results, the scope, tasks and
//! refusals may all be leaked. And nobody else gets hold of a task: at a shutdown those that
//! [borrow](crate::task::cell::Runnable::borrows) end where they are.

use super::Scope;
use super::frame::{Frame, Next};
use crate::counters::Why;
use crate::engine::Engine;
use crate::error::Reason;
use crate::executor::Executor;
use crate::line::Ticket;
use crate::sync::{Arc, Weak};
use crate::task::cell::{End, Runnable, Task};
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Result as Caught;

/// What [`hold`] came to.
#[derive(Debug)]
pub(crate) struct Held<T> {
    /// The body's result, or its panic.
    pub(crate) result: Caught<T>,
    /// Tasks whose panic nobody took.
    pub(crate) panics: usize,
    /// Tasks that could never start, of which nobody was told.
    pub(crate) stuck: usize,
}

/// Ends the process when it is dropped.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        // A model has failed then, and says so; its threads do not run on.
        if cfg!(not(work_permit_loom)) {
            std::process::abort();
        }
    }
}

/// Calls `body` with a new scope, and returns when all tasks of the scope have ended: see the module's text.
pub(crate) fn hold<'env, T>(
    exec: &Executor,
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
) -> Held<T> {
    let scope = Scope {
        exec: exec.clone(),
        frame: Arc::new(Frame::new()),
        scope: PhantomData,
        env: PhantomData,
    };
    let abort = AbortOnUnwind;
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    scope.end();
    mem::forget(abort);
    let (panics, stuck) = scope.frame.unheard();
    Held { result, panics, stuck }
}

/// A reference to a task without the lifetime of what it borrows.
///
/// # Safety
/// The reference must be gone, and the task must have no closure and no outcome that anybody could still reach,
/// before `'a` is over.
unsafe fn erase<'a>(task: Arc<dyn Runnable + 'a>) -> Arc<dyn Runnable> {
    // SAFETY: both types are the same but for a lifetime, and the caller answers for that.
    unsafe { mem::transmute::<Arc<dyn Runnable + 'a>, Arc<dyn Runnable>>(task) }
}

impl<'scope> Scope<'scope, '_> {
    /// Puts a task that may borrow into the queue.
    pub(super) fn queue(
        &'scope self,
        task: Arc<dyn Runnable + 'scope>,
        why: Why,
    ) -> Result<Ticket, Reason> {
        self.frame.open(1);
        // SAFETY: a `Scope` exists only in `hold`, whose caller's `'scope` ends after the wait, and the reference
        // was counted above: E1 to E4.
        let task = unsafe { erase(task) };
        let known = Arc::downgrade(&task);
        match self.engine().enqueue(Task::Cell(task), why) {
            Ok(ticket) => {
                self.frame.add([(known, ticket)]);
                Ok(ticket)
            }
            Err((task, reason)) => {
                drop(task);
                self.frame.close(1);
                Err(reason)
            }
        }
    }

    /// Puts tasks that may borrow into the queue, in order, until one is refused. Says how many were accepted.
    pub(crate) fn queue_many(&'scope self, tasks: Vec<Arc<dyn Runnable + 'scope>>) -> usize {
        let all = tasks.len();
        self.frame.open(all);
        // SAFETY: as in `queue`.
        let erase = |task| unsafe { erase(task) };
        let tasks: Vec<Arc<dyn Runnable>> = tasks.into_iter().map(erase).collect();
        let known: Vec<Weak<dyn Runnable>> = tasks.iter().map(Arc::downgrade).collect();
        let mut tasks = tasks.into_iter().map(Task::Cell).collect::<Vec<_>>().into_iter();
        let tickets = self.engine().enqueue_many(&mut tasks, Why::Asked);
        let accepted = tickets.len();
        drop(tasks);
        self.frame.close(all - accepted);
        self.frame.add(known.into_iter().zip(tickets));
        accepted
    }

    /// Waits until every task has ended; runs those that have not started, one after the other, each in its
    /// turn. A `Drop` of what is discarded may add tasks.
    fn end(&self) {
        loop {
            match self.frame.next() {
                Next::Help(ticket) => self.help(ticket),
                Next::Wait => self.frame.wait(),
                Next::Discard(task) => {
                    if let Some(task) = task.upgrade() {
                        task.discard();
                    }
                }
                Next::Return => return,
            }
        }
    }

    fn help(&self, ticket: Ticket) {
        let engine = self.engine();
        if engine.join_queued(ticket, None) == Err(Reason::Deadlock) {
            // Nobody can start it, as long as this thread waits here.
            if let Some(task) = engine.cancel(ticket) {
                Engine::end_task(task, End::Deadlock);
            }
        }
    }
}
