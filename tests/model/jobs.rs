//! What the executors are given to run, and how often each piece of it was dropped.
#![forbid(unsafe_code)]

use crate::support::Latch;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use work_permit::Executor;

/// Number of a job, in the order in which they were made.
pub(crate) type Id = usize;

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Returns at once.
    Quick,
    /// On any thread but the driver's it waits until the driver opens its gate.
    Gated,
    /// Calls its own executor again, which runs at once under the job's permit.
    CallsAgain,
    /// Panics.
    Panics,
    /// Panics with a payload that panics when it is dropped.
    PayloadBomb,
    /// Its closure panics when it is dropped.
    ClosureBomb,
    /// Its result panics when it is dropped.
    ResultBomb,
}

impl Kind {
    /// A run of it ends in a panic.
    pub(crate) fn panics(self) -> bool {
        matches!(self, Kind::Panics | Kind::PayloadBomb | Kind::ClosureBomb)
    }
}

/// What all jobs of one case share.
#[derive(Debug)]
pub(crate) struct World {
    driver: ThreadId,
    /// Starts, by executor.
    log: [Mutex<Vec<Id>>; 2],
    /// How often the closure of each job was dropped.
    closures: Mutex<Vec<u32>>,
    outcomes_made: AtomicU64,
    outcomes_dropped: AtomicU64,
    /// Panics that the pool's hook saw.
    pub(crate) reported: AtomicU64,
}

impl World {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            driver: thread::current().id(),
            log: Default::default(),
            closures: Mutex::default(),
            outcomes_made: AtomicU64::new(0),
            outcomes_dropped: AtomicU64::new(0),
            reported: AtomicU64::new(0),
        })
    }

    /// Jobs started on an executor.
    pub(crate) fn started(&self, exec: usize) -> usize {
        self.log[exec].lock().unwrap().len()
    }

    /// The starts since this was last asked.
    pub(crate) fn take_log(&self, exec: usize) -> Vec<Id> {
        std::mem::take(&mut *self.log[exec].lock().unwrap())
    }

    pub(crate) fn drops_of(&self, job: Id) -> u32 {
        self.closures.lock().unwrap()[job]
    }

    /// Every closure and every outcome was dropped exactly once.
    pub(crate) fn is_all_dropped(&self) -> bool {
        self.closures.lock().unwrap().iter().all(|drops| *drops == 1)
            && self.outcomes_made.load(SeqCst) == self.outcomes_dropped.load(SeqCst)
    }

    pub(crate) fn drops(&self) -> String {
        let closures = self.closures.lock().unwrap();
        let wrong: Vec<_> = closures.iter().enumerate().filter(|(_, drops)| **drops != 1).collect();
        format!("{wrong:?}, outcomes {:?} {:?}", self.outcomes_made, self.outcomes_dropped)
    }
}

/// Counts the drop of a closure.
#[derive(Debug)]
struct ClosureToken(Arc<World>, Id);

impl Drop for ClosureToken {
    fn drop(&mut self) {
        self.0.closures.lock().unwrap()[self.1] += 1;
    }
}

/// Counts the drop of a result or of a panic's payload.
#[derive(Debug)]
struct OutcomeToken(Arc<World>);

impl OutcomeToken {
    fn new(world: &Arc<World>) -> Self {
        world.outcomes_made.fetch_add(1, SeqCst);
        Self(Arc::clone(world))
    }
}

impl Drop for OutcomeToken {
    fn drop(&mut self) {
        self.0.outcomes_dropped.fetch_add(1, SeqCst);
    }
}

/// Panics when it is dropped.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            resume_unwind(Box::new(Boom { _token: None, _bomb: None }));
        }
    }
}

/// The payload of every panic that a job means.
#[derive(Debug)]
struct Boom {
    _token: Option<OutcomeToken>,
    _bomb: Option<Bomb>,
}

/// What a job returns.
#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) job: Id,
    _token: OutcomeToken,
    _bomb: Option<Bomb>,
}

/// A closure for an executor, with its name and its gate.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: Id,
    exec: usize,
    kind: Kind,
    gate: Latch,
    /// What it calls again. No other job has it: an executor whose queue holds a handle of it is never dropped.
    again: Option<Executor>,
    world: Arc<World>,
    _closure: ClosureToken,
    bomb: Option<Bomb>,
}

impl Job {
    pub(crate) fn new(world: &Arc<World>, exec: usize, kind: Kind, again: &Executor) -> Self {
        let mut closures = world.closures.lock().unwrap();
        let id = closures.len();
        closures.push(0);
        Self {
            id,
            exec,
            kind,
            gate: Latch::new(),
            again: (kind == Kind::CallsAgain).then(|| again.clone()),
            world: Arc::clone(world),
            _closure: ClosureToken(Arc::clone(world), id),
            bomb: (kind == Kind::ClosureBomb).then(|| Bomb),
        }
    }

    pub(crate) fn gate(&self) -> Latch {
        self.gate.clone()
    }

    /// Writes the start down.
    pub(crate) fn note_start(&self) {
        self.world.log[self.exec].lock().unwrap().push(self.id);
    }

    /// For a job that holds a guard instead of running.
    pub(crate) fn wait_for_gate(&self) {
        if self.kind == Kind::Gated && thread::current().id() != self.world.driver {
            self.gate.wait();
        }
    }

    pub(crate) fn run(self) -> Product {
        self.note_start();
        self.finish()
    }

    /// All but the note of the start.
    pub(crate) fn finish(mut self) -> Product {
        match self.kind {
            Kind::Quick | Kind::ResultBomb => {}
            // Here and not after the last line: rustc leaks a result when an argument's drop panics.
            Kind::ClosureBomb => drop(self.bomb.take()),
            Kind::Gated => self.wait_for_gate(),
            Kind::CallsAgain => {
                let again = self.again.take().expect("made with it");
                assert!(again.is_held());
                assert_eq!(again.run(|| 1).unwrap(), 1);
                assert_eq!(again.try_run(|| 2).unwrap(), 2);
            }
            Kind::Panics | Kind::PayloadBomb => {
                let bomb = (self.kind == Kind::PayloadBomb).then(|| Bomb);
                let token = Some(OutcomeToken::new(&self.world));
                resume_unwind(Box::new(Boom { _token: token, _bomb: bomb }));
            }
        }
        Product {
            job: self.id,
            _token: OutcomeToken::new(&self.world),
            _bomb: (self.kind == Kind::ResultBomb).then(|| Bomb),
        }
    }
}

/// Calls `f`; a panic that a job means ends here, any other goes on.
pub(crate) fn quietly<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            swallow(payload);
            None
        }
    }
}

/// Drops the payload of a panic that a job meant.
pub(crate) fn swallow(payload: Box<dyn Any + Send>) {
    if !payload.is::<Boom>() {
        resume_unwind(payload);
    }
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        swallow(again);
    }
}
