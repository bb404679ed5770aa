//! Nothing rests on the drop of anything that the user can reach: handles, results, refusals and whole cycles of
//! them are forgotten, and still nothing outlives what it borrows.

use crate::Census;
use crate::support::{assert_quiet, executor, hang_guard, until};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use work_permit::{JoinError, Scope, ScopedJoinHandle};

#[test]
fn a_forgotten_handle_keeps_no_result() {
    hang_guard(|| {
        for limit in [1, 2] {
            let exec = executor(limit);
            for _ in 0..200 {
                let census = Box::new(Census::default());
                exec.scope(|s| {
                    for _ in 0..5 {
                        mem::forget(s.spawn(|| census.one()).unwrap());
                        let _leaked = Box::leak(Box::new(s.spawn(|| census.one()).unwrap()));
                        mem::forget(s.dispatch(|| census.one()).unwrap().join());
                    }
                });
                assert_eq!((census.ever(), census.alive()), (15, 5), "those of `join` were ours");
            }
            assert_quiet(&exec);
        }
    });
}

#[test]
fn a_forgotten_refusal() {
    hang_guard(|| {
        let (exec, census) = (executor(1), Census::default());
        exec.close();
        exec.scope(|s| {
            let counted = census.one();
            mem::forget(s.spawn(move || counted));
        });
        assert_eq!(census.alive(), 1);
        assert_quiet(&exec);
    });
}

/// A place for a handle, which its own task owns as well.
type Cycle<'scope, 'census> = Arc<Mutex<Option<ScopedJoinHandle<'scope, Held<'scope, 'census>>>>>;

struct Held<'scope, 'census>(
    #[expect(dead_code)] Option<Cycle<'scope, 'census>>,
    #[expect(dead_code)] crate::Counted<'census>,
);

#[test]
fn a_handle_within_its_own_result() {
    hang_guard(|| {
        let exec = executor(1);
        let census = Box::new(Census::default());
        for _ in 0..50 {
            exec.scope(|s| {
                let cycle = Cycle::default();
                let (within, census) = (Arc::clone(&cycle), &census);
                let task = move || Held(Some(within), census.one());
                let handle = s.spawn(task).unwrap();
                *cycle.lock().unwrap() = Some(handle);
            });
            assert_eq!(census.alive(), 0, "the scope breaks the cycle");
        }
        drop(census);
        assert_quiet(&exec);
    });
}

#[test]
fn a_handle_within_the_result_of_another() {
    hang_guard(|| {
        let exec = executor(2);
        let census = Box::new(Census::default());
        for forget in [false, true] {
            exec.scope(|s| {
                let inner = s.spawn(|| census.one()).unwrap();
                let outer = s.spawn(move || inner).unwrap();
                match forget {
                    false => drop(outer.join().unwrap().join().unwrap()),
                    true => mem::forget(outer),
                }
            });
            assert_eq!(census.alive(), 0);
        }
        assert_eq!(census.ever(), 2);
        drop(census);
        assert_quiet(&exec);
    });
}

/// A result whose `Drop` gives the scope more to do.
struct Heir<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    ran: &'scope AtomicUsize,
    generations: usize,
}

impl Drop for Heir<'_, '_> {
    fn drop(&mut self) {
        let (scope, ran, generations) = (self.scope, self.ran, self.generations);
        if generations == 0 {
            return;
        }
        let task = move || {
            ran.fetch_add(1, SeqCst);
            Heir { scope, ran, generations: generations - 1 }
        };
        mem::forget(scope.spawn(task).unwrap());
    }
}

#[test]
fn what_is_dropped_at_the_end_may_add_tasks() {
    hang_guard(|| {
        let exec = executor(1);
        let ran = Box::new(AtomicUsize::new(0));
        exec.scope(|s| drop(Heir { scope: s, ran: &ran, generations: 5 }));
        assert_eq!(ran.load(SeqCst), 5, "each result lives to the end, and leaves another task");
        drop(ran);
        assert_quiet(&exec);
    });
}

/// A result that has the handle of another task, and gives it to a new one when it is dropped.
struct Testator<'scope, 'env, 'census: 'scope> {
    scope: &'scope Scope<'scope, 'env>,
    other: Arc<Mutex<Option<ScopedJoinHandle<'scope, crate::Counted<'census>>>>>,
    joined: &'scope AtomicUsize,
}

impl<'scope, 'census: 'scope> Drop for Testator<'scope, '_, 'census> {
    fn drop(&mut self) {
        let (other, joined) = (self.other.lock().unwrap().take(), self.joined);
        let task = move || match other.map(ScopedJoinHandle::join) {
            Some(Ok(_)) => joined.fetch_add(1, SeqCst),
            Some(Err(JoinError::Closed)) => joined.fetch_add(100, SeqCst),
            end => panic!("{end:?}"),
        };
        self.scope.spawn(task).unwrap();
    }
}

#[test]
fn a_handle_that_turns_up_at_the_end() {
    hang_guard(|| {
        let exec = executor(2);
        for younger in [false, true] {
            for _ in 0..500 {
                let census = Box::new(Census::default());
                let joined = AtomicUsize::new(0);
                exec.scope(|s| {
                    let (place, joined) = (Arc::new(Mutex::new(None)), &joined);
                    let other = Arc::clone(&place);
                    let task = move || Testator { scope: s, other, joined };
                    let counted = || census.one();
                    let (first, second) = match younger {
                        true => (Some(task), None),
                        false => (None, Some(task)),
                    };
                    first.into_iter().for_each(|task| mem::forget(s.spawn(task).unwrap()));
                    let handle = s.spawn(counted).unwrap();
                    until("it has ended", || handle.is_finished());
                    *place.lock().unwrap() = Some(handle);
                    second.into_iter().for_each(|task| mem::forget(s.spawn(task).unwrap()));
                });
                // The younger result is dropped first. A task that has ended by itself keeps its result.
                let expected = if younger { 100 } else { 1 };
                assert_eq!((joined.into_inner(), census.alive()), (expected, 0));
            }
        }
        assert_quiet(&exec);
    });
}

#[test]
fn a_handle_goes_while_its_task_ends() {
    hang_guard(|| {
        let exec = executor(2);
        for round in 0..2000 {
            let census = Box::new(Census::default());
            exec.scope(|s| {
                let handle = s.spawn(|| census.one()).unwrap();
                if round % 2 == 0 {
                    until("it is on the way", || exec.stats().queued == 0);
                }
                match round % 3 {
                    0 => drop(handle),
                    1 => mem::forget(handle),
                    // A thread that the scope does not know, ended before it does.
                    _ => thread::scope(|threads| {
                        threads.spawn(move || drop(handle));
                    }),
                }
            });
            assert_eq!((census.ever(), census.alive()), (1, 0));
        }
        until("all is back", || exec.stats().active == 0);
        assert_quiet(&exec);
    });
}
