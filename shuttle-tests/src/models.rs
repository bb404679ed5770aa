//! The models. Each ends with every thread gone, every permit back, and all that was accepted ended once; a
//! lost wake-up shows as a deadlock, which shuttle reports.
#![forbid(unsafe_code)]

use crate::error::{JoinError, Reason};
use crate::executor::Executor;
use crate::pool::PoolConfig;
use crate::pool_handle::Pool;
use crate::thread_index::become_number;
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Schedules of each model by default.
const SCHEDULES: usize = 1_000;

/// Runs a model with as many random schedules as the environment asks for, and as many by priorities, which
/// find what needs a thread to stay away for long.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let asked = std::env::var("SHUTTLE_SCHEDULES").ok();
    let schedules = asked.map_or(SCHEDULES, |text| text.parse().expect("a number of schedules"));
    let model = Arc::new(model);
    let again = Arc::clone(&model);
    shuttle::check_random(move || model(), schedules);
    shuttle::check_pct(move || again(), schedules, 3);
}

fn pool(max_threads: usize) -> Pool {
    Pool::from_config(PoolConfig {
        name: "model".to_owned(),
        max_threads,
        keep_alive: Duration::MAX,
        stack_size: None,
        on_thread_start: None,
        on_thread_stop: None,
        on_panic: None,
        // Nobody watches: there are no ticks without time.
        cores: 64,
    })
}

/// Counts those under a permit, and checks the limit where it is fixed. The counts are the standard library's:
/// shuttle changes threads only between its own operations, so a body yields where others may come in.
#[derive(Debug, Default)]
struct Floor {
    limit: usize,
    inside: AtomicUsize,
    ran: AtomicUsize,
}

impl Floor {
    fn of(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, ..Self::default() })
    }

    fn body(&self) {
        let inside = 1 + self.inside.fetch_add(1, Relaxed);
        assert!(inside <= self.limit, "G1: {inside} at a time, the limit is {}", self.limit);
        thread::yield_now();
        self.ran.fetch_add(1, Relaxed);
        self.inside.fetch_sub(1, Relaxed);
    }

    fn task(self: &Arc<Self>) -> impl FnOnce() + Send + 'static {
        let floor = Arc::clone(self);
        move || floor.body()
    }
}

/// The executor is quiet, and its books are balanced.
fn assert_quiet(exec: &Executor, floor: &Floor) {
    let s = exec.stats();
    assert_eq!((s.active, s.free, s.queued, s.waiting), (0, s.limit, 0, 0), "{s:?}");
    assert_eq!(s.accepted, s.completed + s.cancelled + s.unrun, "{s:?}");
    assert_eq!(s.completed, floor.ran.load(Relaxed) as u64, "{s:?}");
}

fn beside<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::spawn(f)
}

/// Everything that a thread does to one executor in the mixed models.
fn verbs(exec: &Executor, floor: &Arc<Floor>, which: usize) {
    match which % 6 {
        0 => drop(exec.try_run(|| floor.body())),
        1 => exec.run(|| floor.body()).unwrap(),
        2 => exec.dispatch(floor.task()).unwrap().join().unwrap(),
        3 => {
            let handle = exec.spawn(floor.task()).unwrap();
            let cancelled = handle.cancel();
            assert_eq!(matches!(handle.join(), Err(JoinError::Cancelled)), cancelled);
        }
        4 => exec.execute(floor.task()).unwrap(),
        _ => {
            let permit = exec.acquire().unwrap().into_owned();
            thread::yield_now();
            drop(permit);
        }
    }
}

/// Six threads with two calls each, of every kind, on two permits and two workers.
#[test]
fn mixed_verbs_on_one_executor() {
    check(|| {
        let (pool, floor) = (pool(2), Floor::of(2));
        let exec = pool.executor("mixed").limit(2).max_overtakes(1).build().unwrap();
        let threads: Vec<_> = (0..6)
            .map(|n| {
                let (exec, floor) = (exec.clone(), Arc::clone(&floor));
                beside(move || {
                    verbs(&exec, &floor, n);
                    verbs(&exec, &floor, n + 1);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec, &floor);
    });
}

/// Two threads keep leases, which two others and a resizer call back; now and then somebody waits.
#[test]
fn leases_are_called_back() {
    check(|| {
        let (pool, floor) = (pool(1), Floor::of(1));
        let exec = pool.executor("leased").limit(1).leases(true).build().unwrap();
        let resizer = {
            let exec = exec.clone();
            beside(move || [0, 1].map(|limit| exec.set_limit(limit).unwrap()))
        };
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let (exec, floor) = (exec.clone(), Arc::clone(&floor));
                beside(move || {
                    if n < 2 {
                        become_number(n);
                    }
                    (0..4).for_each(|_| drop(exec.try_run(|| floor.body())));
                    verbs(&exec, &floor, n);
                })
            })
            .collect();
        resizer.join().unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec, &floor);
    });
}

