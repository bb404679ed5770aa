//! **Frame**: what a call knows of the tasks that borrow from it: how many may still touch what they borrow, and
//! which of them it can help with.
//!
//! | field | counts or says | changed by |
//! |---|---|---|
//! | `open` | references to such tasks that the line, a worker or a joiner has | `open` before there is one, `close` after it is dropped |
//! | `fresh` | tasks that the call has not tried to run itself | `add`; `next` takes one out |
//! | `tried` | the others, as long as anybody has them | `next`, also one by one when nothing is open |
//! | `waiter` | the call waits until `open` is 0 or something is fresh | `wait`; whoever makes it so takes it out |
//! | `panics`, `stuck` | outcomes that nobody has taken: panics, tasks that could not start | their cells |
//!
//! All of it is under one lock, so what a task did happens before its `close`, and that before the call sees that
//! `open` is 0.
#![forbid(unsafe_code)]

use crate::line::Ticket;
use crate::sync::{Mutex, MutexGuard, Unparker, Weak, with_parker};
use crate::task::cell::Runnable;
use std::collections::VecDeque;
use std::fmt;

/// Fewer tasks than this are not worth a sweep.
const SWEEP_FLOOR: usize = 64;

struct Inner {
    open: usize,
    fresh: VecDeque<(Weak<dyn Runnable>, Ticket)>,
    tried: Vec<Weak<dyn Runnable>>,
    /// How many of both there are when those that nobody has any more are swept next.
    sweep_at: usize,
    waiter: Option<Unparker>,
    panics: usize,
    stuck: usize,
}

/// See the module's text.
pub(crate) struct Frame(Mutex<Inner>);

/// What a call that waits for its tasks does next.
pub(crate) enum Next {
    /// Runs this one, if it has not started.
    Help(Ticket),
    /// Waits: others have what is left.
    Wait,
    /// Nobody has any task now, but for handles that were forgotten. What is left in this one is dropped; that is
    /// foreign code, which may add tasks, and these may have the handle of the next one.
    Discard(Weak<dyn Runnable>),
    /// Returns.
    Return,
}

impl Frame {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Inner {
            open: 0,
            fresh: VecDeque::new(),
            tried: Vec::new(),
            sweep_at: SWEEP_FLOOR,
            waiter: None,
            panics: 0,
            stuck: 0,
        }))
    }

    /// So many tasks are about to be given away.
    pub(crate) fn open(&self, tasks: usize) {
        self.0.lock().open += tasks;
    }

    /// So many of them are nowhere any more, but for their handles.
    pub(crate) fn close(&self, tasks: usize) {
        let mut inner = self.0.lock();
        inner.open -= tasks;
        if inner.open == 0 {
            wake(inner);
        }
    }

    /// Tasks that were queued, with their places in the line.
    pub(crate) fn add(&self, tasks: impl IntoIterator<Item = (Weak<dyn Runnable>, Ticket)>) {
        let mut inner = self.0.lock();
        inner.fresh.extend(tasks);
        inner.sweep();
        wake(inner);
    }

    pub(crate) fn next(&self) -> Next {
        let mut inner = self.0.lock();
        while let Some((task, ticket)) = inner.fresh.pop_front() {
            if task.strong_count() > 0 {
                inner.tried.push(task);
                inner.sweep();
                return Next::Help(ticket);
            }
        }
        if inner.open > 0 {
            return Next::Wait;
        }
        // The last one first, as with variables: results have handles of older tasks rather than of younger.
        inner.tried.pop().map_or(Next::Return, Next::Discard)
    }

    /// Waits until nothing is open or something is fresh.
    pub(crate) fn wait(&self) {
        with_parker(|parker| {
            loop {
                let mut inner = self.0.lock();
                if inner.open == 0 || !inner.fresh.is_empty() {
                    inner.waiter = None;
                    return;
                }
                inner.waiter.get_or_insert_with(|| parker.unparker());
                drop(inner);
                parker.park_until(None);
            }
        });
    }

    pub(crate) fn panicked(&self) {
        self.0.lock().panics += 1;
    }

    /// Somebody took that panic out of its handle.
    pub(crate) fn panic_was_taken(&self) {
        self.0.lock().panics -= 1;
    }

    pub(crate) fn got_stuck(&self) {
        self.0.lock().stuck += 1;
    }

    /// Somebody has learned of it from the handle.
    pub(crate) fn stuck_was_told(&self) {
        self.0.lock().stuck -= 1;
    }

    /// Panics, and tasks that could not start, of which nobody knows.
    pub(crate) fn unheard(&self) -> (usize, usize) {
        let inner = self.0.lock();
        (inner.panics, inner.stuck)
    }
}

/// Wakes the call, if it waits; outside of the lock.
fn wake(mut inner: MutexGuard<'_, Inner>) {
    let waiter = inner.waiter.take();
    drop(inner);
    if let Some(waiter) = waiter {
        waiter.unpark();
    }
}

impl Inner {
    /// Keeps the lists about as short as there are tasks that somebody has. What is dropped is the memory of a
    /// cell that is empty.
    fn sweep(&mut self) {
        if self.fresh.len() + self.tried.len() < self.sweep_at {
            return;
        }
        self.fresh.retain(|(task, _)| task.strong_count() > 0);
        self.tried.retain(|task| task.strong_count() > 0);
        self.sweep_at = SWEEP_FLOOR.max(2 * (self.fresh.len() + self.tried.len()));
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.0.lock();
        f.debug_struct("Frame").field("open", &inner.open).finish_non_exhaustive()
    }
}
