//! One task, two paths: here or in the queue. What can be told apart, and what cannot: C17, C19.

use crate::support::{Latch, assert_quiet, block_on, hang_guard, occupy, until};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use work_permit::{Dispatched, Executor, Inline, JoinError, Pool, Stats, fitness};

/// What a monitor on another thread reads.
fn busy(stats: &Stats) -> (usize, usize, usize, u64) {
    (stats.active, stats.inline, stats.on_workers, stats.accepted.saturating_sub(stats.completed))
}

/// A task that is stuck holds a permit and is counted, wherever it is stuck: on its caller's thread (under a permit of
/// the word or under one that stays with the thread), on a worker, on the thread of its joiner; and so is an attempt,
/// which holds none.
#[test]
fn c17_a_task_that_is_stuck_is_seen_on_either_path() {
    hang_guard(|| {
        let exec = Pool::new().executor("stuck").limit(3).build().unwrap();
        let stuck_in = |way: &(dyn Fn(Executor, Latch) + Sync),
                        seen: (usize, usize, usize, u64)| {
            let latch = Latch::new();
            thread::scope(|s| {
                s.spawn(|| way(exec.clone(), latch.clone()));
                until("it is seen", || busy(&exec.stats()) == seen);
                latch.open();
            });
            until("and gone", || exec.stats().active == 0);
            assert_quiet(&exec);
        };
        let inline = (1, 1, 0, 1);
        stuck_in(&|exec, latch| exec.run(|| latch.wait()).unwrap(), inline);
        stuck_in(&|exec, latch| exec.try_run(|| latch.wait()).unwrap(), inline);
        stuck_in(&|exec, latch| assert!(exec.dispatch(move || latch.wait()).is_ok()), inline);
        let leased = |exec: Executor, latch: Latch| {
            for _ in 0..100 {
                exec.run(|| ()).unwrap();
            }
            exec.run(|| latch.wait()).unwrap();
        };
        stuck_in(&leased, inline);
        let on_worker = |exec: Executor, latch: Latch| {
            block_on(exec.spawn(move || latch.wait()).unwrap()).unwrap();
        };
        stuck_in(&on_worker, (1, 0, 1, 1));
        // Under the permit of the task around it, which is one task more and no permit more.
        let nested = |exec: Executor, latch: Latch| {
            exec.run(|| exec.run(|| latch.wait()).unwrap()).unwrap();
        };
        stuck_in(&nested, (1, 1, 0, 2));
        let attempt = |exec: Executor, latch: Latch| {
            let stuck = || {
                latch.wait();
                Ok::<_, fn()>(())
            };
            exec.speculate(stuck).unwrap().join().unwrap();
        };
        let latch = Latch::new();
        thread::scope(|s| {
            s.spawn(|| attempt(exec.clone(), latch.clone()));
            until("the attempt is seen", || exec.stats().attempts == 1);
            assert_eq!(busy(&exec.stats()), (0, 0, 0, 0));
            latch.open();
        });
        assert_eq!(exec.stats().attempts, 0);
        assert_quiet(&exec);
    });
}

