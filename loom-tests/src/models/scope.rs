//! Claim: a call that tasks borrow from returns when nobody has any of them any more, and not
//! before; each of them has ended once, and what it saw and left is known and gone.
//!
//! Modelled: the frame and its cells alone, without a bound; then scopes and `run_all` of whole
//! executors, with workers. What a model's tasks borrow is a local of the model, so an end that
//! came too early is seen: something that counts itself is alive, or loom's cell is accessed by
//! somebody who is not ordered with us. Left out: as in `executor.rs`.

use super::pool::config;
use super::{Floor, Watched};
use crate::error::{JoinError, Reason};
use crate::executor::Executor;
use crate::line::Ticket;
use crate::pool_handle::Pool;
use crate::scope::frame::{Frame, Next};
use crate::scope::{Scope, ScopedCell, ScopedJoinHandle, hold};
use crate::task::cell::{End, Joinable, Runnable};
use crate::{Size, model};
use loom::thread;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Waker};
use std::time::Duration;

/// Values that are alive, and those that ever were.
#[derive(Debug, Default)]
struct Census {
    alive: AtomicUsize,
    ever: AtomicUsize,
}

struct Counted<'a>(&'a Census);

impl Census {
    fn one(&self) -> Counted<'_> {
        self.alive.fetch_add(1, Relaxed);
        self.ever.fetch_add(1, Relaxed);
        Counted(self)
    }

    fn assert_all_gone(&self, ever: usize) {
        assert_eq!((self.alive.load(Relaxed), self.ever.load(Relaxed)), (0, ever));
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Relaxed);
    }
}

/// What a task does, and what becomes of its result: each written once, by whoever it is.
#[derive(Clone)]
struct Traces {
    work: Arc<Watched>,
    dropped: Arc<Watched>,
}

impl Traces {
    fn new() -> Self {
        Self { work: Arc::new(Watched::new()), dropped: Arc::new(Watched::new()) }
    }

    /// This thread knows of all that there was.
    fn assert_seen(&self, work: usize, dropped: usize) {
        assert_eq!((self.work.read(), self.dropped.read()), (work, dropped));
    }
}

/// A result that leaves its trace when it is dropped.
struct Leaves(Arc<Watched>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.add_one();
    }
}

/// A task of the frame.
fn cell(
    frame: &Arc<Frame>,
    traces: &Traces,
) -> Arc<ScopedCell<impl FnOnce() -> Leaves + use<>, Leaves>> {
    let traces = traces.clone();
    let task = move || {
        traces.work.add_one();
        Leaves(traces.dropped)
    };
    frame.open(1);
    Arc::new(ScopedCell::new(task, Arc::clone(frame)))
}

/// The owner of a task, on a thread of his own.
fn owner(task: Arc<dyn Runnable>) -> thread::JoinHandle<()> {
    thread::spawn(move || run(task))
}

fn run(task: Arc<dyn Runnable>) {
    task.run(&|body| body(), &|_| {});
    task.publish();
}

/// When the frame is through, the owner's reference is gone, the work is seen, and a result without
/// a handle is dropped.
#[test]
fn close_races_wait() {
    model("close_races_wait", Size::Proof, 12..=27, || {
        let (frame, traces) = (Arc::new(Frame::new()), Traces::new());
        let owner = owner(cell(&frame, &traces));
        frame.wait();
        traces.assert_seen(1, 1);
        owner.join().unwrap();
    });
}

/// Two tasks that end at the same time: the frame is through after the second.
#[test]
fn close_races_close() {
    model("close_races_close", Size::Wide, 190..=420, || {
        let frame = Arc::new(Frame::new());
        let traces = [Traces::new(), Traces::new()];
        let owners = traces.each_ref().map(|traces| owner(cell(&frame, traces)));
        frame.wait();
        traces.iter().for_each(|traces| traces.assert_seen(1, 1));
        owners.into_iter().for_each(|owner| owner.join().unwrap());
    });
}

