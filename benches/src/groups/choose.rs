//! `choose`: one of 500 at random, by eight threads at once.
//!
//! Compared: a generator in each thread, and one that all share. work-permit's `Chooser` also asks the item whether it
//! is healthy. Not compared: the quality of the numbers, and policies that look at the load.

use super::{Against, Bound, Effort, Group, Metric, Sample, Setting, Subject, Target};
use crate::adapter::Choose;
use crate::adapters::generators::{
    CHOICES, Ours, RandRng, SharedAtomic, SharedCas, SharedMutex, ThreadLocal,
};
use crate::harness::closed_loop;
use std::hint::black_box;
use std::time::Duration;

/// Choices between two looks at the end of the window.
const BATCH: u64 = 256;

pub(crate) const GROUP: Group = Group {
    name: "choose",
    question: "one of 500 at random, by eight threads at once",
    headline: Metric::PerSecond,
    settings: &[Setting::new("8 threads", 8, 0)],
    subjects: &[
        choose::<Ours>(),
        choose::<ThreadLocal>(),
        choose::<RandRng>(),
        choose::<SharedAtomic>(),
        choose::<SharedCas>(),
        choose::<SharedMutex>(),
    ],
    // 1.2 times the time.
    targets: &[Target {
        metric: Metric::PerSecond,
        at: &["8 threads"],
        against: Against::Named("thread-local fastrand"),
        bound: Bound::AtLeast(1.0 / 1.2),
    }],
};

const fn choose<A: Choose>() -> Subject {
    Subject { name: A::NAME, role: A::ROLE, sample: sample::<A>, timed: timed::<A> }
}

#[inline(always)]
fn batch<A: Choose>(adapter: &mut A, choices: u64) {
    for _ in 0..choices {
        black_box(adapter.choose(black_box(CHOICES)));
    }
}

fn sample<A: Choose>(setting: &Setting, effort: &Effort) -> Sample {
    let adapter = A::new(setting.limit);
    let one = |mine: &mut A| batch(mine, BATCH);
    let outcome = closed_loop::for_time(&adapter, setting.threads, effort.window, false, one);
    vec![(Metric::PerSecond, outcome.calls_per_second() * BATCH as f64)]
}

fn timed<A: Choose>(setting: &Setting, choices: u64) -> Duration {
    let adapter = A::new(setting.limit);
    let batches = choices.div_ceil(BATCH);
    let size = choices.div_ceil(batches);
    closed_loop::for_count(&adapter, setting.threads, batches, |mine| batch(mine, size))
}
