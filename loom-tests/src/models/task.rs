//! Claim: what a task leaves in its cell reaches the one handle, once, with everything that the
//! task did; whoever watches is told; closure and result are dropped once each.
//!
//! Modelled: [`TaskCell`] between the owner of the task and its handle. Left out: who becomes the
//! owner (that is decided in the line, see `gate.rs`), and the counts of `Arc`, which loom does not
//! see: the model keeps the cell until both sides are through, and drops it then.

use super::Watched;
use crate::error::JoinError;
use crate::sync::Parker;
use crate::task::cell::{End, Joinable, Runnable, TaskCell, Watcher};
use crate::{Size, model};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Wake, Waker};

/// Something of the user's that must be dropped once.
struct Tracked(Arc<AtomicUsize>);

impl Drop for Tracked {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// What a task does, and what becomes of its parts.
struct Traces {
    /// Written by the task, read by whoever may see what it did.
    work: Watched,
    /// Written by the task's owner once the outcome is stored, as the permit's return is.
    counted: Watched,
    panics_reported: AtomicUsize,
    closures_dropped: Arc<AtomicUsize>,
    results_dropped: Arc<AtomicUsize>,
}

impl Traces {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            work: Watched::new(),
            counted: Watched::new(),
            panics_reported: AtomicUsize::new(0),
            closures_dropped: Arc::default(),
            results_dropped: Arc::default(),
        })
    }

    /// The task has run, and this thread may know it.
    fn assert_work_is_seen(&self) {
        assert_eq!(self.work.read(), 1);
    }

    /// The task is done and all about it is counted, and this thread may know it.
    fn assert_count_is_seen(&self) {
        self.assert_work_is_seen();
        assert_eq!(self.counted.read(), 1);
    }

    fn assert_dropped(&self, closures: usize, results: usize) {
        assert_eq!(self.closures_dropped.load(Relaxed), closures, "closures dropped");
        assert_eq!(self.results_dropped.load(Relaxed), results, "results dropped");
    }
}

/// Both sides of a task.
trait Cell: Runnable + Joinable<Tracked> {}
impl<C: Runnable + Joinable<Tracked>> Cell for C {}

fn task(traces: &Arc<Traces>, panics: bool) -> Arc<dyn Cell> {
    let (seen, closure) = (Arc::clone(traces), Tracked(Arc::clone(&traces.closures_dropped)));
    Arc::new(TaskCell::new(move || {
        let _closure = closure;
        seen.work.add_one();
        if panics {
            // No hook prints it.
            std::panic::resume_unwind(Box::new("out"));
        }
        Tracked(Arc::clone(&seen.results_dropped))
    }))
}

/// A thread that runs the task, as its owner does: run, count, then publish.
fn owner(cell: &Arc<dyn Cell>, traces: &Arc<Traces>) -> thread::JoinHandle<()> {
    let (cell, traces) = (Arc::clone(cell), Arc::clone(traces));
    thread::spawn(move || {
        cell.run(&|body| body(), &|_| {
            traces.panics_reported.fetch_add(1, Relaxed);
        });
        traces.counted.add_one();
        cell.publish();
    })
}

/// Waits as a handle does.
fn wait_until_done(cell: &dyn Cell, parker: &Parker) {
    if cell.watch(Watcher::Thread(parker.unparker())) {
        while !cell.is_done() {
            parker.park_until(None);
        }
    }
}

/// A handle that waits is told when the task is done, whether it came before or after.
#[test]
fn publish_races_watch() {
    model("publish_races_watch", Size::Proof, 70..=160, || {
        let traces = Traces::new();
        let cell = task(&traces, false);
        let owner = owner(&cell, &traces);
        wait_until_done(&*cell, &Parker::new());
        traces.assert_count_is_seen();
        let result = cell.take();
        traces.assert_dropped(1, 0);
        assert!(result.is_ok());
        drop(result);
        owner.join().unwrap();
        drop(cell);
        traces.assert_dropped(1, 1);
    });
}

