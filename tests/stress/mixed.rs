//! Threads that call one executor in every way, while its limit changes and tasks panic.
#![forbid(unsafe_code)]

use crate::support::{HANG, Meter, Numbers, assert_quiet, block_on, within};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use work_permit::{Dispatched, Executor, JoinError, Pool, Rejected};

/// Largest limit that a caller sets.
const MAX_LIMIT: u64 = 8;
/// Handles that a caller keeps before it waits for them.
const PENDING: usize = 16;

thread_local! {
    /// This thread runs what a shutdown took out: without a permit, and not counted as completed.
    static IS_OUTSIDE: Cell<bool> = const { Cell::new(false) };
}

/// What the tasks themselves note, wherever they run.
#[derive(Debug, Default)]
struct Noted {
    ran: AtomicU64,
    panicked: AtomicU64,
    ran_outside: AtomicU64,
    meter: Meter,
}

impl Noted {
    fn run(&self, panics: bool, lingers: bool) {
        if IS_OUTSIDE.get() {
            self.ran_outside.fetch_add(1, Relaxed);
        } else {
            let _inside = self.meter.enter();
            self.ran.fetch_add(1, Relaxed);
            self.panicked.fetch_add(u64::from(panics), Relaxed);
            if lingers {
                // So that one too many is seen.
                thread::yield_now();
            }
        }
        if panics {
            resume_unwind(Box::new("a task's panic"));
        }
    }
}

/// What the answers to the calls say.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    calls: u64,
    accepted: u64,
    cancelled: u64,
    refused: u64,
}

/// One thread's part.
struct Caller {
    exec: Executor,
    noted: Arc<Noted>,
    numbers: Numbers,
    limits: Limits,
    tally: Tally,
    pending: Vec<Dispatched<()>>,
}

impl Caller {
    fn new(exec: &Executor, noted: &Arc<Noted>, seed: u64, limits: Limits) -> Self {
        Self {
            exec: exec.clone(),
            noted: Arc::clone(noted),
            numbers: Numbers::from_seed(seed),
            limits,
            tally: Tally::default(),
            pending: Vec::new(),
        }
    }

