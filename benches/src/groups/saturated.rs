//! `saturated_run`, `saturated_dispatch_join`: more callers than permits, limit 2; every caller waits for its
//! own work before it calls again.
//!
//! Compared: rate, and in loops of their own latency, with two looks at the clock for each call; how evenly the
//! callers are served. The work is a loop on the CPU. In `saturated_run` it may borrow, so peers that move it to
//! another thread wait there as they can (`install`); in `saturated_dispatch_join` it is owned and may move.
//! Not compared: callers that are futures, work that blocks, and open loops, where callers do not slow down.
//! With fewer cores than callers the tails at 10 µs are time slices of the system: no limit has them too.

use super::{Against, Bound, EVEN, Effort, Group, Metric, Sample, Setting, Subject, Target};
use crate::adapter::{Adapter, Ask, Run};
use crate::adapters::bare::{BareCall, BarePool};
use crate::adapters::channels::{CrossbeamChannel, Kanal};
use crate::adapters::ours::{Overtaken, WorkPermit};
use crate::adapters::pools::{Rayon, Threadpool};
use crate::adapters::semaphores::{AsyncLock, ParkingLot};
use crate::adapters::tokio_recipes::{TokioSemaphore, TryElseSpawnBlocking};
use crate::adapters::tower_limit::Tower;
use crate::harness::closed_loop;
use crate::harness::work::Work;
use std::hint::black_box;
use std::time::Duration;

const SETTINGS: &[Setting] = &[
    Setting::new("1 caller, 1 µs", 1, 2).work_us(1).only_in_full(),
    Setting::new("2 callers, 1 µs", 2, 2).work_us(1).only_in_full(),
    Setting::new("4 callers, 1 µs", 4, 2).work_us(1),
    Setting::new("8 callers, 1 µs", 8, 2).work_us(1),
    Setting::new("32 callers, 1 µs", 32, 2).work_us(1).only_in_full(),
    Setting::new("1 caller, 10 µs", 1, 2).work_us(10).only_in_full(),
    Setting::new("2 callers, 10 µs", 2, 2).work_us(10).only_in_full(),
    Setting::new("4 callers, 10 µs", 4, 2).work_us(10),
    Setting::new("8 callers, 10 µs", 8, 2).work_us(10),
    Setting::new("32 callers, 10 µs", 32, 2).work_us(10).only_in_full(),
];

const MORE_CALLERS_THAN_PERMITS: &[&str] = &["4 callers", "8 callers"];

pub(super) const RUN: Group = Group {
    name: "saturated_run",
    question: "limit 2, work that may borrow, every caller waits until its own has run",
    headline: Metric::PerSecond,
    settings: SETTINGS,
    subjects: &[
        run::<WorkPermit>(),
        run::<BareCall>(),
        run::<AsyncLock>(),
        run::<ParkingLot>(),
        run::<TokioSemaphore>(),
        run::<Tower>(),
        run::<Rayon>(),
    ],
    targets: &[
        Target {
            metric: Metric::PerSecond,
            at: MORE_CALLERS_THAN_PERMITS,
            against: Against::Named(BareCall::NAME),
            bound: Bound::AtLeast(0.95),
        },
        Target {
            metric: Metric::P99,
            at: MORE_CALLERS_THAN_PERMITS,
            against: Against::BestPeer,
            bound: Bound::AtMost(1.0),
        },
        Target {
            metric: Metric::P99,
            at: MORE_CALLERS_THAN_PERMITS,
            against: Against::BestEvenPeer,
            bound: Bound::AtMost(1.0),
        },
        Target {
            metric: Metric::LeastShare,
            at: MORE_CALLERS_THAN_PERMITS,
            against: Against::Nothing,
            bound: Bound::AtLeast(EVEN),
        },
    ],
};

/// For choosing the default of `max_overtakes`; measured only when it is asked for.
pub(super) const OVERTAKES: Group = Group {
    name: "overtakes",
    question: "saturated_run with other bounds on overtaking: what order costs, and what waiting gains",
    headline: Metric::PerSecond,
    settings: SETTINGS,
    subjects: &[
        run::<WorkPermit>(),
        run::<BareCall>(),
        run::<Overtaken<0>>(),
        run::<Overtaken<4>>(),
        run::<Overtaken<16>>(),
        run::<Overtaken<64>>(),
        run::<Overtaken<256>>(),
        run::<Overtaken<1024>>(),
    ],
    targets: &[],
};

pub(super) const DISPATCH_JOIN: Group = Group {
    name: "saturated_dispatch_join",
    question: "limit 2, work that may move to another thread, every caller waits for its own result",
    headline: Metric::PerSecond,
    settings: SETTINGS,
    subjects: &[
        ask::<WorkPermit>(),
        ask::<BareCall>(),
        ask::<BarePool>(),
        ask::<TryElseSpawnBlocking>(),
        ask::<CrossbeamChannel>(),
        ask::<Kanal>(),
        ask::<Threadpool>(),
        ask::<Rayon>(),
    ],
    targets: &[
        Target {
            metric: Metric::PerSecond,
            at: &["8 callers, 1 µs"],
            against: Against::Named(TryElseSpawnBlocking::NAME),
            bound: Bound::AtLeast(10.0),
        },
        Target {
            metric: Metric::PerSecond,
            at: MORE_CALLERS_THAN_PERMITS,
            against: Against::Named(CrossbeamChannel::NAME),
            bound: Bound::AtLeast(1.5),
        },
    ],
};

const fn run<A: Run>() -> Subject {
    Subject { name: A::NAME, role: A::ROLE, sample: run_sample::<A>, timed: run_timed::<A> }
}

const fn ask<A: Ask>() -> Subject {
    Subject { name: A::NAME, role: A::ROLE, sample: ask_sample::<A>, timed: ask_timed::<A> }
}

fn call_run<A: Run>(work: Work) -> impl Fn(&mut A) + Sync {
    move |adapter| {
        adapter.run(|| {
            black_box(work.run());
        });
    }
}

fn call_ask<A: Ask>(work: Work) -> impl Fn(&mut A) + Sync {
    move |adapter| {
        black_box(adapter.ask(move || work.run()));
    }
}

fn run_sample<A: Run>(setting: &Setting, effort: &Effort) -> Sample {
    sample::<A>(setting, effort, call_run(Work::lasting(setting.work)))
}

fn ask_sample<A: Ask>(setting: &Setting, effort: &Effort) -> Sample {
    sample::<A>(setting, effort, call_ask(Work::lasting(setting.work)))
}

fn run_timed<A: Run>(setting: &Setting, calls: u64) -> Duration {
    let call = call_run(Work::lasting(setting.work));
    closed_loop::for_count(&A::new(setting.limit), setting.threads, calls, call)
}

fn ask_timed<A: Ask>(setting: &Setting, calls: u64) -> Duration {
    let call = call_ask(Work::lasting(setting.work));
    closed_loop::for_count(&A::new(setting.limit), setting.threads, calls, call)
}

fn sample<A: Adapter>(setting: &Setting, effort: &Effort, call: impl Fn(&mut A) + Sync) -> Sample {
    let adapter = A::new(setting.limit);
    let unclocked = closed_loop::for_time(&adapter, setting.threads, effort.window, false, &call);
    let mut sample = vec![
        (Metric::PerSecond, unclocked.calls_per_second()),
        (Metric::LeastShare, unclocked.least_share()),
    ];
    let clocked = closed_loop::for_time(&adapter, setting.threads, effort.window, true, &call);
    sample.extend(clocked.latencies.into_sample());
    sample
}
