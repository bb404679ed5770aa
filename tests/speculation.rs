//! Attempts: what is done at once, what is left for the queue, and what either is counted as.
#![forbid(unsafe_code)]

mod support;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;
use support::{Latch, assert_quiet, block_on, executor, hang_guard, occupy, until};
use work_permit::{Dispatched, Executor, Inline, JoinError, Operations, Pool, Reason, Rejected};
use work_permit::{Stats, fitness};

fn here() -> ThreadId {
    thread::current().id()
}

type Tried = Result<Dispatched<ThreadId>, Rejected<fn() -> ThreadId>>;

/// An attempt that is done.
fn done(exec: &Executor) -> Tried {
    exec.speculate(|| Ok(here()))
}

/// An attempt that would block.
fn would_block(exec: &Executor) -> Tried {
    exec.speculate(|| Err(here as fn() -> ThreadId))
}

/// What the books say of attempts: done, left to the queue, under way.
fn attempts(stats: &Stats) -> (u64, u64, usize) {
    (stats.speculated, stats.would_block, stats.attempts)
}

#[test]
fn an_attempt_that_is_done_is_an_inline_run() {
    let exec = executor(1);
    let borrowed = Rc::new(RefCell::new(Vec::new()));
    for n in 0..10 {
        // It borrows, and stays on its thread.
        let attempt = || {
            borrowed.borrow_mut().push(n);
            Ok::<_, fn() -> u32>(n)
        };
        assert!(matches!(exec.speculate(attempt).unwrap(), Dispatched::Inline(m) if m == n));
    }
    assert_eq!(borrowed.borrow().len(), 10);
    let stats = exec.stats();
    assert_eq!((stats.accepted, stats.completed, stats.ran_inline), (10, 10, 10));
    assert_eq!(attempts(&stats), (10, 0, 0));
    assert_eq!((stats.asked, stats.refused.total()), (0, 0));
    assert_eq!(exec.pool().stats().created, 0);
    assert_quiet(&exec);
}

#[test]
fn what_would_block_is_queued() {
    hang_guard(|| {
        let exec = executor(1);
        let dispatched = would_block(&exec).unwrap();
        assert!(!dispatched.is_inline(), "also with a permit free");
        assert_ne!(block_on(dispatched).unwrap(), here());
        // As any queued task: its joiner runs it, it is cancelled, it comes out at the end.
        let latch = occupy(&exec);
        let joined = would_block(&exec).unwrap();
        let Dispatched::Queued(cancelled) = would_block(&exec).unwrap() else { panic!("inline") };
        assert!(cancelled.cancel());
        latch.open();
        joined.join().unwrap();
        exec.set_limit(0).unwrap();
        let last = would_block(&exec).unwrap();
        let mut unrun = exec.shutdown_now();
        assert_eq!(unrun.len(), 1);
        unrun.pop().unwrap().run();
        assert_eq!(last.join().unwrap(), here());
        let stats = exec.stats();
        assert_eq!(attempts(&stats), (0, 4, 0));
        assert_eq!((stats.accepted, stats.completed, stats.ran_inline), (5, 3, 0));
        assert_eq!((stats.cancelled, stats.unrun, stats.asked), (1, 1, 1));
        assert_quiet(&exec);
    });
}

#[test]
fn an_attempt_needs_nothing_and_nobody() {
    hang_guard(|| {
        let pool = Pool::new();
        let builder = pool.executor("strict").limit(1).queue_capacity(0).max_inline_depth(0);
        let builder = builder.inline(Inline::Never).requires(Operations::ALL);
        let exec = builder.build().unwrap();
        // No permit, no place in the queue, an unfit thread.
        let _permit = exec.acquire().unwrap();
        let _none = fitness::no_inline();
        assert_eq!(done(&exec).unwrap().join().unwrap(), here());
        assert_eq!(would_block(&exec).unwrap_err().reason(), Reason::QueueFull);
        exec.set_limit(0).unwrap();
        assert!(done(&exec).unwrap().is_inline());
        assert_eq!(attempts(&exec.stats()), (2, 0, 0));
    });
}