    /// A task that notes its run, and sometimes panics.
    fn task(&mut self) -> impl FnOnce() + Send + 'static {
        let noted = Arc::clone(&self.noted);
        let (panics, lingers) = (self.numbers.one_in(64), self.numbers.one_in(16));
        move || noted.run(panics, lingers)
    }

    /// Notes the answer to a call that may have run its task here. `None`: refused, or ended in a panic.
    fn note<R, F>(&mut self, call: impl FnOnce() -> Result<R, Rejected<F>>) -> Option<R> {
        self.tally.calls += 1;
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(Ok(result)) => {
                self.tally.accepted += 1;
                Some(result)
            }
            Ok(Err(_)) => {
                self.tally.refused += 1;
                None
            }
            Err(_) => {
                self.tally.accepted += 1;
                None
            }
        }
    }

    /// A guard is no task: only its refusal is counted.
    fn note_guard<R>(&mut self, call: impl FnOnce() -> Result<R, Rejected<()>>) {
        self.tally.calls += 1;
        match call() {
            Ok(guard) => {
                // Left before the guard goes.
                drop(self.noted.meter.enter());
                drop(guard);
            }
            Err(_) => self.tally.refused += 1,
        }
    }

    fn spawn(&mut self) -> Option<work_permit::JoinHandle<()>> {
        let (task, exec) = (self.task(), self.exec.clone());
        self.note(|| exec.spawn(task))
    }

    fn end(&mut self, handle: Dispatched<()>) {
        let ended = match self.numbers.below(4) {
            0 => return, // detached
            1 => block_on(handle),
            _ => handle.join(),
        };
        let is_right = matches!(ended, Ok(()) | Err(JoinError::Panicked(_) | JoinError::Closed));
        assert!(is_right, "{ended:?}");
    }

    fn keep(&mut self, handle: Dispatched<()>) {
        self.pending.push(handle);
        if self.pending.len() == PENDING {
            self.end_pending();
        }
    }

    fn end_pending(&mut self) {
        for handle in std::mem::take(&mut self.pending) {
            self.end(handle);
        }
    }

    fn resize(&mut self) {
        let limit = self.numbers.below(1 + MAX_LIMIT) as usize;
        self.exec.set_limit(limit).unwrap();
        if limit == 0 {
            let limit = 1 + self.numbers.below(MAX_LIMIT);
            self.exec.set_limit(limit as usize).unwrap();
        }
    }

    fn nested(&mut self) {
        let exec = self.exec.clone();
        let (a, b, c) = (self.task(), self.task(), self.task());
        let outer = exec.clone();
        let accepted = self.note(|| {
            exec.run(|| {
                let quietly = |call: &mut dyn FnMut()| drop(catch_unwind(AssertUnwindSafe(call)));
                let (mut a, mut b, mut c) = (Some(a), Some(b), Some(c));
                quietly(&mut || outer.run(a.take().unwrap()).unwrap());
                quietly(&mut || drop(outer.dispatch(b.take().unwrap()).unwrap()));
                outer.spawn(c.take().unwrap()).map(|h| drop(h.join())).is_ok()
            })
        });
        // The outer one notes itself: it has not panicked, since nothing in it does.
        if let Some(spawned) = accepted {
            self.noted.ran.fetch_add(1, Relaxed);
            self.tally.calls += 3;
            self.tally.accepted += 2 + u64::from(spawned);
            self.tally.refused += u64::from(!spawned);
        }
    }

    fn cancel(&mut self) {
        let Some(handle) = self.spawn() else { return };
        if self.numbers.one_in(2) {
            thread::yield_now();
        }
        self.tally.calls += 1;
        if handle.cancel() {
            self.tally.cancelled += 1;
            assert!(matches!(handle.join(), Err(JoinError::Cancelled)));
        } else {
            self.end(Dispatched::Queued(handle));
        }
    }

    fn time(&mut self) -> Duration {
        match self.numbers.below(4) {
            0 => Duration::ZERO,
            1 => Duration::MAX,
            _ => Duration::from_micros(self.numbers.below(50)),
        }
    }

    fn call(&mut self) {
        let exec = self.exec.clone();
        if self.limits == Limits::Change && self.numbers.one_in(256) {
            self.resize();
        }
        match self.numbers.below(16) {
            0 | 1 => {
                let task = self.task();
                self.note(|| exec.try_run(task));
            }
            2 | 3 => {
                let task = self.task();
                self.note(|| exec.run(task));
            }
            4..=6 => {
                let task = self.task();
                if let Some(handle) = self.note(|| exec.dispatch(task)) {
                    self.keep(handle);
                }
            }
            7 | 8 => {
                if let Some(handle) = self.spawn() {
                    self.end(Dispatched::Queued(handle));
                }
            }
            9 => self.cancel(),
            10 => {
                let task = self.task();
                self.note(|| exec.execute(task));
            }
            11 => self.note_guard(|| exec.acquire()),
            12 => self.note_guard(|| exec.try_acquire().map(work_permit::Permit::into_owned)),
            13 => {
                let (task, time) = (self.task(), self.time());
                self.note(|| exec.run_timeout(time, task));
            }
            14 => self.nested(),
            _ => self.timed(),
        }
    }

    fn timed(&mut self) {
        let (exec, time) = (self.exec.clone(), self.time());
        if self.numbers.one_in(2) {
            return self.note_guard(|| exec.acquire_timeout(time));
        }
        let Some(handle) = self.spawn() else { return };
        if let Err(handle) = handle.join_timeout(time) {
            self.keep(Dispatched::Queued(handle));
        }
    }

    fn finish(mut self) -> Tally {
        self.end_pending();
        self.tally
    }
}

