//! Inline calls in a calm executor, where each thread has it easy, and somebody who suddenly wants everything:
//! every permit at once, a pause, a queued task. A permit that a thread has got used to is free all the same.
#![forbid(unsafe_code)]

use crate::support::{
    Latch, Meeting, Meter, Numbers, assert_quiet, block_on, executor, hang_guard, until,
};
use std::hint;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use work_permit::{Executor, Reason};

fn spin(rounds: u64) {
    (0..rounds).for_each(|_| hint::spin_loop());
}

/// What the callers do in a calm executor.
struct Calm {
    exec: Executor,
    meter: Meter,
    starts: AtomicU64,
    over: Latch,
}

impl Calm {
    fn inside(&self, lingers: bool) {
        let _inside = self.meter.enter();
        self.starts.fetch_add(1, SeqCst);
        if lingers {
            thread::yield_now();
        }
    }

    fn call(&self, seed: u64) {
        let mut numbers = Numbers::from_seed(seed);
        while !self.over.is_open() {
            let lingers = numbers.one_in(64);
            // Mostly calls that leave when they are not let in.
            if numbers.one_in(16) {
                self.exec.run(|| self.inside(lingers)).unwrap();
            } else {
                let _ = self.exec.try_run(|| self.inside(lingers));
            }
        }
    }

