//! Semaphores around work that runs on its caller's thread.

use crate::adapter::{Adapter, Run, TryRun};
use std::sync::Arc;

/// async-lock's semaphore: `try_acquire`, `acquire_blocking`.
#[derive(Clone)]
pub(crate) struct AsyncLock {
    permits: Arc<async_lock::Semaphore>,
}

impl Adapter for AsyncLock {
    const NAME: &'static str = "async-lock";

    fn new(limit: usize) -> Self {
        Self { permits: Arc::new(async_lock::Semaphore::new(limit)) }
    }
}

impl TryRun for AsyncLock {
    #[inline]
    fn try_run(&mut self, work: impl FnOnce()) -> bool {
        let Some(_permit) = self.permits.try_acquire() else { return false };
        work();
        true
    }
}

impl Run for AsyncLock {
    #[inline]
    fn run(&mut self, work: impl FnOnce() + Send) {
        let _permit = self.permits.acquire_blocking();
        work();
    }
}

/// A number under parking_lot's mutex, and its condition variable.
#[derive(Clone)]
pub(crate) struct ParkingLot {
    shared: Arc<(parking_lot::Mutex<usize>, parking_lot::Condvar)>,
}

impl Adapter for ParkingLot {
    const NAME: &'static str = "parking_lot";

    fn new(limit: usize) -> Self {
        Self { shared: Arc::new((parking_lot::Mutex::new(limit), parking_lot::Condvar::new())) }
    }
}

/// Gives the permit back, also on a panic, as the other peers do.
struct Give<'a>(&'a ParkingLot);

impl Drop for Give<'_> {
    fn drop(&mut self) {
        let (free, came_back) = &*self.0.shared;
        *free.lock() += 1;
        came_back.notify_one();
    }
}

impl TryRun for ParkingLot {
    #[inline]
    fn try_run(&mut self, work: impl FnOnce()) -> bool {
        {
            let mut free = self.shared.0.lock();
            if *free == 0 {
                return false;
            }
            *free -= 1;
        }
        let _give = Give(self);
        work();
        true
    }
}

impl Run for ParkingLot {
    #[inline]
    fn run(&mut self, work: impl FnOnce() + Send) {
        let (free, came_back) = &*self.shared;
        {
            let mut free = free.lock();
            while *free == 0 {
                came_back.wait(&mut free);
            }
            *free -= 1;
        }
        let _give = Give(self);
        work();
    }
}
