//! A task that gives work to its own executor, and waits for it.

use crate::on_worker;
use crate::support::{Latch, Meeting, assert_quiet, executor, hang_guard, until};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use work_permit::{Dispatched, Executor, Inline, JoinError, Pool, Reason};

/// A call inside a call inside a call, by each of the inline verbs in turn.
fn nest(exec: &Executor, levels: usize) -> usize {
    assert_eq!(exec.stats().active, 1, "all levels share one permit");
    if levels == 0 {
        let from_outside = thread::scope(|s| s.spawn(|| exec.try_run(|| ()).is_ok()).join());
        assert!(!from_outside.unwrap(), "the permit is taken");
        return 0;
    }
    let here = thread::current().id();
    let deeper = || {
        assert_eq!(thread::current().id(), here);
        nest(exec, levels - 1)
    };
    1 + match levels % 4 {
        0 => exec.run(deeper).unwrap(),
        1 => exec.try_run(deeper).unwrap(),
        2 => exec.run_timeout(Duration::ZERO, deeper).unwrap(),
        _ => {
            let inner = exec.clone();
            match exec.dispatch(move || nest(&inner, levels - 1)).unwrap() {
                Dispatched::Inline(depth) => depth,
                Dispatched::Queued(_) => panic!("queued behind its own caller"),
            }
        }
    }
}

#[test]
fn b01_nested_run_from_inside() {
    hang_guard(|| {
        let exec = executor(1);
        assert_eq!(exec.run(|| nest(&exec, 10)).unwrap(), 10);
        let inner = exec.clone();
        assert_eq!(on_worker(&exec, move || nest(&inner, 10)), 10);
        until("quiet", || exec.stats().free == 1);
        assert_quiet(&exec);
    });
}

#[test]
fn b01_what_cannot_nest_is_refused_and_never_hangs() {
    hang_guard(|| {
        let exec = executor(1);
        // A guard is not a task: what its holder runs needs a permit more.
        let guard = exec.acquire().unwrap();
        assert_eq!(exec.run(|| ()).unwrap_err().reason(), Reason::Deadlock);
        assert_eq!(exec.acquire().unwrap_err().reason(), Reason::Deadlock);
        assert_eq!(exec.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
        let (tx, rx) = mpsc::channel();
        let queued = exec.spawn(move || tx.send("ran").unwrap()).unwrap();
        assert!(matches!(queued.join(), Err(JoinError::Deadlock)));
        drop(guard);
        assert_eq!(rx.recv(), Ok("ran"), "a refused join does not take the task back");
        // Nor is a second permit to be had inside the only task.
        let inside = exec.run(|| exec.acquire().map(drop)).unwrap();
        assert_eq!(inside.unwrap_err().reason(), Reason::Deadlock);
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b02_children_are_joined_while_their_parents_hold_all_permits() {
    hang_guard(|| {
        const PARENTS: usize = 4;
        let exec = executor(PARENTS);
        let (all_hold, all_joined) = (Meeting::of(PARENTS), Meeting::of(PARENTS));
        let (tx, rx) = mpsc::channel();
        for parent in 0..PARENTS {
            let (all_hold, all_joined) = (all_hold.clone(), all_joined.clone());
            let (inner, tx) = (exec.clone(), tx.clone());
            let family = move || {
                all_hold.meet();
                let here = thread::current().id();
                let child = inner.spawn(move || (parent, thread::current().id())).unwrap();
                let (number, there) = child.join().unwrap();
                tx.send((number == parent, there == here)).unwrap();
                // Nobody gives his permit to the child of another before that.
                all_joined.meet();
            };
            exec.execute(family).unwrap();
        }
        for _ in 0..PARENTS {
            assert_eq!(rx.recv(), Ok((true, true)), "its own child, and right here");
        }
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

fn generations(exec: &Executor, left: u32) -> u32 {
    if left == 0 {
        return 0;
    }
    let inner = exec.clone();
    let child = exec.dispatch(move || generations(&inner, left - 1)).unwrap();
    assert!(!child.is_inline());
    1 + child.join().unwrap()
}

#[test]
fn b02_a_line_of_descendants_needs_one_permit() {
    hang_guard(|| {
        let builder = Pool::new().executor("queues").limit(1);
        let exec = builder.inline(Inline::Never).build().unwrap();
        assert_eq!(generations(&exec, 100), 100, "each joins the next");
        let inner = exec.clone();
        assert_eq!(on_worker(&exec, move || generations(&inner, 100)), 100);
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b03_a_holder_never_blocks_in_a_submit() {
    hang_guard(|| {
        const OUTER: usize = 100;
        let builder = Pool::new().executor("full").limit(OUTER);
        let exec = builder.queue_capacity(OUTER).build().unwrap();
        let (all_hold, is_full) = (Meeting::of(OUTER + 1), Latch::new());
        let all_tried = Meeting::of(OUTER);
        let inner_runs = Arc::new(AtomicUsize::new(0));
        for _ in 0..OUTER {
            let (all_hold, is_full) = (all_hold.clone(), is_full.clone());
            let all_tried = all_tried.clone();
            let (exec_inside, runs) = (exec.clone(), Arc::clone(&inner_runs));
            let outer = move || {
                all_hold.meet();
                is_full.wait();
                let add = |runs: &Arc<AtomicUsize>| {
                    let runs = Arc::clone(runs);
                    move || {
                        runs.fetch_add(1, SeqCst);
                    }
                };
                let refused = exec_inside.spawn(add(&runs)).map(drop).unwrap_err();
                assert_eq!(refused.reason(), Reason::QueueFull);
                exec_inside.run(refused.into_task()).unwrap();
                exec_inside.run(add(&runs)).unwrap();
                assert!(exec_inside.dispatch(add(&runs)).unwrap().is_inline());
                // Until then nobody makes room in the queue.
                all_tried.meet();
            };
            exec.execute(outer).unwrap();
        }
        all_hold.meet();
        for _ in 0..OUTER {
            exec.execute(|| ()).unwrap();
        }
        is_full.open();
        until("all have run", || exec.stats().completed as usize == 5 * OUTER);
        exec.drain(Duration::MAX).unwrap();
        assert_eq!(inner_runs.load(SeqCst), 3 * OUTER);
        assert_quiet(&exec);
    });
}
