//! What `run_all` does when nothing goes wrong.

use crate::Census;
use crate::support::{Latch, Meeting, Meter, assert_quiet, executor, hang_guard, occupy, until};
use std::sync::Mutex;
use std::thread;
use work_permit::{Executor, Pool};

/// More than any address space has.
const TOO_MUCH_STACK: usize = 1 << 46;

#[test]
fn results_come_in_order() {
    hang_guard(|| {
        for limit in [1, 2, 4, 100] {
            let exec = executor(limit);
            for tasks in [0, 1, 2, 3, 10, 1000] {
                let numbers: Box<[usize]> = (0..tasks).collect();
                let squares = exec.run_all(numbers.iter().map(|n| move || n * n)).unwrap();
                let expected: Vec<usize> = (0..tasks).map(|n| n * n).collect();
                assert_eq!(squares, expected);
            }
            let stats = exec.stats();
            assert_eq!((stats.accepted, stats.completed), (1016, 1016));
            // Each batch runs its last one here.
            assert_eq!((stats.ran_inline, stats.ran_queued), (5, 1011));
            assert_eq!(stats.asked, 1011);
            assert_quiet(&exec);
        }
    });
}

#[test]
fn results_borrow() {
    hang_guard(|| {
        let (exec, census) = (executor(3), Box::new(Census::default()));
        for _ in 0..200 {
            let words: Vec<String> = (0..6).map(|n| format!("word {n}")).collect();
            let tails = exec.run_all(words.iter().map(|word| || (&word[5..], census.one())));
            let tails = tails.unwrap();
            assert!(tails.iter().map(|(tail, _)| *tail).eq(["0", "1", "2", "3", "4", "5"]));
            assert_eq!(census.alive(), 6);
        }
        assert_eq!(census.alive(), 0);
        assert_quiet(&exec);
    });
}

#[test]
fn c04_a_fan_out_runs_together() {
    hang_guard(|| {
        let exec = executor(4);
        for _ in 0..200 {
            // Each of the four waits for the other three.
            let meeting = Meeting::of(4);
            let part = |n: u32| {
                let meeting = &meeting;
                move || {
                    meeting.meet();
                    n
                }
            };
            assert_eq!(exec.run_all((0..4).map(part)).unwrap(), [0, 1, 2, 3]);
            until("all is back", || exec.stats().active == 0);
        }
        assert_quiet(&exec);
    });
}

#[test]
fn c04_also_when_the_caller_is_a_task() {
    hang_guard(|| {
        let exec = executor(4);
        for _ in 0..100 {
            let meeting = Meeting::of(4);
            let all = || exec.run_all((0..4).map(|_| || meeting.meet())).unwrap().len();
            assert_eq!(exec.run(all).unwrap(), 4);
            until("all is back", || exec.stats().active == 0);
        }
        assert_quiet(&exec);
    });
}

#[test]
fn the_limit_is_kept() {
    hang_guard(|| {
        let exec = executor(3);
        let meter = Meter::new();
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..50 {
                        let task = || {
                            let _inside = meter.enter();
                            thread::yield_now();
                        };
                        exec.run_all((0..9).map(|_| task)).unwrap();
                    }
                });
            }
        });
        assert!(meter.peak() <= 3, "{}", meter.peak());
        assert_eq!(exec.stats().completed, 4 * 50 * 9);
        assert_quiet(&exec);
    });
}

#[test]
fn the_caller_needs_no_worker() {
    hang_guard(|| {
        // None of the pool's own: a thread with such a stack is refused.
        let pool = Pool::builder().stack_size(TOO_MUCH_STACK).build().unwrap();
        let exec = pool.executor("no threads").limit(2).build().unwrap();
        let here = thread::current().id();
        let all = exec.run_all((0..10).map(|n| move || (n, thread::current().id()))).unwrap();
        assert_eq!(all, (0..10).map(|n| (n, here)).collect::<Vec<_>>());
        assert_eq!(exec.stats().ran_inline, 10);
        assert_quiet(&exec);

        // One that is busy with the task of another executor.
        let pool = Pool::builder().max_threads(1).build().unwrap();
        let build = |name| pool.executor(name).limit(1).build().unwrap();
        let (other, exec) = (build("other"), build("tested"));
        let held = occupy(&other);
        let all = exec.run_all((0..10).map(|_| || thread::current().id())).unwrap();
        assert_eq!(all, [here; 10]);
        held.open();
        assert_quiet(&exec);
    });
}

