//! Ozone's: one of 500 at random, with eight threads.
//!
//! Compared: a generator that all threads share, as `java.util.Random` is, with one in each thread. Not compared: what
//! is done with the choice.

use super::{Contender, Experiment, Size};
use crate::groups::choose::GROUP;
use crate::groups::{Effort, Metric};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "one_of_500",
    about: "Apache Ozone chose a pipeline with one `java.util.Random` for all threads, then with \
            `ThreadLocalRandom` (HDDS-14345): 500 pipelines, 8 threads, nanoseconds a choice.",
    columns: &[("a choice", Metric::NsPerCall)],
    contenders: &[
        Contender {
            name: "one java.util.Random",
            run: |size| choices("one java.util.Random", size),
        },
        Contender { name: "Chooser, Random", run: |size| choices("work-permit", size) },
        Contender { name: "one under a mutex", run: |size| choices("one under a mutex", size) },
        Contender {
            name: "thread-local fastrand, bare",
            run: |size| choices("thread-local fastrand", size),
        },
    ],
    old_new: (0, 1),
    published: &["295.03 → 6.25 ns (0.021)"],
};

/// Time of one thread for one choice, as JMH has it.
fn choices(name: &str, size: Size) -> Vec<f64> {
    let effort = match size {
        Size::Full => Effort::FULL,
        Size::Quick => Effort::QUICK,
    };
    let setting = &GROUP.settings[0];
    let subject = GROUP.subjects.iter().find(|subject| subject.name == name);
    let sample = (subject.expect("it is in the group").sample)(setting, &effort);
    let rate = sample.iter().find(|(metric, _)| *metric == Metric::PerSecond);
    let (_, per_second) = rate.expect("the group measures rates");
    vec![setting.threads as f64 * 1e9 / per_second]
}
