//! `spawn_many`, `ping_pong`, `chained_spawn`: the shared vocabulary of schedulers' benchmarks, with `execute`.
//!
//! Compared: tasks a second. `spawn_many`: a thread outside queues all, then waits. `ping_pong`: a task for each
//! ping, which queues a pong, which queues the end; all at once. `chained_spawn`: each task queues the next, so
//! that one runs at a time. Two workers, limit 2.
//! Not compared: tasks that wait for each other. In the originals a ping is a future that awaits its pong; a
//! thread that waited for its own pool would hold a worker, so here the pong queues what comes after it.

use super::{Effort, Group, Metric, Sample, Setting, Subject};
use crate::adapter::Execute;
use crate::adapters::bare::BarePool;
use crate::adapters::channels::{CrossbeamChannel, Kanal};
use crate::adapters::ours::WorkPermit;
use crate::adapters::pools::{Executors, Rayon, Threadpool};
use crate::adapters::tokio_recipes::{TokioSpawn, TokioSpawnBlocking};
use crate::harness::done::{count_down, wait_for_countdown};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Tasks of one round of `spawn_many`.
const MANY: u64 = 10_000;
/// Pings of one round, with two more tasks each.
const PINGS: u64 = 1_000;
/// Tasks of a chain.
const CHAIN: u64 = 1_000;

/// One round: its tasks, and what queues the first of them.
type Round<A> = (u64, fn(&A));

macro_rules! subjects {
    ($subject:ident) => {
        &[
            $subject::<WorkPermit>(),
            $subject::<BarePool>(),
            $subject::<CrossbeamChannel>(),
            $subject::<Kanal>(),
            $subject::<Executors>(),
            $subject::<Rayon>(),
            $subject::<Threadpool>(),
            $subject::<TokioSpawn>(),
            $subject::<TokioSpawnBlocking>(),
        ]
    };
}

pub(super) const SPAWN_MANY: Group = Group {
    name: "spawn_many",
    question: "10,000 nearly empty tasks queued from outside, until all have run",
    headline: Metric::PerSecond,
    settings: &[Setting::new("10,000 tasks", 1, 2)],
    subjects: subjects!(many),
    targets: &[],
};

pub(super) const PING_PONG: Group = Group {
    name: "ping_pong",
    question: "1,000 tasks at once, each of which queues a second, which queues a third",
    headline: Metric::PerSecond,
    settings: &[Setting::new("1,000 pings", 1, 2)],
    subjects: subjects!(pings),
    targets: &[],
};

pub(super) const CHAINED_SPAWN: Group = Group {
    name: "chained_spawn",
    question: "1,000 tasks, each queued by the one before it",
    headline: Metric::PerSecond,
    settings: &[Setting::new("1,000 links", 1, 2)],
    subjects: subjects!(chain),
    targets: &[],
};

const fn many<A: Execute>() -> Subject {
    Subject {
        name: A::NAME,
        role: A::ROLE,
        sample: |setting, effort| rate::<A>(setting, effort, (MANY, queue_many)),
        timed: |setting, rounds| time::<A>(setting, rounds, (MANY, queue_many)),
    }
}

const fn pings<A: Execute>() -> Subject {
    Subject {
        name: A::NAME,
        role: A::ROLE,
        sample: |setting, effort| rate::<A>(setting, effort, (3 * PINGS, queue_pings)),
        timed: |setting, rounds| time::<A>(setting, rounds, (3 * PINGS, queue_pings)),
    }
}

const fn chain<A: Execute>() -> Subject {
    Subject {
        name: A::NAME,
        role: A::ROLE,
        sample: |setting, effort| rate::<A>(setting, effort, (CHAIN, |first| link(first, CHAIN))),
        timed: |setting, rounds| time::<A>(setting, rounds, (CHAIN, |first| link(first, CHAIN))),
    }
}

fn queue_many<A: Execute>(adapter: &A) {
    (0..MANY).for_each(|task| {
        adapter.execute(move || {
            black_box(task);
            count_down();
        });
    });
}

fn queue_pings<A: Execute>(adapter: &A) {
    for _ in 0..PINGS {
        let for_pong = adapter.clone();
        adapter.execute(move || {
            let for_end = for_pong.clone();
            count_down();
            for_pong.execute(move || {
                count_down();
                for_end.execute(count_down);
            });
        });
    }
}

fn link<A: Execute>(adapter: &A, left: u64) {
    let next = adapter.clone();
    adapter.execute(move || {
        if left > 1 {
            link(&next, left - 1);
        }
        count_down();
    });
}

/// The time of so many rounds, one after the other.
fn time<A: Execute>(setting: &Setting, rounds: u64, (tasks, queue): Round<A>) -> Duration {
    let adapter = A::new(setting.limit);
    let round = || wait_for_countdown(tasks, || queue(&adapter));
    round();
    let began = Instant::now();
    (0..rounds).for_each(|_| round());
    began.elapsed()
}

fn rate<A: Execute>(setting: &Setting, effort: &Effort, round: Round<A>) -> Sample {
    let rounds = (effort.tasks / round.0).max(1);
    let time = time::<A>(setting, rounds, round);
    vec![(Metric::PerSecond, (rounds * round.0) as f64 / time.as_secs_f64())]
}