/// A thread that joins is the runner of what it joins: seen as inline, since it is a caller's thread.
#[test]
fn c17_also_on_the_thread_of_its_joiner() {
    hang_guard(|| {
        // No worker can come: the only one is kept busy by another executor.
        let pool = Pool::builder().max_threads(1).build().unwrap();
        let (other, exec) = (pool.executor("other"), pool.executor("joined"));
        let (other, exec) = (other.limit(1).build().unwrap(), exec.limit(1).build().unwrap());
        let elsewhere = occupy(&other);
        let latch = Latch::new();
        let wait = latch.clone();
        let handle = exec.spawn(move || wait.wait()).unwrap();
        let joiner = thread::spawn(move || handle.join().unwrap());
        until("it is seen", || busy(&exec.stats()) == (1, 1, 0, 1));
        latch.open();
        joiner.join().unwrap();
        elsewhere.open();
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

/// How a call ended, wherever its task ran.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Value(u32),
    Panicked(&'static str),
}

/// Dispatches, and waits for the end.
fn end_of(exec: &Executor, task: impl FnOnce() -> u32 + Send + 'static) -> Ended {
    let texts = ["zero", "one", "two"];
    let known = |text: Option<&str>| texts.into_iter().find(|known| Some(*known) == text).unwrap();
    match catch_unwind(AssertUnwindSafe(|| exec.dispatch(task).unwrap())) {
        Ok(Dispatched::Inline(value)) => Ended::Value(value),
        Ok(Dispatched::Queued(handle)) => match handle.join() {
            Ok(value) => Ended::Value(value),
            Err(JoinError::Panicked(panic)) => Ended::Panicked(known(panic.message())),
            Err(other) => panic!("{other:?}"),
        },
        Err(payload) => Ended::Panicked(known(payload.downcast_ref().copied())),
    }
}

/// Says when it is dropped.
struct Token(Arc<AtomicU32>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// What callers of `dispatch` can observe, in one list.
fn suite(exec: &Executor) -> Vec<String> {
    let mut seen = Vec::new();
    // Values, panics, and the permit after each.
    for n in 0..6 {
        let ended = end_of(exec, move || match n % 2 {
            0 => n,
            _ => resume_unwind(Box::new(["zero", "one", "two"][n as usize / 2])),
        });
        seen.push(format!("{ended:?}"));
    }
    // State that tasks share: under one permit each sees what the one before it did.
    let (total, order) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(Vec::new())));
    let handles: Vec<_> = (0..50)
        .map(|n| {
            let (total, order) = (Arc::clone(&total), Arc::clone(&order));
            let task = move || {
                order.lock().unwrap().push(n);
                // In two steps: a second task meanwhile would be lost.
                let before = total.load(Relaxed);
                thread::yield_now();
                total.store(before + 1, Relaxed);
                before
            };
            exec.dispatch(task).unwrap()
        })
        .collect();
    let before: Vec<u32> = handles.into_iter().map(|handle| handle.join().unwrap()).collect();
    seen.push(format!("{before:?} {:?} {}", order.lock().unwrap(), total.load(Relaxed)));
    // What the caller wrote the task sees, what the task wrote its caller sees after the join.
    let mut mine = vec![1];
    for n in 0..10 {
        mine.push(n);
        let task = move || {
            mine.push(n + 1);
            mine
        };
        mine = exec.dispatch(task).unwrap().join().unwrap();
    }
    seen.push(format!("{mine:?}"));
    // Tasks of tasks, two levels down.
    let inner = exec.clone();
    let family = move || {
        let deeper = inner.clone();
        let child = move || 1 + deeper.dispatch(|| 1).unwrap().join().unwrap();
        1 + inner.dispatch(child).unwrap().join().unwrap()
    };
    seen.push(format!("{:?}", exec.dispatch(family).unwrap().join().unwrap()));
    // A closure and a result are dropped once, whoever drops them.
    let drops = Arc::new(AtomicU32::new(0));
    let (closure, result) = (Token(Arc::clone(&drops)), Token(Arc::clone(&drops)));
    let task = move || {
        let _closure = closure;
        result
    };
    drop(exec.dispatch(task).unwrap().join().unwrap());
    seen.push(format!("{}", drops.load(Relaxed)));
    // A thread-local of the task's own thread is nobody else's business.
    let (tx, rx) = mpsc::channel();
    exec.dispatch(move || tx.send(exec_is_free()).unwrap()).unwrap().join().unwrap();
    seen.push(format!("{:?}", rx.recv()));
    // The end.
    exec.close();
    let refused = exec.dispatch(|| 7).unwrap_err();
    seen.push(format!("{:?} {}", refused.reason(), refused.into_task()()));
    exec.drain(Duration::MAX).unwrap();
    assert_quiet(exec);
    let stats = exec.stats();
    seen.push(format!("{} {} {}", stats.accepted, stats.completed, stats.panicked));
    seen
}

/// A task finds its thread undescribed or a worker's; either takes work that requires nothing.
fn exec_is_free() -> bool {
    Pool::new().executor("fresh").limit(1).build().unwrap().try_run(|| ()).is_ok()
}

#[test]
fn c19_the_same_program_on_either_path() {
    hang_guard(|| {
        let build = |inline| {
            let builder = Pool::new().executor("either").limit(1).inline(inline);
            builder.build().unwrap()
        };
        let (here, queued) = (build(Inline::WhenFree), build(Inline::Never));
        let both = [suite(&here), suite(&queued)];
        for (here, queued) in both[0].iter().zip(&both[1]) {
            assert_eq!(here, queued);
        }
        // Each took its own path, to the last task.
        let (here, queued) = (here.stats(), queued.stats());
        assert_eq!((here.ran_queued, here.asked), (0, 0), "{here:?}");
        assert_eq!((queued.ran_inline, queued.asked), (0, queued.accepted), "{queued:?}");
        // The third switch is the thread's own: what it dispatches itself is queued, what tasks do is theirs.
        let unfit = build(Inline::WhenFree);
        let _none = fitness::no_inline();
        assert_eq!(suite(&unfit), both[1]);
        assert!(unfit.stats().not_fit > 50);
    });
}