#[test]
fn what_the_queue_refuses_runs_here() {
    hang_guard(|| {
        for capacity in [0, 1, 3] {
            let builder = Pool::new().executor("small").limit(2).queue_capacity(capacity);
            let exec = builder.build().unwrap();
            for _ in 0..100 {
                let all = exec.run_all((0..10).map(|n| move || n)).unwrap();
                assert!(all.into_iter().eq(0..10));
            }
            let stats = exec.stats();
            assert_eq!((stats.completed, stats.refused.total()), (1000, 0));
            assert!(stats.ran_inline >= 100 && (capacity > 0 || stats.ran_queued == 0));
            assert_quiet(&exec);
        }
    });
}

#[test]
fn inside_a_task_all_can_run_under_its_permit() {
    hang_guard(|| {
        let exec = executor(1);
        let here = thread::current().id();
        let all = exec.run(|| exec.run_all((0..10).map(|_| || thread::current().id())).unwrap());
        assert_eq!(all.unwrap(), [here; 10]);
        assert_eq!(exec.stats().ran_queued, 9);
        // After a close only the queue is closed to it.
        let all = exec.run(|| {
            exec.close();
            exec.run_all((0..10).map(|n| move || n)).unwrap()
        });
        assert!(all.unwrap().into_iter().eq(0..10));
        assert_eq!((exec.stats().ran_queued, exec.stats().refused.total()), (9, 0));
        assert_quiet(&exec);
    });
}

/// A tree of calls within calls.
fn leaves(exec: &Executor, levels: u32) -> usize {
    if levels == 0 {
        return 1;
    }
    exec.run_all((0..3).map(|_| || leaves(exec, levels - 1))).unwrap().into_iter().sum()
}

#[test]
fn calls_within_calls() {
    hang_guard(|| {
        for limit in [1, 2, 5] {
            let exec = executor(limit);
            assert_eq!(leaves(&exec, 5), 243);
            until("all is back", || exec.stats().active == 0);
            assert_quiet(&exec);
        }
    });
}

/// Three tasks that the queue has no room for, and a waiting thread that comes while the first one runs.
fn order_of_refused(max_overtakes: usize) -> Vec<&'static str> {
    let builder = Pool::new().executor("strict").limit(1).queue_capacity(0);
    let exec = builder.max_overtakes(max_overtakes).build().unwrap();
    let (order, began) = (Mutex::new(Vec::new()), Latch::new());
    let note = |name| order.lock().unwrap().push(name);
    thread::scope(|threads| {
        threads.spawn(|| {
            began.wait();
            exec.run(|| note("other")).unwrap();
        });
        let task = |name| {
            let (exec, began, note) = (&exec, &began, &note);
            move || {
                began.open();
                until("the other waits, or has run", || exec.stats().waiting == 1 || name != "a");
                note(name);
            }
        };
        exec.run_all(["a", "b", "c"].map(task)).unwrap();
    });
    assert_quiet(&exec);
    order.into_inner().unwrap()
}

#[test]
fn who_waits_comes_between() {
    hang_guard(|| {
        for max_overtakes in [0, 16] {
            for _ in 0..50 {
                assert_eq!(order_of_refused(max_overtakes), ["a", "other", "b", "c"]);
            }
        }
    });
}

#[test]
fn saturated_it_takes_its_turn() {
    hang_guard(|| {
        let exec = executor(1);
        let held = occupy(&exec);
        let order = Mutex::new(Vec::new());
        let note = |n| order.lock().unwrap().push(n);
        let before = exec.spawn(|| ()).unwrap();
        thread::scope(|threads| {
            let all = threads.spawn(|| exec.run_all([1, 2, 3].map(|n| move || note(n))).unwrap());
            until("one stands here, two are queued behind him", || {
                let stats = exec.stats();
                (stats.waiting, stats.queued) == (1, 3)
            });
            let last = threads.spawn(|| exec.run(|| note(4)).unwrap());
            until("and one behind all", || exec.stats().waiting == 2);
            held.open();
            all.join().unwrap();
            last.join().unwrap();
        });
        before.join().unwrap();
        assert_eq!(*order.lock().unwrap(), [3, 1, 2, 4]);
        until("all is back", || exec.stats().active == 0);
        assert_quiet(&exec);
    });
}
