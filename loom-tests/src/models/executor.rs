//! Claim: through the public face, what is accepted ends once and its handle knows; what a call
//! waits for comes; every permit is back at the end and every thread gone.
//!
//! Modelled: executors on a pool with real workers. The floors below have been through more
//! schedules on their own; here it is about what their combination adds. Left out: time, `Stats`
//! while work runs (its counters are not loom's), and the counts of `Arc`.

use super::Floor;
use super::pool::config;
use crate::error::{JoinError, Reason};
use crate::executor::Executor;
use crate::join::JoinHandle;
use crate::pool::PoolConfig;
use crate::pool_handle::Pool;
use crate::sync::{Parker, Unparker};
use crate::{Size, model};
use loom::thread;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A pool with an executor on it, and the floor on which its tasks run.
pub(super) struct House {
    pub(super) pool: Pool,
    pub(super) exec: Executor,
    pub(super) floor: Arc<Floor>,
}

impl House {
    /// With threads for `max_threads`; `at_most` tasks run at a time, whatever the limit does.
    pub(super) fn new(max_threads: usize, limit: usize, at_most: usize) -> Self {
        Self::on(Pool::from_config(config(max_threads)), limit, at_most)
    }

    fn on(pool: Pool, limit: usize, at_most: usize) -> Self {
        let exec = pool.executor("model").limit(limit).build().unwrap();
        Self { pool, exec, floor: Arc::new(Floor::new(at_most)) }
    }

    /// A task that runs on the floor and says how many ran before it.
    pub(super) fn task(&self) -> impl FnOnce() -> usize + Send + 'static {
        let floor = Arc::clone(&self.floor);
        move || {
            let before = floor.ran();
            floor.body();
            before
        }
    }

    fn spawn(&self) -> JoinHandle<usize> {
        self.exec.spawn(self.task()).unwrap()
    }

    /// Nothing is left of anything; what was accepted has ended.
    pub(super) fn close(self) {
        self.pool.shutdown(Duration::MAX).unwrap();
        let stats = self.exec.stats();
        assert_eq!((stats.active, stats.queued, stats.waiting), (0, 0, 0), "G6: {stats:?}");
        assert_eq!(stats.free, stats.limit, "G6: {stats:?}");
        let ended = stats.completed + stats.cancelled + stats.expired + stats.unrun;
        assert_eq!(stats.accepted, ended, "G2: {stats:?}");
        assert_eq!(stats.completed, self.floor.ran() as u64, "G2: {stats:?}");
        assert_eq!(self.pool.stats().alive, 0);
    }
}

/// A queued task is run by its joiner or by a worker.
#[test]
fn join_races_worker() {
    model("join_races_worker", Size::Wide, 1_200..=2_900, || {
        let house = House::new(1, 1, 1);
        let handle = house.spawn();
        assert_eq!(handle.join().unwrap(), 0);
        house.floor.assert_all_is_seen();
        house.close();
    });
}

/// Two threads run under one permit: each waits for the other, and sees what it did.
#[test]
fn run_races_run() {
    model("run_races_run", Size::Wide, 600..=1_400, || {
        let house = House::new(1, 1, 1);
        let (exec, task) = (house.exec.clone(), house.task());
        let other = thread::spawn(move || exec.run(task).unwrap());
        let here = house.exec.run(house.task()).unwrap();
        assert_eq!(here + other.join().unwrap(), 1, "one of them was first");
        house.floor.assert_all_is_seen();
        house.close();
    });
}

/// A task is dispatched while the limit goes from 0 to 1: it runs here, or it is queued and runs.
#[test]
fn dispatch_races_raise() {
    model("dispatch_races_raise", Size::Wide, 17_000..=40_000, || {
        let house = House::new(1, 0, 1);
        let exec = house.exec.clone();
        let raiser = thread::spawn(move || exec.set_limit(1).unwrap());
        let dispatched = house.exec.dispatch(house.task()).unwrap();
        assert_eq!(dispatched.join().unwrap(), 0);
        raiser.join().unwrap();
        house.close();
    });
}