/// Two executors, one of them strict and with one permit, take turns on one worker; tasks of the first queue
/// into the second.
#[test]
fn two_executors_on_one_worker() {
    check(|| {
        let pool = pool(1);
        let (wide, narrow) = (Floor::of(2), Floor::of(1));
        let first = pool.executor("wide").limit(2).build().unwrap();
        let second = pool.executor("narrow").limit(1).max_overtakes(0).build().unwrap();
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let (first, second) = (first.clone(), second.clone());
                let (wide, narrow) = (Arc::clone(&wide), Arc::clone(&narrow));
                beside(move || {
                    let task = narrow.task();
                    let queue = second.clone();
                    let floor = Arc::clone(&wide);
                    let nested = move || {
                        floor.body();
                        queue.execute(task).unwrap();
                    };
                    match n % 2 {
                        0 => first.spawn(nested).unwrap().join().unwrap(),
                        _ => first.execute(nested).unwrap(),
                    }
                    second.run(|| narrow.body()).unwrap();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        first.drain(Duration::MAX).unwrap();
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&first, &wide);
        assert_quiet(&second, &narrow);
    });
}

/// The limit goes up, down and to zero while five threads run, queue and wait.
#[test]
fn resize_storm() {
    check(|| {
        let (pool, floor) = (pool(3), Floor::of(3));
        let exec = pool.executor("resized").limit(1).max_overtakes(1).build().unwrap();
        let resizer = {
            let exec = exec.clone();
            beside(move || [0, 3, 1, 0, 2].map(|limit| exec.set_limit(limit).unwrap()))
        };
        let threads: Vec<_> = (0..5)
            .map(|n| {
                let (exec, floor) = (exec.clone(), Arc::clone(&floor));
                beside(move || verbs(&exec, &floor, n + 1))
            })
            .collect();
        resizer.join().unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec, &floor);
    });
}

/// Close, drain and shutdown_now meet runs, waits, joins and cancellations.
#[test]
fn shutdown_storm() {
    check(|| {
        let (pool, floor) = (pool(2), Floor::of(1));
        let exec = pool.executor("ending").limit(1).build().unwrap();
        let closed = |reason| assert_eq!(reason, Reason::Closed);
        let waits = {
            let (exec, floor) = (exec.clone(), Arc::clone(&floor));
            beside(move || exec.run(|| floor.body()).map_err(|e| closed(e.reason())).is_ok())
        };
        let joins = {
            let (exec, floor) = (exec.clone(), Arc::clone(&floor));
            beside(move || match exec.spawn(floor.task()) {
                Ok(handle) => match handle.join() {
                    Ok(()) | Err(JoinError::Closed) => {}
                    Err(other) => panic!("{other:?}"),
                },
                Err(refused) => closed(refused.reason()),
            })
        };
        let cancels = {
            let (exec, floor) = (exec.clone(), Arc::clone(&floor));
            beside(move || {
                if let Ok(handle) = exec.spawn(floor.task()) {
                    let cancelled = handle.cancel();
                    let joined = handle.join();
                    assert_eq!(matches!(joined, Err(JoinError::Cancelled)), cancelled);
                }
            })
        };
        let drains = {
            let exec = exec.clone();
            beside(move || exec.drain(Duration::MAX).unwrap())
        };
        let takes = {
            let exec = exec.clone();
            beside(move || drop(exec.shutdown_now()))
        };
        waits.join().unwrap();
        joins.join().unwrap();
        cancels.join().unwrap();
        drains.join().unwrap();
        takes.join().unwrap();
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec, &floor);
    });
}

/// The last handles go while work is queued: it runs all the same, and the threads leave.
#[test]
fn drops_leave_nothing_behind() {
    check(|| {
        let (pool, floor) = (pool(2), Floor::of(2));
        let exec = pool.executor("dropped").limit(2).build().unwrap();
        drop(pool);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (exec, floor) = (exec.clone(), Arc::clone(&floor));
                beside(move || exec.spawn(floor.task()).unwrap())
            })
            .collect();
        drop(exec);
        for thread in threads {
            thread.join().unwrap().join().unwrap();
        }
        assert_eq!(floor.ran.load(Relaxed), 4);
    });
}
