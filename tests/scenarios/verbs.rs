//! What every verb leaves behind, on its caller's thread and on a worker's: S4, S5, S6.
#![forbid(unsafe_code)]

use crate::support::{assert_quiet, block_on, executor, hang_guard, until};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use work_permit::{Dispatched, Executor, JoinError, Pool, PoolBuilder};

thread_local! {
    static REQUEST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Sets this thread's context for as long as it lives.
struct Scoped(Option<String>);

impl Scoped {
    fn set(value: &str) -> Self {
        Self(REQUEST.replace(Some(value.to_owned())))
    }
}

impl Drop for Scoped {
    fn drop(&mut self) {
        REQUEST.set(self.0.take());
    }
}

#[test]
fn s04_the_callers_context_is_unharmed() {
    let (exec, other) = (executor(1), executor(1));
    REQUEST.set(Some("outer".to_owned()));
    let name = thread::current().name().map(str::to_owned);
    let panics = || {
        let _scoped = Scoped::set("inner");
        other.run(|| panic_any("out")).unwrap()
    };
    for _ in 0..3 {
        exec.run(|| assert_eq!(REQUEST.with_borrow(Clone::clone).unwrap(), "outer")).unwrap();
        exec.run(|| drop(Scoped::set("inner"))).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| exec.run(panics))).is_err());
        assert_eq!(REQUEST.take().as_deref(), Some("outer"));
        REQUEST.set(Some("outer".to_owned()));
        assert!(!exec.is_held() && !other.is_held());
        assert_eq!(thread::current().name().map(str::to_owned), name);
    }
    assert_quiet(&exec);
    assert_quiet(&other);
}

#[test]
fn s04_a_worker_takes_nothing_along_to_the_next_task() {
    hang_guard(|| {
        let pool = Pool::builder().max_threads(1).build().unwrap();
        let exec = pool.executor("first").limit(1).build().unwrap();
        let next = pool.executor("second").limit(1).build().unwrap();
        let first = exec.spawn(|| -> thread::ThreadId {
            let _scoped = Scoped::set("first");
            panic_any("out")
        });
        assert!(block_on(first.unwrap()).is_err());
        let probe = exec.clone();
        let task = move || (REQUEST.with_borrow(Clone::clone), probe.is_held());
        assert_eq!(block_on(next.spawn(task).unwrap()).unwrap(), (None, false));
    });
}

/// A pool of one thread.
fn single(pool: PoolBuilder, limit: usize) -> Executor {
    let pool = pool.max_threads(1).build().unwrap();
    pool.executor("single").limit(limit).build().unwrap()
}

#[test]
fn s05_every_verb_once_with_one_thread() {
    hang_guard(|| {
        let exec = single(Pool::builder(), 1);
        let count = Arc::new(AtomicU64::new(0));
        let task = || {
            let count = Arc::clone(&count);
            move || count.fetch_add(1, SeqCst)
        };
        assert_eq!(exec.try_run(task()).unwrap(), 0);
        assert_eq!(exec.run(task()).unwrap(), 1);
        assert_eq!(exec.run_timeout(Duration::MAX, task()).unwrap(), 2);
        assert!(matches!(exec.dispatch(task()).unwrap(), Dispatched::Inline(3)));
        assert_eq!(block_on(exec.dispatch(task()).unwrap()).unwrap(), 4);
        assert_eq!(exec.spawn(task()).unwrap().join().unwrap(), 5);
        assert_eq!(block_on(exec.spawn(task()).unwrap()).unwrap(), 6);
        let timed = exec.spawn(task()).unwrap().join_timeout(Duration::MAX);
        assert_eq!(timed.unwrap().unwrap(), 7);
        let (tx, rx) = mpsc::channel();
        let counts = task();
        exec.execute(move || tx.send(counts()).unwrap()).unwrap();
        assert_eq!(rx.recv().unwrap(), 8);
        until("the permit is back", || exec.stats().free == 1);
        let guard = exec.try_acquire().unwrap();
        let queued = exec.dispatch(task()).unwrap();
        assert!(!queued.is_inline());
        drop(guard);
        assert_eq!(queued.join().unwrap(), 9);
        let (done, rest) = (task(), task());
        let attempt = || Ok::<_, fn() -> u64>(done());
        assert!(matches!(exec.speculate(attempt).unwrap(), Dispatched::Inline(10)));
        assert_eq!(block_on(exec.speculate(|| Err(rest)).unwrap()).unwrap(), 11);
        drop(exec.acquire().unwrap());
        drop(exec.acquire_timeout(Duration::MAX).unwrap());
        assert_eq!((count.load(SeqCst), exec.stats().completed), (12, 12));
        assert!(exec.pool().stats().created <= 1);
        assert_quiet(&exec);
    });
}

#[track_caller]
fn assert_passed_on<R>(call: impl FnOnce() -> R) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(call)) else {
        panic!("the panic did not come through");
    };
    assert_eq!(payload.downcast_ref(), Some(&"out"));
}

#[track_caller]
fn assert_in_handle(result: Result<(), JoinError>) {
    match result {
        Err(JoinError::Panicked(panic)) => assert_eq!(panic.message(), Some("out")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn s06_every_verb_once_with_a_panic() {
    hang_guard(|| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sees = Arc::clone(&seen);
        let hook = move |payload: &(dyn Any + Send)| {
            let text = payload.downcast_ref::<&str>().copied();
            sees.lock().unwrap().push((thread::current().id(), text));
        };
        let exec = single(Pool::builder().on_panic(hook), 1);
        let worker = block_on(exec.spawn(|| thread::current().id()).unwrap()).unwrap();
        let task = || -> () { panic_any("out") };
        assert_passed_on(|| exec.try_run(task));
        assert_passed_on(|| exec.run(task));
        assert_passed_on(|| exec.run_timeout(Duration::MAX, task));
        assert_passed_on(|| exec.dispatch(task));
        let attempt = || {
            task();
            Ok::<_, fn()>(())
        };
        assert_passed_on(|| exec.speculate(attempt));
        assert!(seen.lock().unwrap().is_empty(), "the caller has them");
        assert_in_handle(block_on(exec.spawn(task).unwrap()));
        exec.execute(task).unwrap();
        let guard = exec.acquire().unwrap();
        let queued = exec.dispatch(task).unwrap();
        drop(guard);
        assert_in_handle(block_on(queued));
        assert_in_handle(block_on(exec.speculate(|| Err(task)).unwrap()));
        assert_eq!(*seen.lock().unwrap(), [(worker, Some("out")); 4]);
        // Run by its joiner, or by the worker: in the handle either way, and the hook saw it.
        assert_in_handle(exec.spawn(task).unwrap().join());
        assert_eq!(seen.lock().unwrap().len(), 5);
        let again = block_on(exec.spawn(|| thread::current().id()).unwrap());
        assert_eq!(again.unwrap(), worker, "the same thread goes on");
        assert_eq!(exec.stats().panicked, 10);
        assert_eq!(exec.pool().stats().created, 1);
        assert_quiet(&exec);
    });
}
