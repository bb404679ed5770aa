//! A thread inside of a task of an executor waits for the levels below it, at one after the other: what ends the wait
//! before it has them all.
#![forbid(unsafe_code)]

use crate::support::{HANG, Meeting, hang_guard, occupy, until};
use crate::{at_rest, child, root, strand};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use work_permit::{Executor, JoinError, Reason, ScopedJoinHandle};

const ROUNDS: usize = 3_000;

/// A thread that goes into a task of `top` and calls `run` on `low`, where it waits.
fn runs_below(top: &Executor, low: &Executor) -> JoinHandle<Result<(), Reason>> {
    let (exec, aim, before) = (top.clone(), low.clone(), low.stats().waiting);
    let run = move || aim.run(|| ()).map_err(|refused| refused.reason());
    let thread = thread::spawn(move || exec.run(run).unwrap());
    until("he waits", || low.stats().waiting > before);
    thread
}

#[test]
fn a_shutdown_reaches_who_waits_for_the_level_above() {
    hang_guard(|| {
        let top = root(4);
        let middle = child(&top, 1);
        let low = strand(&middle);
        let busy = occupy(&middle);
        let nested = runs_below(&top, &low);
        assert!(low.shutdown_now().is_empty());
        assert_eq!(nested.join().unwrap(), Err(Reason::Closed), "with the permit above still out");
        low.drain(HANG).unwrap();
        busy.open();
        at_rest(&[&top, &middle, &low]);
    });
}

#[test]
fn a_shutdown_in_between_reaches_those_on_their_way_through_it_and_nobody_else() {
    hang_guard(|| {
        let top = root(4);
        let upper = child(&top, 1);
        let (middle, beside) = (child(&upper, 1), strand(&upper));
        let low = strand(&middle);
        let busy = occupy(&upper);
        let through = runs_below(&top, &low);
        let past = runs_below(&top, &beside);
        assert!(middle.shutdown_now().is_empty());
        assert_eq!(through.join().unwrap(), Err(Reason::Closed));
        busy.open();
        assert_eq!(past.join().unwrap(), Ok(()));
        at_rest(&[&top, &upper, &middle, &beside, &low]);
    });
}

#[test]
fn a_joiner_at_the_level_above_hears_of_a_shutdown() {
    hang_guard(|| {
        for is_run in [false, true] {
            let top = root(4);
            let middle = child(&top, 1);
            let low = strand(&middle);
            let busy = occupy(&middle);
            let task = low.spawn(|| 1).unwrap();
            let exec = top.clone();
            let nested = thread::spawn(move || exec.run(|| task.join()).unwrap());
            until("he waits", || low.stats().waiting == 1);
            let mut unrun = low.shutdown_now();
            match (is_run, unrun.pop().unwrap()) {
                (true, unrun) => unrun.run(),
                (false, unrun) => drop(unrun),
            }
            let joined = nested.join().unwrap();
            assert!(matches!((is_run, joined), (true, Ok(1)) | (false, Err(JoinError::Closed))));
            busy.open();
            at_rest(&[&top, &middle, &low]);
        }
    });
}

#[test]
fn who_waits_for_the_level_above_keeps_his_turn_when_the_lower_one_closes() {
    hang_guard(|| {
        let top = root(4);
        let middle = child(&top, 1);
        let low = strand(&middle);
        let busy = occupy(&middle);
        let nested = runs_below(&top, &low);
        let unfinished = low.drain(Duration::ZERO).unwrap_err();
        assert_eq!((unfinished.reason(), unfinished.active), (Reason::TimedOut, 0));
        busy.open();
        low.drain(HANG).unwrap();
        assert_eq!(low.stats().completed, 1, "he had his turn before the drain was over");
        assert_eq!(nested.join().unwrap(), Ok(()));
        at_rest(&[&top, &middle, &low]);
    });
}

/// A scope at its end waits for a task, at `paused`, which has no permit any more, and another task of the scope takes
/// that one back.
fn a_task_is_taken_back(top: &Executor, low: &Executor, paused: &Executor) {
    let cancelled = AtomicBool::new(false);
    let scope = || {
        low.scope(|s| {
            let ((told, begins), (tx, rx)) = (mpsc::channel(), mpsc::channel());
            let cancelled = &cancelled;
            let takes_back = move || {
                told.send(()).unwrap();
                let handle: ScopedJoinHandle<'_, ()> = rx.recv().unwrap();
                until("it waits", || low.stats().waiting == 1);
                paused.set_limit(0).unwrap();
                cancelled.store(handle.cancel(), SeqCst);
            };
            drop(s.spawn(takes_back).unwrap());
            begins.recv().unwrap();
            tx.send(s.spawn(|| unreachable!("it is taken back")).unwrap()).unwrap();
        });
    };
    top.run(scope).unwrap();
    assert!(cancelled.into_inner());
    paused.set_limit(1).unwrap();
    at_rest(&[top, low, paused]);
}

