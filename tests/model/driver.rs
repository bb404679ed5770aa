//! The driver: makes each call on the real executors and on the reference, and compares.
#![forbid(unsafe_code)]

use crate::counts::{actual, differences, expected};
use crate::jobs::{Id, Job, Kind, Product, World, quietly};
use crate::ops::{Op, Setup};
use crate::reference::{End, Fate, Model};
use crate::support::Latch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use work_permit::{Executor, Inline, JoinHandle, OwnedPermit, Permit, Pool, Reason, Unrun};

/// Calls made so far, by all cases.
pub(crate) static CALLS: AtomicU64 = AtomicU64::new(0);

/// How long the executors may take to come to what the reference says.
pub(crate) static PATIENCE_MS: AtomicU64 = AtomicU64::new(20_000);

pub(crate) fn patience() -> Duration {
    Duration::from_millis(PATIENCE_MS.load(SeqCst))
}

/// What another thread got from its call.
pub(crate) enum Answer {
    Ran(Option<Product>),
    HeldGuard,
    Refused(Reason),
}

/// A call of another thread that has not been compared yet.
pub(crate) struct Other {
    pub(crate) job: Id,
    pub(crate) thread: thread::JoinHandle<Answer>,
}

/// The executors of one case.
pub(crate) struct Real {
    pub(crate) pool: Pool,
    pub(crate) execs: [Executor; 2],
    pub(crate) blocker: Executor,
    pub(crate) world: Arc<World>,
}

impl Real {
    pub(crate) fn build(setup: &Setup) -> Self {
        let world = World::new();
        let hook = Arc::clone(&world);
        let mut builder = Pool::builder().name("model").on_panic(move |_| {
            hook.reported.fetch_add(1, SeqCst);
        });
        if let Some(cap) = setup.max_threads {
            builder = builder.max_threads(cap);
        }
        let pool = builder.build().unwrap();
        let inline = if setup.never_inline { Inline::Never } else { Inline::WhenFree };
        let build = |exec: usize| {
            let one_queue = setup.max_threads.is_some() && exec > 0;
            let builder = pool.executor(format!("executor {exec}")).limit(setup.limits[exec]);
            builder
                .queue_capacity(if one_queue { 0 } else { setup.capacity })
                .max_overtakes(setup.max_overtakes)
                .max_inline_depth(setup.max_inline_depth)
                .inline(inline)
                .build()
                .unwrap()
        };
        let execs = [build(0), build(1)];
        let blocker = pool.executor("blocker").limit(64).build().unwrap();
        Self { pool, execs, blocker, world }
    }
}

/// See the module's text.
pub(crate) struct Driver<'e> {
    pub(crate) real: &'e Real,
    pub(crate) model: Model,
    pub(crate) gates: Vec<Latch>,
    pub(crate) handles: Vec<(Id, JoinHandle<Product>)>,
    pub(crate) guards: Vec<(usize, Permit<'e>)>,
    pub(crate) owned: Vec<(usize, OwnedPermit)>,
    pub(crate) unruns: Vec<(Id, Unrun)>,
    pub(crate) others: Vec<Other>,
    pub(crate) blockers: Vec<Latch>,
}

impl<'e> Driver<'e> {
    pub(crate) fn new(real: &'e Real, setup: &Setup) -> Self {
        Self {
            real,
            model: Model::new(setup),
            gates: Vec::new(),
            handles: Vec::new(),
            guards: Vec::new(),
            owned: Vec::new(),
            unruns: Vec::new(),
            others: Vec::new(),
            blockers: Vec::new(),
        }
    }

    pub(crate) fn call(&mut self, op: &Op) {
        match op {
            Op::Run { exec, wait, kind, inside } => self.run(*exec, *wait, *kind, inside),
            Op::Queue { exec, verb, kind } => self.queue(*exec, *verb, *kind),
            Op::Attempt { exec, blocks, kind, inside } => {
                self.attempt(*exec, *blocks, *kind, inside);
            }
            Op::Acquire { exec, wait } => self.acquire(*exec, *wait),
            Op::DropGuard(which) => self.drop_guard(*which),
            Op::IntoOwned(which) => self.own_guard(*which),
            Op::DropOwned(which) => self.drop_owned(*which),
            Op::SetLimit { exec, limit } => self.set_limit(*exec, *limit),
            Op::Handle(op, which) => self.handle(*op, *which),
            Op::Open(which) => self.open(*which),
            Op::Other { exec, acquires, kind } => self.other(*exec, *acquires, *kind),
            Op::Stall(threads) => self.stall(*threads),
            Op::Unstall => self.unstall(),
            Op::Close(exec) => self.close(*exec),
            Op::DrainZero(exec) => self.drain_zero(*exec),
            Op::ShutdownNow(exec) => self.shutdown_now(*exec),
            Op::RunUnrun(which) => self.run_unrun(*which),
            Op::DropUnrun(which) => self.drop_unrun(*which),
        }
        self.check(op);
    }

