//! A cancellation, a timeout or a shutdown in the very moment of a grant.

use crate::support::{Meter, Numbers, assert_quiet, block_on, executor, hang_guard, until, within};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use work_permit::{Executor, JoinError, JoinHandle, Pool, Reason};

/// For the sizes that are run by hand.
const LONG: Duration = Duration::from_secs(1800);

fn spin(times: u64) {
    for _ in 0..times {
        spin_loop();
    }
}

#[test]
fn b21_a_waiter_that_leaves_passes_on_what_it_was_given() {
    hang_guard(|| {
        const ROUNDS: u64 = 3000;
        const PATIENCE: Duration = Duration::from_micros(150);
        let exec = executor(1);
        let start = |tasks: mpsc::Receiver<Duration>, done: mpsc::Sender<bool>| {
            let exec = exec.clone();
            thread::spawn(move || {
                for patience in tasks {
                    let got = exec.acquire_timeout(patience).map(drop).is_ok();
                    done.send(got).unwrap();
                }
            })
        };
        let (hasty, hasty_tasks) = mpsc::channel();
        let (patient, patient_tasks) = mpsc::channel();
        let (hasty_done, hasty_ends) = mpsc::channel();
        let (patient_done, patient_ends) = mpsc::channel();
        let threads = [start(hasty_tasks, hasty_done), start(patient_tasks, patient_done)];
        let (mut numbers, mut in_time) = (Numbers::from_seed(21), 0);
        for _ in 0..ROUNDS {
            let guard = exec.acquire().unwrap();
            hasty.send(PATIENCE).unwrap();
            let began = Instant::now();
            until("the first waits, or gave up", || {
                exec.stats().waiting == 1 || began.elapsed() > 2 * PATIENCE
            });
            patient.send(Duration::MAX).unwrap();
            let release_at = Duration::from_micros(100 + numbers.below(100));
            while began.elapsed() < release_at {
                spin_loop();
            }
            drop(guard);
            // The only permit came back, and no other call follows.
            assert_eq!(patient_ends.recv(), Ok(true));
            in_time += u64::from(hasty_ends.recv().unwrap());
        }
        drop((hasty, patient));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(exec.stats().refused.timed_out, ROUNDS - in_time);
        assert_quiet(&exec);
    });
}

/// What callers saw of their tries.
#[derive(Default)]
struct Seen {
    granted: AtomicU64,
    timed_out: AtomicU64,
    over_limit: AtomicBool,
}

/// One try with a deadline of some microseconds, by one of the verbs that wait.
fn hasty_try(exec: &Executor, meter: &Meter, seen: &Seen, numbers: &mut Numbers) {
    let patience = Duration::from_micros(numbers.below(30));
    let work = numbers.below(100);
    let body = || {
        let _inside = meter.enter();
        seen.over_limit.fetch_or(meter.now() > 1, SeqCst);
        spin(work);
    };
    let result = match numbers.below(2) {
        0 => exec.run_timeout(patience, body).map_err(|r| r.reason()),
        _ => exec.acquire_timeout(patience).map(|_permit| body()).map_err(|r| r.reason()),
    };
    match result {
        Ok(()) => seen.granted.fetch_add(1, SeqCst),
        Err(Reason::TimedOut) => seen.timed_out.fetch_add(1, SeqCst),
        Err(other) => panic!("{other}"),
    };
}

