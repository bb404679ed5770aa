//! Limits, queues and keys while work goes through them: S1, S9, S14, S15, S16, S17, S18, S19, S20.
#![forbid(unsafe_code)]

use crate::support::{
    self, Latch, Meeting, Meter, Numbers, assert_quiet, block_on, executor, hang_guard, occupy,
    threads_named, until, until_asleep,
};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use work_permit::{Dispatched, Pool, Reason};

#[test]
fn s01_a_thousand_pools_start_and_end() {
    hang_guard(|| {
        for _ in 0..1000 {
            let pool = Pool::builder().name("s01").build().unwrap();
            let ran = Arc::new(AtomicUsize::new(0));
            for n in 0..20 {
                let ran = Arc::clone(&ran);
                let exec = pool.executor(format!("{n}")).build().unwrap();
                let task = move || {
                    ran.fetch_add(1, SeqCst);
                };
                exec.execute(task).unwrap();
            }
            pool.shutdown(support::HANG).unwrap();
            assert_eq!((ran.load(SeqCst), pool.stats().alive), (20, 0));
        }
        until("no thread", || threads_named("s01-").is_none_or(|all| all.is_empty()));
    });
}

#[test]
fn s09_a_serial_executor_with_a_full_queue_takes_turns() {
    hang_guard(|| {
        let builder = Pool::new().executor("serial").limit(1).queue_capacity(1);
        let exec = builder.build().unwrap();
        let meter = Meter::new();
        let saw_waiting = AtomicUsize::new(0);
        let latch = occupy(&exec);
        exec.execute(|| ()).unwrap();
        assert_eq!(exec.execute(|| ()).unwrap_err().reason(), Reason::QueueFull);
        thread::scope(|s| {
            for _ in 0..10 {
                s.spawn(|| {
                    let task = || {
                        let _inside = meter.enter();
                        thread::yield_now();
                        saw_waiting.fetch_max(exec.stats().waiting, SeqCst);
                    };
                    exec.run(task).unwrap();
                });
            }
            until("ten wait for room", || exec.stats().waiting == 10);
            latch.open();
        });
        assert_eq!(meter.peak(), 1, "one after the other");
        assert_eq!(saw_waiting.load(SeqCst), 9);
        assert_quiet(&exec);
    });
}

#[test]
fn s14_without_a_bound_on_age_an_old_head_refuses_nothing() {
    hang_guard(|| {
        let exec = executor(0);
        exec.execute(|| ()).unwrap();
        // sleep: the age of the queue's head is the subject
        thread::sleep(Duration::from_millis(30));
        exec.execute(|| ()).unwrap();
        exec.set_limit(1).unwrap();
        exec.drain(support::HANG).unwrap();
        assert_eq!((exec.stats().completed, exec.stats().expired), (2, 0));
    });
}

#[test]
fn s15_one_key_is_in_order_and_never_twice_at_once() {
    hang_guard(|| {
        let pool = Pool::builder().max_threads(8).build().unwrap();
        let strand = |n: usize| pool.executor(format!("key {n}")).limit(1).max_overtakes(0);
        let keys: Vec<_> = (0..5).map(|n| strand(n).build().unwrap()).collect();
        // A1 waits until B has run: B does not wait for key A. A2 comes after A1.
        let (order, b_ran) = (Arc::new(Mutex::new(Vec::new())), Latch::new());
        let note = |name: &'static str, before: Option<Latch>| {
            let order = Arc::clone(&order);
            move || {
                before.iter().for_each(Latch::wait);
                order.lock().unwrap().push(name);
            }
        };
        let a1 = keys[0].spawn(note("a1", Some(b_ran.clone()))).unwrap();
        let a2 = keys[0].spawn(note("a2", None)).unwrap();
        block_on(keys[1].spawn(note("b", None)).unwrap()).unwrap();
        b_ran.open();
        block_on(a2).unwrap();
        block_on(a1).unwrap();
        assert_eq!(*order.lock().unwrap(), ["b", "a1", "a2"]);
        // 100 tasks over 5 keys.
        let mut numbers = Numbers::from_seed(15);
        let meters: Vec<_> = (0..5).map(|_| Meter::new()).collect();
        let logs: Vec<_> = (0..5).map(|_| Arc::new(Mutex::new(Vec::new()))).collect();
        for n in 0..100 {
            let key = numbers.below(5) as usize;
            let (meter, log) = (Arc::clone(&meters[key]), Arc::clone(&logs[key]));
            let task = move || {
                let _inside = meter.enter();
                thread::yield_now();
                log.lock().unwrap().push(n);
            };
            drop(keys[key].dispatch(task).unwrap());
        }
        for (key, (meter, log)) in keys.iter().zip(meters.iter().zip(&logs)) {
            key.drain(support::HANG).unwrap();
            assert!(meter.peak() == 1 && log.lock().unwrap().is_sorted());
        }
        assert_eq!(logs.iter().map(|l| l.lock().unwrap().len()).sum::<usize>(), 100);
    });
}

