//! What the test binaries share: a guard against hangs, things to wait on, a meter of concurrency, seeded
//! numbers, a tiny executor of futures, and a look at the threads of the process.
//!
//! Nothing in here sleeps. What a test waits for is an event, or a state that it asks for again and again,
//! giving the processor away in between; [`HANG`] only ends a test that would never end.
#![forbid(unsafe_code)]
#![allow(dead_code)] // Each test binary uses a part of it.

use std::future::{Future, IntoFuture};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use work_permit::{Executor, Pool};

/// Far beyond what any machine needs for what a test waits for.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// An executor with this limit, on a pool of its own.
pub(crate) fn executor(limit: usize) -> Executor {
    let builder = Pool::new().executor("tested").limit(limit);
    builder.build().expect("the limit makes sense")
}

/// Runs `f` on a thread of its own and fails, where `f` hangs, after [`HANG`].
#[track_caller]
pub(crate) fn hang_guard<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    within(HANG, f)
}

/// As [`hang_guard`], with a time for long stress runs.
#[track_caller]
pub(crate) fn within<R: Send + 'static>(
    limit: Duration,
    f: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || tx.send(catch_unwind(AssertUnwindSafe(f))));
    match rx.recv_timeout(limit) {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => panic!("still not done after {limit:?}: it hangs"),
    }
}

/// Waits for a state that can only be asked for.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < HANG, "never came: {what}");
        thread::yield_now();
    }
}

/// The executor is quiet and its books are balanced: every permit is back, nothing waits, and what was
/// accepted has ended exactly once.
#[track_caller]
pub(crate) fn assert_quiet(executor: &Executor) {
    let s = executor.stats();
    assert_eq!((s.active, s.free), (0, s.limit), "permits are out: {s:?}");
    assert_eq!((s.queued, s.waiting), (0, 0), "work is left: {s:?}");
    let ended = s.completed + s.cancelled + s.expired + s.unrun;
    assert_eq!(s.accepted, ended, "accepted and ended differ: {s:?}");
    assert_eq!(s.completed, s.ran_inline + s.ran_queued, "{s:?}");
}

/// Waits until every thread of the pool is parked.
#[track_caller]
pub(crate) fn until_asleep(pool: &Pool) {
    until("all threads parked", || {
        let stats = pool.stats();
        stats.alive == stats.idle
    });
}

/// A task that holds one permit of `executor` until the latch opens; it has started.
pub(crate) fn occupy(executor: &Executor) -> Latch {
    let (latch, (tx, rx)) = (Latch::new(), mpsc::channel());
    let hold = latch.clone();
    let task = move || {
        tx.send(()).unwrap();
        hold.wait();
    };
    executor.execute(task).unwrap();
    rx.recv().unwrap();
    latch
}

/// A door that is opened once.
#[derive(Debug, Default, Clone)]
pub(crate) struct Latch(Arc<(Mutex<bool>, Condvar)>);

impl Latch {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self) {
        *self.lock() = true;
        self.0.1.notify_all();
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.lock()
    }

    /// Waits until it is open.
    #[track_caller]
    pub(crate) fn wait(&self) {
        let wait = self.0.1.wait_timeout_while(self.lock(), HANG, |open| !*open);
        let (open, _) = wait.unwrap_or_else(PoisonError::into_inner);
        let is_open = *open;
        drop(open);
        assert!(is_open, "nobody opened the latch");
    }
}

/// Everybody who arrives waits until `n` have: proof that `n` are there at the same time. As
/// `std::sync::Barrier`, except that it fails where the others never come.
#[derive(Debug, Clone)]
pub(crate) struct Meeting {
    missing: Arc<AtomicUsize>,
    all_here: Latch,
}

impl Meeting {
    pub(crate) fn of(n: usize) -> Self {
        Self { missing: Arc::new(AtomicUsize::new(n)), all_here: Latch::new() }
    }

    #[track_caller]
    pub(crate) fn meet(&self) {
        if self.missing.fetch_sub(1, SeqCst) == 1 {
            self.all_here.open();
        }
        self.all_here.wait();
    }
}

/// How many are inside now, and how many ever were at the same time.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    now: AtomicUsize,
    peak: AtomicUsize,
}

/// Inside of a [`Meter`], until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Inside<'a>(&'a Meter);

impl Meter {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    pub(crate) fn enter(&self) -> Inside<'_> {
        let now = 1 + self.now.fetch_add(1, SeqCst);
        self.peak.fetch_max(now, SeqCst);
        Inside(self)
    }

    pub(crate) fn now(&self) -> usize {
        self.now.load(SeqCst)
    }

    pub(crate) fn peak(&self) -> usize {
        self.peak.load(SeqCst)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}

/// Numbers that look random and are the same in every run with the same seed (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Unparks the thread that was current when it was made.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread until it is ready.
#[track_caller]
pub(crate) fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future.into_future());
    let began = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        assert!(began.elapsed() < HANG, "the future is never ready");
        thread::park_timeout(HANG);
    }
}

/// What Linux says about one thread of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ThreadUse {
    /// Time on a processor so far, in nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Times that it went to sleep of its own accord.
    pub(crate) naps: u64,
}

/// The threads of this process whose name begins with `prefix` (of at most 15 bytes). `None`: this system
/// does not tell.
pub(crate) fn threads_named(prefix: &str) -> Option<Vec<ThreadUse>> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let paths = tasks.filter_map(|entry| Some(entry.ok()?.path()));
    // A thread that ends meanwhile cannot be read any more.
    let read = |path: std::path::PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        name.starts_with(prefix).then_some(())?;
        let times = std::fs::read_to_string(path.join("schedstat")).ok()?;
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let naps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some(ThreadUse {
            cpu_ns: times.split_whitespace().next()?.parse().ok()?,
            naps: naps.trim().parse().ok()?,
        })
    };
    Some(paths.filter_map(read).collect())
}

/// The sum over all threads whose name begins with `prefix`.
pub(crate) fn use_of_threads(prefix: &str) -> Option<ThreadUse> {
    let threads = threads_named(prefix)?;
    Some(threads.iter().fold(ThreadUse::default(), |sum, thread| ThreadUse {
        cpu_ns: sum.cpu_ns + thread.cpu_ns,
        naps: sum.naps + thread.naps,
    }))
}

/// Memory of this process, where the system tells.
pub(crate) fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