/// A task that a worker runs and one that its caller runs: one after the other.
#[test]
fn run_races_worker() {
    model("run_races_worker", Size::Wide, 4_900..=12_000, || {
        let house = House::new(1, 1, 1);
        house.exec.execute(drop_result(house.task())).unwrap();
        house.exec.run(house.task()).unwrap();
        house.exec.drain(Duration::MAX).unwrap();
        house.floor.assert_all_is_seen();
        assert_eq!(house.floor.ran(), 2);
        house.close();
    });
}

pub(super) fn drop_result<R>(f: impl FnOnce() -> R) -> impl FnOnce() {
    move || drop(f())
}

/// The last handle of an executor and of its pool go while a task is queued: it runs, its handle
/// completes, and the worker leaves (or the model would not end).
#[test]
fn drop_of_last_handle_races_worker() {
    model("drop_of_last_handle_races_worker", Size::Wide, 1_500..=3_600, || {
        let House { pool, exec, floor } = House::new(1, 1, 1);
        let ran = Arc::clone(&floor);
        let handle = exec.spawn(move || ran.body()).unwrap();
        drop((exec, pool));
        handle.join().unwrap();
        floor.assert_all_is_seen();
        assert_eq!(floor.ran(), 1);
    });
}

/// The last handle goes in a task, or just before it: the other task runs too, and nobody waits for
/// himself.
#[test]
fn last_handle_in_a_task_races_drop() {
    model("last_handle_in_a_task_races_drop", Size::Wide, 5_500..=13_000, || {
        let House { pool, exec, floor } = House::new(1, 1, 1);
        let parker = Parker::new();
        let (ran, inner) = (Arc::clone(&floor), (exec.clone(), pool.clone()));
        exec.execute(move || {
            drop(inner);
            ran.body();
        })
        .unwrap();
        let (ran, done) = (Arc::clone(&floor), parker.unparker());
        exec.execute(move || {
            ran.body();
            done.unpark();
        })
        .unwrap();
        drop((exec, pool));
        parker.park_until(None);
        floor.assert_all_is_seen();
        assert_eq!(floor.ran(), 2);
    });
}

/// As `drop_of_last_handle_races_worker`, and nobody joins: the worker alone sees to it.
#[test]
fn drop_of_all_handles_races_worker() {
    model("drop_of_all_handles_races_worker", Size::Wide, 810..=1_900, || {
        let House { pool, exec, floor } = House::new(1, 1, 1);
        let parker = Parker::new();
        let (ran, done) = (Arc::clone(&floor), parker.unparker());
        let task = move || {
            ran.body();
            done.unpark();
        };
        exec.execute(task).unwrap();
        drop((exec, pool));
        parker.park_until(None);
        floor.assert_all_is_seen();
        assert_eq!(floor.ran(), 1);
    });
}

/// A task is queued while the executor is shut down: it is refused, comes out or runs, and its
/// handle says which.
#[test]
fn shutdown_now_races_spawn() {
    model("shutdown_now_races_spawn", Size::Wide, 5_100..=12_000, || {
        let house = House::new(1, 1, 1);
        let (exec, task) = (house.exec.clone(), house.task());
        let spawner = thread::spawn(move || match exec.spawn(task) {
            Ok(handle) => matches!(handle.join(), Ok(0)),
            Err(refused) => {
                assert_eq!(refused.reason(), Reason::Closed);
                false
            }
        });
        drop(house.exec.shutdown_now());
        let ran = spawner.join().unwrap();
        assert_eq!(house.floor.ran(), usize::from(ran));
        house.close();
    });
}

/// An attempt finds that it would block while the executor is closed: the rest runs, or it comes back.
#[test]
fn speculate_races_close() {
    model("speculate_races_close", Size::Wide, 26_000..=60_000, || {
        let house = House::new(1, 1, 1);
        let exec = house.exec.clone();
        let closer = thread::spawn(move || exec.close());
        let task = house.task();
        let attempt = || {
            assert!(!house.exec.is_held(), "under no permit");
            Err::<usize, _>(task)
        };
        let ran = match house.exec.speculate(attempt) {
            Ok(queued) => matches!(queued.join(), Ok(0)),
            Err(refused) => {
                assert_eq!(refused.reason(), Reason::Closed);
                false
            }
        };
        closer.join().unwrap();
        assert_eq!(house.floor.ran(), usize::from(ran));
        assert_eq!(house.exec.stats().would_block, u64::from(ran));
        drop(house);
    });
}

