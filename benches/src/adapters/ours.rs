//! work-permit. Each adapter has a pool of its own, so that nothing of one measurement lives on in the next.

use crate::adapter::{Adapter, Ask, Execute, Run, TryRun};
use crate::groups::Role;
use work_permit::{Executor, Pool};

/// `try_run`, `run`, `dispatch` + `join`, `execute`.
#[derive(Clone)]
pub(crate) struct WorkPermit {
    executor: Executor,
}

impl Adapter for WorkPermit {
    const NAME: &'static str = "work-permit";
    const ROLE: Role = Role::Ours;

    fn new(limit: usize) -> Self {
        let builder = Pool::new().executor("bench").limit(limit).unbounded_queue();
        Self { executor: builder.build().expect("the settings make sense") }
    }
}

impl TryRun for WorkPermit {
    #[inline]
    fn try_run(&mut self, work: impl FnOnce()) -> bool {
        self.executor.try_run(work).is_ok()
    }
}

impl Run for WorkPermit {
    #[inline]
    fn run(&mut self, work: impl FnOnce() + Send) {
        self.executor.run(work).expect("nobody closes it");
    }
}

impl Ask for WorkPermit {
    #[inline]
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        let dispatched = self.executor.dispatch(work).expect("the queue is unbounded");
        dispatched.join().expect("the work does not panic")
    }
}

impl Execute for WorkPermit {
    #[inline]
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        self.executor.execute(work).expect("the queue is unbounded");
    }
}

/// `run` with another bound on overtaking than the default.
#[derive(Clone)]
pub(crate) struct Overtaken<const TIMES: usize> {
    executor: Executor,
}

impl<const TIMES: usize> Adapter for Overtaken<TIMES> {
    const NAME: &'static str = match TIMES {
        0 => "at most 0",
        4 => "at most 4",
        16 => "at most 16",
        64 => "at most 64",
        256 => "at most 256",
        1024 => "at most 1024",
        _ => panic!("give it a name"),
    };

    fn new(limit: usize) -> Self {
        let builder = Pool::new().executor("bench").limit(limit).max_overtakes(TIMES);
        Self { executor: builder.build().expect("the settings make sense") }
    }
}

impl<const TIMES: usize> Run for Overtaken<TIMES> {
    #[inline]
    fn run(&mut self, work: impl FnOnce() + Send) {
        self.executor.run(work).expect("nobody closes it");
    }
}

/// `spawn` + `join`: always queued first.
#[derive(Clone)]
pub(crate) struct WorkPermitSpawn {
    executor: Executor,
}

impl Adapter for WorkPermitSpawn {
    const NAME: &'static str = "work-permit";
    const ROLE: Role = Role::Ours;

    fn new(limit: usize) -> Self {
        Self { executor: WorkPermit::new(limit).executor }
    }
}

impl Ask for WorkPermitSpawn {
    #[inline]
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        let handle = self.executor.spawn(work).expect("the queue is unbounded");
        handle.join().expect("the work does not panic")
    }
}
