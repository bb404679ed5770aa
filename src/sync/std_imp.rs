//! The standard library's primitives, without lock poisoning: no user code runs under a lock of this crate.
#![forbid(unsafe_code)]

use crossbeam_utils::Backoff;
use std::io;
use std::sync::atomic::{Ordering, compiler_fence, fence};
use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

pub(crate) use crossbeam_utils::sync::Unparker;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
pub(crate) use std::sync::{MutexGuard, OnceLock};

/// A mutex whose lock cannot fail.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.lock_contended(),
        }
    }

    /// Sections under a lock of this crate take tens of nanoseconds, a sleep and a wake-up some microseconds:
    /// so it spins, then yields (the owner may wait for this core), and only then sleeps.
    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, T> {
        let backoff = Backoff::new();
        while !backoff.is_completed() {
            backoff.snooze();
            if let Ok(guard) = self.0.try_lock() {
                return guard;
            }
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The condition variable that goes with [`Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }

    /// Waits for a notification, until `deadline` at most; `None` has no end.
    pub(crate) fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, T> {
        match deadline {
            None => self.0.wait(guard).unwrap_or_else(PoisonError::into_inner),
            Some(at) => {
                let left = at.saturating_duration_since(Instant::now());
                self.0.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// One thread's place to wait. It has a token of its own, so that `std::thread::park` of the caller's code
/// neither loses a token to this crate nor finds one of ours.
#[derive(Debug)]
pub(crate) struct Parker(crossbeam_utils::sync::Parker);

impl Parker {
    pub(crate) fn new() -> Self {
        Self(crossbeam_utils::sync::Parker::new())
    }

    pub(crate) fn unparker(&self) -> Unparker {
        self.0.unparker().clone()
    }

    /// Waits for a token, until `deadline` at most; may return early for no reason.
    pub(crate) fn park_until(&self, deadline: Option<Instant>) {
        match deadline {
            None => self.0.park(),
            Some(at) => self.0.park_deadline(at),
        }
    }
}

thread_local! {
    static PARKER: Parker = Parker::new();
}

/// Lends this thread's parker to `f`: a thread waits in one place at a time, and no user code runs meanwhile.
pub(crate) fn with_parker<R>(f: impl FnOnce(&Parker) -> R) -> R {
    let mut f = Some(f);
    let done = PARKER.try_with(|parker| f.take().map(|f| f(parker)));
    match (done, f) {
        (Ok(Some(result)), _) => result,
        // The thread is being torn down: a parker of its own for this one wait.
        (_, Some(f)) => f(&Parker::new()),
        (_, None) => unreachable!("the closure is taken only where it also runs"),
    }
}

/// A cell whose accesses loom can watch in the other build.
#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Hands out the pointer; what may be done through it is the caller's to argue.
    #[inline]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// Each use pairs with the other side of its handshake: see the named fences in the parent module.
#[inline]
pub(crate) fn fence_seq_cst() {
    fence(Ordering::SeqCst); // mutant: models have loom_imp's, real threads show this one in src/sync/litmus.rs
}

pub(crate) use super::membarrier::{process_barrier, process_barrier_is_ready};

/// Keeps the compiler from moving accesses across; it pairs with the other side's [`process_barrier`], which makes
/// the processor keep order.
#[inline]
pub(crate) fn light_fence() {
    compiler_fence(Ordering::SeqCst); // mutant: models have loom_imp's; no test can make a compiler move it
}

#[inline]
pub(crate) fn spin_hint() {
    std::hint::spin_loop();
}

/// Starts a detached thread.
pub(crate) fn spawn_thread(
    name: String,
    stack_size: Option<usize>,
    main: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let mut builder = std::thread::Builder::new().name(name);
    if let Some(bytes) = stack_size {
        builder = builder.stack_size(bytes);
    }
    builder.spawn(main).map(drop)
}

/// The moment `timeout` from now; `None` when no clock reaches that far, which is to say never.
pub(crate) fn deadline_after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}
