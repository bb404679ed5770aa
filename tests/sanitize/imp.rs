//! The primitives of `src/sync/std_imp.rs` for ThreadSanitizer: `.ci/sanitize` lays this file over that one in a
//! copy of the repository.
//!
//! The standard library that comes with the compiler is not instrumented. What is generic or inlined in it is
//! compiled with us and seen; the slow paths of its mutex, once-lock, condition variable and parker are not, so each
//! lock that was ever contended would look as if it ordered nothing. Here a lock is an atomic that waits by looking
//! again: slow, but every edge is one that the sanitizer sees. Nothing else differs from a normal build.

use std::cell::UnsafeCell as Cell;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::{Duration, Instant};

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// Gives the processor away between two looks: a futex wait would be a wake-up that the sanitizer does not see.
fn wait_a_moment() {
    std::thread::yield_now();
}

#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    locked: AtomicBool,
    value: Cell<T>,
}

// SAFETY: a `&Mutex` reaches the value only through the one guard that exists while `locked` is set, so sharing
// it moves the value between threads, which `Send` allows.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// Set once, by whoever comes first.
#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    set: AtomicBool,
    lock: Mutex<()>,
    value: Cell<Option<T>>,
}

// SAFETY: the value is written once, under the lock and before `set`, and only read after that.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    pub(crate) const fn new() -> Self {
        Self { set: AtomicBool::new(false), lock: Mutex::new(()), value: Cell::new(None) }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // Acquire: pairs with the store in `get_or_init`.
        let is_set = self.set.load(Acquire);
        // SAFETY: it was written before `set`, and is not written again.
        if is_set { unsafe { (*self.value.get()).as_ref() } } else { None }
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let guard = self.lock.lock();
        if self.get().is_none() {
            // SAFETY: nobody reads before `set`, and nobody else writes: that takes the lock.
            unsafe { *self.value.get() = Some(make()) };
            self.set.store(true, Release);
        }
        drop(guard);
        self.get().expect("it was set just now, if not before")
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        Self { set: AtomicBool::new(true), lock: Mutex::new(()), value: Cell::new(Some(value)) }
    }
}

#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T>(&'a Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: Cell::new(value) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            wait_a_moment();
        }
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        // Acquire: pairs with the guard's drop.
        (!self.locked.swap(true, Acquire)).then(|| MutexGuard(self))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time, and this is it.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the guard is borrowed for writing.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.0.locked.store(false, Release); // pairs with `try_lock`
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condvar(AtomicU32);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, T> {
        let (seen, mutex) = (self.0.load(Relaxed), guard.0);
        drop(guard);
        while self.0.load(Relaxed) == seen && !has_passed(deadline) {
            wait_a_moment();
        }
        mutex.lock()
    }

    pub(crate) fn notify_all(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|at| at <= Instant::now())
}

#[derive(Debug)]
pub(crate) struct Parker(Arc<AtomicBool>);

#[derive(Debug, Clone)]
pub(crate) struct Unparker(Arc<AtomicBool>);

impl Parker {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    pub(crate) fn unparker(&self) -> Unparker {
        Unparker(Arc::clone(&self.0))
    }

    pub(crate) fn park_until(&self, deadline: Option<Instant>) {
        // Acquire: pairs with `unpark`.
        while !self.0.swap(false, Acquire) && !has_passed(deadline) {
            wait_a_moment();
        }
    }
}

impl Unparker {
    pub(crate) fn unpark(&self) {
        self.0.store(true, Release); // pairs with `park_until`
    }
}

pub(crate) fn with_parker<R>(f: impl FnOnce(&Parker) -> R) -> R {
    f(&Parker::new())
}

#[derive(Debug, Default)]
pub(crate) struct UnsafeCell<T>(Cell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Cell::new(value))
    }

    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// Not modelled by the sanitizer: it neither makes nor hides an edge. The two-sided handshakes that use it
/// decide who acts; the data behind them is handed over by locks and by Release and Acquire.
pub(crate) fn fence_seq_cst() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

pub(crate) use super::membarrier::{process_barrier, process_barrier_is_ready};

pub(crate) fn light_fence() {
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

pub(crate) fn spin_hint() {
    std::hint::spin_loop();
}

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

pub(crate) fn deadline_after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// The lock above in the shape of the standard library's, for `PlainMutex` and for the soak.
#[derive(Debug, Default)]
pub(crate) struct StdMutex<T>(Mutex<T>);

type Locked<'a, T> = MutexGuard<'a, T>;

impl<T> StdMutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Result<Locked<'_, T>, PoisonError<Locked<'_, T>>> {
        Ok(self.0.lock())
    }

    #[allow(dead_code)]
    pub(crate) fn try_lock(&self) -> Result<Locked<'_, T>, TryLockError<Locked<'_, T>>> {
        self.0.try_lock().ok_or(TryLockError::WouldBlock)
    }
}
