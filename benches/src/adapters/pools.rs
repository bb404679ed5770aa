//! Thread pools: rayon, threadpool, executors.

use super::channels::reply;
use crate::adapter::{Adapter, Ask, Execute, Run};
use executors::crossbeam_workstealing_pool::{self, ThreadPool as WorkStealing};
use executors::parker::{SmallThreadData, StaticParker};
use executors::{CanExecute as _, Executor as _};
use std::sync::Arc;

/// A rayon pool of `limit` threads: `spawn`, and `install` where the caller waits.
#[derive(Clone)]
pub(crate) struct Rayon {
    pool: Arc<rayon::ThreadPool>,
}

impl Adapter for Rayon {
    const NAME: &'static str = "rayon";

    fn new(limit: usize) -> Self {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(limit).build();
        Self { pool: Arc::new(pool.expect("the system has threads")) }
    }
}

impl Run for Rayon {
    fn run(&mut self, work: impl FnOnce() + Send) {
        self.pool.install(work);
    }
}

impl Ask for Rayon {
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        self.pool.install(work)
    }
}

impl Execute for Rayon {
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        self.pool.spawn(work);
    }
}

/// The crate `threadpool`, with `limit` threads.
#[derive(Clone)]
pub(crate) struct Threadpool {
    pool: threadpool::ThreadPool,
}

impl Adapter for Threadpool {
    const NAME: &'static str = "threadpool";

    fn new(limit: usize) -> Self {
        Self { pool: threadpool::ThreadPool::new(limit) }
    }
}

impl Execute for Threadpool {
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        self.pool.execute(work);
    }
}

impl Ask for Threadpool {
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        reply(|job| self.pool.execute(job), work)
    }
}

/// The work-stealing pool of the crate `executors`, with `limit` threads. It keeps no order.
pub(crate) struct Executors {
    pool: WorkStealing<StaticParker<SmallThreadData>>,
    /// Its threads are told to end by the first handle: without being told they panic.
    is_first: bool,
}

impl Clone for Executors {
    fn clone(&self) -> Self {
        Self { pool: self.pool.clone(), is_first: false }
    }
}

impl Drop for Executors {
    fn drop(&mut self) {
        if self.is_first {
            self.pool.shutdown_async();
        }
    }
}

impl Adapter for Executors {
    const NAME: &'static str = "executors";

    fn new(limit: usize) -> Self {
        Self { pool: crossbeam_workstealing_pool::small_pool(limit), is_first: true }
    }
}

impl Execute for Executors {
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        self.pool.execute(work);
    }
}

impl Ask for Executors {
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        reply(|job| self.pool.execute_job(job), work)
    }
}
