//! Many threads, and all of it at once.

use crate::Census;
use crate::support::{Latch, Numbers, assert_quiet, executor, until, within};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use work_permit::{Executor, Scope};

/// Tasks that ended, in one round.
struct Round {
    census: Census,
    ran: AtomicUsize,
}

/// Gives the scope a few tasks, some of which give it more. Returns how many were accepted; a task that was taken
/// back, or panicked, counts as ended.
fn some_tasks<'scope>(
    s: &'scope Scope<'scope, '_>,
    exec: &'scope Executor,
    round: &'scope Round,
    numbers: &mut Numbers,
    levels: u32,
) {
    for _ in 0..numbers.below(6) {
        let (mut more, counted) = (numbers.clone(), round.census.one());
        let panics = numbers.one_in(8);
        let task = move || {
            round.ran.fetch_add(1, SeqCst);
            more.next();
            if levels > 0 && more.one_in(3) {
                some_tasks(s, exec, round, &mut more, levels - 1);
            }
            if levels > 0 && more.one_in(6) {
                let inner = exec.run_all((0..more.below(5)).map(|_| || round.census.one()));
                drop(inner);
            }
            if panics {
                resume_unwind(Box::new("as told"));
            }
            counted
        };
        let Ok(handle) = s.spawn(task) else {
            continue;
        };
        match numbers.below(6) {
            0 => drop(handle),
            1 => std::mem::forget(handle),
            2 => drop(handle.join()),
            3 => drop(handle.join_timeout(Duration::from_micros(numbers.below(50)))),
            4 => drop(handle.cancel()),
            _ => drop(s.spawn(move || drop(handle.join()))),
        }
    }
}

fn rounds(exec: &Executor, seed: u64, rounds: usize) {
    let mut numbers = Numbers::from_seed(seed);
    for _ in 0..rounds {
        let round = Box::new(Round { census: Census::default(), ran: AtomicUsize::new(0) });
        let scope = || {
            exec.scope(|s| some_tasks(s, exec, &round, &mut numbers, 2));
        };
        // A panic that nobody took is the scope's.
        drop(catch_unwind(AssertUnwindSafe(scope)));
        assert_eq!(round.census.alive(), 0, "seed {seed}");
        let tasks = numbers.below(12);
        let all = exec.run_all((0..tasks).map(|n| {
            let round = &round;
            move || (n, round.census.one())
        }));
        match all {
            Ok(all) => assert!(all.iter().map(|(n, _)| *n).eq(0..tasks), "seed {seed}"),
            Err(refused) => drop(refused),
        }
        assert_eq!(round.census.alive(), 0, "seed {seed}");
    }
}

fn mixed(threads_at_once: u64, each: usize, resizes: bool) {
    let exec = executor(2);
    let over = Latch::new();
    thread::scope(|threads| {
        let workers: Vec<_> = (0..threads_at_once)
            .map(|seed| {
                let exec = &exec;
                threads.spawn(move || rounds(exec, seed, each))
            })
            .collect();
        if resizes {
            threads.spawn(|| {
                while !over.is_open() {
                    for limit in [1, 3, 0, 2] {
                        exec.set_limit(limit).unwrap();
                        thread::yield_now();
                    }
                }
            });
        }
        let ends: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        over.open();
        ends.into_iter().for_each(|end| end.unwrap());
    });
    exec.set_limit(2).unwrap();
    until("all is back", || exec.stats().active == 0);
    assert_quiet(&exec);
}

#[test]
fn mixed_scopes() {
    within(Duration::from_secs(300), || mixed(4, 300, false));
}

#[test]
fn mixed_scopes_with_resizes() {
    within(Duration::from_secs(300), || mixed(4, 300, true));
}

#[test]
#[ignore = "the full size"]
fn mixed_scopes_full() {
    within(Duration::from_secs(3600), || mixed(8, 20_000, true));
}

#[test]
fn scopes_that_are_shut_down() {
    within(Duration::from_secs(300), || {
        for seed in 0..300 {
            let exec = executor(1 + seed as usize % 3);
            thread::scope(|threads| {
                threads.spawn(|| rounds(&exec, seed, 3));
                threads.spawn(|| rounds(&exec, seed + 1000, 3));
                until("something began", || exec.stats().accepted > seed % 20);
                drop(exec.shutdown_now());
            });
            exec.drain(Duration::MAX).unwrap();
            assert_quiet(&exec);
        }
    });
}
