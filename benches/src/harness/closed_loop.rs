//! Closed loops: so many callers, each of which calls again as soon as its call has returned.

use super::percentiles::Latencies;
use crate::adapter::Adapter;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// What a loop did while it was measured.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Calls of each caller.
    pub(crate) calls: Vec<u64>,
    pub(crate) elapsed: Duration,
    /// Empty unless asked for.
    pub(crate) latencies: Latencies,
}

impl Outcome {
    pub(crate) fn calls_per_second(&self) -> f64 {
        self.calls.iter().sum::<u64>() as f64 / self.elapsed.as_secs_f64()
    }

    /// Calls of the caller with the fewest, as a share of the mean.
    pub(crate) fn least_share(&self) -> f64 {
        let total: u64 = self.calls.iter().sum();
        let least = self.calls.iter().min().copied().unwrap_or(0);
        least as f64 * self.calls.len() as f64 / total.max(1) as f64
    }
}

/// A loop with `callers` for the time `window`, after a warm-up of a fifth of it. `clocked`: each call is timed.
pub(crate) fn for_time<A: Adapter>(
    adapter: &A,
    callers: usize,
    window: Duration,
    clocked: bool,
    call: impl Fn(&mut A) + Sync,
) -> Outcome {
    let phase = AtomicU8::new(WARM_UP);
    let start = Barrier::new(callers + 1);
    thread::scope(|scope| {
        let spawn = |_| {
            let mut mine = adapter.clone();
            let (phase, start, call) = (&phase, &start, &call);
            scope.spawn(move || {
                start.wait();
                one_caller(phase, clocked, || call(&mut mine))
            })
        };
        let threads: Vec<_> = (0..callers).map(spawn).collect();
        start.wait();
        // sleep: the callers are at work meanwhile.
        thread::sleep(window / 5);
        phase.store(MEASURE, Relaxed);
        let began = Instant::now();
        // sleep: as above.
        thread::sleep(window);
        phase.store(STOP, Relaxed);
        let elapsed = began.elapsed();
        let mut outcome = Outcome { calls: Vec::new(), elapsed, latencies: Latencies::new() };
        for thread in threads {
            let (calls, latencies) = thread.join().expect("the work does not panic");
            outcome.calls.push(calls);
            latencies.iter().for_each(|of_one| outcome.latencies.add(of_one));
        }
        outcome
    })
}

fn one_caller(phase: &AtomicU8, clocked: bool, mut call: impl FnMut()) -> (u64, Option<Latencies>) {
    let mut latencies = clocked.then(Latencies::new);
    let mut calls = 0;
    loop {
        match &mut latencies {
            None => call(),
            Some(latencies) => {
                let began = Instant::now();
                call();
                let time = began.elapsed();
                if phase.load(Relaxed) == MEASURE {
                    latencies.record(time);
                }
            }
        }
        match phase.load(Relaxed) {
            WARM_UP => {}
            MEASURE => calls += 1,
            _ => return (calls, latencies),
        }
    }
}

/// The time that `callers` together need for `calls`, rounded up to a whole number for each.
pub(crate) fn for_count<A: Adapter>(
    adapter: &A,
    callers: usize,
    calls: u64,
    call: impl Fn(&mut A) + Sync,
) -> Duration {
    let start = Barrier::new(callers + 1);
    let each = calls.div_ceil(callers as u64);
    thread::scope(|scope| {
        let spawn = |_| {
            let mut mine = adapter.clone();
            let (start, call) = (&start, &call);
            scope.spawn(move || {
                start.wait();
                (0..each).for_each(|_| call(&mut mine));
            })
        };
        let threads: Vec<_> = (0..callers).map(spawn).collect();
        start.wait();
        let began = Instant::now();
        threads.into_iter().for_each(|thread| thread.join().expect("the work does not panic"));
        began.elapsed()
    })
}
