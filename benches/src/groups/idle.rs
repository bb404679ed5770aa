//! `start_after_idle`, `trickle_cpu`: pools that have next to nothing to do.
//!
//! Compared in `start_after_idle`: the time from the submit of a task, after 5 ms without any, to its start on
//! another thread, and what the submit costs its caller. In `trickle_cpu`: CPU time and wake-ups of the whole
//! process with nothing to do, and CPU time with one empty task every 5 ms, the caller's share included; one
//! subject's threads exist at a time. `no pool` runs the tasks where they are submitted: the measuring itself.
//! Not compared: the first start, which creates threads, and cores that have gone into a deep sleep.
//! CPU time and wake-ups come from `getrusage`: CPU on Unix, wake-ups on Linux, 0 elsewhere.

use super::{Against, Bound, Effort, Group, Metric, Sample, Setting, Subject, Target};
use crate::adapter::{Adapter, Execute};
use crate::adapters::bare::{BarePool, NoPool, OneUnpark};
use crate::adapters::channels::{CrossbeamChannel, Kanal};
use crate::adapters::ours::WorkPermit;
use crate::adapters::pools::{Executors, Rayon, Threadpool};
use crate::adapters::tokio_recipes::{TokioSpawn, TokioSpawnBlocking};
use crate::harness::cpu;
use crate::harness::percentiles::Latencies;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Between two tasks.
const PAUSE: Duration = Duration::from_millis(5);

/// The most that criterion measures in one sample; more is extrapolated, or the pauses would take minutes.
const MOST_TIMED: u64 = 10;

pub(super) const START: Group = Group {
    name: "start_after_idle",
    question: "5 ms after the last task: from submit to start on another thread; cost of the submit",
    headline: Metric::P50,
    settings: &[Setting::new("5 ms", 1, 2)],
    subjects: &[
        start::<WorkPermit>(),
        start::<BarePool>(),
        start::<OneUnpark>(),
        start::<CrossbeamChannel>(),
        start::<Kanal>(),
        start::<Executors>(),
        start::<Rayon>(),
        start::<Threadpool>(),
        start::<TokioSpawn>(),
        start::<TokioSpawnBlocking>(),
    ],
    targets: &[
        Target {
            metric: Metric::P50,
            at: &["5 ms"],
            against: Against::Named(BarePool::NAME),
            bound: Bound::AtMost(1.0),
        },
        Target {
            metric: Metric::CallerCost,
            at: &["5 ms"],
            against: Against::Named(OneUnpark::NAME),
            bound: Bound::AtMost(1.0),
        },
    ],
};

const NOTHING: &str = "nothing to do";

pub(super) const TRICKLE: Group = Group {
    name: "trickle_cpu",
    question: "CPU time of the process while a pool has nothing, or next to nothing, to do",
    headline: Metric::Cores,
    settings: &[Setting::new(NOTHING, 0, 2), Setting::new("a task every 5 ms", 1, 2)],
    subjects: &[
        trickle::<WorkPermit>(),
        trickle::<NoPool>(),
        trickle::<BarePool>(),
        trickle::<CrossbeamChannel>(),
        trickle::<Kanal>(),
        trickle::<Executors>(),
        trickle::<Rayon>(),
        trickle::<Threadpool>(),
        trickle::<TokioSpawn>(),
        trickle::<TokioSpawnBlocking>(),
    ],
    targets: &[
        Target {
            metric: Metric::Cores,
            at: &[NOTHING],
            against: Against::Nothing,
            // The clock's grain: what the measuring thread needs to go to sleep and to wake.
            bound: Bound::AtMost(0.001),
        },
        Target {
            metric: Metric::WakeUps,
            at: &[NOTHING],
            against: Against::Nothing,
            bound: Bound::AtMost(0.0),
        },
        Target {
            metric: Metric::Cores,
            at: &["a task every 5 ms"],
            against: Against::Nothing,
            bound: Bound::AtMost(0.02),
        },
    ],
};

const fn start<A: Execute>() -> Subject {
    Subject { name: A::NAME, role: A::ROLE, sample: start_sample::<A>, timed: start_timed::<A> }
}

const fn trickle<A: Execute>() -> Subject {
    Subject { name: A::NAME, role: A::ROLE, sample: trickle_sample::<A>, timed: trickle_timed::<A> }
}

/// One start after a pause: from submit to start, and the submit alone.
fn one_start<A: Execute>(adapter: &A) -> (Duration, Duration) {
    let (started, when) = mpsc::channel();
    // sleep: the idleness that is the question.
    thread::sleep(PAUSE);
    let began = Instant::now();
    adapter.execute(move || started.send(Instant::now()).expect("the caller waits"));
    let submit = began.elapsed();
    let start = when.recv().expect("the task runs");
    (start.saturating_duration_since(began), submit)
}

/// Builds it and lets it run a few tasks, so that its threads exist, and rest.
fn awake<A: Execute>(limit: usize) -> A {
    let adapter = A::new(limit);
    for _ in 0..3 {
        one_start(&adapter);
    }
    adapter
}

fn start_sample<A: Execute>(setting: &Setting, effort: &Effort) -> Sample {
    let adapter = awake::<A>(setting.limit);
    let (mut starts, mut submits) = (Latencies::new(), Latencies::new());
    for _ in 0..effort.starts {
        let (start, submit) = one_start(&adapter);
        starts.record(start);
        submits.record(submit);
    }
    let mut sample = starts.into_sample();
    // Too few starts for more than a median and the worst.
    sample.retain(|(metric, _)| *metric != Metric::P999);
    sample.push((Metric::CallerCost, submits.median()));
    sample
}

fn start_timed<A: Execute>(setting: &Setting, starts: u64) -> Duration {
    let adapter = awake::<A>(setting.limit);
    let timed = starts.min(MOST_TIMED);
    let sum: Duration = (0..timed).map(|_| one_start(&adapter).0).sum();
    sum.mul_f64(starts as f64 / timed.max(1) as f64)
}

fn spend<A: Execute>(adapter: &A, setting: &Setting, time: Duration) -> cpu::Usage {
    let before = cpu::usage();
    if setting.threads == 0 {
        // sleep: nothing to do is the question.
        thread::sleep(time);
    } else {
        for _ in 0..time.as_nanos() / PAUSE.as_nanos() {
            // sleep: as above.
            thread::sleep(PAUSE);
            adapter.execute(|| ());
        }
    }
    cpu::usage().since(before)
}

fn trickle_sample<A: Execute>(setting: &Setting, effort: &Effort) -> Sample {
    let adapter = awake::<A>(setting.limit);
    // sleep: until whoever spins before it parks has parked.
    thread::sleep(10 * PAUSE);
    let began = Instant::now();
    let used = spend(&adapter, setting, effort.idle);
    let seconds = began.elapsed().as_secs_f64();
    vec![
        (Metric::Cores, used.cpu.as_secs_f64() / seconds),
        (Metric::WakeUps, used.waits as f64 / seconds),
    ]
}

/// CPU time, not time: what so many pauses with their tasks cost.
fn trickle_timed<A: Execute>(setting: &Setting, pauses: u64) -> Duration {
    let adapter = awake::<A>(setting.limit);
    let timed = pauses.min(MOST_TIMED);
    let used = spend(&adapter, setting, PAUSE * u32::try_from(timed).unwrap_or(1));
    // Criterion cannot do with zero.
    used.cpu.mul_f64(pauses as f64 / timed.max(1) as f64).max(Duration::from_nanos(1))
}
