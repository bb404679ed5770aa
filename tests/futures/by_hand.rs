//! Polls by hand, with wakers that count, change, call back, or panic.
#![forbid(unsafe_code)]

use crate::support::{
    self, HANG, Latch, assert_quiet, block_on, executor, hang_guard, occupy, until, within,
};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;
use work_permit::{Executor, JoinError, JoinHandle, Pool};

/// Counts how often it was woken, and opens a latch.
#[derive(Debug, Default)]
struct Counter {
    wakes: AtomicUsize,
    woken: Latch,
}

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, SeqCst);
        self.woken.open();
    }
}

impl Counter {
    fn new() -> (Arc<Self>, Waker) {
        let counter = Arc::new(Self::default());
        (Arc::clone(&counter), Waker::from(counter))
    }

    fn wakes(&self) -> usize {
        self.wakes.load(SeqCst)
    }
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// A task that is queued behind a latch.
fn queued<R: Send + 'static>(
    exec: &Executor,
    task: impl FnOnce() -> R + Send + 'static,
) -> (JoinHandle<R>, Latch) {
    let latch = occupy(exec);
    (exec.spawn(task).unwrap(), latch)
}

#[test]
fn a_result_wakes_once_and_is_ready() {
    hang_guard(|| {
        let exec = executor(1);
        let (mut handle, latch) = queued(&exec, || thread::current().id());
        let (counter, waker) = Counter::new();
        for _ in 0..3 {
            assert!(poll(&mut handle, &waker).is_pending());
        }
        assert_eq!(counter.wakes(), 0);
        latch.open();
        counter.woken.wait();
        let Poll::Ready(Ok(id)) = poll(&mut handle, &waker) else {
            panic!("woken without being ready")
        };
        assert_ne!(id, thread::current().id(), "a poll runs nothing");
        assert_eq!(counter.wakes(), 1);
        assert_quiet(&exec);
        let again = catch_unwind(AssertUnwindSafe(|| poll(&mut handle, &waker)));
        assert!(again.is_err(), "ready only once");
    });
}

#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    hang_guard(|| {
        let exec = executor(1);
        for _ in 0..100 {
            let (mut handle, latch) = queued(&exec, || 1);
            let wakers: Vec<_> = (0..4).map(|_| Counter::new()).collect();
            for (_, waker) in &wakers {
                assert!(poll(&mut handle, waker).is_pending());
            }
            latch.open();
            wakers[3].0.woken.wait();
            assert_eq!(block_on(handle).unwrap(), 1);
            let wakes: Vec<_> = wakers.iter().map(|(counter, _)| counter.wakes()).collect();
            assert_eq!(wakes, [0, 0, 0, 1]);
            for (counter, waker) in wakers {
                drop(waker);
                // Nothing keeps a waker for longer than it is needed.
                until("dropped", || Arc::strong_count(&counter) == 1);
            }
        }
    });
}

#[test]
fn wakers_change_while_the_task_ends() {
    hang_guard(|| {
        let exec = executor(2);
        for _ in 0..3000 {
            let mut handle = exec.spawn(|| 7).unwrap();
            // A new waker at each poll: whichever was the last one is woken, or the poll is ready.
            loop {
                let (counter, waker) = Counter::new();
                match poll(&mut handle, &waker) {
                    Poll::Ready(result) => break assert_eq!(result.unwrap(), 7),
                    Poll::Pending if exec.stats().queued == 0 => counter.woken.wait(),
                    Poll::Pending => {}
                }
            }
        }
        assert_quiet(&exec);
    });
}

#[test]
fn waiting_with_a_thread_then_with_a_future() {
    hang_guard(|| {
        let exec = executor(1);
        let (handle, latch) = queued(&exec, || 5);
        let timed = handle.join_timeout(Duration::from_millis(1)).unwrap_err();
        let (counter, waker) = Counter::new();
        let mut handle = timed;
        assert!(poll(&mut handle, &waker).is_pending());
        let mut handle = handle.join_timeout(Duration::from_millis(1)).unwrap_err();
        assert!(poll(&mut handle, &waker).is_pending());
        latch.open();
        counter.woken.wait();
        assert_eq!(handle.join().unwrap(), 5);
    });
}

#[test]
fn a_polled_handle_can_be_joined_dropped_and_cancelled() {
    hang_guard(|| {
        let exec = executor(1);
        let (counter, waker) = Counter::new();
        let (mut joined, latch) = queued(&exec, || 5);
        assert!(poll(&mut joined, &waker).is_pending());
        let joiner = thread::spawn(move || joined.join().unwrap());
        latch.open();
        assert_eq!(joiner.join().unwrap(), 5);

        let ran = Latch::new();
        let runs = ran.clone();
        let (mut dropped, latch) = queued(&exec, move || runs.open());
        assert!(poll(&mut dropped, &waker).is_pending());
        drop(dropped);
        latch.open();
        ran.wait();

        let (mut cancelled, latch) = queued(&exec, || unreachable!());
        let (cancel_counter, waker) = Counter::new();
        assert!(poll(&mut cancelled, &waker).is_pending());
        assert!(cancelled.cancel());
        assert_eq!(cancel_counter.wakes(), 1, "the end of a wait, too");
        assert!(matches!(block_on(cancelled), Err(JoinError::Cancelled)));
        latch.open();
        until("quiet", || exec.stats().active == 0);
        assert!(counter.wakes() <= 2);
        assert_quiet(&exec);
    });
}