    /// The executor itself: a borrow that does not hold the driver.
    pub(crate) fn exec(&self, exec: usize) -> &'e Executor {
        let real: &'e Real = self.real;
        &real.execs[exec]
    }

    pub(crate) fn job(&mut self, exec: usize, kind: Kind) -> Job {
        let job = Job::new(&self.real.world, exec, kind, self.exec(exec));
        self.model.add_job(exec, kind);
        self.gates.push(job.gate());
        job
    }

    /// A job that was not given away, or came back.
    pub(crate) fn discard<T>(&mut self, id: Id, job: T) {
        quietly(|| drop(job));
        assert_eq!(self.real.world.drops_of(id), 1, "job {id} came back, and is dropped");
    }

    /// Opens the gates that the reference has opened.
    pub(crate) fn open_gates(&self, ids: &[Id]) {
        ids.iter().for_each(|id| self.gates[*id].open());
    }

    /// Waits until the executors are where the reference is, and compares everything.
    pub(crate) fn check(&mut self, after: &dyn std::fmt::Debug) {
        CALLS.fetch_add(1, SeqCst);
        self.model.settle();
        for exec in 0..2 {
            self.check_numbers(exec, after);
            self.check_starts(exec, after);
            let real = self.exec(exec);
            assert_eq!(real.is_held(), self.model.is_held(exec), "is_held, after {after:?}");
        }
        let reported = self.real.world.reported.load(SeqCst);
        assert_eq!(reported, self.model.reported, "reported panics, after {after:?}");
        for (id, handle) in &self.handles {
            let ended = matches!(self.model.jobs[*id].fate, Fate::Ended(_));
            assert_eq!(handle.is_finished(), ended, "is_finished of {id}, after {after:?}");
        }
        self.check_others();
    }

    fn check_numbers(&self, exec: usize, after: &dyn std::fmt::Debug) {
        let wanted = expected(&self.model, exec);
        let began = Instant::now();
        loop {
            let seen = actual(&self.real.execs[exec].stats());
            if seen == wanted {
                return;
            }
            let different = differences(&wanted, &seen);
            let line = &self.model.execs[exec].line;
            assert!(
                began.elapsed() < patience(),
                "executor {exec} after {after:?}: (name, expected, actual) {different:?}; line \
                 {line:?}; pool {:?}",
                self.real.pool.stats()
            );
            thread::yield_now();
        }
    }

    fn check_starts(&mut self, exec: usize, after: &dyn std::fmt::Debug) {
        let e = &mut self.model.execs[exec];
        let mut wanted = std::mem::take(&mut e.started);
        let in_order = std::mem::replace(&mut e.in_order, true);
        // A call that holds a guard counts before it starts its job.
        let began = Instant::now();
        while self.real.world.started(exec) < wanted.len() && began.elapsed() < patience() {
            thread::yield_now();
        }
        let mut seen = self.real.world.take_log(exec);
        if !in_order {
            wanted.sort_unstable();
            seen.sort_unstable();
        }
        assert_eq!(seen, wanted, "starts on executor {exec}, after {after:?}");
    }

    fn check_others(&mut self) {
        let jobs = &self.model.jobs;
        let is_over = |other: &Other| matches!(jobs[other.job].fate, Fate::Ended(_));
        let (over, still) = std::mem::take(&mut self.others).into_iter().partition(is_over);
        self.others = still;
        let over: Vec<Other> = over;
        for other in over {
            let Fate::Ended(end) = self.model.jobs[other.job].fate else { unreachable!() };
            let is_run = match other.thread.join().expect("no panic leaves the thread") {
                Answer::Ran(Some(product)) => {
                    assert_eq!((end, product.job), (End::Ran, other.job));
                    quietly(|| drop(product));
                    true
                }
                Answer::Ran(None) => end == End::Panicked,
                Answer::HeldGuard => end == End::Ran,
                Answer::Refused(reason) => end == End::Refused(reason),
            };
            assert!(is_run, "another thread's call {} did not end as {end:?}", other.job);
        }
    }
}

impl Drop for Driver<'_> {
    /// After a failure: lets every thread go.
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        self.gates.iter().chain(&self.blockers).for_each(Latch::open);
        for exec in &self.real.execs {
            drop(exec.shutdown_now());
        }
    }
}
