//! Tasks that come just as threads go to sleep, or leave: each must start. B36 and the gaps around it.
#![forbid(unsafe_code)]

use crate::support::{HANG, Numbers, assert_quiet, within};
use std::hint;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use work_permit::{Executor, Pool, PoolBuilder};

/// Tasks count here, and tell the one who waits.
struct Done {
    count: AtomicU64,
    waiting: Thread,
}

impl Done {
    /// Waits until `count` tasks have run, without a call to the executor; at first awake.
    fn wait(&self, count: u64, exec: &Executor, mut awake: u64) {
        let began = Instant::now();
        while self.count.load(SeqCst) < count {
            if awake > 0 {
                awake -= 1;
                hint::spin_loop();
                continue;
            }
            if began.elapsed() > HANG / 2 {
                panic!("task {count} never started: {exec:?}, {:?}", exec.pool());
            }
            thread::park_timeout(HANG);
        }
    }
}

/// Lets a random time pass: none, about as long as a searcher searches, as a thread needs to go to sleep, as
/// the threads stay; or until all sleep.
fn gap(numbers: &mut Numbers, pool: &Pool, keep_alive: Duration) {
    let spin = |rounds| (0..rounds).for_each(|_| hint::spin_loop());
    match numbers.below(16) {
        0 | 1 => {}
        2..=6 => spin(numbers.below(200)),
        7..=11 => spin(numbers.below(2_000)),
        12 => thread::yield_now(),
        13 | 14 if keep_alive < Duration::from_millis(1) => {
            let until = Instant::now() + keep_alive + Duration::from_nanos(numbers.below(60_000));
            while Instant::now() < until {
                hint::spin_loop();
            }
        }
        15 if numbers.one_in(4) => {
            let stays = keep_alive > Duration::from_secs(1);
            let is_over = |stats: work_permit::PoolStats| match stays {
                true => stats.alive == stats.idle,
                false => stats.alive == 0,
            };
            while !is_over(pool.stats()) {
                thread::yield_now();
            }
        }
        _ => {}
    }
}

/// Bursts of one to `most` tasks; the next comes some time after the last of one has run.
fn bursts(keep_alive: Duration, limit: usize, most: u64, tasks: u64) {
    bursts_on(Pool::builder(), keep_alive, limit, most, tasks);
}

fn bursts_on(builder: PoolBuilder, keep_alive: Duration, limit: usize, most: u64, tasks: u64) {
    let pool = builder.keep_alive(keep_alive).build().unwrap();
    let exec = pool.executor("bursts").limit(limit).build().unwrap();
    let done = Arc::new(Done { count: AtomicU64::new(0), waiting: thread::current() });
    let mut numbers = Numbers::from_seed(36);
    let (mut sent, began) = (0, Instant::now());
    while sent < tasks {
        let burst = 1 + numbers.below(most);
        for n in 0..burst {
            let done = Arc::clone(&done);
            let task = move || {
                done.count.fetch_add(1, SeqCst);
                done.waiting.unpark();
            };
            exec.execute(task).unwrap();
            if n % 2 == 1 {
                (0..numbers.below(100)).for_each(|_| hint::spin_loop());
            }
        }
        sent += burst;
        let awake = 3_000 * numbers.below(2);
        done.wait(sent, &exec, awake);
        gap(&mut numbers, &pool, keep_alive);
    }
    println!("{sent} in {:?}: {:?}", began.elapsed(), pool.stats());
    exec.drain(HANG).unwrap();
    assert_quiet(&exec);
    pool.shutdown(HANG).unwrap();
}

const SHORT: Duration = Duration::from_micros(100);

fn one_at_a_time(keep_alive: Duration, tasks: u64) {
    within(HANG * 20, move || bursts(keep_alive, 2, 1, tasks));
}

fn in_bursts(keep_alive: Duration, tasks: u64) {
    within(HANG * 20, move || {
        for limit in [1, 2, 4] {
            bursts(keep_alive, limit, 8, tasks / 3);
        }
    });
}

#[test]
fn b36_each_task_starts_one_at_a_time() {
    one_at_a_time(Duration::MAX, 50_000);
}

#[test]
fn b36_each_task_starts_while_threads_leave() {
    one_at_a_time(Duration::ZERO, 4_000);
    one_at_a_time(SHORT, 6_000);
}

#[test]
fn b36_each_task_of_a_burst_starts() {
    in_bursts(Duration::MAX, 60_000);
}

#[test]
fn b36_each_task_of_a_burst_starts_while_threads_leave() {
    in_bursts(Duration::ZERO, 9_000);
    in_bursts(SHORT, 12_000);
}

#[test]
fn b36_each_task_starts_beside_threads_in_their_start_hook() {
    within(HANG * 20, || {
        for (keep_alive, limit) in [(Duration::ZERO, 1), (Duration::ZERO, 3), (SHORT, 3)] {
            let numbers = Mutex::new(Numbers::from_seed(7));
            let hook = move || {
                let rounds = numbers.lock().unwrap().below(3_000);
                (0..rounds).for_each(|_| hint::spin_loop());
                thread::yield_now();
            };
            let builder = Pool::builder().on_thread_start(hook);
            bursts_on(builder, keep_alive, limit, 6, 4_000);
        }
    });
}

#[test]
#[ignore = "six million tasks"]
fn b36_each_task_starts_full() {
    for keep_alive in [Duration::MAX, Duration::ZERO, SHORT] {
        one_at_a_time(keep_alive, 1_000_000);
        in_bursts(keep_alive, 1_000_000);
    }
}