#[test]
fn after_the_end_only_what_blocks_is_refused() {
    hang_guard(|| {
        let exec = executor(1);
        let before = would_block(&exec).unwrap();
        exec.close();
        assert!(done(&exec).unwrap().is_inline());
        let tried = Cell::new(false);
        let refused = exec.speculate(|| {
            tried.set(true);
            Err(|| "the rest")
        });
        let refused = refused.unwrap_err();
        assert!(tried.get(), "only the attempt can tell");
        assert_eq!(refused.reason(), Reason::Closed);
        assert_eq!(refused.into_task()(), "the rest");
        before.join().unwrap();
        exec.drain(Duration::MAX).unwrap();
        let stats = exec.stats();
        assert_eq!(attempts(&stats), (1, 1, 0));
        assert_eq!((stats.accepted, stats.refused.closed), (2, 1));
        assert_quiet(&exec);
    });
}

#[test]
fn an_unfit_thread_waits_for_the_rest() {
    hang_guard(|| {
        let exec = executor(1);
        let _none = fitness::no_inline();
        assert_eq!(done(&exec).unwrap().join().unwrap(), here());
        assert_ne!(would_block(&exec).unwrap().join().unwrap(), here());
        assert_eq!(exec.stats().not_fit, 0, "not why it was queued");
        assert_quiet(&exec);
    });
}

#[test]
fn an_attempt_is_no_task_of_the_executor() {
    hang_guard(|| {
        let exec = executor(1);
        let inside = || {
            assert!(!exec.is_held());
            let gauges = exec.stats();
            assert_eq!((gauges.active, gauges.inline, gauges.attempts), (0, 0, 1));
            // What it calls needs a permit, and there is one.
            exec.run(|| assert_eq!(exec.stats().active, 1)).unwrap();
            let permit = exec.acquire().unwrap();
            assert_eq!(exec.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
            drop(permit);
            // Nor does anybody wait for it.
            exec.drain(Duration::MAX).unwrap();
            Ok::<_, fn()>(())
        };
        exec.speculate(inside).unwrap().join().unwrap();
        assert_eq!(exec.stats().completed, 2);
        assert_quiet(&exec);
    });
}

#[test]
fn an_attempt_inside_of_a_task_is_inside_of_that_task() {
    hang_guard(|| {
        let exec = executor(1);
        let inner = exec.clone();
        let nested = exec.run(|| {
            let attempt = || {
                assert!(inner.is_held());
                assert_eq!(inner.run(here).unwrap(), here(), "under the permit of the task");
                Err(here as fn() -> ThreadId)
            };
            // The rest is queued all the same; joined in here, it runs under that permit too.
            inner.speculate(attempt).unwrap().join().unwrap()
        });
        assert_eq!(nested.unwrap(), here());
        assert_eq!(attempts(&exec.stats()), (0, 1, 0));
        assert_quiet(&exec);
    });
}

/// `dispatch` inside of attempts inside of `dispatch`: a bound holds, since attempts count for depth.
fn recurse(exec: &Executor, left: usize, deepest: &Arc<Mutex<usize>>, depth: usize) {
    let mut most = deepest.lock().unwrap();
    *most = depth.max(*most);
    drop(most);
    if left == 0 {
        return;
    }
    let (inner, seen) = (exec.clone(), Arc::clone(deepest));
    let attempt = || {
        let (again, seen) = (inner.clone(), Arc::clone(&seen));
        drop(inner.dispatch(move || recurse(&again, left - 1, &seen, depth + 1)).unwrap());
        Ok::<_, fn()>(())
    };
    exec.speculate(attempt).unwrap().join().unwrap();
}

#[test]
fn recursion_through_attempts_has_a_bound() {
    hang_guard(|| {
        let exec = Pool::new().executor("deep").limit(1000).max_inline_depth(8).build().unwrap();
        let deepest = Arc::new(Mutex::new(0));
        recurse(&exec, 6, &deepest, 0);
        exec.drain(Duration::MAX).unwrap();
        assert_eq!(exec.stats().too_deep, 1, "the fifth: four tasks and five attempts are around");
        assert_eq!(*deepest.lock().unwrap(), 6);
        assert_quiet(&exec);
    });
}

#[test]
fn panics_go_where_the_work_is() {
    hang_guard(|| {
        let exec = executor(1);
        let attempt = || -> Result<(), fn()> { resume_unwind(Box::new("the attempt")) };
        let caught = catch_unwind(AssertUnwindSafe(|| exec.speculate(attempt)));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"the attempt"));
        let stats = exec.stats();
        assert_eq!((stats.accepted, stats.completed, stats.panicked), (1, 1, 1));
        assert_eq!(attempts(&stats), (1, 0, 0));
        let rest = || resume_unwind(Box::new("the rest"));
        let queued = exec.speculate(|| Err::<(), _>(rest)).unwrap();
        match block_on(queued) {
            Err(JoinError::Panicked(panic)) => assert_eq!(panic.message(), Some("the rest")),
            other => panic!("{other:?}"),
        }
        assert_eq!(exec.stats().panicked, 2);
        assert!(exec.try_run(|| ()).is_ok(), "the thread is as it was");
        assert_quiet(&exec);
    });
}

