//! Nesting, waiting and recursion: faults that other pools and limiters had, each as the behaviour that is
//! right here. The numbers only tell the faults apart.
#![forbid(unsafe_code)]

mod chains;
mod nested;
#[path = "../support/mod.rs"]
mod support;
mod waits;

use std::cell::Cell;
use std::sync::mpsc;
use work_permit::Executor;

thread_local! {
    /// Tasks that this thread is inside of, counted by the tasks themselves.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// One task more on this thread, while it lives.
pub(crate) struct OneMore;

impl OneMore {
    /// With the number of tasks that this thread is inside of, this one included.
    pub(crate) fn enter() -> (Self, usize) {
        INSIDE.set(INSIDE.get() + 1);
        (Self, INSIDE.get())
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        INSIDE.set(INSIDE.get() - 1);
    }
}

/// Runs `f` as a queued task on a worker, not on the thread that waits for it.
pub(crate) fn on_worker<R: Send + 'static>(
    exec: &Executor,
    f: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (tx, rx) = mpsc::channel();
    exec.execute(move || tx.send(f()).expect("the test waits")).expect("it is queued");
    rx.recv().expect("the task ran to its end")
}
