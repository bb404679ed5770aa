//! What a thread does while it waits: only what it waits for.

use crate::support::{Latch, Meeting, Meter, assert_quiet, executor, hang_guard, until};
use crate::{OneMore, on_worker};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use work_permit::{Executor, Pool};

/// How long those wait that wait in vain.
const SHORT: Duration = Duration::from_millis(10);

thread_local! {
    /// This thread holds a lock that other tasks want.
    static LOCKED: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn b04_a_holder_that_waits_for_another_executor_starts_nothing_else() {
    hang_guard(|| {
        const TASKS: usize = 1000;
        let pool = Pool::new();
        let outer = pool.executor("outer").limit(2).build().unwrap();
        let inner = pool.executor("inner").limit(1).build().unwrap();
        let (open, most_on_a_thread) = (Meter::new(), Arc::new(AtomicUsize::new(0)));
        for n in 0..TASKS {
            let (inner, open, most) = (inner.clone(), open.clone(), most_on_a_thread.clone());
            let body = move || {
                let _open = open.enter();
                let (_one_more, depth) = OneMore::enter();
                most.fetch_max(depth, SeqCst);
                assert_eq!(inner.spawn(move || n).unwrap().join().unwrap(), n);
                inner.run(|| ()).unwrap();
            };
            outer.execute(body).unwrap();
        }
        outer.drain(Duration::MAX).unwrap();
        inner.drain(Duration::MAX).unwrap();
        assert_eq!(outer.stats().panicked, 0);
        assert!(open.peak() <= 2, "{} of outer open at once", open.peak());
        assert_eq!(most_on_a_thread.load(SeqCst), 1, "one open task a thread");
        assert_quiet(&outer);
        assert_quiet(&inner);
    });
}

/// A task that must not run on a thread that is in the middle of something else.
fn stranger(ran_wrong: &Arc<AtomicBool>) -> impl FnOnce() + Send + 'static + use<> {
    let ran_wrong = Arc::clone(ran_wrong);
    move || {
        ran_wrong.fetch_or(LOCKED.get(), SeqCst);
    }
}

#[test]
fn b05_a_waiting_holder_runs_no_stranger() {
    hang_guard(|| {
        let exec = executor(1);
        let ran_wrong = Arc::new(AtomicBool::new(false));
        let lock = Arc::new(Mutex::new(()));
        let inner = exec.clone();
        let (wrong, wanted) = (Arc::clone(&ran_wrong), Arc::clone(&lock));
        let outer = move || {
            let _lock = lock.lock().unwrap();
            LOCKED.set(true);
            for _ in 0..100 {
                let (stranger, lock) = (stranger(&wrong), Arc::clone(&lock));
                let locks = move || {
                    stranger();
                    drop(lock.lock().unwrap());
                };
                inner.execute(locks).unwrap();
            }
            // A hundred tasks that want the lock stand ahead of this one.
            assert_eq!(inner.spawn(|| 5).unwrap().join().unwrap(), 5);
            assert_eq!(inner.run(|| 6).unwrap(), 6);
            LOCKED.set(false);
        };
        on_worker(&exec, outer);
        exec.drain(Duration::MAX).unwrap();
        assert!(!ran_wrong.load(SeqCst));
        assert!(wanted.try_lock().is_ok());
        assert_eq!(exec.stats().ran_queued, 102);
    });
}

#[test]
fn b05_a_thread_that_waits_its_turn_runs_no_stranger() {
    hang_guard(|| {
        let exec = executor(1);
        let ran_wrong = Arc::new(AtomicBool::new(false));
        for round in 0..50 {
            let gate = Latch::new();
            let closed = gate.clone();
            exec.execute(move || closed.wait()).unwrap();
            until("the permit is taken", || exec.stats().active == 1);
            for _ in 0..20 {
                exec.execute(stranger(&ran_wrong)).unwrap();
            }
            LOCKED.set(true);
            let joined = (round % 2 == 0).then(|| exec.spawn(|| ()).unwrap());
            gate.open();
            match joined {
                Some(handle) => handle.join().unwrap(),
                None => exec.run(|| ()).unwrap(),
            }
            LOCKED.set(false);
        }
        exec.drain(Duration::MAX).unwrap();
        assert!(!ran_wrong.load(SeqCst));
        assert_quiet(&exec);
    });
}

