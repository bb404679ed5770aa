//! The explorer with a count, and what it makes of the count.

#![forbid(unsafe_code)]

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Enough for a model of a whole executor; loom's own default is 1,000.
const MAX_BRANCHES: usize = 20_000;

/// How much of a model is explored: the bound on preemptions, that is, on switches away from a
/// thread that could have gone on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// No bound: every interleaving there is. Two threads, one or two operations each.
    Proof,
    /// At most three preemptions in one execution. Three threads.
    Wide,
    /// At most one preemption in one execution. Four threads.
    Huge,
}

impl Size {
    /// The bound in loom's terms.
    fn preemption_bound(self) -> Option<usize> {
        match self {
            Size::Proof => None,
            Size::Wide => Some(3),
            Size::Huge => Some(1),
        }
    }
}

/// Explores `f` to the end of its `size` and asserts that this took a number of executions within
/// `expect`; prints `name` and the number. With `LOOM_COUNTS=1` in the environment it only prints.
///
/// The closure runs once per execution. Count with std atomics, which loom does not see and which
/// therefore add no executions; touch a loom cell where an ordering is to be proven.
///
/// # Panics
/// When an execution fails (after printing which one it was), and when the number of executions is
/// outside `expect`.
pub fn model(
    name: &str,
    size: Size,
    expect: RangeInclusive<usize>,
    f: impl Fn() + Sync + Send + 'static,
) {
    let began = Instant::now();
    let executions = explore(name, size, f);
    let seconds = began.elapsed().as_secs_f32();
    eprintln!("loom: {name} ({size:?}): {executions} executions in {seconds:.1} s");
    if counts_only() {
        return;
    }
    if let Err(complaint) = judge(executions, &expect) {
        panic!("loom: {name} ({size:?}): {complaint}");
    }
}

/// Runs every execution of `f` and returns their number.
fn explore(name: &str, size: Size, f: impl Fn() + Sync + Send + 'static) -> usize {
    let started = Arc::new(AtomicUsize::new(0));
    let on_failure = OnFailure { name, started: &started };

    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = size.preemption_bound();
    builder.max_branches = MAX_BRANCHES;
    builder.max_permutations = None;
    builder.max_duration = None;

    let counter = Arc::clone(&started);
    builder.check(move || {
        // Ordering: a tally; loom runs the executions one after the other on this thread.
        counter.fetch_add(1, Relaxed);
        f();
    });
    drop(on_failure);
    started.load(Relaxed)
}

/// Whether the environment asks to print the counts without judging them.
fn counts_only() -> bool {
    std::env::var_os("LOOM_COUNTS").is_some_and(|value| value == "1")
}

/// Says what is wrong with a count outside the range.
fn judge(executions: usize, expect: &RangeInclusive<usize>) -> Result<(), String> {
    let (floor, ceiling) = (expect.start(), expect.end());
    if executions < *floor {
        return Err(format!(
            "{executions} executions, at least {floor} expected: the model no longer explores \
             what it did (LOOM_COUNTS=1 prints without judging)"
        ));
    }
    if executions > *ceiling {
        return Err(format!(
            "{executions} executions, at most {ceiling} expected: the model has more to explore \
             than it had (LOOM_COUNTS=1 prints without judging)"
        ));
    }
    Ok(())
}

/// Names the execution in which a model failed, while its panic passes by.
struct OnFailure<'a> {
    name: &'a str,
    started: &'a AtomicUsize,
}

impl Drop for OnFailure<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let execution = self.started.load(Relaxed);
            eprintln!("loom: {}: failed in execution {execution}", self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Size, explore, judge, model};
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use loom::thread;

    /// Two threads that each add one, by a load and a store when `torn`.
    fn add_twice(torn: bool) {
        let cell = Arc::new(AtomicUsize::new(0));
        let add = move |cell: &AtomicUsize| match torn {
            true => cell.store(cell.load(Relaxed) + 1, Relaxed),
            false => drop(cell.fetch_add(1, Relaxed)),
        };
        let other = Arc::clone(&cell);
        let handle = thread::spawn(move || add(&other));
        add(&cell);
        handle.join().unwrap();
        assert_eq!(cell.load(Relaxed), 2);
    }

    #[test]
    fn a_race_is_explored_both_ways() {
        model("add_twice", Size::Proof, 2..=8, || add_twice(false));
    }

    #[test]
    #[should_panic(expected = "assertion `left == right` failed")]
    fn a_lost_update_is_found() {
        explore("add_twice_torn", Size::Proof, || add_twice(true));
    }

    #[test]
    fn a_bound_explores_no_more_than_none() {
        let huge = explore("add_twice", Size::Huge, || add_twice(false));
        let wide = explore("add_twice", Size::Wide, || add_twice(false));
        let proof = explore("add_twice", Size::Proof, || add_twice(false));
        assert!(huge <= wide && wide <= proof, "{huge}, {wide}, {proof}");
    }

    #[test]
    fn a_count_outside_its_range_is_refused() {
        assert!(judge(1, &(2..=4)).unwrap_err().contains("at least 2"));
        assert!(judge(5, &(2..=4)).unwrap_err().contains("at most 4"));
        assert_eq!(judge(2, &(2..=4)), Ok(()));
        assert_eq!(judge(4, &(2..=4)), Ok(()));
    }
}
