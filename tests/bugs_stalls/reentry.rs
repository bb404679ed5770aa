//! Calls from inside of what they wait for, and from code of the user's that this crate calls.

use crate::support::{Latch, assert_quiet, executor, hang_guard, until};
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;
use work_permit::{Executor, Pool, Reason, Unfinished};

#[track_caller]
fn assert_deadlock(answer: Result<(), Unfinished>, active: usize, queued: usize) {
    let left = answer.unwrap_err();
    assert_eq!((left.reason(), left.active, left.queued), (Reason::Deadlock, active, queued));
}

/// Waits for its own executor and its own pool, in all ways.
fn waits_for_itself(exec: &Executor, queued: usize) {
    assert_deadlock(exec.drain(Duration::MAX), 1, queued);
    assert_deadlock(exec.pool().shutdown(Duration::MAX), 1, queued);
    assert_deadlock(exec.drain(Duration::ZERO), 1, queued);
    assert_eq!(exec.spawn(|| ()).unwrap_err().reason(), Reason::Closed);
    assert!(exec.run(|| ()).is_ok(), "what nests goes on");
}

#[test]
fn b49_nobody_waits_for_himself() {
    hang_guard(|| {
        // On the caller's thread.
        let exec = executor(1);
        exec.run(|| waits_for_itself(&exec, 0)).unwrap();
        exec.drain(Duration::MAX).unwrap();
        exec.pool().shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec);
        // On a worker, with work that waits behind.
        let exec = executor(1);
        let (go, inner) = (Latch::new(), exec.clone());
        let (closed, tasks) = (go.clone(), mpsc::channel());
        let body = move || {
            closed.wait();
            waits_for_itself(&inner, 2);
        };
        let task = exec.spawn(body).unwrap();
        until("it runs", || exec.stats().on_workers == 1);
        for n in 0..2 {
            let ran = tasks.0.clone();
            exec.execute(move || ran.send(n).unwrap()).unwrap();
        }
        go.open();
        task.join().unwrap();
        exec.pool().shutdown(Duration::MAX).unwrap();
        assert_eq!(tasks.1.try_iter().collect::<Vec<_>>(), [0, 1], "what was accepted ran");
        assert_quiet(&exec);
    });
}

#[test]
fn b49_nor_through_another_executor_or_a_guard() {
    hang_guard(|| {
        let pool = Pool::new();
        let build = |name| pool.executor(name).limit(1).build().unwrap();
        let (outer, inner) = (build("outer"), build("inner"));
        let nested = outer.run(|| inner.run(|| outer.drain(Duration::MAX)).unwrap());
        assert_deadlock(nested.unwrap(), 1, 0);
        let guard = inner.acquire().unwrap();
        assert_deadlock(inner.drain(Duration::MAX), 1, 0);
        assert_deadlock(pool.shutdown(Duration::MAX), 1, 0);
        // A permit that belongs to no thread is waited for, and said to be left.
        let owned = guard.into_owned();
        let left = inner.drain(Duration::from_millis(5)).unwrap_err();
        assert_eq!((left.reason(), left.active), (Reason::TimedOut, 1));
        drop(owned);
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&outer);
        assert_quiet(&inner);
    });
}

#[test]
fn b49_a_task_may_wait_for_another_executor() {
    hang_guard(|| {
        let pool = Pool::new();
        let build = |name| pool.executor(name).limit(1).build().unwrap();
        let (waits, works) = (build("waits"), build("works"));
        let (tx, rx) = mpsc::channel();
        let guard = works.acquire().unwrap().into_owned();
        for n in 0..10 {
            let tx = tx.clone();
            works.execute(move || tx.send(n).unwrap()).unwrap();
        }
        let inner = works.clone();
        let task = waits.spawn(move || inner.drain(Duration::MAX)).unwrap();
        drop(guard);
        task.join().unwrap().unwrap();
        assert_eq!(rx.try_iter().count(), 10, "all had run before it went on");
        let inner = waits.clone();
        let unrun = waits.run(|| inner.shutdown_now().len()).unwrap();
        assert_eq!(unrun, 0);
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&waits);
        assert_quiet(&works);
    });
}

/// Everything that can be asked of an executor by one who must not wait for ever: whatever the answers are.
fn use_all(exec: &Executor) {
    let _ = exec.run(|| ());
    let _ = exec.try_run(|| ());
    let _ = exec.acquire().map(drop);
    let _ = exec.dispatch(|| ());
    let _ = exec.spawn(|| ()).map(|handle| handle.join());
    let _ = exec.drain(Duration::MAX);
    let _ = exec.pool().shutdown(Duration::MAX);
    drop(exec.shutdown_now());
}

/// Uses an executor in its drop, and tells.
struct UsesAll(Executor, mpsc::Sender<()>);

impl Drop for UsesAll {
    fn drop(&mut self) {
        use_all(&self.0);
        self.1.send(()).unwrap();
    }
}