#[test]
fn an_attempt_leaves_its_thread_as_it_was() {
    let exec = executor(1);
    let forgets = || {
        std::mem::forget(fitness::no_inline());
        Ok::<_, fn()>(())
    };
    assert!(exec.speculate(forgets).unwrap().is_inline());
    assert!(exec.try_run(|| ()).is_ok());
}

/// The rest stands at the end of the queue, wherever its call began.
#[test]
fn the_rest_queues_behind_what_came_meanwhile() {
    hang_guard(|| {
        let exec = executor(1);
        let latch = occupy(&exec);
        let (order, seen) = mpsc::channel();
        let note = |name: &'static str| {
            let order = order.clone();
            move || order.send(name).unwrap()
        };
        let attempt = || {
            exec.execute(note("first")).unwrap();
            Err(note("rest"))
        };
        let rest = exec.speculate(attempt).unwrap();
        exec.execute(note("last")).unwrap();
        latch.open();
        block_on(rest).unwrap();
        exec.drain(Duration::MAX).unwrap();
        assert!(seen.try_iter().eq(["first", "rest", "last"]));
    });
}

/// Its wait began when the call did.
#[cfg(feature = "histogram")]
#[test]
fn the_wait_is_counted_from_the_call_on() {
    hang_guard(|| {
        let exec = Pool::new().executor("timed").limit(1).record_waits(true).build().unwrap();
        let attempt = || {
            // sleep: the time that the attempt takes is the subject.
            thread::sleep(Duration::from_millis(20));
            Err(|| ())
        };
        exec.speculate(attempt).unwrap().join().unwrap();
        let waits = exec.stats().queue_wait.unwrap();
        assert_eq!(waits.count, 1);
        assert!(waits.max_ns >= 19_900_000, "{waits:?}");
        assert!(done(&exec).unwrap().is_inline());
        assert_eq!(exec.stats().queue_wait.unwrap().count, 1, "what is done waited for nothing");
    });
}

#[test]
fn attempts_of_many_threads_are_all_counted() {
    hang_guard(|| {
        const THREADS: u64 = 80; // More than there are places for.
        const CALLS: u64 = 500;
        let exec = executor(2);
        let all_stand = Latch::new();
        thread::scope(|s| {
            for _ in 0..THREADS {
                s.spawn(|| {
                    let wait = || {
                        all_stand.wait();
                        Ok::<_, fn()>(())
                    };
                    exec.speculate(wait).unwrap().join().unwrap();
                    for n in 1..CALLS {
                        let ran =
                            exec.speculate(|| if n % 5 == 0 { Err(move || n) } else { Ok(n) });
                        assert_eq!(ran.unwrap().join().unwrap(), n);
                    }
                });
            }
            until("all are under way", || exec.stats().attempts as u64 == THREADS);
            assert_eq!((exec.stats().accepted, exec.stats().active), (0, 0));
            all_stand.open();
        });
        let stats = exec.stats();
        let queued = THREADS * (CALLS / 5 - 1);
        assert_eq!(attempts(&stats), (THREADS * CALLS - queued, queued, 0));
        assert_eq!((stats.accepted, stats.ran_queued), (THREADS * CALLS, queued));
        assert_quiet(&exec);
    });
}
