//! A small number for each live thread: its place in per-thread arrays. Numbers of threads that ended are
//! given out again, lowest first.
#![forbid(unsafe_code)]

#[cfg(work_permit_loom)]
pub(crate) use modelled::{become_number, current};
#[cfg(not(work_permit_loom))]
pub(crate) use real::current;

/// For a thread that has no number: one that is being torn down, and a thread of a model that was given none.
pub(crate) const NONE: usize = usize::MAX;

/// Numbers as a model gives them out: a thread without one keeps no lease, which a model may want.
#[cfg(work_permit_loom)]
mod modelled {
    use super::NONE;
    use crate::sync::local;
    use std::cell::Cell;

    local! {
        static INDEX: Cell<usize> = Cell::new(NONE)
    }

    pub(crate) fn current() -> usize {
        INDEX.try_with(Cell::get).unwrap_or(NONE)
    }

    /// Gives this thread a number, or with [`NONE`] takes it away.
    pub(crate) fn become_number(index: usize) {
        INDEX.with(|own| own.set(index));
    }
}

#[cfg(not(work_permit_loom))]
mod real {
    use super::NONE;
    use crate::sync::plain::PlainMutex;
    use std::cell::Cell;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    use std::sync::PoisonError;

    struct Free {
        returned: BinaryHeap<Reverse<usize>>,
        next: usize,
    }

    static FREE: PlainMutex<Free> = PlainMutex::new(Free { returned: BinaryHeap::new(), next: 0 });

    /// Not asked yet.
    const UNKNOWN: usize = usize::MAX - 1;

    /// Gives the number back at the thread's end. The mutex orders what the next thread with this number does
    /// after what this one did.
    struct Return(usize);

    impl Drop for Return {
        fn drop(&mut self) {
            INDEX.set(NONE);
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            free.returned.push(Reverse(self.0));
        }
    }

    thread_local! {
        static INDEX: Cell<usize> = const { Cell::new(UNKNOWN) };
        static RETURN: Return = Return(INDEX.get());
    }

    /// This thread's number, or [`NONE`].
    #[inline]
    pub(crate) fn current() -> usize {
        let index = INDEX.get();
        if index == UNKNOWN { ask() } else { index }
    }

    #[cold]
    fn ask() -> usize {
        let index = {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            match free.returned.pop() {
                Some(Reverse(index)) => index,
                None => {
                    free.next += 1;
                    free.next - 1
                }
            }
        };
        INDEX.set(index);
        if RETURN.try_with(|_| ()).is_err() {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            free.returned.push(Reverse(index));
            INDEX.set(NONE);
        }
        INDEX.get()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn numbers_are_unique_and_come_back() {
            let here = current();
            assert_eq!(here, current());
            let mut seen = Vec::new();
            for _ in 0..100 {
                seen.push(std::thread::spawn(current).join().unwrap());
            }
            assert!(!seen.contains(&here));
            // Other tests run beside this one, so only the rough size is certain.
            assert!(seen.iter().all(|&index| index < 64), "{seen:?}");
        }
    }
}