/// A task that is added while the call waits, by one that has not ended: the call is woken for it.
#[test]
fn add_races_wait() {
    model("add_races_wait", Size::Proof, 42..=94, || {
        let frame = Arc::new(Frame::new());
        let (first, late) = (Traces::new(), Traces::new());
        let task = cell(&frame, &first);
        let adder = {
            let (frame, late) = (Arc::clone(&frame), late.clone());
            thread::spawn(move || {
                let late: Arc<dyn Runnable> = cell(&frame, &late);
                // Of some line: the model runs the task itself.
                let ticket = Ticket::FIRST;
                frame.add([(Arc::downgrade(&late), ticket)]);
                run(task);
                late
            })
        };
        frame.wait();
        let task = adder.join().unwrap();
        assert!(matches!(frame.next(), Next::Help(_)), "it is there to be run");
        run(task);
        frame.wait();
        first.assert_seen(1, 1);
        late.assert_seen(1, 1);
    });
}

/// A task with a handle that goes while it ends: its result is dropped by the one or the other, and
/// when both are through it is gone.
#[test]
fn detach_races_close() {
    model("detach_races_close", Size::Proof, 71..=160, || {
        let (frame, traces) = (Arc::new(Frame::new()), Traces::new());
        let task = cell(&frame, &traces);
        let owner = owner(Arc::clone(&task) as Arc<dyn Runnable>);
        task.detach();
        drop(task);
        frame.wait();
        traces.assert_seen(1, 1);
        owner.join().unwrap();
    });
}

/// A task that ends without a run: its frame is told after its closure is gone.
#[test]
fn end_races_wait() {
    model("end_races_wait", Size::Proof, 12..=27, || {
        let (frame, traces) = (Arc::new(Frame::new()), Traces::new());
        let task = cell(&frame, &traces);
        let handle = Arc::clone(&task);
        let owner = thread::spawn(move || {
            task.end(End::Closed);
            task.publish();
        });
        frame.wait();
        assert_eq!(Arc::strong_count(&handle), 1, "somebody has the task");
        assert!(handle.is_done() && handle.take_closure().is_none());
        assert!(matches!(handle.take(), Err(JoinError::Closed)));
        owner.join().unwrap();
        traces.assert_seen(0, 0);
    });
}

/// A pool of one thread with an executor on it.
fn house(max_threads: usize, limit: usize) -> (Pool, Executor) {
    let pool = Pool::from_config(config(max_threads));
    let exec = pool.executor("model").limit(limit).build().unwrap();
    (pool, exec)
}

/// Nothing is left of anything; what was accepted has ended.
fn close(pool: &Pool, exec: &Executor) {
    pool.shutdown(Duration::MAX).unwrap();
    let stats = exec.stats();
    assert_eq!((stats.active, stats.queued, stats.waiting), (0, 0, 0), "G6: {stats:?}");
    let ended = stats.completed + stats.cancelled + stats.expired + stats.unrun;
    assert_eq!(stats.accepted, ended, "G2: {stats:?}");
}

/// A task of a scope is run by a worker, or by the scope at its end; its result goes with it.
#[test]
fn scope_races_worker() {
    model("scope_races_worker", Size::Wide, 900..=2_000, || {
        let (pool, exec) = house(1, 1);
        let (work, census) = (Watched::new(), Census::default());
        exec.scope(|s| {
            let task = || {
                work.add_one();
                census.one()
            };
            drop(s.spawn(task).unwrap());
        });
        assert_eq!(work.read(), 1);
        census.assert_all_gone(1);
        close(&pool, &exec);
    });
}

/// A handle that is forgotten keeps nothing.
#[test]
fn forgotten_handle_races_worker() {
    model("forgotten_handle_races_worker", Size::Wide, 560..=1_300, || {
        let (pool, exec) = house(1, 1);
        let census = Census::default();
        exec.scope(|s| std::mem::forget(s.spawn(|| census.one()).unwrap()));
        census.assert_all_gone(1);
        close(&pool, &exec);
    });
}

