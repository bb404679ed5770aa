//! Handles under tokio: awaited, dropped, timed out, moved between its tasks.
#![forbid(unsafe_code)]

use crate::support::{self, HANG, Latch, Meter, assert_quiet, executor, occupy};
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use work_permit::{Dispatched, JoinError, Pool};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_await_many_handles() {
    let exec = executor(3);
    let meter = Meter::new();
    let tasks: Vec<_> = (0..200_u64)
        .map(|n| {
            let (exec, meter) = (exec.clone(), Arc::clone(&meter));
            tokio::spawn(async move {
                let mut sum = 0;
                for m in 0..20 {
                    let meter = Arc::clone(&meter);
                    let task = move || {
                        let _inside = meter.enter();
                        n * m
                    };
                    let reason = |refused: work_permit::Rejected<_>| refused.into_reason();
                    sum += match m % 2 {
                        0 => exec.spawn(task).map_err(reason)?.await?,
                        _ => exec.dispatch(task).map_err(reason)?.await?,
                    };
                }
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(sum)
            })
        })
        .collect();
    for (n, task) in (0..).zip(tasks) {
        assert_eq!(timeout(HANG, task).await.unwrap().unwrap().unwrap(), 190 * n);
    }
    assert!(meter.peak() <= 3);
    assert_quiet(&exec);
}

#[tokio::test]
async fn an_inline_result_needs_no_waiting() {
    let exec = executor(1);
    let here = thread::current().id();
    let dispatched = exec.dispatch(|| thread::current().id()).unwrap();
    assert_eq!(dispatched.await.unwrap(), here);
    // A runtime of one thread goes on while the task is queued: the latch is opened by another future.
    let latch = occupy(&exec);
    let queued = exec.dispatch(|| 5).unwrap();
    assert!(!queued.is_inline());
    let (result, ()) = tokio::join!(async { queued.await }, async { latch.open() });
    assert_eq!(result.unwrap(), 5);
}

#[tokio::test]
async fn a_handle_that_is_dropped_detaches_its_task() {
    let exec = executor(1);
    let latch = occupy(&exec);
    let ran = Latch::new();
    let runs = ran.clone();
    let handle = exec.spawn(move || runs.open()).unwrap();
    assert!(timeout(Duration::from_millis(1), handle).await.is_err());
    latch.open();
    ran.wait();
    exec.drain(HANG).unwrap();
    assert_eq!((exec.stats().completed, exec.stats().cancelled), (2, 0));
}

#[tokio::test]
async fn a_handle_by_reference_survives_a_timeout() {
    let exec = executor(1);
    let latch = occupy(&exec);
    let mut handle = exec.spawn(|| 5).unwrap();
    assert!(timeout(Duration::from_millis(1), &mut handle).await.is_err());
    tokio::select! {
        biased;
        _ = &mut handle => panic!("it cannot run yet"),
        () = tokio::task::yield_now() => {}
    }
    latch.open();
    assert_eq!(timeout(HANG, handle).await.unwrap().unwrap(), 5);

    let latch = occupy(&exec);
    let mut handle = exec.spawn(|| unreachable!()).unwrap();
    assert!(timeout(Duration::from_millis(1), &mut handle).await.is_err());
    assert!(handle.cancel());
    assert!(matches!(handle.await, Err(JoinError::Cancelled)));
    latch.open();
    exec.drain(HANG).unwrap();
    assert_quiet(&exec);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handle_moves_between_tasks_after_it_was_polled() {
    let exec = executor(1);
    for _ in 0..200 {
        let latch = occupy(&exec);
        let (tx, mut rx) = mpsc::channel(1);
        let mut handle = exec.spawn(|| 5).unwrap();
        let first = tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = &mut handle => panic!("it cannot run yet"),
                () = std::future::ready(()) => {}
            }
            tx.send(handle).await.unwrap();
        });
        let second = tokio::spawn(async move { rx.recv().await.unwrap().await.unwrap() });
        first.await.unwrap();
        latch.open();
        assert_eq!(timeout(HANG, second).await.unwrap().unwrap(), 5);
    }
    assert_quiet(&exec);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panics_come_through_and_the_rest_goes_on() {
    let exec = executor(2);
    let (mut panicked, mut returned) = (0, 0);
    let handles: Vec<_> = (0..100)
        .map(|n| {
            exec.spawn(move || match n % 3 {
                0 => panic_any("out"),
                _ => n,
            })
            .unwrap()
        })
        .collect();
    for handle in handles {
        match timeout(HANG, handle).await.unwrap() {
            Ok(_) => returned += 1,
            Err(JoinError::Panicked(panic)) => {
                assert_eq!(panic.message(), Some("out"));
                panicked += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((panicked, returned), (34, 66));
    assert_quiet(&exec);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_ends_every_await() {
    let pool = Pool::new();
    let exec = pool.executor("ends").limit(1).build().unwrap();
    let latch = occupy(&exec);
    let ran = Arc::new(AtomicU64::new(0));
    let awaiting: Vec<_> = (0..50)
        .map(|_| {
            let ran = Arc::clone(&ran);
            let task = move || ran.fetch_add(1, SeqCst);
            let Dispatched::Queued(handle) = exec.dispatch(task).unwrap() else {
                panic!("the permit is taken")
            };
            tokio::spawn(handle)
        })
        .collect();
    let unrun = exec.shutdown_now();
    assert_eq!(unrun.len(), 50);
    for (n, unrun) in unrun.into_iter().enumerate() {
        if n < 10 {
            unrun.run();
        }
    }
    let mut closed = 0;
    for task in awaiting {
        match timeout(HANG, task).await.unwrap().unwrap() {
            Ok(_) => {}
            Err(JoinError::Closed) => closed += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((ran.load(SeqCst), closed), (10, 40));
    latch.open();
    pool.shutdown(HANG).unwrap();
    assert_quiet(&exec);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_may_block_on_the_runtime_that_awaits_it() {
    let exec = executor(2);
    let runtime = tokio::runtime::Handle::current();
    let inner = exec.clone();
    let outer = exec.spawn(move || {
        // On a worker of the pool, not of the runtime: blocking is allowed here.
        runtime.block_on(async { inner.spawn(|| 20).unwrap().await.unwrap() }) + 1
    });
    assert_eq!(timeout(HANG, outer.unwrap()).await.unwrap().unwrap(), 21);
    support::until("quiet", || exec.stats().active == 0);
    assert_quiet(&exec);
}
