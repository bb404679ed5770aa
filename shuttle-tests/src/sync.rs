//! `src/sync` with shuttle's primitives. Shuttle has no time: a deadline never passes in a model.
//!
//! What stands above the primitives (the named fences, the barrier) is the text of `src/sync/mod.rs`.
#![allow(dead_code)]

use shuttle::sync::{Condvar as ShuttleCondvar, Mutex as ShuttleMutex};
use std::io;
use std::time::{Duration, Instant};

pub(crate) use shuttle::sync::MutexGuard;
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
pub(crate) use std::sync::atomic::Ordering;
pub(crate) use std::sync::{Arc, OnceLock, Weak};

/// Atomics of the standard library in every build: for statistics, whose order nothing rests on.
/// A model checker would only multiply its executions by them.
pub(crate) mod plain {
    #[allow(unused_imports)]
    pub(crate) use std::sync::Mutex as PlainMutex;
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};
}

/// Between "I published work" and "does anybody look for work?".
///
/// One half of a two-sided handshake; the other is [`stood_down_then_check`]. The publisher writes the
/// queue, fences and reads the flag; the one who stops looking clears the flag, fences and reads the queue.
/// Case 1, the publisher's fence is first in the single order of such fences: the other side, after its own
/// fence, sees the work. Case 2, the other fence is first: the publisher sees the cleared flag. So at least
/// one of them acts, and no work is left without somebody on the way to it.
#[inline]
pub(crate) fn published_then_check() {
    fence_seq_cst();
}

/// How two threads make sure that at least one of them sees what the other wrote, when one of them passes often
/// and must pass cheaply: see [`crate::lease`].
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

    /// The rare side: between its own write and its look at the other's.
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

macro_rules! local {
    ($(#[$attr:meta])* static $name:ident: $ty:ty = $init:expr) => {
        ::shuttle::thread_local! { $(#[$attr])* static $name: $ty = $init }
    };
}
pub(crate) use local;

#[derive(Debug)]
pub(crate) struct Mutex<T>(ShuttleMutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ShuttleMutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("no foreign code panics under a lock")
    }
}

#[derive(Debug)]
pub(crate) struct Condvar(ShuttleCondvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(ShuttleCondvar::new())
    }

    pub(crate) fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _deadline: Option<Instant>,
    ) -> MutexGuard<'a, T> {
        self.0.wait(guard).expect("no foreign code panics under a lock")
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[derive(Debug)]
struct Token {
    there: ShuttleMutex<bool>,
    changed: ShuttleCondvar,
}

#[derive(Debug)]
pub(crate) struct Parker(Arc<Token>);

#[derive(Debug, Clone)]
pub(crate) struct Unparker(Arc<Token>);

impl Parker {
    pub(crate) fn new() -> Self {
        let token = Token { there: ShuttleMutex::new(false), changed: ShuttleCondvar::new() };
        Self(Arc::new(token))
    }

    pub(crate) fn unparker(&self) -> Unparker {
        Unparker(Arc::clone(&self.0))
    }

    pub(crate) fn park_until(&self, _deadline: Option<Instant>) {
        let mut there = self.0.there.lock().expect("nobody panics with it");
        while !*there {
            there = self.0.changed.wait(there).expect("nobody panics with it");
        }
        *there = false;
    }
}

impl Unparker {
    pub(crate) fn unpark(&self) {
        *self.0.there.lock().expect("nobody panics with it") = true;
        self.0.changed.notify_one();
    }
}

pub(crate) fn with_parker<R>(f: impl FnOnce(&Parker) -> R) -> R {
    f(&Parker::new())
}

#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// Every atomic is sequentially consistent here; a fence is a place where others may go on.
pub(crate) fn fence_seq_cst() {
    shuttle::thread::yield_now();
}

pub(crate) fn light_fence() {
    fence_seq_cst();
}

pub(crate) fn process_barrier() {}

pub(crate) fn process_barrier_is_ready() -> bool {
    true
}

pub(crate) fn spin_hint() {
    shuttle::thread::yield_now();
}

pub(crate) fn spawn_thread(
    name: String,
    _stack_size: Option<usize>,
    main: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    shuttle::thread::Builder::new().name(name).spawn(main).map(drop)
}

pub(crate) fn deadline_after(_timeout: Duration) -> Option<Instant> {
    None
}