#[test]
fn s16_an_idle_executor_runs_200_of_200_inline() {
    let exec = executor(4);
    let here = thread::current().id();
    for n in 0..200 {
        let ran_on = match n % 3 {
            0 => exec.try_run(|| thread::current().id()).unwrap(),
            1 => exec.run(|| thread::current().id()).unwrap(),
            _ => match exec.dispatch(|| thread::current().id()).unwrap() {
                Dispatched::Inline(id) => id,
                Dispatched::Queued(_) => panic!("queued on an idle executor"),
            },
        };
        assert_eq!(ran_on, here);
        // sleep: the gaps are the subject
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(exec.stats().ran_inline, 200);
    assert_eq!(exec.pool().stats().created, 0);
}

#[test]
fn s17_a_permit_that_comes_back_starts_what_is_queued() {
    hang_guard(|| {
        let exec = executor(1);
        for _ in 0..200 {
            let (tx, rx) = mpsc::channel();
            exec.run(|| {
                let queue = exec.clone();
                // On another thread, where nothing is nested.
                let queued = thread::scope(|s| {
                    let submit = || queue.dispatch(move || tx.send(()).unwrap()).unwrap();
                    s.spawn(submit).join().unwrap()
                });
                assert!(!queued.is_inline());
                assert!(rx.try_recv().is_err());
            })
            .unwrap();
            // The handle is gone, and this thread only waits.
            rx.recv().unwrap();
        }
    });
}

/// `threads` threads call in every way until `limit` were inside together, and then some more.
fn mix(limit: usize, threads: usize, rounds: u64) {
    let exec = executor(limit);
    let meter = Meter::new();
    let inside = {
        let meter = Arc::clone(&meter);
        move || {
            let _inside = meter.enter();
            until("all permits taken", || meter.peak() >= limit);
            // So that one too many is seen.
            thread::yield_now();
        }
    };
    thread::scope(|s| {
        for seed in 0..threads as u64 {
            let (exec, inside) = (exec.clone(), inside.clone());
            s.spawn(move || {
                let mut numbers = Numbers::from_seed(seed);
                let mut handles = Vec::new();
                for _ in 0..rounds {
                    let inside = inside.clone();
                    match numbers.below(6) {
                        0 => exec.run(inside).unwrap(),
                        1 => drop(exec.try_run(inside)),
                        2 => handles.push(exec.dispatch(inside).unwrap()),
                        3 => exec.spawn(inside).unwrap().join().unwrap(),
                        4 => exec.execute(inside).unwrap(),
                        _ => exec.acquire().map(|_permit| inside()).unwrap(),
                    }
                }
                for handle in handles {
                    handle.join().unwrap();
                }
            });
        }
    });
    exec.drain(support::HANG).unwrap();
    assert_eq!(meter.peak(), limit, "the highest concurrency ever seen");
    assert_quiet(&exec);
}

#[test]
fn s18_the_highest_concurrency_is_the_limit() {
    hang_guard(|| {
        for limit in [1, 2, 3, 8] {
            mix(limit, 8, 2000);
        }
    });
}

#[test]
fn s19_a_lower_limit_disturbs_nobody() {
    hang_guard(|| {
        let exec = executor(4);
        let running: Vec<_> = (0..4).map(|_| occupy(&exec)).collect();
        exec.set_limit(1).unwrap();
        assert_eq!((exec.stats().active, exec.stats().free), (4, 0));
        let meter = Meter::new();
        for _ in 0..50 {
            let meter = Arc::clone(&meter);
            exec.execute(move || drop(meter.enter())).unwrap();
        }
        for left in (1..4).rev() {
            running[left].open();
            until("one less", || exec.stats().active == left);
            assert_eq!(exec.stats().queued, 50, "still no room");
            assert!(exec.try_run(|| ()).is_err());
        }
        running[0].open();
        exec.drain(support::HANG).unwrap();
        assert_eq!((meter.peak(), exec.stats().completed), (1, 54));
        assert_quiet(&exec);
    });
}

#[test]
fn s20_paused_work_runs_after_the_raise() {
    hang_guard(|| {
        let exec = executor(3);
        exec.run(|| ()).unwrap();
        exec.set_limit(0).unwrap();
        let pair = Meeting::of(2);
        let ran = Arc::new(AtomicUsize::new(0));
        for n in 0..5 {
            let (pair, ran) = (pair.clone(), Arc::clone(&ran));
            let task = move || {
                if n < 2 {
                    pair.meet();
                }
                ran.fetch_add(1, SeqCst);
            };
            exec.execute(task).unwrap();
        }
        assert_eq!(exec.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
        until_asleep(exec.pool());
        assert_eq!((ran.load(SeqCst), exec.stats().queued), (0, 5));
        exec.set_limit(2).unwrap();
        until("all five ran", || ran.load(SeqCst) == 5);
        exec.drain(support::HANG).unwrap();
        assert_quiet(&exec);
    });
}
