//! `execute_throughput`: a stream of nearly empty tasks, until all of them have run.
//!
//! Compared: tasks a second with one to four producers and two workers (for work-permit: limit 2), with at most
//! ten thousand tasks waiting and without a bound. A task notes that it ran on a line of its worker's own; its
//! closure holds one pointer, so that a box of it is an allocation.
//! Not compared: order. work-permit, the channels and threadpool start tasks in the order they came; rayon,
//! tokio and executors promise none.

use super::{Against, Bound, Effort, Group, Metric, Sample, Setting, Subject, Target};
use crate::adapter::Execute;
use crate::adapters::bare::BarePool;
use crate::adapters::channels::{CrossbeamChannel, Kanal};
use crate::adapters::ours::WorkPermit;
use crate::adapters::pools::{Executors, Rayon, Threadpool};
use crate::adapters::tokio_recipes::{TokioSpawn, TokioSpawnBlocking};
use crate::harness::done::Since;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Tasks between two looks at how far the workers are.
const BURST: u64 = 64;

pub(super) const THROUGHPUT: Group = Group {
    name: "execute_throughput",
    question: "nearly empty tasks queued without a handle, two workers, until all have run",
    headline: Metric::PerSecond,
    settings: &[
        Setting::new("1 producer, ≤ 10k waiting", 1, 2).backlog(10_000),
        Setting::new("2 producers, ≤ 10k waiting", 2, 2).backlog(10_000),
        Setting::new("4 producers, ≤ 10k waiting", 4, 2).backlog(10_000),
        Setting::new("1 producer, unbounded", 1, 2),
        Setting::new("2 producers, unbounded", 2, 2).only_in_full(),
        Setting::new("4 producers, unbounded", 4, 2).only_in_full(),
    ],
    subjects: &[
        execute::<WorkPermit>(),
        execute::<BarePool>(),
        execute::<Kanal>(),
        execute::<CrossbeamChannel>(),
        execute::<Executors>(),
        execute::<Rayon>(),
        execute::<Threadpool>(),
        execute::<TokioSpawn>(),
        execute::<TokioSpawnBlocking>(),
    ],
    targets: &[Target {
        metric: Metric::PerSecond,
        at: &["1", "2", "4"],
        against: Against::BestPeer,
        bound: Bound::AtLeast(1.5),
    }],
};

const fn execute<A: Execute>() -> Subject {
    Subject { name: A::NAME, role: A::ROLE, sample: sample::<A>, timed: stream::<A> }
}

fn sample<A: Execute>(setting: &Setting, effort: &Effort) -> Sample {
    let time = stream::<A>(setting, effort.tasks);
    vec![(Metric::PerSecond, effort.tasks as f64 / time.as_secs_f64())]
}

/// The time that `tasks` take, from the first submit until the last has run.
fn stream<A: Execute>(setting: &Setting, tasks: u64) -> Duration {
    let adapter = A::new(setting.limit);
    let warm = Since::now();
    push(&adapter, BURST, warm);
    warm.wait_for(BURST);

    let since = Since::now();
    let (submitted, start) = (AtomicU64::new(0), Barrier::new(setting.threads + 1));
    let each = tasks.div_ceil(setting.threads as u64);
    thread::scope(|scope| {
        for _ in 0..setting.threads {
            let mine = adapter.clone();
            let (submitted, start, backlog) = (&submitted, &start, setting.backlog);
            scope.spawn(move || {
                start.wait();
                produce(&mine, each, backlog, submitted, since);
            });
        }
        start.wait();
        let began = Instant::now();
        since.wait_for(each * setting.threads as u64);
        began.elapsed()
    })
}

fn produce<A: Execute>(
    adapter: &A,
    tasks: u64,
    backlog: Option<u64>,
    submitted: &AtomicU64,
    since: Since,
) {
    let mut left = tasks;
    while left > 0 {
        let burst = left.min(BURST);
        if let Some(most) = backlog {
            let ahead = submitted.fetch_add(burst, Relaxed) + burst;
            while ahead.saturating_sub(since.count()) > most {
                thread::yield_now();
            }
        }
        push(adapter, burst, since);
        left -= burst;
    }
}

fn push<A: Execute>(adapter: &A, tasks: u64, since: Since) {
    let done = since.done();
    for _ in 0..tasks {
        adapter.execute(move || done.one());
    }
}
