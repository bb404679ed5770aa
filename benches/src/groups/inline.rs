//! `inline_free`, `inline_contended`: a permit is free; take it, run an empty closure here, give it back.
//!
//! Compared: time of one thread's calls in a row, and the rate of several threads that all find a permit.
//! Not compared: what happens without a free permit (`saturated_run`), and what the peers leave out: only
//! work-permit counts runs, and gives the permit back after a panic by more than a guard.

use super::{Against, Bound, Effort, Group, Metric, Sample, Setting, Subject, Target};
use crate::adapter::{Adapter, TryRun};
use crate::adapters::bare::{BareCall, BarePair};
use crate::adapters::channels::Tokens;
use crate::adapters::ours::WorkPermit;
use crate::adapters::semaphores::{AsyncLock, ParkingLot};
use crate::adapters::tokio_recipes::TokioSemaphore;
use crate::adapters::tower_limit::Tower;
use crate::harness::closed_loop;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Calls between two looks at the clock or at the end of the window.
const BATCH: u64 = 256;

pub(super) const FREE: Group = Group {
    name: "inline_free",
    question: "a free permit: take it, run an empty closure here, give it back; one thread",
    headline: Metric::NsPerCall,
    settings: &[Setting::new("1 thread", 1, 64)],
    subjects: &[
        free::<WorkPermit>(),
        free::<BarePair>(),
        free::<BareCall>(),
        free::<TokioSemaphore>(),
        free::<AsyncLock>(),
        free::<ParkingLot>(),
        free::<Tokens>(),
        free::<Tower>(),
    ],
    targets: &[
        Target {
            metric: Metric::NsPerCall,
            at: &["1 thread"],
            against: Against::Named(BarePair::NAME),
            bound: Bound::AtMost(1.3),
        },
        Target {
            metric: Metric::NsPerCall,
            at: &["1 thread"],
            against: Against::Named(TokioSemaphore::NAME),
            bound: Bound::AtMost(0.125),
        },
        Target {
            metric: Metric::NsPerCall,
            at: &["1 thread"],
            against: Against::Nothing,
            bound: Bound::AtMost(4.0),
        },
    ],
};

pub(super) const CONTENDED: Group = Group {
    name: "inline_contended",
    question: "the same from several threads at once, limit 64, so that each finds a permit",
    headline: Metric::PerSecond,
    settings: &[
        Setting::new("1 thread", 1, 64),
        Setting::new("2 threads", 2, 64),
        Setting::new("8 threads", 8, 64),
    ],
    subjects: &[
        contended::<WorkPermit>(),
        contended::<BarePair>(),
        contended::<BareCall>(),
        contended::<TokioSemaphore>(),
        contended::<AsyncLock>(),
        contended::<ParkingLot>(),
        contended::<Tokens>(),
        contended::<Tower>(),
    ],
    targets: &[
        Target {
            metric: Metric::PerSecond,
            at: &["2 threads"],
            against: Against::OursAt("1 thread"),
            bound: Bound::AtLeast(1.8),
        },
        Target {
            metric: Metric::PerSecond,
            at: &["8 threads"],
            against: Against::Named(TokioSemaphore::NAME),
            bound: Bound::AtLeast(20.0),
        },
    ],
};

const fn free<A: TryRun>() -> Subject {
    Subject { name: A::NAME, role: A::ROLE, sample: time_of_calls::<A>, timed: calls::<A> }
}

const fn contended<A: TryRun>() -> Subject {
    Subject { name: A::NAME, role: A::ROLE, sample: rate::<A>, timed: calls::<A> }
}

#[inline(always)]
fn batch<A: TryRun>(adapter: &mut A, calls: u64) {
    let mut ran = 0;
    for call in 0..calls {
        let work = || {
            black_box(call);
        };
        ran += u64::from(adapter.try_run(work));
    }
    assert_eq!(ran, calls, "a permit is free at each call");
}

fn time_of_calls<A: TryRun>(setting: &Setting, effort: &Effort) -> Sample {
    let mut adapter = A::new(setting.limit);
    let warm = Instant::now();
    while warm.elapsed() < effort.window / 5 {
        batch(&mut adapter, BATCH);
    }
    let mut calls = 0;
    let began = Instant::now();
    while began.elapsed() < effort.window {
        batch(&mut adapter, 16 * BATCH);
        calls += 16 * BATCH;
    }
    vec![(Metric::NsPerCall, began.elapsed().as_nanos() as f64 / calls as f64)]
}

fn rate<A: TryRun>(setting: &Setting, effort: &Effort) -> Sample {
    let adapter = A::new(setting.limit);
    let one = |mine: &mut A| batch(mine, BATCH);
    let outcome = closed_loop::for_time(&adapter, setting.threads, effort.window, false, one);
    vec![(Metric::PerSecond, outcome.calls_per_second() * BATCH as f64)]
}

fn calls<A: TryRun>(setting: &Setting, calls: u64) -> Duration {
    let adapter = A::new(setting.limit);
    if setting.threads == 1 {
        let mut adapter = adapter;
        let began = Instant::now();
        batch(&mut adapter, calls);
        return began.elapsed();
    }
    let batches = calls.div_ceil(BATCH);
    let size = calls.div_ceil(batches);
    closed_loop::for_count(&adapter, setting.threads, batches, |mine| batch(mine, size))
}
