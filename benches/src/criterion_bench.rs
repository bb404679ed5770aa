//! A group as criterion benchmarks.

use crate::groups::{self, Group};
use criterion::{BenchmarkId, Criterion};
use std::time::Duration;

/// The main function of a bench with the groups of these names. Criterion measures one subject after the other:
/// its figures are for comparing a subject with its own past.
///
/// # Panics
/// When there is no group of that name.
pub fn main(names: &[&str]) {
    let mut criterion = Criterion::default().configure_from_args();
    for name in names {
        let group = groups::named(name).expect("benches name groups that exist");
        add_group(&mut criterion, group);
    }
    criterion.final_summary();
}

fn add_group(criterion: &mut Criterion, group: &Group) {
    let mut benches = criterion.benchmark_group(group.name);
    benches.sample_size(10);
    benches.warm_up_time(Duration::from_millis(200));
    benches.measurement_time(Duration::from_secs(1));
    for setting in group.settings {
        for subject in group.subjects {
            let id = BenchmarkId::new(subject.name, setting.label);
            benches.bench_function(id, |b| {
                b.iter_custom(|calls| (subject.timed)(setting, calls));
            });
        }
    }
    benches.finish();
}
