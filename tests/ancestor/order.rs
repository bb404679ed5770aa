//! Who runs before whom, and who together: C02, C03, C04, C07, C14.
#![forbid(unsafe_code)]

use crate::support::{
    self, Latch, Meeting, assert_quiet, block_on, executor, hang_guard, occupy, until, until_asleep,
};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use work_permit::{Executor, Pool, Reason};

#[test]
fn c02_strict_executors_do_not_overtake() {
    hang_guard(|| {
        let strict = Pool::new().executor("strict").limit(1).max_overtakes(0);
        let exec = strict.build().unwrap();
        for _ in 0..200 {
            let order = Arc::new(Mutex::new(Vec::new()));
            let note = |name| {
                let order = Arc::clone(&order);
                move || order.lock().unwrap().push(name)
            };
            exec.execute(note('a')).unwrap();
            exec.dispatch(note('b')).unwrap().join().unwrap();
            exec.run(note('c')).unwrap();
            assert_eq!(*order.lock().unwrap(), ['a', 'b', 'c']);
        }
        assert_eq!(exec.stats().overtakes, 0);
    });
}

/// How many inline runs of `callers` threads start between the moment a task may start and its start.
fn overtaken(callers: usize, max_overtakes: usize) -> u64 {
    let builder = Pool::new().executor("contended").limit(1);
    let exec = builder.max_overtakes(max_overtakes).build().unwrap();
    let guard = exec.acquire().unwrap();
    let (starts, done) = (Arc::new(AtomicU64::new(0)), Latch::new());
    let handle = {
        let (starts, done) = (Arc::clone(&starts), done.clone());
        let task = move || {
            done.open();
            starts.load(SeqCst)
        };
        exec.spawn(task).unwrap()
    };
    thread::scope(|s| {
        for _ in 0..callers {
            s.spawn(|| {
                while !done.is_open() {
                    // With one permit, no two closures run at a time: the count is exact.
                    let _ = exec.try_run(|| starts.fetch_add(1, SeqCst));
                    let _ = exec.try_acquire().map(|_permit| starts.fetch_add(1, SeqCst));
                }
            });
        }
        drop(guard);
    });
    let before = block_on(handle).unwrap();
    assert!(exec.stats().overtakes >= before, "each was counted");
    assert_quiet(&exec);
    before
}

#[test]
fn c03_inline_callers_do_not_starve_queued_tasks() {
    hang_guard(|| {
        for callers in [1, 2, 4] {
            for bound in [0, 1, 3, 16] {
                for _ in 0..20 {
                    let overtaken = overtaken(callers, bound);
                    assert!(overtaken <= bound as u64, "{overtaken} > {bound}");
                }
            }
        }
    });
}

#[test]
fn c04_a_fan_out_runs_together() {
    hang_guard(|| {
        let exec = executor(4);
        for _ in 0..100 {
            // All but the last are queued, the last runs here; each waits for the other three.
            let meeting = Meeting::of(4);
            let part = |n: u32| {
                let meeting = meeting.clone();
                move || {
                    meeting.meet();
                    n
                }
            };
            let queued: Vec<_> = (0..3).map(|n| exec.spawn(part(n)).unwrap()).collect();
            let last = exec.run(part(3)).unwrap();
            let first = queued.into_iter().map(|handle| handle.join().unwrap());
            assert_eq!(first.chain([last]).collect::<Vec<_>>(), [0, 1, 2, 3]);
        }
        assert_quiet(&exec);
    });
}

/// A pool whose threads have worked and then parked or left, with an executor at limit 0.
fn paused_after_work(keep_alive: Duration) -> Executor {
    let pool = Pool::builder().keep_alive(keep_alive).build().unwrap();
    let exec = pool.executor("growing").limit(3).build().unwrap();
    let meeting = Meeting::of(3);
    let meet = || {
        let meeting = meeting.clone();
        move || meeting.meet()
    };
    let handles: Vec<_> = (0..3).map(|_| exec.spawn(meet()).unwrap()).collect();
    handles.into_iter().for_each(|h| block_on(h).unwrap());
    exec.set_limit(0).unwrap();
    until_asleep(&pool);
    exec
}

