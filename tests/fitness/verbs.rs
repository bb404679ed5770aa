//! Each verb on threads of every kind.

use crate::support::{Latch, assert_quiet, block_on, executor, hang_guard, until};
use crate::{A, B, here, is_fit, requiring};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;
use work_permit::{Dispatched, Executor, Inline, JoinError, Operations, Pool, Reason, fitness};

/// Every verb finds this thread fit, or unfit, while permits are free and a worker is there to be had.
fn every_verb(exec: &Executor, fit: bool) {
    let before = exec.stats();
    let refused = |reason: Option<Reason>| assert_eq!(reason, (!fit).then_some(Reason::NotFit));
    let ran_here = |there: ThreadId| {
        assert_eq!(there, here());
        None
    };
    refused(exec.try_run(here).map_or_else(|no| Some(no.reason()), ran_here));
    refused(exec.run(here).map_or_else(|no| Some(no.reason()), ran_here));
    let timed = exec.run_timeout(Duration::MAX, here);
    refused(timed.map_or_else(|no| Some(no.reason()), ran_here));
    // Whatever the time, one who is not fit is told so.
    let zero = exec.run_timeout(Duration::ZERO, here).unwrap_err().reason();
    assert_eq!(zero, if fit { Reason::TimedOut } else { Reason::NotFit });
    match exec.dispatch(here).unwrap() {
        Dispatched::Inline(there) => assert!(fit && there == here()),
        Dispatched::Queued(handle) => assert!(!fit && handle.join().unwrap() != here()),
    }
    // Queued for whoever is first: a worker, or a joiner that may.
    let there = exec.spawn(here).unwrap().join().unwrap();
    assert!(fit || there != here());
    let timed = exec.spawn(here).unwrap().join_timeout(Duration::MAX);
    let there = timed.unwrap().unwrap();
    assert!(fit || there != here());
    assert_ne!(block_on(exec.spawn(here).unwrap()).unwrap(), here());
    exec.execute(|| ()).unwrap();
    // A permit runs nothing.
    drop(exec.try_acquire().unwrap());
    drop(exec.acquire().unwrap());
    drop(exec.acquire_timeout(Duration::MAX).unwrap());
    until("quiet", || {
        let stats = exec.stats();
        stats.queued + stats.active == 0
    });
    let after = exec.stats();
    let no = u64::from(!fit);
    assert_eq!(after.not_fit - before.not_fit, no);
    assert_eq!(after.refused.not_fit - before.refused.not_fit, 4 * no);
    assert_eq!(after.asked - before.asked, 4, "spawned and executed, fit or not");
    assert_eq!(after.ran_inline - before.ran_inline, if fit { 4 } else { 0 });
    assert_eq!(after.no_permit + after.too_deep, 0);
    assert_quiet(exec);
}

#[test]
fn every_verb_on_every_thread() {
    hang_guard(|| {
        let any = executor(2);
        let (a, both) = (requiring(A, 2), requiring(A | B, 2));
        let all = |fit: [bool; 3]| {
            every_verb(&any, fit[0]);
            every_verb(&a, fit[1]);
            every_verb(&both, fit[2]);
        };
        all([true, false, false]);
        for (allowed, fit) in [
            (Operations::NONE, [true, false, false]),
            (A, [true, true, false]),
            (B, [true, false, false]),
            (A | B, [true; 3]),
            (Operations::ALL, [true; 3]),
        ] {
            let _guard = fitness::allow(allowed);
            all(fit);
            let _none = fitness::no_inline();
            all([false; 3]);
        }
        all([true, false, false]);
    });
}

#[test]
fn a_worker_is_fit_for_everything() {
    hang_guard(|| {
        let (host, all) = (executor(1), requiring(Operations::ALL, 1));
        let inner = all.clone();
        let asked = move || {
            assert!(is_fit(&inner));
            assert!(inner.dispatch(|| ()).unwrap().is_inline());
            // What a task says of its thread counts there too.
            let _less = fitness::allow(A);
            assert!(!is_fit(&inner));
            assert!(!inner.dispatch(|| ()).unwrap().is_inline());
        };
        block_on(host.spawn(asked).unwrap()).unwrap();
        assert!(!is_fit(&all), "this thread is none");
        all.drain(Duration::MAX).unwrap();
    });
}

