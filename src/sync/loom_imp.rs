//! Loom's primitives under the same names. Loom has no time: in a model a timeout of zero passes at once, and any
//! other never.
#![forbid(unsafe_code)]

use std::io;
use std::time::{Duration, Instant};

pub(crate) use loom::sync::MutexGuard;
pub(crate) use std::sync::OnceLock;

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};

/// Loom's atomics, with loads that it does not lose. Loom compares an operation with the last access to
/// the same atomic alone, so a thread that loads before it updates hides the load of another thread from
/// its own update, and "the other loads after the update" is never explored. Signalling a condition that
/// nobody waits for orders nothing, but counts as an access that everything depends on.
macro_rules! atomics {
    ($($name:ident: $ty:ty;)*) => { $(
        #[derive(Debug)]
        pub(crate) struct $name {
            value: loom::sync::atomic::$name,
            loads: loom::sync::Condvar,
        }

        impl $name {
            pub(crate) fn new(value: $ty) -> Self {
                let value = loom::sync::atomic::$name::new(value);
                Self { value, loads: loom::sync::Condvar::new() }
            }

            pub(crate) fn load(&self, order: Ordering) -> $ty {
                self.loads.notify_all();
                self.value.load(order)
            }
        }

        impl Deref for $name {
            type Target = loom::sync::atomic::$name;

            fn deref(&self) -> &Self::Target {
                &self.value
            }
        }
    )* };
}

atomics! {
    AtomicBool: bool;
    AtomicU32: u32;
    AtomicU64: u64;
}

/// A mutex whose lock cannot fail: a run that panics gives its permit back under it.
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    pub(crate) fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _deadline: Option<Instant>,
    ) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A token under loom's mutex: loom's own `park` cannot be woken from a thread that others join.
#[derive(Debug)]
struct Token {
    there: loom::sync::Mutex<bool>,
    changed: loom::sync::Condvar,
}

#[derive(Debug)]
pub(crate) struct Parker(Arc<Token>);

#[derive(Debug, Clone)]
pub(crate) struct Unparker(Arc<Token>);

impl Parker {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Token {
            there: loom::sync::Mutex::new(false),
            changed: loom::sync::Condvar::new(),
        }))
    }

    pub(crate) fn unparker(&self) -> Unparker {
        Unparker(Arc::clone(&self.0))
    }

    pub(crate) fn park_until(&self, _deadline: Option<Instant>) {
        let mut there = self.0.there.lock().unwrap_or_else(PoisonError::into_inner);
        while !*there {
            there = self.0.changed.wait(there).unwrap_or_else(PoisonError::into_inner);
        }
        *there = false;
    }
}

impl Unparker {
    pub(crate) fn unpark(&self) {
        *self.0.there.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_one();
    }
}

pub(crate) fn with_parker<R>(f: impl FnOnce(&Parker) -> R) -> R {
    f(&Parker::new())
}

/// Loom watches accesses that are shared, beside the value. Those through `&mut` need no watching: that there
/// is only one is the compiler's word, or that of `Arc`, whose counts loom does not see.
#[derive(Debug)]
pub(crate) struct UnsafeCell<T> {
    accesses: loom::cell::UnsafeCell<()>,
    value: std::cell::UnsafeCell<T>,
}

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        let accesses = loom::cell::UnsafeCell::new(());
        Self { accesses, value: std::cell::UnsafeCell::new(value) }
    }

    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.accesses.with_mut(|_| f(self.value.get()))
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

// Loom switches threads only before an operation on an object, and a fence is on none: without one it would be
// one step with the operation before it. So all fences of an execution are on one object, which lives as long as
// a thread that has used it. It orders nothing, like the condition of the loads.
loom::thread_local! {
    static FENCES: Arc<loom::sync::Condvar> = all_fences();
}

std::thread_local! {
    // Loom's threads share one thread of the system.
    static ALL_FENCES: RefCell<Weak<loom::sync::Condvar>> = const { RefCell::new(Weak::new()) };
}

fn all_fences() -> Arc<loom::sync::Condvar> {
    ALL_FENCES.with_borrow_mut(|all| {
        all.upgrade().unwrap_or_else(|| {
            let new = Arc::new(loom::sync::Condvar::new());
            *all = Arc::downgrade(&new);
            new
        })
    })
}

/// Each use pairs with the other side of its handshake: see the named fences in the parent module.
pub(crate) fn fence_seq_cst() {
    if let Ok(fences) = FENCES.try_with(Arc::clone) {
        fences.notify_all();
    }
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// A barrier that all threads pass stands in the model as a fence on both sides.
pub(crate) fn light_fence() {
    fence_seq_cst();
}

pub(crate) fn process_barrier() {}

pub(crate) fn process_barrier_is_ready() -> bool {
    true
}

pub(crate) fn spin_hint() {
    loom::thread::yield_now();
}

pub(crate) fn spawn_thread(
    _name: String,
    _stack_size: Option<usize>,
    main: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    drop(loom::thread::spawn(main));
    Ok(())
}

pub(crate) fn deadline_after(timeout: Duration) -> Option<Instant> {
    timeout.is_zero().then(Instant::now)
}
