//! What one task leaves on its thread and the next one would find.

use crate::support::{assert_quiet, block_on, hang_guard};
use std::cell::Cell;
use std::mem;
use std::panic::resume_unwind;
use std::thread::{self, ThreadId};
use std::time::Duration;
use work_permit::{Executor, Operations, Pool, fitness};

thread_local! {
    /// A value of the user's with a scope, as a span or a request's number has.
    static REQUEST: Cell<u32> = const { Cell::new(0) };
}

struct Scoped(u32);

impl Scoped {
    fn set(request: u32) -> Self {
        Self(REQUEST.replace(request))
    }
}

impl Drop for Scoped {
    fn drop(&mut self) {
        REQUEST.set(self.0);
    }
}

/// What a task can see of those before it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    thread: ThreadId,
    request: u32,
    held: bool,
    fit: [bool; 2],
    depth_left: bool,
}

fn look(any: &Executor, all: &Executor, other: &Executor) -> Seen {
    Seen {
        thread: thread::current().id(),
        request: REQUEST.get(),
        held: other.is_held(),
        fit: [any.try_run(|| ()).is_ok(), all.try_run(|| ()).is_ok()],
        depth_left: any.dispatch(|| ()).unwrap().is_inline(),
    }
}

#[test]
fn b57_a_task_leaves_nothing_for_the_next() {
    hang_guard(|| {
        let elsewhere = Pool::new();
        let any = elsewhere.executor("any").limit(4).build().unwrap();
        let all = elsewhere.executor("all").limit(4).requires(Operations::ALL).build().unwrap();
        let pool = Pool::builder().max_threads(1).build().unwrap();
        let first = pool.executor("first").limit(1).build().unwrap();
        let second = pool.executor("second").limit(1).build().unwrap();
        let next = || {
            let (any, all, other) = (any.clone(), all.clone(), first.clone());
            block_on(second.spawn(move || look(&any, &all, &other)).unwrap()).unwrap()
        };
        let fresh = next();
        assert_eq!((fresh.request, fresh.held), (0, false));
        assert_eq!((fresh.fit, fresh.depth_left), ([true; 2], true));
        for kind in 0..6 {
            let nested = first.clone();
            let leaves = move || {
                let _scoped = Scoped::set(7);
                let guard = fitness::no_inline();
                match kind {
                    0 => drop(guard),
                    1 => mem::forget(guard),
                    2 => mem::forget((guard, fitness::allow(Operations::NONE))),
                    3 => {
                        drop(guard);
                        nested.run(|| mem::forget(fitness::no_inline())).unwrap();
                    }
                    4 => {
                        mem::forget(guard);
                        resume_unwind(Box::new("out"));
                    }
                    _ => resume_unwind(Box::new("out")),
                }
            };
            let ended = match kind % 2 {
                0 => block_on(first.spawn(leaves).unwrap()),
                _ => {
                    first.execute(leaves).unwrap();
                    Ok(())
                }
            };
            assert_eq!(ended.is_err(), kind == 4);
            assert_eq!(next(), fresh, "after kind {kind}");
        }
        first.drain(Duration::MAX).unwrap();
        assert_eq!(first.stats().panicked, 2);
        assert_quiet(&first);
    });
}

/// The same for who runs what a shutdown took out.
#[test]
fn b57_nor_does_one_that_ran_without_a_permit() {
    let paused = Pool::new().executor("paused").limit(0).build().unwrap();
    let exec = Pool::new().executor("other").limit(1).build().unwrap();
    paused.execute(|| mem::forget(fitness::no_inline())).unwrap();
    drop(paused.spawn(|| mem::forget(fitness::no_inline())).unwrap());
    for unrun in paused.shutdown_now() {
        unrun.run();
        assert!(exec.try_run(|| ()).is_ok());
    }
}
