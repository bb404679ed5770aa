//! What runs on its caller's thread, and what is known of it: C01, C05, C06, C18.
#![forbid(unsafe_code)]

use crate::support::{Latch, assert_quiet, block_on, executor, hang_guard};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use work_permit::{Dispatched, Executor, JoinError, Pool, Reason};

#[test]
fn c01_a_free_permit_means_inline() {
    let exec = executor(4);
    for _ in 0..200 {
        assert!(exec.dispatch(|| ()).unwrap().is_inline());
    }
    let stats = exec.stats();
    assert_eq!((stats.ran_inline, stats.ran_queued), (200, 0));
    assert_eq!(exec.pool().stats().created, 0, "no thread was needed");
}

#[test]
fn c01_a_free_permit_means_inline_also_after_queued_work() {
    hang_guard(|| {
        let exec = executor(1);
        for _ in 0..1000 {
            block_on(exec.spawn(|| ()).unwrap()).unwrap();
            assert!(exec.dispatch(|| ()).unwrap().is_inline());
        }
        assert_quiet(&exec);
    });
}

#[test]
fn c05_nested_work_on_an_exhausted_limit() {
    hang_guard(|| {
        let exec = executor(1);
        let nested = exec.clone();
        let here = thread::current().id();
        let depth = exec.run(move || {
            assert_eq!(nested.try_run(|| thread::current().id()).unwrap(), here);
            let dispatched = nested.dispatch(|| thread::current().id()).unwrap();
            assert!(matches!(dispatched, Dispatched::Inline(id) if id == here));
            let spawned = nested.spawn(|| thread::current().id()).unwrap();
            assert_eq!(spawned.join().unwrap(), here, "under the permit of this task");
            assert_eq!(nested.stats().active, 1);
            nested.run(|| nested.run(|| 3).unwrap()).unwrap()
        });
        assert_eq!(depth.unwrap(), 3);
        assert_eq!((exec.stats().ran_inline, exec.stats().ran_queued), (5, 1));
        assert_quiet(&exec);
        // Merely holding a guard is not being inside a task: then the wait is refused, not endless.
        let guard = exec.acquire().unwrap();
        assert_eq!(exec.run(|| ()).unwrap_err().reason(), Reason::Deadlock);
        let handle = exec.spawn(|| 4).unwrap();
        assert!(matches!(handle.join(), Err(JoinError::Deadlock)));
        drop(guard);
    });
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

struct Chain {
    exec: Executor,
    steps: usize,
    deepest: AtomicUsize,
    order: Mutex<Vec<usize>>,
    done: Latch,
}

fn step(chain: Arc<Chain>, n: usize) {
    let depth = DEPTH.get() + 1;
    DEPTH.set(depth);
    chain.deepest.fetch_max(depth, SeqCst);
    chain.order.lock().unwrap().push(n);
    if n + 1 == chain.steps {
        chain.done.open();
    } else {
        let next = Arc::clone(&chain);
        drop(chain.exec.dispatch(move || step(next, n + 1)).unwrap());
    }
    DEPTH.set(depth - 1);
}

#[test]
fn c06_inline_recursion_has_a_bound() {
    const STEPS: usize = 100_000;
    let small_stacks = Pool::builder().stack_size(256 * 1024).build().unwrap();
    let exec = small_stacks.executor("chain").limit(100_000);
    let chain = Arc::new(Chain {
        exec: exec.build().unwrap(),
        steps: STEPS,
        deepest: AtomicUsize::new(0),
        order: Mutex::default(),
        done: Latch::new(),
    });
    let small = thread::Builder::new().stack_size(256 * 1024);
    let first = Arc::clone(&chain);
    let starter = small.spawn(move || step(first, 0)).unwrap();
    starter.join().unwrap();
    chain.done.wait();
    // The first step is no task; 16 tasks may be nested.
    let deepest = chain.deepest.load(SeqCst);
    assert!((16..=17).contains(&deepest), "{deepest}");
    assert!(chain.order.lock().unwrap().iter().copied().eq(0..STEPS));
    assert!(chain.exec.stats().too_deep >= (STEPS / 17 - 1) as u64);
}

#[test]
fn c18_inline_runs_are_counted_and_seen() {
    let (exec, other) = (executor(2), executor(2));
    for _ in 0..100_000 {
        exec.run(|| ()).unwrap();
    }
    assert_eq!(exec.stats().completed, 100_000);
    exec.run(|| {
        assert_eq!((exec.stats().inline, exec.stats().active), (1, 1));
        other.run(|| assert!(exec.is_held() && other.is_held())).unwrap();
        exec.run(|| assert!(exec.is_held())).unwrap();
        // After a nested one, also one that panics, the outer task is the current one again.
        let panics = || exec.run(|| resume_unwind(Box::new("out")));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert!(exec.is_held() && !other.is_held());
        assert_eq!((exec.stats().inline, exec.stats().active), (1, 1));
    })
    .unwrap();
    assert!(!exec.is_held());
    let stats = exec.stats();
    assert_eq!((stats.completed, stats.panicked), (100_003, 1));
    assert_quiet(&exec);
    assert_quiet(&other);
}