/// Two threads try, one finds its work done and the other does not: neither needs the other, and what is queued runs
/// under the permit that an attempt has not taken.
#[test]
fn speculate_races_speculate() {
    model("speculate_races_speculate", Size::Huge, 350..=800, || {
        let house = House::new(1, 1, 1);
        let (exec, floor) = (house.exec.clone(), Arc::clone(&house.floor));
        let other = thread::spawn(move || {
            let attempt = || Ok::<_, fn() -> usize>(exec.run(|| floor.body()).is_ok().into());
            exec.speculate(attempt).unwrap().join().unwrap()
        });
        let task = house.task();
        house.exec.speculate(|| Err::<usize, _>(task)).unwrap().join().unwrap();
        assert_eq!(other.join().unwrap(), 1);
        let stats = house.exec.stats();
        assert_eq!((stats.speculated, stats.would_block, stats.attempts), (1, 1, 0), "{stats:?}");
        house.floor.assert_all_is_seen();
        house.pool.shutdown(Duration::MAX).unwrap();
        assert_eq!((house.floor.ran(), house.exec.stats().completed), (2, 3));
    });
}

/// A task is taken back while a worker comes for it: it runs, or it never will.
#[test]
fn cancel_races_worker() {
    model("cancel_races_worker", Size::Wide, 1_200..=2_800, || {
        let house = House::new(1, 1, 1);
        let handle = house.spawn();
        let cancelled = handle.cancel();
        match handle.join() {
            Ok(_) => assert!(!cancelled),
            Err(why) => assert!(cancelled && matches!(why, JoinError::Cancelled), "{why:?}"),
        }
        assert_eq!(house.floor.ran(), usize::from(!cancelled));
        house.close();
    });
}

/// A future that is polled while a worker runs the task is woken when it is done.
#[test]
fn poll_races_worker() {
    model("poll_races_worker", Size::Wide, 690..=1_600, || {
        let house = House::new(1, 1, 1);
        let mut handle = house.spawn();
        let parker = Parker::new();
        let waker = Waker::from(Arc::new(Wakes(parker.unparker())));
        let mut context = Context::from_waker(&waker);
        let result = loop {
            match Pin::new(&mut handle).poll(&mut context) {
                Poll::Ready(result) => break result,
                Poll::Pending => parker.park_until(None),
            }
        };
        assert_eq!(result.unwrap(), 0);
        house.floor.assert_all_is_seen();
        house.close();
    });
}

/// A waker that waits for the next task under the same permit: no thread claimed that task before it
/// woke this one's.
#[test]
fn waker_races_next_task() {
    model("waker_races_next_task", Size::Huge, 81..=190, || {
        let house = House::new(2, 1, 1);
        let mut handle = house.spawn();
        let (next, told) = (Parker::new(), Parker::new());
        let (ran, unparker) = (Arc::clone(&house.floor), next.unparker());
        house
            .exec
            .execute(move || {
                ran.body();
                unparker.unpark();
            })
            .unwrap();
        let waker = Waker::from(Arc::new(Waits { next, told: told.unparker() }));
        if Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending() {
            told.park_until(None);
        }
        house.close();
    });
}

/// A waker that waits before it ends a thread's wait.
struct Waits {
    next: Parker,
    told: Unparker,
}

impl Wake for Waits {
    fn wake(self: Arc<Self>) {
        self.next.park_until(None);
        self.told.unpark();
    }
}

/// A result that nobody wants, and whose Drop waits for the next task under the same permit.
#[test]
fn drop_of_result_races_next_task() {
    model("drop_of_result_races_next_task", Size::Wide, 62_000..=150_000, || {
        let house = House::new(2, 1, 1);
        let (next, ran) = (Parker::new(), house.task());
        let unparker = next.unparker();
        let detached = house.exec.spawn(move || {
            ran();
            Last(next)
        });
        let ran = house.task();
        house
            .exec
            .execute(move || {
                ran();
                unparker.unpark();
            })
            .unwrap();
        drop(detached);
        house.close();
    });
}

/// Waits when it is dropped.
struct Last(Parker);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.park_until(None);
    }
}

