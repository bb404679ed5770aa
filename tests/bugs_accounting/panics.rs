//! Tasks, hooks and wakers that panic.

use crate::support::{Latch, Meter, Numbers, assert_quiet, block_on, executor, hang_guard, until};
use crate::{Bomb, panics, throw};
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;
use work_permit::{Executor, JoinError, Pool, Reason};

/// A task that notes its start, and throws.
fn failing(n: u64, meter: &Arc<Meter>, started: &Arc<AtomicU64>) -> impl FnOnce() + Send + use<> {
    let (meter, started) = (Arc::clone(meter), Arc::clone(started));
    move || {
        let _inside = meter.enter();
        started.fetch_add(1, SeqCst);
        throw(n)
    }
}

/// One call of some verb with a task that throws, if it starts at all.
fn one_failure(exec: &Executor, n: u64, verb: u64, task: impl FnOnce() + Send + 'static) {
    match verb {
        0 => drop(panics(|| exec.try_run(task).is_ok())),
        1 => assert!(panics(|| exec.run(task).is_ok())),
        2 => drop(panics(|| exec.run_timeout(Duration::from_micros(n % 50), task).is_ok())),
        3 => drop(panics(|| exec.dispatch(task).map(drop).is_ok())),
        4 => drop(exec.execute(task)),
        5 => drop(exec.spawn(task)),
        6 => match exec.spawn(task).map(|handle| handle.join()) {
            Ok(Ok(())) => panic!("it throws"),
            Ok(Err(JoinError::Panicked(panic))) => std::mem::forget(panic),
            Ok(Err(other)) => panic!("{other}"),
            Err(refused) => assert_eq!(refused.reason(), Reason::QueueFull),
        },
        _ => {
            let body = || {
                let permit = exec.acquire().unwrap();
                let _held = match n % 2 {
                    0 => (Some(permit), None),
                    _ => (None, Some(permit.into_owned())),
                };
                throw(n)
            };
            assert!(panics(body), "the guard goes back in the unwinding");
        }
    }
}

#[test]
fn b15_every_early_exit_gives_the_permit_back() {
    hang_guard(|| {
        const LIMIT: usize = 3;
        let builder = Pool::new().executor("storm").limit(LIMIT);
        let exec = builder.queue_capacity(4).build().unwrap();
        let (meter, started) = (Meter::new(), Arc::new(AtomicU64::new(0)));
        thread::scope(|s| {
            for seed in 0..4 {
                let (exec, meter, started) = (&exec, &meter, &started);
                s.spawn(move || {
                    let mut numbers = Numbers::from_seed(seed);
                    for n in 0..5000 {
                        let verb = numbers.below(8);
                        one_failure(exec, n, verb, failing(n, meter, started));
                    }
                });
            }
        });
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
        let stats = exec.stats();
        assert!(meter.peak() <= LIMIT, "{} ran at a time", meter.peak());
        assert_eq!(stats.panicked, started.load(SeqCst));
        assert_eq!(stats.completed, stats.panicked, "each of them threw");
        assert!(stats.refused.queue_full > 0 && stats.refused.saturated > 0);
    });
}

#[test]
fn b15_a_push_that_fails_leaves_the_permits_alone() {
    // More address space than there is: no thread can be had.
    let pool = Pool::builder().stack_size(1 << 46).build().unwrap();
    let exec = pool.executor("no threads").limit(2).build().unwrap();
    let guards = (exec.acquire().unwrap(), exec.acquire().unwrap());
    for _ in 0..100 {
        assert_eq!(exec.dispatch(|| ()).unwrap_err().reason(), Reason::NoThread);
        assert_eq!(exec.spawn(|| ()).unwrap_err().reason(), Reason::NoThread);
        assert_eq!(exec.execute(|| ()).unwrap_err().reason(), Reason::NoThread);
    }
    assert_eq!((exec.stats().active, exec.stats().accepted), (2, 0));
    drop(guards);
    assert_eq!(exec.stats().free, 2);
    assert!(exec.dispatch(|| ()).unwrap().is_inline());
    assert_quiet(&exec);
}

/// A waker of the worst kind.
struct BadWaker;

impl Wake for BadWaker {
    fn wake(self: Arc<Self>) {
        resume_unwind(Box::new(Bomb(1)));
    }
}

impl Drop for BadWaker {
    fn drop(&mut self) {
        if !thread::panicking() {
            resume_unwind(Box::new(Bomb(1)));
        }
    }
}