/// `resize`: somebody pauses and resumes the executor all the time.
fn deadlines_race_with_grants(tries: u64, resize: bool) {
    const THREADS: u64 = 3;
    let exec = executor(1);
    let (meter, seen) = (Meter::new(), Seen::default());
    let (meter, seen, over) = (&*meter, &seen, AtomicBool::new(false));
    thread::scope(|s| {
        let try_all = |seed| {
            let exec = &exec;
            s.spawn(move || {
                let mut numbers = Numbers::from_seed(seed);
                (0..tries / THREADS).for_each(|_| hasty_try(exec, meter, seen, &mut numbers));
            })
        };
        let threads: Vec<_> = (0..THREADS).map(try_all).collect();
        if resize {
            let (exec, over) = (&exec, &over);
            s.spawn(move || {
                for permits in (0..2).cycle() {
                    exec.set_limit(permits).unwrap();
                    if permits == 1 && over.load(SeqCst) {
                        break;
                    }
                    spin(200);
                }
            });
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        over.store(true, SeqCst);
    });
    assert!(!seen.over_limit.load(SeqCst) && meter.peak() == 1, "two at a time");
    let (granted, timed_out) = (seen.granted.load(SeqCst), seen.timed_out.load(SeqCst));
    assert_eq!(granted + timed_out, tries / THREADS * THREADS);
    assert!(granted > 0 && timed_out > 0, "{granted} granted, {timed_out} timed out");
    assert_eq!(exec.stats().refused.timed_out, timed_out);
    assert_quiet(&exec);
    assert!(exec.try_run(|| ()).is_ok());
}

#[test]
fn b22_cancellation_races_with_grant_deadlines() {
    hang_guard(|| deadlines_race_with_grants(100_000, false));
}

#[test]
fn b22_cancellation_races_with_grant_deadlines_and_resizes() {
    hang_guard(|| deadlines_race_with_grants(50_000, true));
}

#[test]
#[ignore = "takes long"]
fn b22_cancellation_races_with_grant_deadlines_in_full() {
    within(LONG, || deadlines_race_with_grants(1_000_000, false));
    within(LONG, || deadlines_race_with_grants(1_000_000, true));
}

/// A task is taken back in the moment in which a worker may start it.
fn cancels_race_with_starts(tries: u64) {
    let exec = executor(1);
    let mut numbers = Numbers::from_seed(22);
    let (mut cancelled, mut ran) = (0, 0);
    let token = Arc::new(AtomicU64::new(0));
    for n in 0..tries {
        let held = Arc::clone(&token);
        let handle = exec.spawn(move || held.fetch_add(1, SeqCst)).unwrap();
        spin(numbers.below(400));
        if handle.cancel() {
            cancelled += 1;
            assert_eq!(Arc::strong_count(&token), 1, "its closure is gone already");
            assert!(matches!(handle.join(), Err(JoinError::Cancelled)));
        } else {
            assert!(!handle.cancel());
            assert_eq!(handle.join().unwrap(), ran, "it ran once");
            ran += 1;
        }
        assert_eq!((token.load(SeqCst), cancelled + ran), (ran, n + 1));
    }
    assert!(cancelled > 0 && ran > 0, "{cancelled} cancelled, {ran} ran");
    exec.drain(Duration::MAX).unwrap();
    let stats = exec.stats();
    assert_eq!((stats.cancelled, stats.completed), (cancelled, ran));
    assert_quiet(&exec);
}

#[test]
fn b22_cancellation_races_with_start() {
    hang_guard(|| cancels_race_with_starts(100_000));
}

#[test]
#[ignore = "takes long"]
fn b22_cancellation_races_with_start_in_full() {
    within(LONG, || cancels_race_with_starts(1_000_000));
}

/// A joiner gives up in the moment in which it could run the task, or a worker starts it, or ends it.
fn joins_give_up(tries: u64) {
    let exec = executor(1);
    let mut numbers = Numbers::from_seed(23);
    let (mut cancelled, started) = (0, Arc::new(AtomicU64::new(0)));
    for n in 0..tries {
        let guard = exec.acquire().unwrap().into_owned();
        let (started, work) = (Arc::clone(&started), numbers.below(200));
        let task = move || {
            started.fetch_add(1, SeqCst);
            spin(work);
            n
        };
        let handle = exec.spawn(task).unwrap();
        let patience = Duration::from_micros(1 + numbers.below(30));
        let joiner = |handle: JoinHandle<u64>| handle.join_timeout(patience);
        let late = thread::scope(|s| {
            let joiner = s.spawn(|| joiner(handle));
            spin(numbers.below(4000));
            drop(guard);
            joiner.join().unwrap()
        });
        match late {
            Ok(result) => assert_eq!(result.unwrap(), n),
            Err(handle) if n % 2 == 0 && handle.cancel() => cancelled += 1,
            Err(handle) => match handle.join() {
                Ok(value) => assert_eq!(value, n),
                Err(other) => panic!("{other}"),
            },
        }
    }
    assert_eq!(started.load(SeqCst) + cancelled, tries);
    exec.drain(Duration::MAX).unwrap();
    assert_eq!(exec.stats().cancelled, cancelled);
    assert_quiet(&exec);
}

#[test]
fn b22_a_join_that_gives_up_races_with_the_start() {
    hang_guard(|| joins_give_up(10_000));
}

#[test]
#[ignore = "takes long"]
fn b22_a_join_that_gives_up_races_with_the_start_in_full() {
    within(LONG, || joins_give_up(1_000_000));
}

#[test]
fn b23_no_waiter_sleeps_through_a_shutdown() {
    hang_guard(|| {
        const ROUNDS: u64 = 5000;
        let pool = Pool::new();
        let (tasks, to_wait) = mpsc::channel::<(Executor, JoinHandle<()>)>();
        let (done, ends) = mpsc::channel();
        let waiter = thread::spawn(move || {
            for (n, (exec, handle)) in to_wait.into_iter().enumerate() {
                let reason = match n % 3 {
                    0 => exec.acquire().map(drop).unwrap_err().reason(),
                    1 => exec.run_timeout(Duration::MAX, || ()).unwrap_err().reason(),
                    _ => match handle.join() {
                        Err(JoinError::Closed) => Reason::Closed,
                        other => panic!("{other:?}"),
                    },
                };
                done.send(reason).unwrap();
            }
        });
        let mut numbers = Numbers::from_seed(24);
        for _ in 0..ROUNDS {
            let exec = pool.executor("short-lived").limit(0).build().unwrap();
            let handle = exec.spawn(|| ()).unwrap();
            tasks.send((exec.clone(), handle)).unwrap();
            spin(numbers.below(2000));
            assert_eq!(exec.shutdown_now().len(), 1);
            assert_eq!(ends.recv(), Ok(Reason::Closed));
            assert_quiet(&exec);
        }
        drop(tasks);
        waiter.join().unwrap();
    });
}

/// Somebody goes to sleep on a handle in the moment in which its task ends.
fn sleepers_meet_ends(sleep_on: fn(JoinHandle<()>)) {
    let exec = executor(1);
    let mut numbers = Numbers::from_seed(25);
    for n in 0..50_000 {
        // 0: not started, 1: it runs, 2: it may end.
        let stage = Arc::new(AtomicU64::new(0));
        let of_task = Arc::clone(&stage);
        let task = move || {
            of_task.store(1, SeqCst);
            until("it may end", || of_task.load(SeqCst) == 2);
        };
        let handle = exec.spawn(task).unwrap();
        until("it runs", || stage.load(SeqCst) == 1);
        stage.store(2, SeqCst);
        spin(numbers.below(60));
        sleep_on(handle);
        assert_eq!(exec.stats().completed, n + 1, "counted before anybody knows");
    }
    exec.drain(Duration::MAX).unwrap();
    assert_quiet(&exec);
}

#[test]
fn b23_no_joiner_sleeps_through_the_end_of_its_task() {
    hang_guard(|| sleepers_meet_ends(|handle| handle.join().unwrap()));
}

#[test]
fn b23_no_future_sleeps_through_the_end_of_its_task() {
    hang_guard(|| sleepers_meet_ends(|handle| block_on(handle).unwrap()));
}