#[test]
fn b50_a_panic_hook_may_use_the_executor_that_it_is_told_of() {
    hang_guard(|| {
        let place: Arc<OnceLock<Executor>> = Arc::default();
        let (tx, rx) = mpsc::channel();
        let (of_hook, tx) = (Arc::clone(&place), Mutex::new(tx));
        let hook = move |_: &(dyn std::any::Any + Send)| {
            use_all(of_hook.get().unwrap());
            tx.lock().unwrap().send(()).unwrap();
        };
        let pool = Pool::builder().on_panic(hook).build().unwrap();
        let exec = pool.executor("tells").limit(1).build().unwrap();
        place.set(exec.clone()).unwrap();
        exec.execute(|| resume_unwind(Box::new(()))).unwrap();
        rx.recv().expect("the hook came to its end");
        exec.drain(Duration::MAX).unwrap();
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b50_a_payload_may_use_the_executor_in_its_drop() {
    hang_guard(|| {
        let exec = executor(1);
        let (tx, rx) = mpsc::channel();
        let payload = UsesAll(exec.clone(), tx);
        exec.execute(move || resume_unwind(Box::new(payload))).unwrap();
        rx.recv().expect("the payload was dropped");
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b50_an_outcome_may_shut_everything_down_in_its_drop() {
    hang_guard(|| {
        let exec = executor(1);
        let go = Latch::new();
        let (tx, rx) = mpsc::channel();
        let (closed, outcome) = (go.clone(), UsesAll(exec.clone(), tx));
        let body = move || {
            closed.wait();
            outcome
        };
        drop(exec.spawn(body).unwrap());
        until("it runs", || exec.stats().on_workers == 1);
        exec.execute(|| ()).unwrap();
        go.open();
        rx.recv().expect("the outcome was dropped");
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

/// Uses an executor when it wakes.
struct WakesInto(Executor, mpsc::Sender<()>);

impl Wake for WakesInto {
    fn wake(self: Arc<Self>) {
        use_all(&self.0);
        self.1.send(()).unwrap();
    }
}

#[test]
fn b50_a_waker_may_use_the_executor() {
    hang_guard(|| {
        let exec = executor(1);
        let go = Latch::new();
        let (tx, rx) = mpsc::channel();
        let closed = go.clone();
        let mut awaited = exec.spawn(move || closed.wait()).unwrap();
        until("it runs", || exec.stats().on_workers == 1);
        exec.execute(|| ()).unwrap();
        let waker = Waker::from(Arc::new(WakesInto(exec.clone(), tx)));
        assert!(pin!(&mut awaited).poll(&mut Context::from_waker(&waker)).is_pending());
        go.open();
        rx.recv().expect("the waker came to its end");
        awaited.join().unwrap();
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b50_thread_hooks_may_use_the_pool() {
    hang_guard(|| {
        let place: Arc<OnceLock<Executor>> = Arc::default();
        let (tx, rx) = mpsc::channel();
        let (answers, queued) = (Arc::new(Mutex::new(tx)), Latch::new());
        let hook = || {
            let (of_hook, answers) = (Arc::clone(&place), Arc::clone(&answers));
            let queued = queued.clone();
            move || {
                queued.wait();
                let exec = of_hook.get().unwrap();
                let _ = exec.try_run(|| ());
                let _ = exec.spawn(|| ());
                let _ = exec.drain(Duration::ZERO);
                let answer = exec.pool().shutdown(Duration::MAX);
                answers.lock().unwrap().send(answer.unwrap_err().reason()).unwrap();
            }
        };
        let pool = Pool::builder().on_thread_start(hook()).on_thread_stop(hook()).build().unwrap();
        let exec = pool.executor("hooked").limit(1).build().unwrap();
        place.set(exec.clone()).unwrap();
        let handle = exec.spawn(|| ()).unwrap();
        queued.open();
        assert_eq!(rx.recv(), Ok(Reason::Deadlock), "it would wait for its own thread");
        handle.join().unwrap();
        pool.shutdown(Duration::MAX).unwrap();
        assert_eq!(rx.try_iter().last(), Some(Reason::Deadlock));
        assert_eq!(pool.stats().alive, 0);
        assert_quiet(&exec);
    });
}

#[test]
fn b50_ends_are_idempotent_and_may_come_all_at_once() {
    hang_guard(|| {
        for _ in 0..200 {
            let exec = executor(2);
            for _ in 0..10 {
                exec.execute(|| ()).unwrap();
            }
            let unrun: usize = thread::scope(|s| {
                let closers = [
                    s.spawn(|| exec.close()),
                    s.spawn(|| exec.drain(Duration::MAX).unwrap()),
                    s.spawn(|| exec.pool().shutdown(Duration::MAX).unwrap()),
                ];
                let takers = [(); 2].map(|()| s.spawn(|| exec.shutdown_now().len()));
                closers.into_iter().for_each(|closer| closer.join().unwrap());
                takers.into_iter().map(|taker| taker.join().unwrap()).sum()
            });
            exec.pool().shutdown(Duration::MAX).unwrap();
            assert_eq!(exec.stats().unrun, unrun as u64);
            assert_eq!(exec.stats().completed, 10 - unrun as u64);
            assert_eq!(exec.pool().stats().alive, 0);
            assert_quiet(&exec);
        }
    });
}