/// Whether callers change the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limits {
    Change,
    Stay,
}

/// How an executor comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It is drained when all calls were made.
    Drained,
    /// What is queued is taken out at some moment during the calls.
    ShutDown,
}

/// Takes out what is queued at some moment, and runs every second one. How many there were.
fn shut_down(exec: &Executor, seed: u64) -> u64 {
    let mut numbers = Numbers::from_seed(seed);
    (0..numbers.below(20_000)).for_each(|_| std::hint::spin_loop());
    let unrun = exec.shutdown_now();
    let count = unrun.len() as u64;
    IS_OUTSIDE.set(true);
    for (n, unrun) in unrun.into_iter().enumerate() {
        if n % 2 == 0 {
            unrun.run();
        }
    }
    count
}

/// `threads` callers make `calls` calls in all; then the books must balance.
pub(crate) fn run(
    exec: &Executor,
    (threads, calls): (u64, u64),
    seed: u64,
    limits: Limits,
    end: End,
) -> Tally {
    let noted = Arc::new(Noted::default());
    let (mut sum, mut unrun) = (Tally::default(), 0);
    let limit = exec.limit();
    thread::scope(|s| {
        let shut = (end == End::ShutDown).then(|| s.spawn(|| shut_down(exec, seed)));
        let callers: Vec<_> = (0..threads)
            .map(|n| {
                let mut caller = Caller::new(exec, &noted, seed + n, limits);
                s.spawn(move || {
                    while caller.tally.calls < calls / threads {
                        caller.call();
                    }
                    caller.finish()
                })
            })
            .collect();
        for caller in callers {
            let tally = caller.join().expect("no caller fails");
            sum.calls += tally.calls;
            sum.accepted += tally.accepted;
            sum.cancelled += tally.cancelled;
            sum.refused += tally.refused;
        }
        unrun = shut.map_or(0, |thread| thread.join().unwrap());
    });
    exec.set_limit(limit).unwrap();
    if let Err(left) = exec.drain(HANG) {
        panic!("seed {seed}: {left}, {exec:?}, {:?}", exec.pool());
    }
    assert_quiet(exec);
    let stats = exec.stats();
    let told = (sum.accepted, sum.cancelled, sum.refused, unrun);
    let counted = (stats.accepted, stats.cancelled, stats.refused.total(), stats.unrun);
    assert_eq!(counted, told, "seed {seed}: {stats:?}");
    let told = (noted.ran.load(Relaxed), noted.panicked.load(Relaxed));
    assert_eq!((stats.completed, stats.panicked), told, "seed {seed}: {stats:?}");
    assert_eq!(noted.ran_outside.load(Relaxed), unrun.div_ceil(2));
    let most = match limits {
        Limits::Change => MAX_LIMIT as usize,
        Limits::Stay => limit,
    };
    assert!(noted.meter.peak() <= most, "seed {seed}: {noted:?}");
    sum
}

fn mixed(calls: u64) {
    within(HANG * 20, move || {
        for (seed, limit, limits) in [
            (1, 1, Limits::Stay),
            (1_000, 2, Limits::Change),
            (2_000, 3, Limits::Stay),
            (3_000, 8, Limits::Change),
        ] {
            let pool = Pool::new();
            let exec = pool.executor("mixed").limit(limit).build().unwrap();
            let began = Instant::now();
            let sum = run(&exec, (8, calls / 4), seed, limits, End::Drained);
            println!("limit {limit}, {limits:?}: {sum:?} in {:?}, {pool:?}", began.elapsed());
            pool.shutdown(HANG).unwrap();
        }
    });
}

#[test]
fn mixed_calls_balance() {
    mixed(900_000);
}

#[test]
#[ignore = "ten million calls"]
fn mixed_calls_balance_full() {
    mixed(10_000_000);
}
