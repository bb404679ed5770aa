//! What this thread is running: a chain of frames, one for each task it is inside of, each on the stack of the
//! call that runs the task; and the guards that this thread holds.
//!
//! Entering and leaving a frame is two writes to a thread-local; nothing is allocated. A frame is taken off by
//! a destructor, so a panic leaves the thread as it was.
//!
//! *Fitness* ([`crate::task::fit`]) costs the inline path no look of its own: a thread that runs nothing inline has
//! [`NO_INLINE`] where it would have no frame, so one look at the chain tells that nothing is special.

use crate::operations::Operations;
use crate::sync::Ordering::Relaxed;
use crate::sync::plain::AtomicU64;
use crate::sync::{Weak, local};
use crate::task::fit;
use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};

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

/// An executor below others: they are above it, one over the other.
pub(crate) trait Lineage {
    /// How far above: 0 is itself. `None`: it is not among them.
    fn levels_up_to(&self, executor: Id) -> Option<usize>;
}

/// A task that this thread is inside of.
pub(crate) struct Frame {
    executor: Id,
    /// Of a child's task.
    lineage: Option<NonNull<dyn Lineage>>,
    /// The task's cell, for one that has a handle.
    task: Id,
    /// Permits of its own that this frame took, each one level higher.
    permits: usize,
    /// Guards of the thread's fitness came or went inside of this frame.
    fitness_changed: Cell<bool>,
    outer: *const Frame,
}

/// Stands for no frame, as null does, on a thread that runs nothing inline.
const NO_INLINE: *const Frame = ptr::without_provenance(1);

local! {
    /// The innermost frame; null or [`NO_INLINE`] outside of all.
    static INNERMOST: Cell<*const Frame> = Cell::new(ptr::null())
}

local! {
    /// Guards of this thread by executor: (executor, how many).
    static GUARDS: RefCell<Vec<(Id, usize)>> = RefCell::new(Vec::new())
}

/// A child, which may have ended, if its guard was forgotten.
type ChildGuard = (Id, Weak<dyn Lineage>);

local! {
    /// Of the same, those of children, one by one.
    static CHILD_GUARDS: RefCell<Vec<ChildGuard>> = RefCell::new(Vec::new())
}

/// Takes the frame off, also on a panic.
struct Leave<'a>(&'a Frame);

impl Drop for Leave<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        INNERMOST.with(|innermost| innermost.set(self.0.outer));
        if self.0.fitness_changed.get() {
            restore_fitness(self.0);
        }
    }
}

#[cold]
fn restore_fitness(frame: &Frame) {
    fit::leave(Place(ptr::from_ref(frame).addr()));
}

/// Runs `f` inside a frame.
#[inline]
pub(crate) fn enter<R>(executor: Id, task: Id, own_permit: bool, f: impl FnOnce() -> R) -> R {
    enter_frame(executor, None, task, usize::from(own_permit), f)
}

/// Runs `f` inside a frame of a child's task, which took so many permits: its own, its parent's and so on.
#[inline]
pub(crate) fn enter_child<R>(
    executor: Id,
    lineage: &(dyn Lineage + 'static),
    task: Id,
    permits: usize,
    f: impl FnOnce() -> R,
) -> R {
    enter_frame(executor, Some(NonNull::from(lineage)), task, permits, f)
}

#[inline(always)]
fn enter_frame<R>(
    executor: Id,
    lineage: Option<NonNull<dyn Lineage>>,
    task: Id,
    permits: usize,
    f: impl FnOnce() -> R,
) -> R {
    let outer = INNERMOST.with(Cell::get);
    let fitness_changed = Cell::new(false);
    let frame = Frame { executor, lineage, task, permits, fitness_changed, outer };
    let _leave = Leave(&frame);
    INNERMOST.with(|innermost| innermost.set(&frame));
    f()
}

impl Frame {
    /// How far above the frame's executor this one is.
    fn levels_up_to(&self, executor: Id) -> Option<usize> {
        if self.executor == executor {
            return Some(0);
        }
        // SAFETY: the lineage was borrowed for the whole call of `enter_child`, which has not returned while the
        // frame is in the chain.
        let lineage = self.lineage.as_ref().map(|lineage| unsafe { lineage.as_ref() });
        lineage.and_then(|lineage| lineage.levels_up_to(executor))
    }
}

/// Walks from the innermost frame out until `found` says yes.
#[inline]
fn any_frame(mut found: impl FnMut(&Frame) -> bool) -> bool {
    let mut at = INNERMOST.with(Cell::get);
    while !is_end(at) {
        // SAFETY: a frame in the chain lies on this thread's stack, in a call of `enter` that has not returned: its
        // `Leave` takes it off the chain before it is gone. Nobody has it as `&mut` while it is in the chain, and
        // the chain does not change during the walk, since `found` runs no foreign code.
        let frame = unsafe { &*at };
        if found(frame) {
            return true;
        }
        at = frame.outer;
    }
    false
}

/// No frame is here.
#[inline]
fn is_end(at: *const Frame) -> bool {
    at.addr() <= NO_INLINE.addr()
}

/// How this thread stands to an executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may run nothing of the executor.
    Unfit,
    /// It may, and is inside of none of its tasks.
    Outside,
    /// It may, and is inside of one.
    Inside,
}

