//! Ends: close, drain and shutdown at each level, panics, dropped handles.
#![forbid(unsafe_code)]

use crate::support::{HANG, hang_guard, occupy, until};
use crate::{at_rest, child, root, strand};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use work_permit::{JoinError, Pool, Reason, Stripes};

#[test]
fn closing_a_parent_closes_below() {
    hang_guard(|| {
        let top = root(1);
        let middle = child(&top, 1);
        let low = strand(&middle);
        let busy = occupy(&top);
        let accepted = low.spawn(|| 1).unwrap();
        top.close();
        for exec in [&top, &middle, &low] {
            assert_eq!(exec.execute(|| ()).unwrap_err().reason(), Reason::Closed);
            assert_eq!(exec.try_run(|| ()).unwrap_err().reason(), Reason::Closed);
            assert_eq!(exec.run(|| ()).unwrap_err().reason(), Reason::Closed);
            assert_eq!(exec.dispatch(|| ()).unwrap_err().reason(), Reason::Closed);
            assert_eq!(exec.acquire().unwrap_err().reason(), Reason::Closed);
        }
        busy.open();
        assert_eq!(accepted.join().unwrap(), 1);
        top.drain(HANG).unwrap();
        at_rest(&[&top, &middle, &low]);
    });
}

#[test]
fn closing_a_child_leaves_its_parent_open() {
    hang_guard(|| {
        let top = root(1);
        let (low, other) = (strand(&top), strand(&top));
        low.close();
        assert_eq!(low.run(|| ()).unwrap_err().reason(), Reason::Closed);
        assert_eq!(top.stats().free, 1);
        assert!(top.try_run(|| ()).is_ok() && other.try_run(|| ()).is_ok());
        low.drain(HANG).unwrap();
    });
}

#[test]
fn draining_a_parent_waits_for_what_is_below() {
    hang_guard(|| {
        let top = root(2);
        let paused = child(&top, 0);
        let low = strand(&paused);
        let (sent, ran) = (low.spawn(|| 1).unwrap(), paused.spawn(|| 2).unwrap());
        let unfinished = top.drain(Duration::from_millis(1)).unwrap_err();
        assert_eq!((unfinished.reason(), unfinished.active), (Reason::TimedOut, 0));
        assert_eq!(unfinished.queued, 2, "those below are left too");
        assert_eq!(paused.drain(Duration::ZERO).unwrap_err().queued, 2);
        assert_eq!(low.drain(Duration::ZERO).unwrap_err().queued, 1);
        assert_eq!((top.stats().queued, paused.stats().queued), (0, 1), "each counts its own");
        paused.set_limit(1).unwrap();
        top.drain(HANG).unwrap();
        assert!(sent.is_finished() && ran.is_finished());
        low.drain(Duration::ZERO).unwrap();
        at_rest(&[&top, &paused, &low]);
    });
}

#[test]
fn a_drain_of_a_child_does_not_wait_for_its_siblings() {
    hang_guard(|| {
        let top = root(2);
        let (low, other) = (strand(&top), strand(&top));
        let busy = occupy(&other);
        let handle = low.spawn(|| 1).unwrap();
        low.drain(HANG).unwrap();
        assert!(handle.is_finished());
        assert_eq!(other.drain(Duration::ZERO).unwrap_err().active, 1);
        busy.open();
        top.drain(HANG).unwrap();
    });
}

#[test]
fn shutdown_now_takes_out_what_is_below() {
    hang_guard(|| {
        let top = root(1);
        let (a, b) = (strand(&top), child(&top, 3));
        let deep = strand(&b);
        let busy = occupy(&top);
        let handles: Vec<_> =
            [&top, &a, &b, &deep, &deep].map(|exec| exec.spawn(|| 1).unwrap()).into();
        let waiter = {
            let deep = deep.clone();
            thread::spawn(move || deep.run(|| ()).map_err(|refused| refused.reason()))
        };
        until("he waits", || deep.stats().waiting == 1);
        let unrun = top.shutdown_now();
        assert_eq!(unrun.len(), 5);
        assert_eq!(waiter.join().unwrap(), Err(Reason::Closed));
        unrun.into_iter().skip(3).for_each(|unrun| unrun.run());
        let ends: Vec<_> = handles.into_iter().map(|handle| handle.join().is_ok()).collect();
        assert_eq!(ends.iter().filter(|&&ran| ran).count(), 2);
        busy.open();
        top.drain(HANG).unwrap();
        at_rest(&[&top, &a, &b, &deep]);
        assert_eq!([&top, &a, &b, &deep].map(|exec| exec.stats().unrun), [1, 1, 1, 2]);
    });
}

