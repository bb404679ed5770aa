//! Guards in every order, in tasks and out of them, dropped, forgotten, carried away: beside a list that knows.

use crate::support::{Numbers, executor, hang_guard};
use crate::{A, B, is_fit, panics, requiring};
use std::mem;
use std::thread;
use work_permit::{Executor, Operations, fitness};

/// One executor for each question.
struct Asked {
    any: Executor,
    a: Executor,
    b: Executor,
}

impl Asked {
    fn new() -> Self {
        Self { any: executor(1), a: requiring(A, 1), b: requiring(B, 1) }
    }

    #[track_caller]
    fn are(&self, fit: [bool; 3]) {
        assert_eq!([&self.any, &self.a, &self.b].map(is_fit), fit);
    }
}

const UNDESCRIBED: [bool; 3] = [true, false, false];
const NOTHING: [bool; 3] = [false; 3];

#[test]
fn a_task_leaves_its_thread_as_it_was() {
    let asked = Asked::new();
    let host = executor(2);
    let a = fitness::allow(A);
    // With guards that it forgets, or that go out with a panic.
    host.run(|| {
        mem::forget(fitness::allow(B));
        mem::forget(fitness::no_inline());
        asked.are(NOTHING);
    })
    .unwrap();
    asked.are([true, true, false]);
    panics(|| {
        host.run(|| {
            mem::forget(fitness::no_inline());
            std::panic::resume_unwind(Box::new("out"))
        })
        .unwrap()
    });
    asked.are([true, true, false]);
    // With one that it gives to its caller: it says nothing any more, whenever it goes.
    let returned = host.try_run(fitness::no_inline).unwrap();
    asked.are([true, true, false]);
    let inside = fitness::allow(B);
    drop(returned);
    asked.are([true, false, true]);
    // With one of its caller's that it drops: that one is gone.
    host.run(move || drop(inside)).unwrap();
    asked.are([true, true, false]);
    host.run(|| host.run(move || drop(a)).unwrap()).unwrap();
    asked.are(UNDESCRIBED);
    let none = fitness::no_inline();
    let unfit_host = host.clone();
    asked.are(NOTHING);
    // Where nothing runs inline, nothing could drop it inside: from a worker it does not come here.
    assert!(!unfit_host.dispatch(|| ()).unwrap().is_inline());
    drop(none);
    asked.are(UNDESCRIBED);
}

#[test]
fn a_panic_between_two_guards_takes_both() {
    let asked = Asked::new();
    let outer = fitness::allow(A | B);
    panics(|| {
        let _one = fitness::allow(A);
        let _two = fitness::no_inline();
        std::panic::resume_unwind(Box::new("out"))
    });
    asked.are([true; 3]);
    drop(outer);
    asked.are(UNDESCRIBED);
}

#[test]
fn a_forgotten_guard_ends_with_its_thread() {
    let asked = Asked::new();
    thread::scope(|s| {
        s.spawn(|| {
            mem::forget(fitness::no_inline());
            asked.are(NOTHING);
            let over = fitness::allow(A);
            asked.are([true, true, false]);
            drop(over);
            asked.are(NOTHING);
        });
    });
    asked.are(UNDESCRIBED);
}

/// What a guard says.
fn says(kind: u64) -> (fitness::Guard, [bool; 3]) {
    match kind {
        0 => (fitness::no_inline(), NOTHING),
        1 => (fitness::allow(A), [true, true, false]),
        2 => (fitness::allow(B), [true, false, true]),
        3 => (fitness::allow(Operations::ALL), [true; 3]),
        _ => (fitness::allow(Operations::NONE), UNDESCRIBED),
    }
}

/// Guards of one task and of those around it, oldest first: a forgotten one has none to drop.
#[derive(Default)]
struct Known {
    guards: Vec<(usize, Option<fitness::Guard>, [bool; 3])>,
    /// Left by tasks that are over: they say nothing.
    stale: Vec<fitness::Guard>,
}

/// Random steps inside of `level` tasks.
fn steps(asked: &Asked, host: &Executor, numbers: &mut Numbers, known: &mut Known, level: usize) {
    for _ in 0..12 {
        match numbers.below(8) {
            0..=2 => {
                let (guard, fit) = says(numbers.below(5));
                known.guards.push((level, Some(guard), fit));
            }
            3 | 4 if !known.guards.is_empty() => {
                let at = numbers.below(known.guards.len() as u64) as usize;
                let forgotten = known.guards[at].1.is_none();
                if !forgotten {
                    drop(known.guards.remove(at));
                }
            }
            5 => {
                let (guard, fit) = says(numbers.below(5));
                // On the test's own thread it would stay for good.
                if level > 0 {
                    mem::forget(guard);
                    known.guards.push((level, None, fit));
                }
            }
            6 => drop(known.stale.pop()),
            7 if level < 4 => {
                let fit = known.guards.last().is_none_or(|last| last.2[0]);
                let ran = host.try_run(|| steps(asked, host, numbers, known, level + 1)).is_ok();
                assert_eq!(ran, fit);
                let over = |guard: &(usize, Option<fitness::Guard>, [bool; 3])| guard.0 > level;
                while let Some(at) = known.guards.iter().position(over) {
                    known.stale.extend(known.guards.remove(at).1);
                }
            }
            _ => {}
        }
        asked.are(known.guards.last().map_or(UNDESCRIBED, |last| last.2));
    }
}

#[test]
fn random_guards_do_what_a_list_says() {
    hang_guard(|| {
        let (asked, host) = (Asked::new(), executor(1));
        for seed in 0..3000 {
            let mut known = Known::default();
            steps(&asked, &host, &mut Numbers::from_seed(seed), &mut known, 0);
            drop(known);
            asked.are(UNDESCRIBED);
        }
        assert!(host.stats().completed > 1000, "tasks were among them");
    });
}