#[test]
fn c07_growth_wakes_what_waits() {
    hang_guard(|| {
        for (keep_alive, tasks, runs) in [
            (Duration::MAX, 4, 0),
            (Duration::MAX, 2, 2),
            (Duration::ZERO, 4, 0),
            (Duration::ZERO, 1, 3),
            (Duration::MAX, 0, 4),
        ] {
            let exec = paused_after_work(keep_alive);
            let meeting = Meeting::of(4);
            thread::scope(|s| {
                for _ in 0..runs {
                    s.spawn(|| exec.run(|| meeting.meet()).unwrap());
                }
                until("all in line", || exec.stats().waiting == runs);
                for _ in 0..tasks {
                    let meeting = meeting.clone();
                    exec.execute(move || meeting.meet()).unwrap();
                }
                until_asleep(exec.pool());
                assert_eq!((exec.stats().active, exec.stats().queued), (0, tasks));
                // The four wait for each other, and nothing but the raise happens.
                exec.set_limit(4).unwrap();
            });
            exec.drain(support::HANG).unwrap();
            assert_quiet(&exec);
        }
    });
}

#[test]
fn c07_growth_under_running_work_starts_as_many_as_it_adds() {
    hang_guard(|| {
        let exec = executor(2);
        let held = [occupy(&exec), occupy(&exec)];
        let (started, starts) = mpsc::channel();
        let latch = Latch::new();
        for _ in 0..5 {
            let (started, latch) = (started.clone(), latch.clone());
            let task = move || {
                started.send(()).unwrap();
                latch.wait();
            };
            exec.execute(task).unwrap();
        }
        exec.set_limit(5).unwrap();
        (0..3).for_each(|_| starts.recv().unwrap());
        assert_eq!((exec.stats().active, exec.stats().queued), (5, 2));
        latch.open();
        held.iter().for_each(Latch::open);
        exec.drain(support::HANG).unwrap();
        assert_eq!(exec.stats().completed, 7);
        assert_quiet(&exec);
    });
}

#[test]
fn c14_one_place_admits_one_blocked_producer() {
    hang_guard(|| {
        let exec = executor(1);
        let (entered, enters) = mpsc::channel();
        let (leave, leaves) = mpsc::channel();
        let leaves = Mutex::new(leaves);
        let guard = exec.try_acquire().unwrap();
        thread::scope(|s| {
            for _ in 0..100 {
                let entered = entered.clone();
                let (exec, leaves) = (&exec, &leaves);
                s.spawn(move || {
                    let task = || {
                        entered.send(()).unwrap();
                        leaves.lock().unwrap().recv().unwrap();
                    };
                    exec.run(task).unwrap();
                });
            }
            until("100 in line", || exec.stats().waiting == 100);
            drop(guard);
            for left in (0..100).rev() {
                enters.recv().unwrap();
                assert_eq!((exec.stats().active, exec.stats().waiting), (1, left));
                assert!(enters.try_recv().is_err(), "one at a time");
                leave.send(()).unwrap();
            }
        });
        assert_quiet(&exec);
    });
}

#[test]
fn c14_one_place_in_the_queue_takes_one_task() {
    hang_guard(|| {
        let builder = Pool::new().executor("small").limit(1).queue_capacity(2);
        let exec = builder.build().unwrap();
        let (first, next) = (occupy(&exec), Latch::new());
        let (started, starts) = mpsc::channel();
        let hold = next.clone();
        let task = move || {
            started.send(()).unwrap();
            hold.wait();
        };
        exec.execute(task).unwrap();
        exec.execute(|| ()).unwrap();
        let accepted = AtomicUsize::new(0);
        let produce = || {
            thread::scope(|s| {
                for _ in 0..100 {
                    s.spawn(|| match exec.execute(|| ()) {
                        Ok(()) => accepted.fetch_add(1, SeqCst),
                        Err(refused) => {
                            assert_eq!(refused.reason(), Reason::QueueFull);
                            0
                        }
                    });
                }
            });
        };
        produce();
        assert_eq!(accepted.load(SeqCst), 0, "the queue was full");
        first.open();
        starts.recv().unwrap();
        produce();
        assert_eq!(accepted.load(SeqCst), 1, "one place, one task");
        next.open();
        exec.drain(support::HANG).unwrap();
        assert_eq!(exec.stats().refused.queue_full, 199);
        assert_quiet(&exec);
    });
}