/// A handle that is polled by one future and then by another: the second one is told.
#[test]
fn publish_races_second_watch() {
    model("publish_races_second_watch", Size::Proof, 68..=160, || {
        let traces = Traces::new();
        let cell = task(&traces, false);
        let owner = owner(&cell, &traces);
        if cell.watch(Watcher::Future(Flag::waker(&Parker::new()))) {
            let parker = Parker::new();
            if cell.watch(Watcher::Future(Flag::waker(&parker))) {
                parker.park_until(None);
                assert!(cell.is_done());
            }
        }
        assert!(cell.take().is_ok());
        owner.join().unwrap();
        drop(cell);
        traces.assert_dropped(1, 1);
    });
}

/// A waker that ends a thread's wait.
struct Flag(crate::sync::Unparker);

impl Flag {
    fn waker(parker: &Parker) -> Waker {
        Arc::new(Self(parker.unparker())).into()
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Who is told that the task is done, because it was done before he could watch, sees its work and
/// what was counted after it.
#[test]
fn late_watch_sees_work() {
    model("late_watch_sees_work", Size::Proof, 3..=9, || {
        let traces = Traces::new();
        let cell = task(&traces, false);
        let owner = owner(&cell, &traces);
        if !cell.watch(Watcher::Thread(Parker::new().unparker())) {
            traces.assert_count_is_seen();
            assert!(cell.take().is_ok());
        }
        owner.join().unwrap();
    });
}

/// Who sees that the task is done sees its work and what was counted after it, and may take the
/// result.
#[test]
fn done_shows_work() {
    model("done_shows_work", Size::Proof, 6..=15, || {
        let traces = Traces::new();
        let cell = task(&traces, false);
        let owner = owner(&cell, &traces);
        if cell.is_done() {
            traces.assert_count_is_seen();
            assert!(cell.is_finished());
            assert!(cell.take().is_ok());
        }
        owner.join().unwrap();
    });
}

/// Who sees that the task is finished, its permit still on its way back, sees its work.
#[test]
fn finished_shows_work() {
    model("finished_shows_work", Size::Proof, 6..=15, || {
        let traces = Traces::new();
        let cell = task(&traces, false);
        let owner = owner(&cell, &traces);
        if cell.is_finished() {
            traces.assert_work_is_seen();
        }
        owner.join().unwrap();
    });
}

/// A handle that goes while the task ends: the result is dropped, by the one or with the cell.
#[test]
fn publish_races_detach() {
    model("publish_races_detach", Size::Proof, 6..=15, || {
        let traces = Traces::new();
        let cell = task(&traces, false);
        let owner = owner(&cell, &traces);
        cell.detach();
        owner.join().unwrap();
        drop(cell);
        traces.assert_dropped(1, 1);
    });
}

/// A handle that watched and then goes, as a future that is dropped: nobody misses it.
#[test]
fn publish_races_watch_and_detach() {
    model("publish_races_watch_and_detach", Size::Proof, 43..=97, || {
        let traces = Traces::new();
        let cell = task(&traces, false);
        let owner = owner(&cell, &traces);
        match cell.watch(Watcher::Thread(Parker::new().unparker())) {
            true => cell.detach(),
            false => assert!(cell.take().is_ok()),
        }
        owner.join().unwrap();
        drop(cell);
        traces.assert_dropped(1, 1);
    });
}

/// A task that panics ends like any other; its panic is in the handle and was reported once.
#[test]
fn panic_races_watch() {
    model("panic_races_watch", Size::Proof, 70..=160, || {
        let traces = Traces::new();
        let cell = task(&traces, true);
        let owner = owner(&cell, &traces);
        wait_until_done(&*cell, &Parker::new());
        assert_eq!(traces.panics_reported.load(Relaxed), 1);
        traces.assert_count_is_seen();
        assert!(matches!(cell.take(), Err(JoinError::Panicked(_))));
        owner.join().unwrap();
        drop(cell);
        traces.assert_dropped(1, 0);
    });
}

/// A task that is cancelled while its handle waits: the handle is told, the closure is gone.
#[test]
fn cancel_races_watch() {
    model("cancel_races_watch", Size::Proof, 70..=160, || {
        let traces = Traces::new();
        let cell = task(&traces, false);
        let canceller = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                cell.end(End::Cancelled);
                cell.publish();
            })
        };
        wait_until_done(&*cell, &Parker::new());
        traces.assert_dropped(1, 0);
        assert!(matches!(cell.take(), Err(JoinError::Cancelled)));
        canceller.join().unwrap();
        drop(cell);
        traces.assert_dropped(1, 0);
    });
}
