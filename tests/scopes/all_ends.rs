//! `run_all` with panics, and on an executor that ends.

use crate::support::{Latch, assert_quiet, executor, hang_guard, until};
use crate::{Bomb, Census, panic_of};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use work_permit::{Executor, Pool, Reason};

#[test]
fn a_panic_goes_on_when_all_have_ended() {
    hang_guard(|| {
        for limit in [1, 3] {
            let exec = executor(limit);
            // The first that panics in order, wherever it runs: queued ones, the last one, all of them.
            for panicking in [vec![2, 5], vec![9], vec![0, 9], (0..10).collect()] {
                let census = Box::new(Census::default());
                let ended = AtomicUsize::new(0);
                let text = panic_of(|| {
                    exec.run_all((0..10).map(|n| {
                        let (counted, ended, panicking) = (census.one(), &ended, &panicking);
                        move || {
                            ended.fetch_add(1, SeqCst);
                            if panicking.contains(&n) {
                                panic!("task {n}");
                            }
                            counted
                        }
                    }))
                });
                assert_eq!(text, format!("task {}", panicking[0]));
                assert_eq!((ended.into_inner(), census.alive()), (10, 0));
            }
            assert_eq!(exec.stats().panicked, 2 + 1 + 2 + 10);
            until("all is back", || exec.stats().active == 0);
            assert_quiet(&exec);
        }
    });
}

#[test]
fn a_panic_of_the_only_task() {
    hang_guard(|| {
        let exec = executor(1);
        let text = panic_of(|| exec.run_all([|| panic!("alone")]).map(|_: Vec<()>| ()));
        assert_eq!(text, "alone");
        assert_quiet(&exec);
    });
}

#[test]
fn a_panic_inside_a_task() {
    hang_guard(|| {
        let exec = executor(1);
        let all = || exec.run_all((0..4).map(|n| move || assert!(n != 1, "task {n}"))).unwrap();
        assert_eq!(panic_of(|| exec.run(all)), "task 1");
        assert_eq!(exec.stats().panicked, 2, "the task, and the one around it");
        assert_quiet(&exec);
    });
}

#[test]
fn bombs_in_results() {
    hang_guard(|| {
        let (exec, census) = (executor(2), Box::new(Census::default()));
        let text = panic_of(|| {
            exec.run_all((0..6).map(|n| {
                let census = &census;
                move || {
                    assert!(n != 3, "task {n}");
                    Bomb(census.one())
                }
            }))
        });
        assert_eq!(text, "task 3", "not that of a result");
        assert_eq!((census.ever(), census.alive()), (5, 0));
        drop(census);
        until("all is back", || exec.stats().active == 0);
        assert_quiet(&exec);
    });
}

#[test]
fn a_panic_of_the_iterator_starts_nothing() {
    hang_guard(|| {
        let exec = executor(1);
        let tasks = (0..4).map(|n| {
            assert!(n < 3, "the iterator");
            || ()
        });
        assert_eq!(panic_of(|| exec.run_all(tasks)), "the iterator");
        assert_eq!(exec.stats().accepted, 0);
        assert_quiet(&exec);
    });
}

/// All tasks come back, in order and whole.
fn assert_refused(exec: &Executor, reason: Reason) {
    for tasks in [1, 2, 5] {
        let refused = exec.run_all((0..tasks).map(|n| move || n)).unwrap_err();
        assert_eq!(refused.reason(), reason);
        let back = refused.into_task();
        assert!(back.into_iter().map(|task| task()).eq(0..tasks));
    }
}

#[test]
fn all_or_nothing() {
    hang_guard(|| {
        let exec = executor(1);
        let guard = exec.acquire().unwrap();
        assert_refused(&exec, Reason::Deadlock);
        drop(guard);
        exec.close();
        assert_refused(&exec, Reason::Closed);
        assert!(exec.run_all(Vec::<fn()>::new()).unwrap().is_empty());
        let stats = exec.stats();
        assert_eq!((stats.accepted, stats.refused.deadlock, stats.refused.closed), (0, 3, 3));
        assert_quiet(&exec);
    });
}

/// The results, or what came back and why.
type Ended = Result<Vec<usize>, (Vec<usize>, Reason)>;