#[test]
fn a_scope_does_not_wait_for_a_permit_of_a_task_that_is_taken_back() {
    hang_guard(|| {
        let top = root(3);
        let low = strand(&top);
        a_task_is_taken_back(&top, &low, &low);
    });
}

#[test]
fn nor_does_it_at_the_level_above() {
    hang_guard(|| {
        let top = root(3);
        let middle = child(&top, 1);
        let low = strand(&middle);
        a_task_is_taken_back(&top, &low, &middle);
    });
}

/// Who waits inside of a task of the root for a level that has no permit keeps none of the level between.
#[test]
fn a_permit_that_cannot_be_used_is_not_kept() {
    hang_guard(|| {
        let top = root(4);
        let middle = child(&top, 1);
        let (paused, beside) = (child(&middle, 1), strand(&middle));
        paused.set_limit(0).unwrap();
        let nested = runs_below(&top, &paused);
        assert_eq!(beside.run(|| 1).unwrap(), 1, "the permit between is free");
        assert_eq!(beside.spawn(|| 2).unwrap().join().unwrap(), 2);
        // Nor is the level below kept by one who waits for that between.
        let busy = occupy(&middle);
        paused.set_limit(1).unwrap();
        until("the level below is free for others", || paused.stats().free == 1);
        assert_eq!((middle.stats().waiting, paused.stats().waiting), (0, 1), "he is bound there");
        busy.open();
        assert_eq!(nested.join().unwrap(), Ok(()));
        at_rest(&[&top, &middle, &paused, &beside]);
    });
}

/// Tasks of one level wait for each other's siblings while others, from a task of the root, come down past them.
#[test]
fn who_comes_down_leaves_room_for_siblings() {
    hang_guard(|| {
        let top = root(3);
        let middle = child(&top, 2);
        let (one, other) = (strand(&middle), strand(&middle));
        let (go, gone) = mpsc::channel();
        let sibling = other.clone();
        let task = one.spawn(move || {
            gone.recv().unwrap();
            let (told, tells) = mpsc::channel();
            sibling.execute(move || told.send(7).unwrap()).unwrap();
            tells.recv().unwrap()
        });
        until("it runs", || one.stats().active == 1);
        let nested = runs_below(&top, &one);
        go.send(()).unwrap();
        assert_eq!(task.unwrap().join().unwrap(), 7);
        assert_eq!(nested.join().unwrap(), Ok(()));
        at_rest(&[&top, &middle, &one, &other]);
    });
}

/// `call` queues a task of a strand, meets and waits for it, just as a worker starts it; the strand gets no more permits
/// then. Rounds differ in which of the two is how far ahead.
fn a_worker_is_first(call: fn(&Executor, &dyn Fn())) {
    let top = root(2);
    for round in 0..ROUNDS {
        let low = strand(&top);
        let busy = low.acquire().unwrap();
        let (top, low, both) = (&top, &low, &Meeting::of(2));
        thread::scope(|s| {
            let meet = move || {
                both.meet();
                (0..10 * (round % 100)).for_each(|_| std::hint::spin_loop());
            };
            s.spawn(move || top.run(|| call(low, &meet)).unwrap());
            both.meet();
            drop(busy);
            until("it has begun", || low.stats().queued == 0);
            low.set_limit(0).unwrap();
        });
    }
}

#[test]
fn a_join_ends_with_its_task_whoever_starts_it() {
    hang_guard(|| {
        a_worker_is_first(|low, meet| {
            let task = low.spawn(|| ()).unwrap();
            meet();
            task.join().unwrap();
        });
    });
}

#[test]
fn a_scope_ends_with_its_tasks_whoever_starts_them() {
    hang_guard(|| {
        a_worker_is_first(|low, meet| {
            low.scope(|s| {
                drop(s.spawn(|| ()).unwrap());
                meet();
            });
        });
    });
}