#[test]
fn an_unfit_join_waits_for_a_worker_beside_free_permits() {
    hang_guard(|| {
        // One thread, which is kept busy: nobody can start the task before it is free.
        let pool = Pool::builder().max_threads(1).build().unwrap();
        let busy = pool.executor("busy").limit(1).build().unwrap();
        let exec = pool.executor("tested").limit(4).requires(A).build().unwrap();
        let latch = crate::support::occupy(&busy);
        let handle = exec.spawn(here).unwrap();
        let (tx, rx) = mpsc::channel();
        let joiner = thread::spawn(move || {
            tx.send(()).unwrap();
            (handle.join().unwrap(), here())
        });
        rx.recv().unwrap();
        let nobody = exec.spawn(|| ()).unwrap().join_timeout(Duration::from_millis(5));
        assert!(nobody.is_err(), "the time passes beside free permits");
        assert_eq!((exec.stats().free, exec.stats().ran_queued), (4, 0));
        latch.open();
        let (there, joiner) = joiner.join().unwrap();
        assert_ne!(there, joiner);
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn an_unfit_join_that_could_not_end_is_refused() {
    hang_guard(|| {
        let exec = requiring(A, 2);
        let guards = (exec.acquire().unwrap(), exec.acquire().unwrap());
        let (ran, by) = mpsc::channel();
        let handle = exec.spawn(move || ran.send(here()).unwrap()).unwrap();
        assert!(matches!(handle.join(), Err(JoinError::Deadlock)));
        drop(guards);
        assert_ne!(by.recv().unwrap(), here(), "it was not taken back");
        // Inside of a task, which would run it under its own permit.
        let patient = fitness::allow(A);
        let joins = || {
            let _none = fitness::no_inline();
            exec.spawn(here).unwrap().join()
        };
        assert_ne!(exec.run(joins).unwrap().unwrap(), here(), "a permit is left for a worker");
        exec.set_limit(1).unwrap();
        assert!(matches!(exec.run(joins).unwrap(), Err(JoinError::Deadlock)));
        drop(patient);
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn nested_work_finds_the_thread_as_its_task_does() {
    hang_guard(|| {
        let exec = requiring(A, 1);
        let _allowed = fitness::allow(A | B);
        let (inner, latch) = (exec.clone(), Latch::new());
        let opened = latch.clone();
        let outer = exec.run(move || {
            assert!(inner.dispatch(|| ()).unwrap().is_inline());
            assert_eq!(inner.run(here).unwrap(), here());
            let less = fitness::allow(B);
            assert_eq!(inner.run(|| ()).unwrap_err().reason(), Reason::NotFit);
            let queued = inner.dispatch(move || opened.open()).unwrap();
            assert!(!queued.is_inline(), "not even under the permit of its own task");
            drop(less);
            assert_eq!(inner.run_timeout(Duration::ZERO, here).unwrap(), here());
            assert_eq!(inner.spawn(here).unwrap().join().unwrap(), here());
            queued
        });
        block_on(outer.unwrap()).unwrap();
        assert!(latch.is_open());
        assert_eq!(exec.stats().not_fit, 1);
        assert_quiet(&exec);
    });
}

#[test]
fn the_reason_of_a_hop_is_the_first_that_holds() {
    hang_guard(|| {
        let pool = Pool::new();
        let never = pool.executor("never").limit(1).inline(Inline::Never).requires(A);
        let never = never.build().unwrap();
        never.dispatch(|| ()).unwrap().join().unwrap();
        assert_eq!((never.stats().asked, never.stats().not_fit), (1, 0));
        let flat = pool.executor("flat").limit(1).max_inline_depth(0).requires(A).build().unwrap();
        flat.dispatch(|| ()).unwrap().join().unwrap();
        let _fit = fitness::allow(A);
        flat.dispatch(|| ()).unwrap().join().unwrap();
        assert_eq!((flat.stats().not_fit, flat.stats().too_deep), (1, 1));
        // Closed or not, full or not: an unfit thread is told what it can change.
        let _none = fitness::no_inline();
        flat.close();
        assert_eq!(flat.run(|| ()).unwrap_err().reason(), Reason::NotFit);
        assert_eq!(flat.dispatch(|| ()).unwrap_err().reason(), Reason::Closed);
    });
}

#[test]
fn an_unfit_thread_is_fit_again_when_its_guard_ends_and_the_rest_never_noticed() {
    hang_guard(|| {
        let exec = executor(8);
        let none = fitness::no_inline();
        let others = Arc::new(AtomicUsize::new(0));
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    (0..100).for_each(|_| assert!(is_fit(&exec)));
                    others.fetch_add(100, SeqCst);
                });
            }
            (0..100).for_each(|_| assert!(!is_fit(&exec)));
        });
        drop(none);
        assert!(is_fit(&exec));
        assert_eq!((others.load(SeqCst), exec.stats().refused.not_fit), (400, 100));
        assert_quiet(&exec);
    });
}

#[test]
fn batches_want_a_fit_thread_and_scopes_leave_their_tasks_to_workers() {
    hang_guard(|| {
        let exec = requiring(A, 2);
        let refused = exec.run_all([here, here]).unwrap_err();
        assert_eq!((refused.reason(), refused.into_task().len()), (Reason::NotFit, 2));
        let there = exec.scope(|scope| {
            let first = scope.spawn(here).unwrap();
            drop(scope.spawn(|| assert!(is_fit(&exec))).unwrap());
            first.join().unwrap()
        });
        assert_ne!(there, here());
        let _fit = fitness::allow(A);
        assert_eq!(exec.run_all([here]).unwrap(), [here()]);
        assert_quiet(&exec);
    });
}
