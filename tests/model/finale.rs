//! How a case ends: by each of the ways to end an executor, and then everything is accounted for.
#![forbid(unsafe_code)]

use crate::driver::{CALLS, Driver, Real, patience};
use crate::jobs::{Id, Kind, Product, quietly};
use crate::ops::{Finale, Op, Setup, Wait};
use crate::reference::{End, Fate};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use work_permit::{JoinError, JoinHandle, Pool};

/// One case from beginning to end.
pub(crate) fn play(setup: &Setup, ops: &[Op]) {
    let real = Real::build(setup);
    let world = Arc::clone(&real.world);
    let mut driver = Driver::new(&real, setup);
    for op in ops {
        driver.call(op);
    }
    driver.let_go();
    let left = match setup.end {
        Finale::Drain | Finale::ShutdownPool | Finale::ShutdownNow => {
            driver.end(setup.end);
            Vec::new()
        }
        Finale::DropHandles => driver.orphans(),
    };
    drop(driver);
    let pool = real.pool.clone();
    drop(real);
    for (end, handle) in left {
        assert_end(end, handle);
    }
    until_gone(&pool, setup);
    // A thread that is on its way out may still have the last reference to something.
    let began = Instant::now();
    while !world.is_all_dropped() {
        assert!(began.elapsed() < patience(), "not dropped once: {}", world.drops());
        std::thread::yield_now();
    }
    CALLS.fetch_add(1, SeqCst);
}

/// A handle whose task has ended, or will.
fn assert_end(end: End, handle: JoinHandle<Product>) {
    let result = handle.join();
    let seen = match &result {
        Ok(_) => End::Ran,
        Err(JoinError::Panicked(_)) => End::Panicked,
        Err(JoinError::Cancelled) => End::Cancelled,
        Err(JoinError::Closed) => End::Closed,
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(seen, end);
    quietly(|| drop(result));
}

fn until_gone(pool: &Pool, setup: &Setup) {
    if setup.end == Finale::ShutdownPool {
        assert_eq!(pool.stats().alive, 0);
    }
    pool.shutdown(Duration::MAX).unwrap();
    assert_eq!(pool.stats().alive, 0);
}

impl Driver<'_> {
    /// Gives back what the driver itself holds.
    fn let_go(&mut self) {
        assert!(self.model.frames.is_empty());
        self.unstall();
        while !self.guards.is_empty() {
            self.drop_guard(0);
        }
        while !self.owned.is_empty() {
            self.drop_owned(0);
        }
        self.check(&"letting go");
    }

    fn open_everything(&mut self) {
        for exec in 0..2 {
            let ids = self.model.open_all(exec);
            self.open_gates(&ids);
        }
    }

    /// At limit 0 what is queued never runs.
    fn raise_to_one(&mut self, exec: usize) {
        if self.model.execs[exec].limit == 0 {
            self.set_limit(exec, 1);
            self.model.settle();
        }
    }

    fn end(&mut self, how: Finale) {
        for exec in 0..2 {
            match how {
                Finale::ShutdownNow => self.shutdown_now(exec),
                _ => self.raise_to_one(exec),
            }
        }
        self.open_everything();
        match how {
            Finale::ShutdownPool => {
                self.close(0);
                self.close(1);
                self.real.pool.shutdown(Duration::MAX).unwrap();
            }
            _ => {
                for exec in 0..2 {
                    self.close(exec);
                    self.exec(exec).drain(Duration::MAX).unwrap();
                }
            }
        }
        self.check(&how);
        while !self.unruns.is_empty() {
            self.run_unrun(self.unruns.len() / 2);
            self.check(&how);
            self.drop_unrun(0);
            self.check(&how);
        }
        while !self.handles.is_empty() {
            self.handle(crate::ops::HandleOp::Join(Wait::Forever), 0);
            self.check(&how);
        }
        for exec in 0..2 {
            let taken = self.model.taken(exec);
            let e = &self.model.execs[exec];
            assert_eq!((taken, e.line.len()), (0, 0), "the reference itself is quiet");
        }
        assert!(self.others.is_empty());
    }

    /// For executors that are dropped while work is queued: the handles, with what will come of each.
    fn orphans(&mut self) -> Vec<(End, JoinHandle<Product>)> {
        while !self.unruns.is_empty() {
            self.drop_unrun(0);
        }
        for exec in 0..2 {
            // Another thread in the line has a handle of the executor, which is then not dropped; and so has a
            // task that calls it again.
            let jobs = &self.model.jobs;
            let calls_again = |id: Id| jobs[id].kind == Kind::CallsAgain;
            let line = &self.model.execs[exec].line;
            if line.iter().any(|entry| entry.task().is_none_or(calls_again)) {
                self.raise_to_one(exec);
            }
        }
        self.open_others();
        self.check(&"before the executors are dropped");
        assert!(self.others.is_empty());
        let mut future = self.model.clone();
        for exec in 0..2 {
            future.open_all(exec);
        }
        let handles = std::mem::take(&mut self.handles);
        let with_end = |(id, handle): (Id, JoinHandle<Product>)| match future.jobs[id].fate {
            Fate::Ended(end) => (end, handle),
            _ => (End::Closed, handle),
        };
        let left: Vec<_> = handles.into_iter().map(with_end).collect();
        // Those that run hold a handle of their executor each, so the gates are opened after the drop.
        let gates = std::mem::take(&mut self.gates);
        std::thread::spawn(move || gates.iter().for_each(crate::support::Latch::open));
        left
    }

    /// Lets other threads' calls end, and with them what stands before them in the lines.
    fn open_others(&mut self) {
        if !self.others.is_empty() {
            self.open_everything();
        }
    }
}
