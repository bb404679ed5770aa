//! Scopes on an executor that ends.

use crate::Census;
use crate::support::{Latch, assert_quiet, executor, hang_guard, occupy, until};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use work_permit::{JoinError, Reason};

#[test]
fn closed_executors_refuse_and_finish() {
    hang_guard(|| {
        let (exec, ran) = (executor(1), AtomicUsize::new(0));
        exec.scope(|s| {
            for _ in 0..5 {
                s.spawn(|| ran.fetch_add(1, SeqCst)).unwrap();
            }
            exec.close();
            let refused = s.spawn(|| 7).unwrap_err();
            assert_eq!((refused.reason(), refused.into_task()()), (Reason::Closed, 7));
            let refused = s.dispatch(|| 8).unwrap_err();
            assert_eq!((refused.reason(), refused.into_task()()), (Reason::Closed, 8));
        });
        assert_eq!(ran.into_inner(), 5, "what was accepted has run");
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn a_drain_waits_for_the_scope() {
    hang_guard(|| {
        let (exec, ran) = (executor(2), AtomicUsize::new(0));
        exec.scope(|s| {
            for _ in 0..50 {
                s.spawn(|| ran.fetch_add(1, SeqCst)).unwrap();
            }
            exec.drain(Duration::MAX).unwrap();
            assert_eq!(ran.load(SeqCst), 50);
        });
        assert_quiet(&exec);
    });
}

#[test]
fn shutdown_now_ends_borrowing_tasks_in_place() {
    hang_guard(|| {
        let exec = executor(0);
        let census = Box::new(Census::default());
        let (ours, theirs) = exec.scope(|s| {
            let before = exec.spawn(|| "before").unwrap();
            let tasks = (0..3).map(|_| {
                let counted = census.one();
                s.spawn(move || drop(counted)).unwrap()
            });
            let tasks: Vec<_> = tasks.collect();
            let after = exec.spawn(|| "after").unwrap();
            let unrun =
                thread::scope(|threads| threads.spawn(|| exec.shutdown_now()).join().unwrap());
            assert_eq!(census.alive(), 0, "the closures are gone before it returns");
            assert!(tasks.iter().all(|task| task.is_finished()));
            let ends: Vec<_> = tasks.into_iter().map(|task| task.join()).collect();
            assert_eq!(unrun.len(), 2, "the others came out");
            unrun.into_iter().for_each(|unrun| unrun.run());
            (ends, [before, after].map(|task| task.join().unwrap()))
        });
        assert!(ours.iter().all(|end| matches!(end, Err(JoinError::Closed))), "{ours:?}");
        assert_eq!(theirs, ["before", "after"]);
        let stats = exec.stats();
        assert_eq!((stats.accepted, stats.unrun, stats.completed), (5, 5, 0));
        assert_quiet(&exec);
    });
}

#[test]
fn shutdown_now_ends_a_scope_that_waits() {
    hang_guard(|| {
        let (exec, census) = (executor(0), Box::new(Census::default()));
        thread::scope(|threads| {
            let scope = threads.spawn(|| {
                exec.scope(|s| {
                    for _ in 0..5 {
                        let counted = census.one();
                        s.spawn(move || drop(counted)).unwrap();
                    }
                });
            });
            until("five wait", || exec.stats().queued == 5);
            assert!(exec.shutdown_now().is_empty());
            assert_eq!(census.alive(), 0);
            scope.join().unwrap();
        });
        drop(census);
        assert_eq!(exec.stats().unrun, 5);
        assert_quiet(&exec);
    });
}

#[test]
fn shutdown_now_from_inside() {
    hang_guard(|| {
        for limit in [1, 2] {
            let exec = executor(limit);
            let (census, ran) = (Box::new(Census::default()), AtomicUsize::new(0));
            exec.scope(|s| {
                let guards: Vec<_> = (0..limit).map(|_| exec.acquire().unwrap()).collect();
                for n in 0..20 {
                    let (counted, exec, ran) = (census.one(), &exec, &ran);
                    let task = move || {
                        ran.fetch_add(1, SeqCst);
                        if n == 3 {
                            assert!(exec.shutdown_now().is_empty());
                        }
                        drop(counted);
                    };
                    s.spawn(task).unwrap();
                }
                drop(guards);
            });
            assert_eq!(census.alive(), 0);
            let stats = exec.stats();
            assert_eq!(stats.accepted, 20);
            assert_eq!(
                (stats.completed, stats.unrun),
                (ran.load(SeqCst) as u64, 20 - stats.completed)
            );
            exec.drain(Duration::MAX).unwrap();
            assert_quiet(&exec);
        }
    });
}

#[test]
fn shutdown_now_races_everything() {
    hang_guard(|| {
        for round in 0..500 {
            let exec = executor(1 + round % 2);
            let census = Box::new(Census::default());
            let began = Latch::new();
            thread::scope(|threads| {
                threads.spawn(|| {
                    began.wait();
                    assert!(exec.shutdown_now().is_empty());
                });
                exec.scope(|s| {
                    for n in 0..8 {
                        let counted = census.one();
                        if let Ok(handle) = s.spawn(move || counted) {
                            match n % 3 {
                                0 => drop(handle),
                                1 => std::mem::forget(handle),
                                _ => drop(handle.join()),
                            }
                        }
                        if n == 3 {
                            began.open();
                        }
                    }
                });
            });
            assert_eq!((census.ever(), census.alive()), (8, 0));
            exec.drain(Duration::MAX).unwrap();
            assert_quiet(&exec);
        }
    });
}

#[test]
fn the_last_handles_go_meanwhile() {
    hang_guard(|| {
        let exec = executor(1);
        let held = occupy(&exec);
        let (tx, rx) = mpsc::channel();
        let ran = AtomicUsize::new(0);
        let pool = exec.pool().clone();
        exec.scope(|s| {
            for _ in 0..3 {
                let (tx, ran) = (tx.clone(), &ran);
                let task = move || {
                    ran.fetch_add(1, SeqCst);
                    tx.send(()).unwrap();
                };
                s.spawn(task).unwrap();
            }
            // A shutdown of the pool waits for the tasks, and they for the permit.
            assert!(pool.shutdown(Duration::ZERO).is_err());
            held.open();
        });
        drop(exec);
        assert_eq!(rx.try_iter().count(), 3);
        pool.shutdown(Duration::MAX).unwrap();
        assert_eq!(ran.into_inner(), 3);
    });
}