    /// Nobody is inside, and nobody comes.
    #[track_caller]
    fn assert_alone(&self, for_rounds: u64) {
        let starts = self.starts.load(SeqCst);
        assert_eq!(self.meter.now(), 0, "somebody is inside");
        assert_eq!(self.exec.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
        spin(for_rounds);
        thread::yield_now();
        assert_eq!((self.meter.now(), self.starts.load(SeqCst)), (0, starts), "somebody came");
    }
}

#[test]
fn who_has_every_permit_is_alone() {
    hang_guard(|| {
        for limit in [1, 2, 5] {
            let calm = Calm {
                exec: executor(limit),
                meter: Meter::default(),
                starts: AtomicU64::new(0),
                over: Latch::new(),
            };
            let exec = &calm.exec;
            thread::scope(|s| {
                (0..4).for_each(|seed| {
                    drop(s.spawn({
                        let calm = &calm;
                        move || calm.call(seed)
                    }))
                });
                let mut numbers = Numbers::from_seed(limit as u64);
                for round in 0..1_000 {
                    spin(numbers.below(3_000));
                    match round % 3 {
                        0 => {
                            let take = || exec.acquire().unwrap().into_owned();
                            let all: Vec<_> = (0..limit).map(|_| take()).collect();
                            calm.assert_alone(numbers.below(500));
                            drop(all);
                        }
                        1 => {
                            exec.set_limit(0).unwrap();
                            until("the last one left", || exec.stats().active == 0);
                            calm.assert_alone(numbers.below(500));
                            exec.set_limit(limit).unwrap();
                        }
                        _ => block_on(exec.spawn(|| ()).unwrap()).unwrap(),
                    }
                }
                calm.over.open();
            });
            assert!(calm.meter.peak() <= limit && calm.starts.load(SeqCst) > 0);
            assert_quiet(exec);
        }
    });
}

#[test]
fn a_permit_that_another_thread_is_used_to_is_free() {
    hang_guard(|| {
        let exec = executor(1);
        let (ask, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let other = exec.clone();
        let used_to_it = thread::spawn(move || {
            for calls in asked {
                (0..calls).for_each(|_| other.try_run(|| ()).unwrap());
                answer.send(()).unwrap();
            }
        });
        let mut numbers = Numbers::from_seed(1);
        for round in 0..2_000 {
            ask.send(numbers.below(200)).unwrap();
            answers.recv().unwrap();
            // Nobody runs, and nobody waits.
            match round % 5 {
                0 => exec.try_run(|| ()).unwrap(),
                1 => drop(exec.try_acquire().unwrap()),
                2 => assert!(exec.dispatch(|| ()).unwrap().is_inline()),
                3 => block_on(exec.spawn(|| ()).unwrap()).unwrap(),
                _ => (0..numbers.below(100)).for_each(|_| exec.try_run(|| ()).unwrap()),
            }
            assert_quiet(&exec);
        }
        drop(ask);
        used_to_it.join().unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn threads_that_end_leave_their_permits() {
    hang_guard(|| {
        const THREADS: usize = 100;
        let exec = executor(THREADS);
        for _ in 0..20 {
            let meeting = Meeting::of(THREADS);
            let callers: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (exec, meeting) = (exec.clone(), meeting.clone());
                    thread::spawn(move || {
                        (0..50).for_each(|_| exec.try_run(|| ()).unwrap());
                        // All of them inside at the same time, each under a permit of its own.
                        exec.try_run(|| meeting.meet()).unwrap();
                        (0..50).for_each(|_| exec.try_run(|| ()).unwrap());
                    })
                })
                .collect();
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            let take = |_| exec.try_acquire().unwrap().into_owned();
            let all: Vec<_> = (0..THREADS).map(take).collect();
            assert_eq!((exec.stats().free, exec.stats().guards), (0, THREADS));
            assert!(exec.try_run(|| ()).is_err());
            drop(all);
            assert_quiet(&exec);
        }
    });
}

#[test]
fn an_executor_ends_beside_threads_that_are_used_to_it() {
    hang_guard(|| {
        let (tx, rx) = mpsc::channel::<Executor>();
        let (done, is_done) = mpsc::channel();
        let caller = thread::spawn(move || {
            for exec in rx {
                (0..100).for_each(|_| exec.run(|| ()).unwrap());
                drop(exec);
                done.send(()).unwrap();
            }
        });
        for round in 0..2_000 {
            let exec = executor(2);
            tx.send(exec.clone()).unwrap();
            is_done.recv().unwrap();
            // The caller's thread lives on, with whatever it was used to.
            match round % 3 {
                0 => exec.drain(crate::support::HANG).unwrap(),
                1 => exec.pool().shutdown(crate::support::HANG).unwrap(),
                _ => {
                    let runs = Arc::new(AtomicU64::new(0));
                    let count = Arc::clone(&runs);
                    let handle = exec.spawn(move || count.fetch_add(1, SeqCst)).unwrap();
                    drop(exec);
                    assert_eq!(block_on(handle).unwrap(), 0);
                    continue;
                }
            }
            assert_eq!(exec.stats().completed, 100);
            assert_quiet(&exec);
        }
        drop(tx);
        caller.join().unwrap();
    });
}

/// Two groups of as many threads as there are permits take turns: at any moment a caller finds at least one
/// permit that no other caller has, however used to it the threads of the other group are.
fn take_turns(permits: usize, rounds: usize) {
    let exec = executor(permits);
    let turn = Barrier::new(2 * permits);
    // Those whose turn it is are awake, and begin in the same instant.
    let (ready, refused) = (AtomicUsize::new(0), AtomicU64::new(0));
    thread::scope(|s| {
        for n in 0..2 * permits {
            let (exec, turn, ready, refused) = (&exec, &turn, &ready, &refused);
            s.spawn(move || {
                for round in 0..rounds {
                    turn.wait();
                    if round % 2 == n % 2 {
                        ready.fetch_add(1, SeqCst);
                        until("all ready", || ready.load(SeqCst) >= permits * (round + 1));
                        let call = || u64::from(exec.try_run(|| ()).is_err());
                        // Enough of them for a thread to get used to its permit.
                        refused.fetch_add((0..200).map(|_| call()).sum(), SeqCst);
                    }
                    turn.wait();
                }
            });
        }
    });
    let refused = refused.load(SeqCst);
    assert_eq!(refused, 0, "refusals, with {permits} callers for {permits} permits");
    assert_quiet(&exec);
}

#[test]
fn as_many_callers_as_permits_are_never_refused() {
    hang_guard(|| {
        for (permits, rounds) in [(1, 1_000), (2, 4_000), (3, 4_000)] {
            take_turns(permits, rounds);
        }
    });
}