#[test]
fn shutdown_now_of_a_child_leaves_the_others() {
    hang_guard(|| {
        let top = root(1);
        let (a, b) = (child(&top, 2), strand(&top));
        let deep = strand(&a);
        let busy = occupy(&top);
        let (gone, below) = (a.spawn(|| 1).unwrap(), deep.spawn(|| 2).unwrap());
        let stays = b.spawn(|| 3).unwrap();
        assert_eq!(a.shutdown_now().len(), 2);
        assert!(matches!(gone.join(), Err(JoinError::Closed)));
        assert!(matches!(below.join(), Err(JoinError::Closed)));
        busy.open();
        assert_eq!(stays.join().unwrap(), 3);
        a.drain(HANG).unwrap();
        assert!(top.dispatch(|| ()).unwrap().is_inline());
        at_rest(&[&top, &a, &b, &deep]);
    });
}

/// The limit of a level above is lowered to what this thread holds, but what runs in the child has its permits.
#[test]
fn a_drain_waits_for_what_runs_whatever_the_thread_holds() {
    hang_guard(|| {
        let top = root(2);
        let low = strand(&top);
        let busy = occupy(&low);
        top.run(|| {
            top.set_limit(1).unwrap();
            let left = low.drain(Duration::from_millis(1)).unwrap_err();
            assert_eq!((left.reason(), left.active, left.queued), (Reason::TimedOut, 1, 0));
            busy.open();
            low.drain(HANG).unwrap();
        })
        .unwrap();
        at_rest(&[&top, &low]);
    });
}

/// A thread that waits inside of a task of the root is counted where it is bound for, whichever level has no permit.
#[test]
fn what_is_left_is_said_of_those_who_stand_further_up() {
    hang_guard(|| {
        let top = root(3);
        let middle = child(&top, 1);
        let low = strand(&middle);
        let busy = occupy(&middle);
        let (exec, aim) = (top.clone(), low.clone());
        let nested = thread::spawn(move || exec.run(|| aim.run(|| ()).is_ok()).unwrap());
        until("he waits", || low.stats().waiting == 1);
        let left = low.drain(Duration::from_millis(1)).unwrap_err();
        assert_eq!((left.reason(), left.active, left.queued), (Reason::TimedOut, 0, 1));
        assert_eq!((middle.stats().waiting, middle.stats().guards), (0, 0));
        busy.open();
        assert!(nested.join().unwrap(), "he came before the close");
        low.drain(HANG).unwrap();
        at_rest(&[&top, &middle, &low]);
    });
}

#[test]
fn a_pool_that_is_shut_down_takes_no_children() {
    let pool = Pool::new();
    let top = pool.executor("root").limit(1).build().unwrap();
    pool.shutdown(HANG).unwrap();
    assert!(top.child("late").build().is_err());
    assert!(Stripes::new(&top, 2).is_err());
}

#[test]
fn panics_give_every_permit_back() {
    hang_guard(|| {
        let top = root(2);
        let low = strand(&top);
        let out = || -> () { resume_unwind(Box::new("out")) };
        let inline = catch_unwind(AssertUnwindSafe(|| low.run(out).is_ok()));
        assert!(inline.is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| low.dispatch(out).is_ok())).is_err());
        let nested = top.run(|| catch_unwind(AssertUnwindSafe(|| low.run(out).is_ok())).is_err());
        assert!(nested.unwrap());
        assert!(matches!(low.spawn(out).unwrap().join(), Err(JoinError::Panicked(_))));
        low.execute(out).unwrap();
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                resume_unwind(Box::new("out"));
            }
        }
        drop(low.spawn(|| Bomb).unwrap());
        low.drain(HANG).unwrap();
        assert_eq!((low.stats().panicked, top.stats().panicked), (5, 0));
        at_rest(&[&top, &low]);
    });
}

