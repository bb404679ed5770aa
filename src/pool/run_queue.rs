//! The run queue: a FIFO of executors. crossbeam-deque's injector, or under loom, which cannot see into it, a
//! queue under a mutex.
#![forbid(unsafe_code)]

#[cfg(work_permit_loom)]
pub(crate) use modelled::RunQueue;
#[cfg(not(work_permit_loom))]
pub(crate) use real::RunQueue;

#[cfg(not(work_permit_loom))]
mod real {
    use crossbeam_deque::{Injector, Steal};
    use crossbeam_utils::Backoff;

    #[derive(Debug)]
    pub(crate) struct RunQueue<T>(Injector<T>);

    impl<T> RunQueue<T> {
        pub(crate) fn new() -> Self {
            Self(Injector::new())
        }

        pub(crate) fn push(&self, value: T) {
            self.0.push(value);
        }

        pub(crate) fn pop(&self) -> Option<T> {
            let backoff = Backoff::new();
            loop {
                match self.0.steal() {
                    Steal::Success(value) => return Some(value),
                    Steal::Empty => return None,
                    Steal::Retry => backoff.snooze(),
                }
            }
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.0.is_empty()
        }

        pub(crate) fn len(&self) -> usize {
            self.0.len()
        }
    }
}

#[cfg(work_permit_loom)]
mod modelled {
    use crate::sync::Ordering::Relaxed;
    use crate::sync::{AtomicU64, Mutex};
    use std::collections::VecDeque;

    /// Whether it is empty is asked without the lock, and in no order: that the answer is not too old is what
    /// the fences around it are for, in every build.
    #[derive(Debug)]
    pub(crate) struct RunQueue<T> {
        entries: Mutex<VecDeque<T>>,
        len: AtomicU64,
    }

    impl<T> RunQueue<T> {
        pub(crate) fn new() -> Self {
            Self { entries: Mutex::new(VecDeque::new()), len: AtomicU64::new(0) }
        }

        pub(crate) fn push(&self, value: T) {
            let mut entries = self.entries.lock();
            entries.push_back(value);
            self.len.fetch_add(1, Relaxed);
        }

        pub(crate) fn pop(&self) -> Option<T> {
            let mut entries = self.entries.lock();
            let value = entries.pop_front()?;
            self.len.fetch_sub(1, Relaxed);
            Some(value)
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.len.load(Relaxed) == 0
        }

        pub(crate) fn len(&self) -> usize {
            self.len.load(Relaxed) as usize
        }
    }
}