#[test]
fn b06_waiting_does_not_pile_tasks_on_the_stack() {
    hang_guard(|| {
        const TASKS: u64 = 100_000;
        let pool = Pool::builder().stack_size(128 * 1024).build().unwrap();
        let builder = pool.executor("scopes").limit(2).unbounded_queue();
        let exec = builder.build().unwrap();
        let deepest = Arc::new(AtomicUsize::new(0));
        for _ in 0..TASKS {
            let (inner, deepest) = (exec.clone(), Arc::clone(&deepest));
            let body = move || {
                let (_parent, _) = OneMore::enter();
                let child = move || deepest.fetch_max(OneMore::enter().1, SeqCst);
                inner.spawn(child).unwrap().join().unwrap();
            };
            exec.execute(body).unwrap();
        }
        until("all have run", || exec.stats().completed == 2 * TASKS);
        exec.drain(Duration::MAX).unwrap();
        assert_eq!(deepest.load(SeqCst), 2, "a task and its own child");
        assert_quiet(&exec);
    });
}

#[test]
fn b09_one_worker_and_a_wait_on_that_worker() {
    hang_guard(|| {
        let pool = Pool::builder().max_threads(1).build().unwrap();
        let outer = pool.executor("outer").limit(2).build().unwrap();
        let other = pool.executor("other").limit(1).build().unwrap();
        let (same, across) = (outer.clone(), other.clone());
        let sum = on_worker(&outer, move || {
            let child = same.spawn(|| 1).unwrap().join().unwrap();
            let foreign = across.spawn(|| 2).unwrap().join().unwrap();
            let (back, forth) = (same.clone(), across.clone());
            // There, back again and there again: three levels on the one thread.
            let deep = across.spawn(move || {
                let inner = back.spawn(move || forth.spawn(|| 4).unwrap().join().unwrap());
                inner.unwrap().join().unwrap()
            });
            child + foreign + deep.unwrap().join().unwrap()
        });
        assert_eq!(sum, 7);
        assert_eq!(pool.stats().created, 1);
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&outer);
        assert_quiet(&other);
    });
}

/// A task under a permit of its own executor that wants something of the other one, for a while.
fn wants_the_other(other: &Executor, both_hold: Option<&Meeting>, by_join: bool) -> bool {
    both_hold.iter().for_each(|meeting| meeting.meet());
    if !by_join {
        return other.run_timeout(SHORT, || ()).is_ok();
    }
    match other.spawn(|| ()).unwrap().join_timeout(SHORT) {
        Ok(result) => result.is_ok(),
        Err(late) => {
            late.cancel();
            false
        }
    }
}

#[test]
fn b10_two_executors_in_a_circle_get_out_by_their_deadlines() {
    hang_guard(|| {
        for by_join in [false, true] {
            const EACH: usize = 5;
            let pool = Pool::new();
            let build = |name| pool.executor(name).limit(1).build().unwrap();
            let (a, b) = (build("a"), build("b"));
            let both_hold = Meeting::of(2);
            let (tx, rx) = mpsc::channel();
            for n in 0..EACH {
                for (own, other) in [(&a, &b), (&b, &a)] {
                    let first = (n == 0).then(|| both_hold.clone());
                    let (other, tx) = (other.clone(), tx.clone());
                    let body = move || {
                        let got = wants_the_other(&other, first.as_ref(), by_join);
                        tx.send((n, got)).unwrap();
                    };
                    own.execute(body).unwrap();
                }
            }
            let ends: Vec<_> = rx.iter().take(2 * EACH).collect();
            let in_vain = ends.iter().filter(|(n, got)| *n == 0 && !got).count();
            assert!(in_vain > 0, "one of the first two has to give in");
            pool.shutdown(Duration::MAX).unwrap();
            assert_quiet(&a);
            assert_quiet(&b);
        }
    });
}
