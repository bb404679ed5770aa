//! What a scope does when nothing goes wrong.

use crate::Census;
use crate::support::{Latch, Meeting, assert_quiet, block_on, executor, hang_guard, occupy, until};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use work_permit::{Inline, Pool, ScopedDispatched};

#[test]
fn tasks_write_what_they_borrow() {
    hang_guard(|| {
        for limit in [1, 2, 5] {
            let exec = executor(limit);
            let mut rows = vec![vec![1_u64; 100]; 50];
            let sums = exec.scope(|s| {
                let row = |row: &mut Vec<u64>| {
                    row.iter_mut().enumerate().for_each(|(n, cell)| *cell += n as u64);
                    row.iter().sum::<u64>()
                };
                let handles = rows.iter_mut().map(|one| s.spawn(move || row(one)).unwrap());
                let handles: Vec<_> = handles.collect();
                handles.into_iter().map(|handle| handle.join().unwrap()).collect::<Vec<_>>()
            });
            assert_eq!(sums, [5050; 50]);
            assert_eq!(rows[49][99], 100);
            assert_quiet(&exec);
            assert_eq!(exec.stats().ran_queued, 50);
        }
    });
}

#[test]
fn it_returns_when_all_have_ended() {
    hang_guard(|| {
        let exec = executor(3);
        for _ in 0..300 {
            let done = Box::new(AtomicUsize::new(0));
            let said = exec.scope(|s| {
                for _ in 0..7 {
                    s.spawn(|| done.fetch_add(1, SeqCst)).unwrap();
                }
                "said"
            });
            assert_eq!((said, done.load(SeqCst)), ("said", 7));
        }
        assert_quiet(&exec);
    });
}

#[test]
fn results_borrow_too() {
    hang_guard(|| {
        let exec = executor(2);
        let text = String::from("a few words in a row");
        let longest = exec.scope(|s| {
            let halves = [&text[..10], &text[10..]];
            let longest = |half: &'_ str| half.split(' ').map(str::len).max();
            let handles = halves.map(|half| s.spawn(move || (half, longest(half))).unwrap());
            handles.map(|handle| handle.join().unwrap())
        });
        assert_eq!(longest, [("a few word", Some(4)), ("s in a row", Some(3))]);
    });
}

#[test]
fn c04_a_scope_runs_together() {
    hang_guard(|| {
        let exec = executor(4);
        for _ in 0..100 {
            // Three are queued, the fourth is this thread's: each waits for the other three.
            let meeting = Meeting::of(4);
            exec.scope(|s| {
                for _ in 0..3 {
                    s.spawn(|| meeting.meet()).unwrap();
                }
                exec.run(|| meeting.meet()).unwrap();
            });
            // Four are queued, and this thread helps with what has not started.
            let meeting = Meeting::of(4);
            exec.scope(|s| (0..4).for_each(|_| drop(s.spawn(|| meeting.meet()).unwrap())));
        }
        assert_quiet(&exec);
    });
}

#[test]
fn the_caller_helps_with_its_own_alone() {
    hang_guard(|| {
        let exec = executor(1);
        let here = thread::current().id();
        let held = occupy(&exec);
        let stranger = exec.spawn(|| thread::current().id()).unwrap();
        let (ran, order) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let opener = exec.clone();
        thread::scope(|threads| {
            // The permit comes back when the call stands in the line for its first task, which it joins.
            threads.spawn(move || {
                until("all are queued", || opener.stats().queued == 4);
                held.open();
            });
            exec.scope(|s| {
                for n in 0..3 {
                    let (ran, order) = (&ran, &order);
                    let task = move || {
                        order.lock().unwrap().push(n);
                        ran.fetch_add(1, SeqCst);
                    };
                    s.spawn(task).unwrap();
                }
            });
        });
        assert_eq!(ran.load(SeqCst), 3);
        assert_eq!(*order.lock().unwrap(), [0, 1, 2], "the order of the queue");
        assert_ne!(block_on(stranger).unwrap(), here, "a stranger's task is not run here");
        until("the permit is back", || exec.stats().free == 1);
        assert_quiet(&exec);
    });
}

#[test]
fn the_caller_runs_what_no_worker_can_take() {
    hang_guard(|| {
        // The only thread of the pool is busy with another executor's task.
        let pool = Pool::builder().max_threads(1).build().unwrap();
        let other = pool.executor("other").limit(1).build().unwrap();
        let exec = pool.executor("tested").limit(1).build().unwrap();
        let held = occupy(&other);
        let here = thread::current().id();
        let mut threads = [None; 20];
        exec.scope(|s| {
            for place in &mut threads {
                s.spawn(|| *place = Some(thread::current().id())).unwrap();
            }
        });
        assert_eq!(threads, [Some(here); 20]);
        held.open();
        assert_quiet(&exec);
    });
}

#[test]
fn dispatch_runs_here_or_queues() {
    hang_guard(|| {
        let exec = executor(1);
        let here = thread::current().id();
        let mut ran = Vec::new();
        exec.scope(|s| {
            let borrowed = &mut ran;
            match s.dispatch(|| borrowed.push(thread::current().id())).unwrap() {
                ScopedDispatched::Inline(()) => {}
                ScopedDispatched::Queued(_) => panic!("a permit was free"),
            }
        });
        assert_eq!(ran, [here]);
        let text = String::from("text");
        exec.scope(|s| {
            let permit = exec.acquire().unwrap();
            let queued = s.dispatch(|| text.len()).unwrap();
            assert!(!queued.is_inline());
            drop(permit);
            assert_eq!(queued.join().unwrap(), 4);
        });
        assert_eq!(exec.stats().no_permit, 1);
        let never = Pool::new().executor("never").inline(Inline::Never).build().unwrap();
        never.scope(|s| {
            let queued = s.dispatch(|| text.len()).unwrap();
            assert!(!queued.is_inline());
            assert_eq!(queued.join().unwrap(), 4);
        });
        assert_quiet(&never);
        assert_quiet(&exec);
    });
}