/// A scope ends while a worker claims its task and another thread shuts the executor down: the task
/// runs or is dropped, and none comes out.
#[test]
fn scope_races_worker_and_shutdown_now() {
    model("scope_races_worker_and_shutdown_now", Size::Huge, 87..=200, || {
        let (pool, exec) = house(1, 1);
        let census = Census::default();
        let other = exec.clone();
        let closer = thread::spawn(move || assert!(other.shutdown_now().is_empty()));
        let end = exec.scope(|s| {
            let counted = census.one();
            match s.spawn(move || drop(counted)) {
                Ok(handle) => handle.join(),
                Err(refused) => {
                    assert_eq!(refused.reason(), Reason::Closed);
                    Err(JoinError::Closed)
                }
            }
        });
        census.assert_all_gone(1);
        assert!(matches!(end, Ok(()) | Err(JoinError::Closed)), "{end:?}");
        closer.join().unwrap();
        close(&pool, &exec);
    });
}

/// As before, and nobody joins: the scope alone waits for its task.
#[test]
fn detached_task_races_worker_and_shutdown_now() {
    model("detached_task_races_worker_and_shutdown_now", Size::Wide, 38_000..=87_000, || {
        let (pool, exec) = house(1, 1);
        let census = Census::default();
        let other = exec.clone();
        let closer = thread::spawn(move || assert!(other.shutdown_now().is_empty()));
        exec.scope(|s| {
            let counted = census.one();
            drop(s.spawn(move || drop(counted)));
        });
        census.assert_all_gone(1);
        closer.join().unwrap();
        close(&pool, &exec);
    });
}

/// Inside the task that has the only permit left, a task comes late: the call that waits runs it.
#[test]
fn late_task_races_waiting_scope() {
    model("late_task_races_waiting_scope", Size::Wide, 3_300..=7_600, || {
        let (pool, exec) = house(1, 2);
        let work = Watched::new();
        let inside = || {
            exec.scope(|s| {
                let first = || {
                    exec.set_limit(1).unwrap();
                    s.spawn(|| work.add_one()).unwrap();
                };
                s.spawn(first).unwrap();
            });
            work.read()
        };
        assert_eq!(exec.run(inside).unwrap(), 1);
        close(&pool, &exec);
    });
}

/// A task joins its sibling while the scope helps at its end: one of them runs it, and both know.
#[test]
fn sibling_join_races_help() {
    model("sibling_join_races_help", Size::Wide, 13_000..=30_000, || {
        let (pool, exec) = house(1, 1);
        let census = Census::default();
        exec.scope(|s| {
            let sibling = s.spawn(|| census.one()).unwrap();
            s.spawn(|| drop(sibling.join().unwrap())).unwrap();
        });
        census.assert_all_gone(1);
        close(&pool, &exec);
    });
}

/// A result with the handle of an older task in it, which it gives to a new one when it is dropped.
struct Testator<'scope, 'env, 'census: 'scope> {
    scope: &'scope Scope<'scope, 'env>,
    older: Option<ScopedJoinHandle<'scope, Counted<'census>>>,
}

impl<'scope, 'census: 'scope> Drop for Testator<'scope, '_, 'census> {
    fn drop(&mut self) {
        let mut older = self.older.take().unwrap();
        let task = move || {
            let polled = Pin::new(&mut older).poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_ready());
            // The scope looks into its cell once more.
            std::mem::forget(older);
        };
        self.scope.spawn(task).unwrap();
    }
}