#[test]
fn a_shutdown_wakes_futures() {
    hang_guard(|| {
        let exec = executor(0);
        let (counter, waker) = Counter::new();
        let mut handle = exec.spawn(|| unreachable!()).unwrap();
        assert!(poll(&mut handle, &waker).is_pending());
        drop(exec.shutdown_now());
        assert_eq!(counter.wakes(), 1);
        assert!(matches!(block_on(handle), Err(JoinError::Closed)));
        let last = executor(0);
        let handle = last.spawn(|| unreachable!()).unwrap();
        drop(last);
        assert!(matches!(block_on(handle), Err(JoinError::Closed)));
    });
}

#[test]
fn panics_come_through_futures() {
    hang_guard(|| {
        let exec = executor(1);
        let handle = exec.spawn(|| -> u8 { panic_any("no such row") }).unwrap();
        match block_on(handle) {
            Err(JoinError::Panicked(panic)) => assert_eq!(panic.message(), Some("no such row")),
            other => panic!("{other:?}"),
        }
        let guard = exec.acquire().unwrap();
        let dispatched = exec.dispatch(|| -> u8 { panic_any(17_u8) }).unwrap();
        drop(guard);
        let Err(JoinError::Panicked(panic)) = block_on(dispatched) else { panic!("no panic") };
        assert_eq!(panic.into_payload().downcast_ref(), Some(&17_u8));
        assert_eq!(exec.stats().panicked, 2);
        assert_quiet(&exec);
    });
}

/// Does something when it is woken.
struct Does<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Does<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// A waker that panics, and a latch that tells that it did.
fn panicking_waker() -> (Waker, Latch) {
    let woken = Latch::new();
    let opens = woken.clone();
    let wake = move || {
        opens.open();
        resume_unwind(Box::new("wake"))
    };
    (Waker::from(Arc::new(Does(wake))), woken)
}

#[test]
fn a_waker_that_panics_harms_nobody() {
    hang_guard(|| {
        let pool = Pool::builder().max_threads(1).build().unwrap();
        let exec = pool.executor("one thread").limit(1).build().unwrap();
        let worker = block_on(exec.spawn(|| thread::current().id()).unwrap()).unwrap();
        for _ in 0..20 {
            let (mut handle, latch) = queued(&exec, || thread::current().id());
            let (waker, woken) = panicking_waker();
            assert!(poll(&mut handle, &waker).is_pending());
            latch.open();
            woken.wait();
            assert_eq!(handle.join().unwrap(), worker);
            let next = exec.spawn(|| thread::current().id()).unwrap();
            assert_eq!(block_on(next).unwrap(), worker, "the worker lives");
        }
        // Also on the thread of whoever cancels.
        let (mut handle, latch) = queued(&exec, || ());
        let (waker, woken) = panicking_waker();
        assert!(poll(&mut handle, &waker).is_pending());
        assert!(handle.cancel() && woken.is_open());
        latch.open();
        block_on(exec.spawn(|| ()).unwrap()).unwrap();
        assert_eq!((pool.stats().created, exec.stats().panicked), (1, 0));
        assert_quiet(&exec);
    });
}

#[test]
fn a_waker_may_call_back() {
    hang_guard(|| {
        let exec = executor(1);
        let done = Latch::new();
        let (opens, calls) = (done.clone(), exec.clone());
        // No lock of the crate is held, and the permit is back.
        let call = move || {
            calls.try_run(|| ()).unwrap();
            drop(calls.spawn(|| ()).unwrap());
            assert!(calls.stats().limit == 1 && calls.pool().stats().alive > 0);
            opens.open();
        };
        let waker = Waker::from(Arc::new(Does(call)));
        let (mut handle, latch) = queued(&exec, || ());
        assert!(poll(&mut handle, &waker).is_pending());
        latch.open();
        done.wait();
        assert_eq!(block_on(handle).unwrap(), ());
        exec.drain(support::HANG).unwrap();
    });
}

/// Waits for a task when it is dropped.
struct JoinOnDrop {
    handle: Option<JoinHandle<()>>,
    joined: Latch,
}

impl Drop for JoinOnDrop {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.join().unwrap();
            self.joined.open();
        }
    }
}

#[test]
fn a_waker_may_wait_for_the_next_task() {
    within(HANG / 3, || {
        let exec = executor(1);
        let (mut first, latch) = queued(&exec, || ());
        let (handle, joined) = (exec.spawn(|| ()).ok(), Latch::new());
        let waits = Mutex::new(Some(JoinOnDrop { handle, joined: joined.clone() }));
        let waker = Waker::from(Arc::new(Does(move || drop(waits.lock().unwrap().take()))));
        assert!(poll(&mut first, &waker).is_pending());
        latch.open();
        joined.wait();
    });
}

#[test]
fn a_detached_result_may_wait_for_the_next_task_in_its_drop() {
    within(HANG / 3, || {
        let exec = executor(1);
        let (tx, rx) = mpsc::channel();
        let joined = Latch::new();
        let opens = joined.clone();
        let task = move || JoinOnDrop { handle: rx.recv().ok(), joined: opens };
        let (first, latch) = queued(&exec, task);
        drop(first);
        tx.send(exec.spawn(|| ()).unwrap()).unwrap();
        latch.open();
        joined.wait();
    });
}