/// Calls `run_all` of ten on another thread while all permits are taken, then `end`, then lets the permit go.
fn while_saturated(capacity: usize, end: impl FnOnce(&Executor)) -> (Executor, Ended) {
    let exec = Pool::new().executor("ends").limit(1).queue_capacity(capacity).build().unwrap();
    let held = exec.acquire().unwrap().into_owned();
    let numbers: Box<[usize]> = (0..10).collect();
    let all = thread::scope(|threads| {
        let all = threads.spawn(|| exec.run_all(numbers.iter().map(|n| move || *n)));
        until("it stands in the line with all that may", || {
            let stats = exec.stats();
            (stats.waiting, stats.queued) == (1, capacity.min(9))
        });
        end(&exec);
        drop(held);
        all.join().unwrap().map_err(|refused| {
            let reason = refused.reason();
            (refused.into_task().into_iter().map(|task| task()).collect(), reason)
        })
    });
    exec.drain(Duration::MAX).unwrap();
    (exec, all)
}

#[test]
fn a_close_in_between_loses_nothing() {
    hang_guard(|| {
        for capacity in [0, 1, 4, 100] {
            let (exec, all) = while_saturated(capacity, |exec| {
                exec.close();
                assert!(exec.drain(Duration::ZERO).is_err(), "there is more to come");
            });
            assert!(all.unwrap().into_iter().eq(0..10));
            assert_eq!(exec.stats().completed, 10);
            assert_quiet(&exec);
        }
    });
}

#[test]
fn a_close_by_its_own_task_loses_nothing() {
    hang_guard(|| {
        for capacity in [0, 1, 4, 100] {
            let exec =
                Pool::new().executor("ends").limit(2).queue_capacity(capacity).build().unwrap();
            let task = |n: usize| {
                let exec = &exec;
                move || {
                    exec.close();
                    n
                }
            };
            assert!(exec.run_all((0..10).map(task)).unwrap().into_iter().eq(0..10));
            exec.drain(Duration::MAX).unwrap();
            assert_quiet(&exec);
        }
    });
}

#[test]
fn shutdown_now_in_between_gives_back_what_did_not_run() {
    hang_guard(|| {
        for capacity in [0, 1, 4, 100] {
            let (exec, all) =
                while_saturated(capacity, |exec| assert!(exec.shutdown_now().is_empty()));
            let (back, reason) = all.unwrap_err();
            assert!(back.into_iter().eq(0..10));
            assert_eq!(reason, Reason::Closed);
            let stats = exec.stats();
            assert_eq!((stats.completed, stats.unrun), (0, capacity.min(9) as u64));
            assert_quiet(&exec);
        }
    });
}

#[test]
fn shutdown_now_by_the_last_task() {
    hang_guard(|| {
        let exec = executor(1);
        let (census, ran) = (Box::new(Census::default()), AtomicUsize::new(0));
        let refused = exec.run_all((0..10).map(|n| {
            let (exec, census, ran) = (&exec, &census, &ran);
            move || {
                if n == 9 {
                    // It runs first, and the permit is its own.
                    assert!(exec.shutdown_now().is_empty());
                }
                ran.fetch_add(1, SeqCst);
                (n, census.one())
            }
        }));
        let refused = refused.unwrap_err();
        assert_eq!(refused.reason(), Reason::Closed);
        assert_eq!((ran.load(SeqCst), census.alive()), (1, 0), "its result is dropped");
        let back: Vec<_> = refused.into_task().into_iter().map(|task| task().0).collect();
        assert!(back.into_iter().eq(0..9));
        assert_eq!((exec.stats().completed, exec.stats().unrun), (1, 9));
        assert_quiet(&exec);
    });
}

#[test]
fn ends_race_everything() {
    hang_guard(|| {
        for round in 0..600 {
            let capacity = [0, 2, 100][round % 3];
            let builder = Pool::new().executor("ends").limit(1 + round % 2);
            let exec = builder.queue_capacity(capacity).build().unwrap();
            let (census, began) = (Box::new(Census::default()), Latch::new());
            let ran = AtomicUsize::new(0);
            thread::scope(|threads| {
                threads.spawn(|| {
                    began.wait();
                    if round % 4 < 2 { exec.close() } else { drop(exec.shutdown_now()) }
                });
                let all = exec.run_all((0..8).map(|n| {
                    let (counted, began, ran) = (census.one(), &began, &ran);
                    move || {
                        began.open();
                        ran.fetch_add(1, SeqCst);
                        (n, counted)
                    }
                }));
                match all {
                    Ok(all) => assert!(all.iter().map(|(n, _)| *n).eq(0..8)),
                    Err(refused) => {
                        assert!(round % 4 >= 2, "after a close all of them run");
                        assert_eq!(refused.reason(), Reason::Closed);
                        assert_eq!(refused.into_task().len(), 8 - ran.load(SeqCst));
                    }
                }
            });
            assert_eq!((census.ever(), census.alive()), (8, 0));
            exec.drain(Duration::MAX).unwrap();
            assert_quiet(&exec);
        }
    });
}
