//! The only module that names `std::sync`, `std::thread` or loom. Everything above it uses these names,
//! so that a build with `--cfg work_permit_loom` runs the same code under the model checker.

#[cfg(work_permit_loom)]
mod loom_imp;
#[cfg(not(work_permit_loom))]
mod membarrier;
#[cfg(not(work_permit_loom))]
mod std_imp;

#[cfg(work_permit_loom)]
use loom_imp as imp;
#[cfg(not(work_permit_loom))]
use std_imp as imp;

pub(crate) use imp::{
    AtomicBool, AtomicU32, AtomicU64, Condvar, Mutex, MutexGuard, OnceLock, Parker, Unparker,
    UnsafeCell, deadline_after, fence_seq_cst, light_fence, process_barrier,
    process_barrier_is_ready, spawn_thread, spin_hint, with_parker,
};
pub(crate) use std::sync::atomic::Ordering;
pub(crate) use std::sync::{Arc, Weak};

/// Atomics of the standard library in every build: for statistics, whose order nothing rests on.
/// A model checker would only multiply its executions by them.
pub(crate) mod plain {
    pub(crate) use std::sync::Mutex as PlainMutex;
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};
}

/// Between "I published work" and "does anybody look for work?".
///
/// One half of a two-sided handshake; the other is [`stood_down_then_check`]. The publisher writes the
/// queue, fences and reads the flag; the one who stops looking clears the flag, fences and reads the queue.
/// - *Case 1*, the publisher's fence is first in the single order of such fences: the other side, after its own
///   fence, sees the work.
/// - *Case 2*, the other fence is first: the publisher sees the cleared flag.
///
/// So at least one of them acts, and no work is left without somebody on the way to it. Without either fence
/// model `publish_races_stand_down` fails, and, where the pool uses them, model `submit_races_rest`.
#[inline]
pub(crate) fn published_then_check() {
    fence_seq_cst();
}

/// How two threads make sure that at least one of them sees what the other wrote, when one of them passes often
/// and must pass cheaply. Each writes, passes its side, and looks. The cases, and the models that fail without
/// either side, stand in [`crate::lease`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// The rare side makes every thread of the process pass a barrier (`membarrier`); the frequent side only
    /// keeps the compiler from moving its accesses.
    ProcessWide,
    /// A full fence on both sides.
    Fences,
}

impl Barrier {
    /// What this system offers.
    pub(crate) fn detect() -> Self {
        if process_barrier_is_ready() { Barrier::ProcessWide } else { Barrier::Fences }
    }

    /// The frequent side: between its own write and its look at the other's.
    #[inline]
    pub(crate) fn light(self) {
        match self {
            Barrier::ProcessWide => light_fence(),
            Barrier::Fences => fence_seq_cst(),
        }
    }

    /// The rare side: between its own write and its look at the other's. The fence is for the other build; with
    /// the process-wide barrier it is little beside the system call.
    pub(crate) fn heavy(self) {
        fence_seq_cst();
        if self == Barrier::ProcessWide {
            process_barrier();
        }
    }
}

/// Between "I no longer look for work" and "was any published meanwhile?": see [`published_then_check`].
#[inline]
pub(crate) fn stood_down_then_check() {
    fence_seq_cst();
}

/// A thread-local value in either build: the standard library's, or loom's (whose threads share one
/// thread of the system).
macro_rules! local {
    ($(#[$attr:meta])* static $name:ident: $ty:ty = $init:expr) => {
        #[cfg(not(work_permit_loom))]
        ::std::thread_local! { $(#[$attr])* static $name: $ty = const { $init } }
        #[cfg(work_permit_loom)]
        ::loom::thread_local! { $(#[$attr])* static $name: $ty = $init }
    };
}
pub(crate) use local;

#[cfg(all(test, not(work_permit_loom)))]
mod litmus;
