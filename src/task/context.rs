//! What this thread is running: a chain of frames, one for each task it is inside of, each on the stack of the
//! call that runs the task; and the guards that this thread holds.
//!
//! Entering and leaving a frame is two writes to a thread-local; nothing is allocated. A frame is taken off by
//! a destructor, so a panic leaves the thread as it was.

use crate::sync::Ordering::Relaxed;
use crate::sync::local;
use crate::sync::plain::AtomicU64;
use std::cell::{Cell, RefCell};
use std::ptr;

/// Names an executor, by a number that is never given out again, or a task, by its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(usize);

impl Id {
    /// No executor, no task.
    pub(crate) const NONE: Id = Id(0);

    /// The task whose cell is here.
    pub(crate) fn of_task<T: ?Sized>(cell: *const T) -> Self {
        Id(cell.cast::<()>().addr())
    }

    /// A new executor. A guard that was forgotten stays on its thread's list, so the number of its executor
    /// must not come back, as an address would.
    pub(crate) fn new_executor() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Id(1 + LAST.fetch_add(1, Relaxed) as usize)
    }
}

/// A task that this thread is inside of.
#[derive(Debug)]
pub(crate) struct Frame {
    executor: Id,
    /// The task's cell, for one that has a handle.
    task: Id,
    /// This frame took a permit of its own.
    own_permit: bool,
    outer: *const Frame,
}

local! {
    static INNERMOST: Cell<*const Frame> = Cell::new(ptr::null())
}

local! {
    /// Guards of this thread by executor: (executor, how many).
    static GUARDS: RefCell<Vec<(Id, usize)>> = RefCell::new(Vec::new())
}

/// Takes the frame off, also on a panic.
struct Leave(*const Frame);

impl Drop for Leave {
    #[inline(always)]
    fn drop(&mut self) {
        INNERMOST.with(|innermost| innermost.set(self.0));
    }
}

/// Runs `f` inside a frame.
#[inline]
pub(crate) fn enter<R>(executor: Id, task: Id, own_permit: bool, f: impl FnOnce() -> R) -> R {
    let outer = INNERMOST.with(Cell::get);
    let frame = Frame { executor, task, own_permit, outer };
    let _leave = Leave(outer);
    INNERMOST.with(|innermost| innermost.set(&frame));
    f()
}

/// Walks from the innermost frame out until `found` says yes.
#[inline]
fn any_frame(mut found: impl FnMut(&Frame) -> bool) -> bool {
    let mut at = INNERMOST.with(Cell::get);
    // SAFETY: a frame in the chain lies on this thread's stack, in a call of `enter` that has not returned: its
    // `Leave` takes it off the chain before it is gone. Nobody writes it while it is in the chain, and the
    // chain does not change during the walk, since `found` runs no foreign code.
    while let Some(frame) = unsafe { at.as_ref() } {
        if found(frame) {
            return true;
        }
        at = frame.outer;
    }
    false
}

/// This thread is inside of no task.
#[inline]
pub(crate) fn is_outside() -> bool {
    INNERMOST.with(Cell::get).is_null()
}

/// This thread is inside of at least `depth` tasks.
#[inline]
pub(crate) fn is_as_deep_as(depth: usize) -> bool {
    let mut left = depth;
    left == 0
        || any_frame(|_| {
            left -= 1;
            left == 0
        })
}

/// This thread is inside a task of `executor`.
#[inline]
pub(crate) fn is_inside(executor: Id) -> bool {
    any_frame(|frame| frame.executor == executor)
}

/// This thread is inside this very task.
pub(crate) fn is_running(task: Id) -> bool {
    any_frame(|frame| frame.task == task)
}

/// Permits of `executor` that this thread holds: its tasks' and its guards'.
pub(crate) fn held(executor: Id) -> usize {
    let mut tasks = 0;
    any_frame(|frame| {
        tasks += usize::from(frame.own_permit && frame.executor == executor);
        false
    });
    tasks + guards(executor)
}

/// Guards of `executor` that this thread holds.
pub(crate) fn guards(executor: Id) -> usize {
    with_guards(|all| all.iter().find(|(id, _)| *id == executor).map_or(0, |(_, n)| *n))
        .unwrap_or(0)
}

/// A guard of `executor` came to this thread.
pub(crate) fn guard_came(executor: Id) {
    with_guards(|all| match all.iter_mut().find(|(id, _)| *id == executor) {
        Some((_, n)) => *n += 1,
        None => all.push((executor, 1)),
    });
}

/// A guard of `executor` left this thread.
pub(crate) fn guard_left(executor: Id) {
    with_guards(|all| {
        if let Some(at) = all.iter().position(|(id, _)| *id == executor) {
            all[at].1 -= 1;
            if all[at].1 == 0 {
                all.swap_remove(at);
            }
        }
    });
}

/// `None` while the thread is being torn down: what it holds then is not counted.
fn with_guards<R>(f: impl FnOnce(&mut Vec<(Id, usize)>) -> R) -> Option<R> {
    GUARDS.try_with(|all| f(&mut all.borrow_mut())).ok()
}

#[cfg(all(test, not(work_permit_loom)))]
mod tests {
    use super::*;

    const A: Id = Id(8);
    const B: Id = Id(16);
    const TASK: Id = Id(24);

    fn depth() -> usize {
        (1..).take_while(|&depth| is_as_deep_as(depth)).count()
    }

    #[test]
    fn frames_nest_and_come_off_on_panic() {
        assert_eq!((depth(), is_inside(A)), (0, false));
        enter(A, Id::NONE, true, || {
            let caught = std::panic::catch_unwind(|| {
                enter(B, TASK, true, || {
                    assert_eq!((depth(), is_inside(A), is_inside(B)), (2, true, true));
                    assert!(is_running(TASK) && held(A) == 1 && held(B) == 1);
                    enter(A, Id::NONE, false, || assert_eq!((depth(), held(A)), (3, 1)));
                    panic!("out");
                })
            });
            assert!(caught.is_err());
            assert_eq!((depth(), is_inside(A), is_inside(B)), (1, true, false));
        });
        assert_eq!((depth(), is_inside(A), held(A)), (0, false, 0));
    }

    #[test]
    fn guards_are_counted_by_executor() {
        guard_came(A);
        guard_came(A);
        guard_came(B);
        assert_eq!((guards(A), guards(B), held(A)), (2, 1, 2));
        guard_left(A);
        guard_left(B);
        assert_eq!((guards(A), guards(B)), (1, 0));
        guard_left(A);
        assert_eq!(with_guards(|all| all.len()), Some(0));
    }
}