#[test]
fn the_last_handle_goes_in_a_task_of_the_strand() {
    hang_guard(|| {
        let pool = Pool::new();
        let top = pool.executor("root").limit(1).build().unwrap();
        let low = strand(&top);
        let (tx, rx) = mpsc::channel();
        for n in 0..3 {
            let (handle, tx) = (low.clone(), tx.clone());
            low.execute(move || {
                drop(handle);
                tx.send(n).unwrap();
            })
            .unwrap();
        }
        drop((low, top, tx));
        assert!(rx.iter().eq(0..3));
        pool.shutdown(HANG).unwrap();
    });
}

#[test]
fn children_outlive_the_handle_of_their_parent() {
    hang_guard(|| {
        let low = {
            let top = root(1);
            strand(&child(&top, 1))
        };
        assert_eq!(low.run(|| 1).unwrap(), 1);
        assert_eq!(low.spawn(|| 2).unwrap().join().unwrap(), 2);
        let latch = occupy(&low);
        let (tx, rx) = mpsc::channel();
        low.execute(move || tx.send(3).unwrap()).unwrap();
        drop(low);
        latch.open();
        assert_eq!(rx.recv().unwrap(), 3, "what was accepted runs without a handle");
    });
}

#[test]
fn a_paused_child_without_handles_ends_its_tasks() {
    hang_guard(|| {
        let top = root(1);
        let paused = child(&top, 0);
        let handle = paused.spawn(|| 1).unwrap();
        drop(paused);
        assert!(matches!(handle.join(), Err(JoinError::Closed)));
        top.drain(HANG).unwrap();
    });
}

#[test]
fn a_pool_shuts_down_with_children_at_work() {
    hang_guard(|| {
        let pool = Pool::new();
        let top = pool.executor("root").limit(2).build().unwrap();
        let lows: Vec<_> = (0..10).map(|_| strand(&top)).collect();
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..20 {
            for low in &lows {
                let ran = Arc::clone(&ran);
                low.execute(move || _ = ran.fetch_add(1, SeqCst)).unwrap();
            }
        }
        pool.shutdown(HANG).unwrap();
        assert_eq!(ran.load(SeqCst), 200);
        assert_eq!(lows[0].run(|| ()).unwrap_err().reason(), Reason::Closed);
        assert_eq!(pool.stats().alive, 0);
    });
}

#[test]
fn an_unfit_thread_under_the_parents_permit_is_told_deadlock() {
    hang_guard(|| {
        let parent = root(1);
        let child = parent.child("child").limit(1).build().unwrap();
        let joined = parent.run(|| {
            let _unfit = work_permit::fitness::no_inline();
            child.spawn(|| 1).unwrap().join()
        });
        assert!(matches!(joined.unwrap(), Err(work_permit::JoinError::Deadlock)));
    });
}

#[test]
fn a_drain_of_a_child_under_the_only_permit_of_its_parent_is_told_deadlock() {
    hang_guard(|| {
        let parent = root(1);
        let child = parent.child("child").limit(1).build().unwrap();
        let left = parent.run(|| {
            child.execute(|| ()).unwrap();
            child.drain(Duration::MAX).unwrap_err()
        });
        assert_eq!(left.unwrap().reason(), Reason::Deadlock);
        child.drain(Duration::MAX).unwrap();
    });
}

#[test]
fn a_shutdown_of_the_root_wakes_who_drains_a_child() {
    hang_guard(|| {
        for _ in 0..300 {
            let top = root(4);
            let low = child(&top, 1);
            low.set_limit(0).unwrap();
            low.execute(|| ()).unwrap();
            let guard = top.acquire().unwrap();
            thread::scope(|s| {
                let drain = s.spawn(|| low.drain(Duration::MAX));
                let closed = || low.try_run(|| ()).is_err_and(|r| r.reason() == Reason::Closed);
                until("the drain has begun", closed);
                drop(top.shutdown_now());
                drain.join().unwrap().unwrap();
            });
            drop(guard);
        }
    });
}
