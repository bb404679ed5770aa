//! Plain memory that only the permit of an executor with limit 1 protects: each holder sees what the ones before
//! it wrote. A lost update is seen in any build, a missing edge by ThreadSanitizer.

use std::cell::UnsafeCell;

/// How many held the permit so far.
#[derive(Debug, Default)]
pub(crate) struct Diary(UnsafeCell<u64>);

// SAFETY: whoever touches the number holds the only permit of the room (G1), or comes when all is quiet.
unsafe impl Sync for Diary {}

impl Diary {
    /// For the holder of the only permit, and for whoever knows that all is quiet.
    pub(crate) fn note(&self, one_more: bool) -> u64 {
        // SAFETY: see `Sync` above; the reference ends with this call.
        let lines = unsafe { &mut *self.0.get() };
        *lines += u64::from(one_more);
        *lines
    }
}
