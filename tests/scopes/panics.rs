//! Panics in every place that has foreign code.

use crate::support::{Latch, assert_quiet, executor, hang_guard, until};
use crate::{Bomb, Census, panic_of};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use std::thread;
use work_permit::{JoinError, ScopedJoinHandle};

#[test]
fn the_closure_panics_and_all_tasks_end_first() {
    hang_guard(|| {
        for limit in [1, 3] {
            let exec = executor(limit);
            let census = Box::new(Census::default());
            let ran = AtomicUsize::new(0);
            let text = panic_of(|| {
                exec.scope(|s| {
                    for _ in 0..10 {
                        let (counted, ran) = (census.one(), &ran);
                        let task = move || {
                            ran.fetch_add(1, SeqCst);
                            counted
                        };
                        s.spawn(task).unwrap();
                    }
                    panic!("the closure");
                })
            });
            assert_eq!(text, "the closure");
            assert_eq!((ran.into_inner(), census.alive()), (10, 0));
            drop(census);
            assert_quiet(&exec);
        }
    });
}

#[test]
fn a_panic_that_nobody_joins_is_the_scopes() {
    hang_guard(|| {
        let exec = executor(2);
        let ran = AtomicUsize::new(0);
        for forget in [false, true] {
            let text = panic_of(|| {
                exec.scope(|s| {
                    let task = s.spawn(|| -> u8 { panic!("a task") }).unwrap();
                    if forget {
                        std::mem::forget(task)
                    } else {
                        drop(task)
                    }
                    for _ in 0..5 {
                        s.spawn(|| ran.fetch_add(1, SeqCst)).unwrap();
                    }
                })
            });
            assert_eq!(text, "a scoped task panicked");
        }
        assert_eq!(ran.load(SeqCst), 10);
        assert_eq!(exec.stats().panicked, 2);
        assert_quiet(&exec);
    });
}

#[test]
fn a_panic_that_somebody_joins_is_his() {
    hang_guard(|| {
        let exec = executor(2);
        let value = exec.scope(|s| {
            let task = s.spawn(|| -> u8 { panic!("a task") }).unwrap();
            match task.join() {
                Err(JoinError::Panicked(panic)) => {
                    assert_eq!(panic.message(), Some("a task"));
                    7
                }
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(value, 7);
        assert_quiet(&exec);
    });
}

#[test]
fn a_panic_of_the_closure_comes_before_those_of_tasks() {
    hang_guard(|| {
        let exec = executor(1);
        let text = panic_of(|| {
            exec.scope(|s| {
                s.spawn(|| panic!("a task")).unwrap();
                panic!("the closure");
            })
        });
        assert_eq!(text, "the closure");
        assert_quiet(&exec);
    });
}

#[test]
fn an_inline_panic_goes_on_to_the_closure() {
    hang_guard(|| {
        let exec = executor(1);
        let text = panic_of(|| exec.scope(|s| s.dispatch(|| panic!("inline")).map(drop).unwrap()));
        assert_eq!(text, "inline");
        assert_quiet(&exec);
    });
}

#[test]
fn bombs_in_results_and_closures_harm_nobody() {
    hang_guard(|| {
        for limit in [1, 2] {
            let exec = executor(limit);
            let census = Box::new(Census::default());
            for _ in 0..50 {
                exec.scope(|s| {
                    // A result that goes with its task, one that nobody takes, one whose handle goes late.
                    drop(s.spawn(|| Bomb(census.one())).unwrap());
                    std::mem::forget(s.spawn(|| Bomb(census.one())).unwrap());
                    let late = s.spawn(|| Bomb(census.one())).unwrap();
                    until("it has ended", || late.is_finished());
                    drop(late);
                    // A closure that is dropped unrun.
                    let bomb = Bomb(census.one());
                    let cancelled = s.spawn(move || drop(bomb)).unwrap();
                    if !cancelled.cancel() {
                        assert!(matches!(cancelled.join(), Err(JoinError::Panicked(_))));
                    }
                });
                assert_eq!(census.alive(), 0);
            }
            drop(census);
            until("all is back", || exec.stats().active == 0);
            assert_quiet(&exec);
        }
    });
}

#[test]
fn a_bomb_in_the_scopes_own_result() {
    hang_guard(|| {
        let (exec, census) = (executor(1), Census::default());
        let text = panic_of(|| {
            exec.scope(|s| {
                s.spawn(|| panic!("a task")).unwrap();
                Bomb(census.one())
            })
        });
        assert_eq!(text, "a scoped task panicked");
        assert_eq!(census.alive(), 0);
        assert_quiet(&exec);
    });
}

#[test]
fn a_thread_that_holds_all_permits_is_told() {
    hang_guard(|| {
        let exec = executor(1);
        let (census, ran) = (Box::new(Census::default()), AtomicUsize::new(0));
        let guard = exec.acquire().unwrap();
        let text = panic_of(|| {
            exec.scope(|s| {
                for _ in 0..3 {
                    let (counted, ran) = (census.one(), &ran);
                    let task = move || {
                        ran.fetch_add(1, SeqCst);
                        drop(counted);
                    };
                    s.spawn(task).unwrap();
                }
            })
        });
        assert!(text.contains("holds all permits"), "{text}");
        assert_eq!((ran.load(SeqCst), census.alive()), (0, 0));
        assert_eq!((exec.stats().cancelled, exec.stats().queued), (3, 0));
        drop(census);
        // A guard that goes in time is no trouble.
        exec.scope(|s| {
            let join = s.spawn(|| ran.fetch_add(1, SeqCst)).unwrap().join();
            assert!(matches!(join, Err(JoinError::Deadlock)));
            drop(guard);
        });
        assert_eq!(ran.load(SeqCst), 1);
        assert_quiet(&exec);
    });
}

#[test]
fn who_learns_of_the_deadlock_spares_the_scope() {
    hang_guard(|| {
        let exec = executor(2);
        let (ready, told) = (Latch::new(), Mutex::new(None));
        let mut guard = None;
        exec.scope(|s| {
            // This task runs on a worker while a guard comes and the limit goes down to it. Then it has a thread
            // that is outside of the executor join a sibling which cannot start.
            let (tx, rx) = mpsc::channel();
            let (ready, told) = (&ready, &told);
            let task = move || {
                ready.open();
                let sibling: ScopedJoinHandle<'_, ()> = rx.recv().unwrap();
                thread::scope(|threads| {
                    threads.spawn(|| *told.lock().unwrap() = Some(sibling.join()));
                });
            };
            s.spawn(task).unwrap();
            ready.wait();
            guard = Some(exec.acquire().unwrap());
            exec.set_limit(1).unwrap();
            tx.send(s.spawn(|| ()).unwrap()).unwrap();
        });
        let told = told.into_inner().unwrap();
        assert!(matches!(told, Some(Err(JoinError::Deadlock))), "{told:?}");
        drop(guard);
        until("all is back", || exec.stats().active == 0);
        assert_quiet(&exec);
    });
}
