//! The cell of a task that borrows from a frame: a [`TaskCell`] that tells the frame when nobody has it any more.
#![forbid(unsafe_code)]

use super::frame::Frame;
use crate::error::JoinError;
use crate::sync::Arc;
use crate::task::cell::{End, Joinable, Runnable, TaskCell, Watcher};
use std::any::Any;

/// See the module's text.
pub(crate) struct ScopedCell<F, R> {
    cell: TaskCell<F, R>,
    frame: Arc<Frame>,
    /// A closure that never runs, and an outcome, stay in here for the one who made the cell.
    keeps: bool,
}

/// What became of a task that its maker kept.
pub(crate) enum Kept<F, R> {
    /// It never ran.
    Unrun(F),
    /// It ran to its end, or panicked.
    Ran(Result<R, JoinError>),
}

impl<F, R> ScopedCell<F, R>
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    /// For a task with a handle.
    pub(crate) fn new(closure: F, frame: Arc<Frame>) -> Self {
        Self { cell: TaskCell::new(closure), frame, keeps: false }
    }

    /// For a task whose maker keeps the cell.
    pub(crate) fn kept(closure: F, frame: Arc<Frame>) -> Self {
        Self { cell: TaskCell::new(closure), frame, keeps: true }
    }

    /// Takes the closure back out of a cell that never got into the line.
    pub(crate) fn take_closure(&self) -> Option<F> {
        self.cell.take_closure()
    }

    /// Runs a task that never got into the line, and stores what came of it.
    pub(crate) fn run_here(&self, around: &dyn Fn(&mut dyn FnMut())) {
        self.cell.run(around, &|_| {});
        self.cell.set_done();
    }

    /// What is in it, for its maker, when nobody else has it any more.
    pub(crate) fn open(&self) -> Kept<F, R> {
        match self.cell.take_closure() {
            Some(closure) => Kept::Unrun(closure),
            None => Kept::Ran(self.cell.take()),
        }
    }
}

impl<F, R> Runnable for ScopedCell<F, R>
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    fn run(&self, around: &dyn Fn(&mut dyn FnMut()), on_panic: &dyn Fn(&(dyn Any + Send))) {
        self.cell.run(around, &|payload| {
            self.frame.panicked();
            on_panic(payload);
        });
    }

    fn end(&self, end: End) {
        if end == End::Deadlock {
            self.frame.got_stuck();
        }
        if !self.keeps {
            self.cell.end(end);
        }
    }

    /// The frame may return from now on: it is told when this reference is gone, and with it, if there is no
    /// handle, what the task left.
    fn publish(self: Arc<Self>) {
        let frame = Arc::clone(&self.frame);
        self.cell.set_done();
        drop(self);
        frame.close(1);
    }

    fn borrows(&self) -> bool {
        true
    }

    fn discard(&self) {
        if !self.keeps {
            self.cell.discard();
        }
    }
}

impl<F, R> Joinable<R> for ScopedCell<F, R>
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    fn is_finished(&self) -> bool {
        self.cell.is_finished()
    }

    fn is_done(&self) -> bool {
        self.cell.is_done()
    }

    fn watch(&self, watcher: Watcher) -> bool {
        self.cell.watch(watcher)
    }

    fn take(&self) -> Result<R, JoinError> {
        let taken = self.cell.take();
        match &taken {
            Err(JoinError::Panicked(_)) => self.frame.panic_was_taken(),
            Err(JoinError::Deadlock) => self.frame.stuck_was_told(),
            _ => {}
        }
        taken
    }

    fn detach(&self) {
        self.cell.detach();
    }
}