#[test]
fn handles_do_what_other_handles_do() {
    hang_guard(|| {
        let exec = executor(0);
        let census = Box::new(Census::default());
        exec.scope(|s| {
            let task = |counted| move || drop(counted);
            let cancelled = s.spawn(task(census.one())).unwrap();
            let late = s.spawn(task(census.one())).unwrap();
            assert!(!cancelled.is_finished());
            assert!(cancelled.cancel() && !cancelled.cancel());
            assert_eq!(census.alive(), 1, "the closure is gone already");
            assert!(cancelled.is_finished());
            let late = late.join_timeout(Duration::ZERO).unwrap_err();
            let late = late.join_timeout(Duration::from_millis(1)).unwrap_err();
            exec.set_limit(1).unwrap();
            block_on(late).unwrap();
        });
        assert_eq!((census.alive(), census.ever()), (0, 2));
        let stats = exec.stats();
        assert_eq!((stats.accepted, stats.completed, stats.cancelled), (2, 1, 1));
        assert_quiet(&exec);
    });
}

#[test]
fn a_refused_task_comes_back() {
    hang_guard(|| {
        let exec = Pool::new().executor("small").limit(0).queue_capacity(1).build().unwrap();
        let census = Census::default();
        exec.scope(|s| {
            let fits = s.spawn(|| ()).unwrap();
            let counted = census.one();
            let refused = s.spawn(move || counted).unwrap_err();
            assert_eq!(refused.reason(), work_permit::Reason::QueueFull);
            drop(refused.into_task()());
            assert_eq!(census.alive(), 0);
            assert!(fits.cancel());
        });
        assert_eq!(exec.stats().refused.queue_full, 1);
        assert_quiet(&exec);
    });
}

#[test]
fn many_tasks_leave_no_trace() {
    hang_guard(|| {
        let exec = executor(2);
        let (sum, census) = (AtomicUsize::new(0), Box::new(Census::default()));
        exec.scope(|s| {
            for n in 0..20_000 {
                let (sum, counted) = (&sum, census.one());
                let task = move || {
                    sum.fetch_add(n, SeqCst);
                    counted
                };
                s.spawn(task).unwrap();
            }
        });
        assert_eq!(sum.into_inner(), 20_000 * 19_999 / 2);
        assert_eq!((census.alive(), census.ever()), (0, 20_000));
        assert_quiet(&exec);
    });
}

#[test]
fn a_detached_result_is_dropped_when_its_task_ends() {
    hang_guard(|| {
        let (exec, census) = (executor(1), Census::default());
        exec.scope(|s| {
            let gone = s.spawn(|| census.one()).unwrap();
            drop(gone);
            until("it is dropped, and the scope goes on", || {
                (census.ever(), census.alive()) == (1, 0)
            });
        });
    });
}

#[test]
fn tasks_add_tasks() {
    hang_guard(|| {
        let exec = executor(2);
        let leaves = AtomicUsize::new(0);
        fn grow<'scope>(
            s: &'scope work_permit::Scope<'scope, '_>,
            leaves: &'scope AtomicUsize,
            levels: u32,
        ) {
            if levels == 0 {
                leaves.fetch_add(1, SeqCst);
                return;
            }
            for _ in 0..2 {
                s.spawn(move || grow(s, leaves, levels - 1)).unwrap();
            }
        }
        exec.scope(|s| grow(s, &leaves, 10));
        assert_eq!(leaves.into_inner(), 1024);
        assert_quiet(&exec);
    });
}

#[test]
fn a_task_joins_its_sibling() {
    hang_guard(|| {
        for limit in [1, 2] {
            let exec = executor(limit);
            for _ in 0..200 {
                let text = String::from("text");
                let length = exec.scope(|s| {
                    let first = s.spawn(|| text.len()).unwrap();
                    s.spawn(|| 1 + first.join().unwrap()).unwrap().join().unwrap()
                });
                assert_eq!(length, 5);
            }
            assert_quiet(&exec);
        }
    });
}

#[test]
fn a_thread_outside_joins_what_the_scope_helps_with() {
    hang_guard(|| {
        let exec = executor(2);
        for _ in 0..200 {
            let ready = Latch::new();
            let values = Mutex::new(Vec::new());
            exec.scope(|s| {
                // A task gives the handle of its sibling to a thread that is outside of the executor, so that
                // this thread and the scope's both stand for the sibling in the line.
                let sibling = s.spawn(|| 7).unwrap();
                let (ready, values) = (&ready, &values);
                let task = move || {
                    thread::scope(|threads| {
                        let thread = move || {
                            ready.open();
                            values.lock().unwrap().push(sibling.join().unwrap());
                        };
                        threads.spawn(thread);
                    });
                };
                s.spawn(task).unwrap();
                ready.wait();
            });
            assert_eq!(*values.lock().unwrap(), [7]);
        }
        assert_quiet(&exec);
    });
}