/// A forgotten result is dropped and adds a task that has the handle of another forgotten one: the
/// scope and that task do not meet there.
#[test]
fn discard_races_heir() {
    model("discard_races_heir", Size::Wide, 24_000..=54_000, || {
        let (pool, exec) = house(1, 1);
        let census = Census::default();
        exec.scope(|s| {
            let older = Some(s.spawn(|| census.one()).unwrap());
            let younger = s.spawn(move || Testator { scope: s, older }).unwrap();
            std::mem::forget(younger);
        });
        census.assert_all_gone(1);
        close(&pool, &exec);
    });
}

/// A panic that nobody takes is the scope's, after all have ended.
#[test]
fn panic_races_end_of_scope() {
    model("panic_races_end_of_scope", Size::Wide, 980..=2_200, || {
        let (pool, exec) = house(1, 1);
        let census = Census::default();
        let held = hold(&exec, |s| {
            let counted = census.one();
            let task = move || {
                let _counted = counted;
                // No hook prints it.
                std::panic::resume_unwind(Box::new("out"))
            };
            drop(s.spawn::<_, ()>(task).unwrap());
        });
        assert_eq!((held.panics, held.result.is_ok()), (1, true));
        census.assert_all_gone(1);
        close(&pool, &exec);
    });
}

/// A batch under two permits: a worker has one of the two tasks, or the caller has both.
#[test]
fn run_all_races_worker() {
    model("run_all_races_worker", Size::Wide, 1_600..=3_600, || {
        let (pool, exec) = house(1, 2);
        let floor = Floor::new(2);
        let all = exec.run_all([1, 2].map(|n| {
            let floor = &floor;
            move || {
                floor.body();
                n
            }
        }));
        assert_eq!(all.unwrap(), [1, 2]);
        assert_eq!(floor.ran(), 2);
        close(&pool, &exec);
    });
}

/// A batch on a strict executor with one permit: one after the other, each sees those before.
#[test]
fn run_all_races_worker_for_one_permit() {
    model("run_all_races_worker_for_one_permit", Size::Wide, 510..=1_200, || {
        let (pool, exec) = house(1, 1);
        let floor = Floor::new(1);
        exec.run_all([(), ()].map(|()| || floor.body())).unwrap();
        floor.assert_all_is_seen();
        assert_eq!(floor.ran(), 2);
        close(&pool, &exec);
    });
}

/// A batch while the executor is closed: all of it runs, or nothing and all comes back.
#[test]
fn run_all_races_close() {
    model("run_all_races_close", Size::Wide, 40_000..=92_000, || {
        let (pool, exec) = house(1, 1);
        let floor = Floor::new(1);
        let other = exec.clone();
        let closer = thread::spawn(move || {
            other.drain(Duration::MAX).unwrap();
            other.stats().completed
        });
        let all = exec.run_all([(), ()].map(|()| || floor.body()));
        let ran = match all {
            Ok(all) => all.len(),
            Err(refused) => {
                assert_eq!((refused.reason(), refused.into_task().len()), (Reason::Closed, 2));
                0
            }
        };
        assert_eq!(floor.ran(), ran);
        assert_eq!(closer.join().unwrap(), ran as u64, "nothing comes after the drain");
        close(&pool, &exec);
    });
}

/// A batch while the executor is shut down: what did not run comes back.
#[test]
fn run_all_races_shutdown_now() {
    model("run_all_races_shutdown_now", Size::Wide, 26_000..=59_000, || {
        let (pool, exec) = house(1, 1);
        let (floor, census) = (Floor::new(1), Census::default());
        let other = exec.clone();
        let closer = thread::spawn(move || assert!(other.shutdown_now().is_empty()));
        let all = exec.run_all([census.one(), census.one()].map(|counted| {
            let floor = &floor;
            move || {
                floor.body();
                drop(counted);
            }
        }));
        let back = match all {
            Ok(_) => 0,
            Err(refused) => {
                assert_eq!(refused.reason(), Reason::Closed);
                refused.into_task().len()
            }
        };
        assert_eq!(floor.ran() + back, 2);
        census.assert_all_gone(2);
        closer.join().unwrap();
        close(&pool, &exec);
    });
}