#[test]
fn b16_nothing_foreign_ends_a_worker() {
    hang_guard(|| {
        let hooks = Arc::new(AtomicU64::new(0));
        let hook = |of: u32| {
            let hooks = Arc::clone(&hooks);
            move || {
                hooks.fetch_add(1, SeqCst);
                resume_unwind(Box::new(Bomb(of)))
            }
        };
        let on_panic = hook(2);
        let pool = Pool::builder()
            .max_threads(2)
            .on_thread_start(hook(0))
            .on_thread_stop(hook(1))
            .on_panic(move |_| on_panic())
            .build()
            .unwrap();
        let exec = pool.executor("survives").limit(2).build().unwrap();
        for n in 0..1000 {
            let go = Latch::new();
            let gone = go.clone();
            let mut handle = exec.spawn(move || gone.wait()).unwrap();
            let waker = Waker::from(Arc::new(BadWaker));
            assert!(pin!(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
            std::mem::forget(waker);
            go.open();
            exec.execute(move || throw(n)).unwrap();
            drop(exec.spawn(|| Bomb(3)).unwrap());
            block_on(handle).unwrap();
        }
        let stats = pool.stats();
        assert!(stats.alive > 0 && stats.created <= 2, "no worker was lost: {stats:?}");
        pool.shutdown(Duration::MAX).unwrap();
        let stats = pool.stats();
        assert_eq!((stats.alive, stats.idle, stats.left), (0, 0, stats.created));
        assert_eq!(hooks.load(SeqCst), 1000 + 2 * stats.created, "each hook was called");
        assert_eq!(exec.stats().panicked, 1000);
        assert_quiet(&exec);
    });
}

/// A task that throws, and waits for `go` before.
fn late_failure(go: &Latch, number: u32) -> impl FnOnce() -> u32 + Send + use<> {
    let go = go.clone();
    move || {
        go.wait();
        resume_unwind(Box::new(number))
    }
}

#[track_caller]
fn assert_thrown(joined: Result<u32, JoinError>, number: u32) {
    match joined {
        Err(JoinError::Panicked(panic)) => {
            assert_eq!(panic.into_payload().downcast_ref(), Some(&number));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn b17_join_returns_the_panic() {
    hang_guard(|| {
        let exec = executor(1);
        let open = Latch::new();
        open.open();
        // Thrown while somebody waits for it, on a worker.
        let go = Latch::new();
        let running = exec.spawn(late_failure(&go, 1)).unwrap();
        until("it runs", || exec.stats().on_workers == 1);
        let waiter = thread::spawn(move || running.join());
        go.open();
        assert_thrown(waiter.join().unwrap(), 1);
        // On the thread that joins it, under a permit of its own, and under the one that is there.
        let guard = exec.acquire().unwrap();
        let queued = exec.spawn(late_failure(&open, 2)).unwrap();
        drop(guard);
        assert_thrown(queued.join(), 2);
        let inner = exec.clone();
        let nested = exec.run(|| inner.spawn(late_failure(&open, 3)).unwrap().join());
        assert_thrown(nested.unwrap(), 3);
        // Awaited, and long over.
        assert_thrown(block_on(exec.spawn(late_failure(&open, 4)).unwrap()), 4);
        let over = exec.spawn(late_failure(&open, 5)).unwrap();
        until("it is over", || over.is_finished());
        assert_thrown(over.join(), 5);
        exec.drain(Duration::MAX).unwrap();
        assert_eq!(exec.stats().panicked, 5);
        assert_quiet(&exec);
    });
}

#[test]
fn b18_one_of_eight_panics_and_eight_handles_complete() {
    hang_guard(|| {
        let exec = executor(2);
        let job = |n: u32| move || if n == 5 { throw(1) } else { n };
        let handles: Vec<_> = (0..8).map(|n| exec.spawn(job(n)).unwrap()).collect();
        let results: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
        for (n, result) in results.iter().enumerate() {
            match result {
                Ok(value) => assert!(n != 5 && *value as usize == n),
                Err(JoinError::Panicked(panic)) => {
                    assert_eq!((n, panic.message()), (5, Some("a text")));
                }
                Err(other) => panic!("{other}"),
            }
        }
        exec.drain(Duration::MAX).unwrap();
        assert_eq!((exec.stats().completed, exec.stats().panicked), (8, 1));
        assert_quiet(&exec);
    });
}
