//! What becomes of work when its executor ends: C09, C10.
#![forbid(unsafe_code)]

use crate::support::{self, assert_quiet, block_on, executor, hang_guard, occupy};
use std::sync::mpsc;
use std::time::Duration;
use work_permit::{Executor, JoinError, Pool, Reason};

#[test]
fn c09_a_shutdown_drops_no_work() {
    hang_guard(|| {
        let pool = Pool::new();
        for end in ["drain", "drop", "pool"] {
            let exec = pool.executor(end).limit(1).build().unwrap();
            let latch = occupy(&exec);
            let handles: Vec<_> = (0..10).map(|n| exec.spawn(move || n).unwrap()).collect();
            let left = exec.drain(Duration::from_millis(1)).unwrap_err();
            assert_eq!((left.active, left.queued), (1, 10));
            latch.open();
            match end {
                "drain" => exec.drain(support::HANG).unwrap(),
                "drop" => drop(exec),
                _ => pool.shutdown(support::HANG).unwrap(),
            }
            for (n, handle) in handles.into_iter().enumerate() {
                assert_eq!(block_on(handle).unwrap(), n);
            }
        }
    });
}

#[test]
fn c09_work_that_a_shutdown_takes_out_comes_back() {
    hang_guard(|| {
        let exec = executor(1);
        let latch = occupy(&exec);
        let handles: Vec<_> = (0..10).map(|n| exec.spawn(move || n).unwrap()).collect();
        let unrun = exec.shutdown_now();
        assert_eq!((unrun.len(), exec.stats().queued), (10, 0));
        for (n, unrun) in unrun.into_iter().enumerate() {
            if n % 2 == 0 {
                unrun.run();
            }
        }
        for (n, handle) in handles.into_iter().enumerate() {
            match handle.join() {
                Ok(ran) => assert!(ran == n && n % 2 == 0),
                Err(error) => assert!(matches!(error, JoinError::Closed) && n % 2 == 1),
            }
        }
        assert!(exec.drain(Duration::ZERO).is_err(), "one still runs");
        latch.open();
        exec.drain(support::HANG).unwrap();
        assert_eq!((exec.stats().completed, exec.stats().unrun), (1, 10));
        assert_quiet(&exec);
    });
}

/// Every verb is refused as closed, and gives its closure back.
fn assert_refuses_all(exec: &Executor) {
    let time = Duration::from_secs(1);
    let word = String::from("mine");
    let back = exec.try_run(|| word.len()).unwrap_err();
    assert_eq!(back.reason(), Reason::Closed);
    assert_eq!(back.into_task()(), 4, "the closure came back");
    assert_eq!(exec.run(|| ()).unwrap_err().into_reason(), Reason::Closed);
    let timed = exec.run_timeout(time, || ()).unwrap_err();
    assert_eq!(timed.into_reason(), Reason::Closed);
    let owned = word.clone();
    let back = exec.dispatch(move || owned.len()).unwrap_err();
    assert_eq!((back.reason(), back.into_task()()), (Reason::Closed, 4));
    let owned = word.clone();
    let back = exec.spawn(move || owned.len()).unwrap_err();
    assert_eq!((back.reason(), back.into_task()()), (Reason::Closed, 4));
    let (tx, rx) = mpsc::channel();
    let back = exec.execute(move || tx.send(word).unwrap()).unwrap_err();
    assert_eq!(back.reason(), Reason::Closed);
    back.into_task()();
    assert_eq!(rx.recv().unwrap(), "mine");
    assert_eq!(exec.try_acquire().unwrap_err().reason(), Reason::Closed);
    assert_eq!(exec.acquire().unwrap_err().reason(), Reason::Closed);
    let timed = exec.acquire_timeout(time).unwrap_err();
    assert_eq!(timed.reason(), Reason::Closed);
}

#[test]
fn c10_nothing_is_accepted_after_a_shutdown() {
    hang_guard(|| {
        let closed = executor(2);
        closed.close();
        let drained = executor(2);
        drained.drain(Duration::ZERO).unwrap();
        let emptied = executor(0);
        emptied.execute(|| unreachable!()).unwrap();
        drop(emptied.shutdown_now());
        let pool = Pool::new();
        let of_pool = pool.executor("of a pool").limit(2).build().unwrap();
        pool.shutdown(support::HANG).unwrap();
        for exec in [closed, drained, emptied, of_pool] {
            assert_refuses_all(&exec);
            assert_eq!(exec.stats().refused.closed, 9);
            assert_quiet(&exec);
        }
        assert!(pool.executor("late").build().is_err());
    });
}
