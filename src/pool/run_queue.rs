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
    use crate::sync::Mutex;
    use std::collections::VecDeque;

    #[derive(Debug)]
    pub(crate) struct RunQueue<T>(Mutex<VecDeque<T>>);

    impl<T> RunQueue<T> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(VecDeque::new()))
        }

        pub(crate) fn push(&self, value: T) {
            self.0.lock().push_back(value);
        }

        pub(crate) fn pop(&self) -> Option<T> {
            self.0.lock().pop_front()
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.0.lock().is_empty()
        }

        pub(crate) fn len(&self) -> usize {
            self.0.lock().len()
        }
    }
}
