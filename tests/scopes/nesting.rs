//! Scopes inside of tasks and of each other.

use crate::support::{Latch, assert_quiet, executor, hang_guard, until};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use work_permit::Pool;

#[test]
fn inside_the_only_task_they_run_here() {
    hang_guard(|| {
        let exec = executor(1);
        let here = thread::current().id();
        let mut threads = [None; 10];
        exec.run(|| {
            exec.scope(|s| {
                for place in &mut threads {
                    s.spawn(|| *place = Some(thread::current().id())).unwrap();
                }
            });
            assert_eq!(exec.stats().active, 1, "under the permit of the task around them");
        })
        .unwrap();
        assert_eq!(threads, [Some(here); 10]);
        assert_eq!((exec.stats().ran_inline, exec.stats().ran_queued), (1, 10));
        assert_quiet(&exec);
    });
}

#[test]
fn scopes_within_scopes() {
    hang_guard(|| {
        for limit in [1, 2, 3] {
            let exec = executor(limit);
            let count = AtomicUsize::new(0);
            let count_on = || assert!(count.fetch_add(1, SeqCst) < 50 * 4 * 5);
            for _ in 0..50 {
                exec.scope(|outer| {
                    for _ in 0..4 {
                        let task = || {
                            let mut local = [0; 4];
                            exec.scope(|inner| {
                                for place in &mut local {
                                    let inner_task = || {
                                        *place += 1;
                                        count_on();
                                    };
                                    inner.spawn(inner_task).unwrap();
                                }
                                outer.spawn(count_on).unwrap();
                            });
                            assert_eq!(local, [1; 4]);
                        };
                        outer.spawn(task).unwrap();
                    }
                });
            }
            assert_eq!(count.load(SeqCst), 50 * 4 * 5);
            assert_quiet(&exec);
        }
    });
}

#[test]
fn scopes_of_two_executors_across() {
    hang_guard(|| {
        let pool = Pool::new();
        let build = |name| pool.executor(name).limit(1).build().unwrap();
        let (one, two) = (build("one"), build("two"));
        let count = AtomicUsize::new(0);
        one.scope(|s| {
            for _ in 0..10 {
                let task = || {
                    two.scope(|t| {
                        for _ in 0..10 {
                            t.spawn(|| count.fetch_add(1, SeqCst)).unwrap();
                        }
                    });
                };
                s.spawn(task).unwrap();
            }
        });
        assert_eq!(count.into_inner(), 100);
        assert_quiet(&one);
        assert_quiet(&two);
    });
}

#[test]
fn a_task_that_comes_late_needs_nobody_but_the_waiting_call() {
    hang_guard(|| {
        for _ in 0..300 {
            let exec = executor(2);
            let (started, ran) = (Latch::new(), AtomicUsize::new(0));
            exec.run(|| {
                exec.scope(|s| {
                    let task = || {
                        started.open();
                        // From here on the only permit is that of the call that waits for us, and what we add
                        // can run under that one alone.
                        exec.set_limit(1).unwrap();
                        s.spawn(|| ran.fetch_add(1, SeqCst)).unwrap();
                    };
                    s.spawn(task).unwrap();
                    started.wait();
                });
            })
            .unwrap();
            assert_eq!(ran.into_inner(), 1);
            until("all is back", || exec.stats().active == 0);
            assert_quiet(&exec);
        }
    });
}

#[test]
fn the_limit_goes_up_and_down_meanwhile() {
    hang_guard(|| {
        let exec = executor(1);
        let over = Latch::new();
        let count = AtomicUsize::new(0);
        thread::scope(|threads| {
            threads.spawn(|| {
                while !over.is_open() {
                    for limit in [0, 2, 1, 3] {
                        exec.set_limit(limit).unwrap();
                        thread::yield_now();
                    }
                }
            });
            for _ in 0..200 {
                exec.scope(|s| {
                    for _ in 0..10 {
                        s.spawn(|| count.fetch_add(1, SeqCst)).unwrap();
                    }
                });
            }
            over.open();
        });
        assert_eq!(count.into_inner(), 2000);
        assert_quiet(&exec);
    });
}

#[test]
fn a_paused_scope_waits_for_the_raise() {
    hang_guard(|| {
        let (exec, count) = (executor(0), AtomicUsize::new(0));
        thread::scope(|threads| {
            let scope = threads.spawn(|| {
                exec.scope(|s| (0..5).for_each(|_| drop(s.spawn(|| count.fetch_add(1, SeqCst)))));
            });
            until("five wait", || exec.stats().queued == 5);
            assert!(!scope.is_finished() && count.load(SeqCst) == 0);
            exec.set_limit(1).unwrap();
            scope.join().unwrap();
        });
        assert_eq!(count.into_inner(), 5);
        assert_quiet(&exec);
    });
}
