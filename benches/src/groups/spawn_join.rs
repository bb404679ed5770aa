//! `spawn_join`: one thread queues a task and waits for its result, again and again.
//!
//! Compared: latency of the round trip. Two workers, limit 2. work-permit's `join` takes a task that has not
//! started out of the queue and runs it on the joining thread; the peers hand it to a worker and wait.
//! Not compared: what a worker's help would gain, since the caller has nothing else to do. What a task costs
//! that a worker must start is in `start_after_idle`.

use super::{Against, Bound, Effort, Group, Metric, Sample, Setting, Subject, Target};
use crate::adapter::Ask;
use crate::adapters::bare::BarePool;
use crate::adapters::channels::{CrossbeamChannel, Kanal};
use crate::adapters::ours::WorkPermitSpawn;
use crate::adapters::pools::{Executors, Rayon, Threadpool};
use crate::adapters::tokio_recipes::{TokioSpawn, TokioSpawnBlocking};
use crate::harness::percentiles::Latencies;
use std::hint::black_box;
use std::time::{Duration, Instant};

pub(super) const GROUP: Group = Group {
    name: "spawn_join",
    question: "one thread queues a nearly empty task and waits for its result",
    headline: Metric::P50,
    settings: &[Setting::new("1 thread", 1, 2)],
    subjects: &[
        ask::<WorkPermitSpawn>(),
        ask::<BarePool>(),
        ask::<CrossbeamChannel>(),
        ask::<Kanal>(),
        ask::<Executors>(),
        ask::<Rayon>(),
        ask::<Threadpool>(),
        ask::<TokioSpawn>(),
        ask::<TokioSpawnBlocking>(),
    ],
    targets: &[
        Target {
            metric: Metric::P50,
            at: &["1 thread"],
            against: Against::BestPeer,
            bound: Bound::AtMost(0.5),
        },
        Target {
            metric: Metric::P99,
            at: &["1 thread"],
            against: Against::BestPeer,
            bound: Bound::AtMost(1.0),
        },
    ],
};

const fn ask<A: Ask>() -> Subject {
    Subject { name: A::NAME, role: A::ROLE, sample: sample::<A>, timed: timed::<A> }
}

fn round_trip<A: Ask>(adapter: &mut A, number: u64) {
    let answer = adapter.ask(move || number);
    assert_eq!(black_box(answer), number, "it is the answer to this call");
}

fn sample<A: Ask>(setting: &Setting, effort: &Effort) -> Sample {
    let mut adapter = A::new(setting.limit);
    (0..effort.calls / 10).for_each(|call| round_trip(&mut adapter, call));
    let mut latencies = Latencies::new();
    for call in 0..effort.calls {
        let began = Instant::now();
        round_trip(&mut adapter, call);
        latencies.record(began.elapsed());
    }
    latencies.into_sample()
}

fn timed<A: Ask>(setting: &Setting, calls: u64) -> Duration {
    let mut adapter = A::new(setting.limit);
    round_trip(&mut adapter, 0);
    let began = Instant::now();
    (0..calls).for_each(|call| round_trip(&mut adapter, call));
    began.elapsed()
}