/// A waker that ends a thread's wait.
struct Wakes(Unparker);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A task that panics on a worker or on its joiner's thread: the panic is in the handle, the permit
/// is back.
#[test]
fn panic_races_join() {
    model("panic_races_join", Size::Wide, 1_200..=2_900, || {
        let house = House::new(1, 1, 1);
        let task = house.task();
        let panicking = move || -> usize {
            task();
            // No hook prints it.
            resume_unwind(Box::new("out"))
        };
        let handle = house.exec.spawn(panicking).unwrap();
        assert!(matches!(handle.join(), Err(JoinError::Panicked(_))));
        house.exec.try_run(|| ()).unwrap();
        house.pool.shutdown(Duration::MAX).unwrap();
        let stats = house.exec.stats();
        assert_eq!((stats.panicked, stats.completed, stats.free), (1, 2, 1), "{stats:?}");
    });
}

/// A run that panics on its caller's thread while another one waits for the permit: he gets it.
#[test]
fn panic_of_run_races_run() {
    model("panic_of_run_races_run", Size::Wide, 600..=1_400, || {
        let house = House::new(1, 1, 1);
        let (exec, task) = (house.exec.clone(), house.task());
        let other = thread::spawn(move || run_and_panic(&exec, task));
        house.exec.run(house.task()).unwrap();
        other.join().unwrap();
        assert_eq!(house.exec.stats().panicked, 1);
        house.close();
    });
}

/// Runs `task` and a panic after it, which reaches this thread as it should.
pub(super) fn run_and_panic<R>(exec: &Executor, task: impl FnOnce() -> R) {
    let panics = || {
        task();
        // No hook prints it.
        resume_unwind(Box::new("out"))
    };
    let run = AssertUnwindSafe(|| exec.run::<_, ()>(panics).is_ok());
    assert!(catch_unwind(run).is_err(), "G7");
}

/// Two tasks under two permits, of which the first waits for the second: the worker that claims the
/// first sends another one.
#[test]
fn second_task_races_claim() {
    model("second_task_races_claim", Size::Huge, 82..=190, || {
        let house = House::new(2, 2, 2);
        let parker = Parker::new();
        let (ran, second) = (house.task(), parker.unparker());
        let first = house.exec.execute(move || {
            parker.park_until(None);
            ran();
        });
        first.unwrap();
        let ran = house.task();
        let next = house.exec.execute(move || {
            ran();
            second.unpark();
        });
        next.unwrap();
        house.close();
    });
}

/// The only worker leaves as soon as it finds nothing, while tasks are queued one after the other:
/// each finds it or gets another.
#[test]
fn keep_alive_races_execute() {
    model("keep_alive_races_execute", Size::Huge, 340..=780, || {
        let keep_alive = Duration::ZERO;
        let pool = Pool::from_config(PoolConfig { keep_alive, ..config(1) });
        let house = House::on(pool, 1, 1);
        for ran in 1..=2 {
            let parker = Parker::new();
            let (task, done) = (house.task(), parker.unparker());
            house
                .exec
                .execute(move || {
                    task();
                    done.unpark();
                })
                .unwrap();
            parker.park_until(None);
            assert_eq!(house.floor.ran(), ran);
        }
        house.close();
    });
}

/// Two executors with work for the one worker of their pool: it serves both.
#[test]
fn two_executors_race_for_one_worker() {
    model("two_executors_race_for_one_worker", Size::Wide, 18_000..=41_001, || {
        let first = House::new(1, 1, 1);
        let second = House::on(first.pool.clone(), 1, 1);
        first.exec.execute(drop_result(first.task())).unwrap();
        second.exec.execute(drop_result(second.task())).unwrap();
        first.exec.drain(Duration::MAX).unwrap();
        assert_eq!(first.floor.ran(), 1);
        second.exec.drain(Duration::MAX).unwrap();
        assert_eq!(second.floor.ran(), 1);
        second.close();
        first.close();
    });
}

/// Two queued tasks under two permits: workers and the joiner share them out.
#[test]
fn join_races_two_workers() {
    model("join_races_two_workers", Size::Huge, 100..=230, || {
        let house = House::new(2, 2, 2);
        let (first, second) = (house.spawn(), house.spawn());
        first.join().unwrap();
        second.join().unwrap();
        house.close();
    });
}
