//! The end of executors and pools that were never used, that are dropped at work, and that refuse.

use crate::support::{Latch, assert_quiet, executor, hang_guard, until};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use work_permit::{Executor, JoinError, Pool, Reason, Rejected};

#[test]
fn b48_an_unused_executor_ends_at_once() {
    hang_guard(|| {
        for limit in [0, 1, Executor::MAX_LIMIT] {
            for timeout in [Duration::ZERO, Duration::MAX] {
                let exec = executor(limit);
                exec.drain(timeout).unwrap();
                exec.drain(timeout).unwrap();
                assert!(exec.shutdown_now().is_empty());
                exec.pool().shutdown(timeout).unwrap();
                exec.pool().shutdown(timeout).unwrap();
                assert_eq!((exec.pool().stats().created, exec.stats().accepted), (0, 0));
                assert_quiet(&exec);
            }
        }
        let pool = Pool::new();
        pool.shutdown(Duration::MAX).unwrap();
        let refused = pool.executor("late").build().unwrap_err();
        assert!(refused.to_string().contains("shut down"), "{refused}");
    });
}

#[test]
fn b48_an_executor_that_only_ran_inline_ends_at_once() {
    hang_guard(|| {
        let exec = executor(1);
        exec.run(|| ()).unwrap();
        exec.drain(Duration::ZERO).unwrap();
        exec.pool().shutdown(Duration::ZERO).unwrap();
        assert_eq!(exec.pool().stats().created, 0);
        assert_quiet(&exec);
    });
}

/// A pool that tells of its threads' ends and of panics.
fn watched_pool() -> (Pool, mpsc::Receiver<()>, Arc<AtomicU64>) {
    let (tx, stops) = mpsc::channel();
    let panics: Arc<AtomicU64> = Arc::default();
    let told = Arc::clone(&panics);
    let pool = Pool::builder()
        .keep_alive(Duration::MAX)
        .on_thread_stop(move || tx.send(()).unwrap_or_default())
        .on_panic(move |_| {
            told.fetch_add(1, SeqCst);
        })
        .build()
        .unwrap();
    (pool, stops, panics)
}

#[test]
fn b51_the_last_handle_goes_while_workers_run() {
    hang_guard(|| {
        const QUEUED: usize = 50;
        let (pool, stops, panics) = watched_pool();
        let exec = pool.executor("left alone").limit(2).build().unwrap();
        let (go, ran) = (Latch::new(), mpsc::channel());
        for n in 0..QUEUED {
            let (go, ran) = (go.clone(), ran.0.clone());
            let body = move || {
                go.wait();
                ran.send(n).unwrap();
            };
            exec.execute(body).unwrap();
        }
        until("both permits are taken", || exec.stats().active == 2);
        let created = pool.stats().created as usize;
        drop((exec, pool));
        go.open();
        let mut seen: Vec<usize> = ran.1.iter().take(QUEUED).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..QUEUED), "what was accepted ran, once");
        // Every thread leaves, also with an endless time to keep it: then the sender in the hook is gone.
        assert!(stops.iter().count() >= created);
        assert_eq!(panics.load(SeqCst), 0);
    });
}

#[test]
fn b51_the_last_handle_goes_from_inside_and_at_limit_zero() {
    hang_guard(|| {
        let (pool, stops, panics) = watched_pool();
        let exec = pool.executor("dropped inside").limit(1).build().unwrap();
        let go = Latch::new();
        let (closed, inner) = (go.clone(), (exec.clone(), pool.clone()));
        let (tx, rx) = mpsc::channel();
        let body = move || {
            closed.wait();
            drop(inner);
            tx.send("went on").unwrap();
        };
        exec.execute(body).unwrap();
        let behind = exec.spawn(|| 5).unwrap();
        let paused = pool.executor("paused").limit(0).build().unwrap();
        let never = paused.spawn(|| 6).unwrap();
        drop((exec, paused, pool));
        assert!(matches!(never.join(), Err(JoinError::Closed)), "nobody could raise the limit");
        go.open();
        assert_eq!(rx.recv(), Ok("went on"));
        assert_eq!(behind.join().unwrap(), 5);
        assert!(stops.iter().count() >= 1);
        assert_eq!(panics.load(SeqCst), 0);
    });
}