/// How this thread stands to `executor`, which `requires` this of those that run its work.
#[inline]
pub(crate) fn standing(executor: Id, requires: Operations) -> Standing {
    if is_plain() && requires.is_empty() {
        return Standing::Outside;
    }
    standing_closer(executor, requires)
}

fn standing_closer(executor: Id, requires: Operations) -> Standing {
    if !fit::suits(requires) {
        Standing::Unfit
    } else if is_inside(executor) {
        Standing::Inside
    } else {
        Standing::Outside
    }
}

/// This thread is inside of no task, and fit for whatever requires nothing.
#[inline]
pub(crate) fn is_plain() -> bool {
    INNERMOST.with(Cell::get).is_null()
}

/// Where on this thread something happens: in a frame, by its address while it lasts, or outside of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(usize);

/// The innermost frame.
pub(crate) fn place() -> Place {
    let at = INNERMOST.with(Cell::get);
    Place(if is_end(at) { 0 } else { at.addr() })
}

/// The fitness of this thread may have changed: whether it lets anything run inline now.
pub(crate) fn fitness_changed(inline: bool) {
    // A frame that ends comes back here: what stood for no frame when it began may be out of date.
    let in_frame = any_frame(|frame| {
        frame.fitness_changed.set(true);
        true
    });
    if !in_frame {
        let no_frame = if inline { ptr::null() } else { NO_INLINE };
        INNERMOST.with(|innermost| innermost.set(no_frame));
    }
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

/// This thread is inside a task of `executor`, or of one below it.
#[inline]
pub(crate) fn is_inside(executor: Id) -> bool {
    any_frame(|frame| frame.levels_up_to(executor).is_some())
}

/// This thread is inside this very task.
pub(crate) fn is_running(task: Id) -> bool {
    any_frame(|frame| frame.task == task)
}

/// Permits of `executor` that this thread holds: its tasks' and its guards'.
pub(crate) fn held(executor: Id) -> usize {
    let mut tasks = 0;
    any_frame(|frame| {
        let levels = frame.levels_up_to(executor);
        tasks += usize::from(levels.is_some_and(|levels| levels < frame.permits));
        false
    });
    tasks + guards(executor)
}

/// Guards of `executor` that this thread holds, with those of executors below it.
pub(crate) fn guards(executor: Id) -> usize {
    let own = |all: &mut Vec<(Id, usize)>| {
        all.iter().find(|(id, _)| *id == executor).map_or(0, |(_, n)| *n)
    };
    with_guards(own).unwrap_or(0) + guards_below(executor)
}

fn guards_below(executor: Id) -> usize {
    // Looked at when the list is let go of: an executor that ends just now calls foreign code.
    let all = CHILD_GUARDS.try_with(|all| all.borrow().clone()).unwrap_or_default();
    let is_below = |lineage: &Weak<dyn Lineage>| {
        lineage.upgrade().is_some_and(|lineage| lineage.levels_up_to(executor) > Some(0))
    };
    all.iter().filter(|(_, lineage)| is_below(lineage)).count()
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

/// A guard of a child came to this thread: it counts for those above it too.
#[cold]
pub(crate) fn child_guard_came(child: Id, lineage: Weak<dyn Lineage>) {
    guard_came(child);
    let _torn_down = CHILD_GUARDS.try_with(|all| all.borrow_mut().push((child, lineage)));
}

/// A guard of a child left this thread.
#[cold]
pub(crate) fn child_guard_left(child: Id) {
    guard_left(child);
    let _torn_down = CHILD_GUARDS.try_with(|all| {
        let mut all = all.borrow_mut();
        if let Some(at) = all.iter().position(|(id, _)| *id == child) {
            all.swap_remove(at);
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