/// Counts how often it is dropped.
struct Token(Arc<AtomicU64>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Refusals of one executor, each with its whole task.
struct Refusals {
    drops: Arc<AtomicU64>,
    seen: u64,
}

impl Refusals {
    fn new() -> Self {
        Self { drops: Arc::default(), seen: 0 }
    }

    fn task(&self) -> impl FnOnce() + Send + 'static + use<> {
        let token = Token(Arc::clone(&self.drops));
        move || drop(token)
    }

    /// The task comes back, is alive, and is dropped where its owner drops it.
    #[track_caller]
    fn check<F, R>(&mut self, answer: Result<R, Rejected<F>>, reason: Reason, task: fn(F)) {
        let Err(refused) = answer else { panic!("not refused") };
        assert_eq!(refused.reason(), reason);
        assert_eq!(self.drops.load(SeqCst), self.seen, "nothing is lost on the way");
        task(refused.into_task());
        self.seen += 1;
        assert_eq!(self.drops.load(SeqCst), self.seen, "nor kept");
    }

    fn queueing(&mut self, exec: &Executor, reason: Reason) {
        let task = self.task();
        self.check(exec.spawn(task), reason, |task| task());
        let task = self.task();
        self.check(exec.dispatch(task), reason, |task| task());
        let task = self.task();
        self.check(exec.execute(task), reason, |task| task());
        let task = self.task();
        self.check(exec.spawn(task), reason, drop);
    }

    fn inline(&mut self, exec: &Executor, try_reason: Reason, reason: Reason) {
        let task = self.task();
        self.check(exec.try_run(task), try_reason, |task| task());
        let task = self.task();
        self.check(exec.run(task), reason, |task| task());
        let task = self.task();
        self.check(exec.run_timeout(Duration::from_secs(1), task), reason, |task| task());
        let task = self.task();
        self.check(exec.run_timeout(Duration::ZERO, task), Reason::TimedOut, drop);
    }
}

#[test]
fn b54_every_refusal_gives_the_task_back() {
    hang_guard(|| {
        let mut refusals = Refusals::new();
        let builder = Pool::new().executor("refuses").limit(1);
        let exec = builder.queue_capacity(0).build().unwrap();
        let guard = exec.acquire().unwrap();
        refusals.queueing(&exec, Reason::QueueFull);
        refusals.inline(&exec, Reason::Saturated, Reason::Deadlock);
        let task = refusals.task();
        exec.set_limit(2).unwrap();
        let other = exec.acquire().unwrap().into_owned();
        refusals.check(
            exec.run_timeout(Duration::from_millis(2), task),
            Reason::TimedOut,
            |task| task(),
        );
        drop((guard, other));
        exec.close();
        refusals.queueing(&exec, Reason::Closed);
        refusals.inline(&exec, Reason::Closed, Reason::Closed);
        let no_threads = Pool::builder().stack_size(1 << 46).build().unwrap();
        let exec = no_threads.executor("no threads").limit(0).build().unwrap();
        refusals.queueing(&exec, Reason::NoThread);
        assert_quiet(&exec);
    });
}

#[test]
fn b54_a_handle_is_of_an_accepted_task_and_completes() {
    hang_guard(|| {
        const TRIES: usize = 20_000;
        let builder = Pool::new().executor("busy").limit(2);
        let exec = builder.queue_capacity(8).build().unwrap();
        let (ran, drops) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (mut handles, mut refused) = (Vec::new(), 0);
        for n in 0..TRIES {
            let (ran, token) = (Arc::clone(&ran), Token(Arc::clone(&drops)));
            let task = move || {
                let _token = token;
                ran.fetch_add(1, SeqCst);
            };
            match exec.spawn(task) {
                Ok(handle) => handles.push(handle),
                Err(back) => {
                    refused += 1;
                    assert_eq!(back.reason(), Reason::QueueFull);
                }
            }
            if n == TRIES * 3 / 4 {
                drop(exec.shutdown_now());
                break;
            }
        }
        let accepted = handles.len() as u64;
        let mut closed = 0;
        for handle in handles {
            match handle.join() {
                Ok(()) => {}
                Err(JoinError::Closed) => closed += 1,
                Err(other) => panic!("{other}"),
            }
        }
        exec.drain(Duration::MAX).unwrap();
        let stats = exec.stats();
        assert_eq!((stats.accepted, stats.unrun), (accepted, closed));
        assert_eq!(ran.load(SeqCst), accepted - closed);
        assert_eq!(drops.load(SeqCst), accepted + refused, "each was dropped once");
        assert_quiet(&exec);
    });
}
