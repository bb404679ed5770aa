//! A closure without a handle, stored where it stands: a small one in the queue's own memory, a large one in a
//! box. What is freed on another core than it was allocated on is most of the cost of an empty queued task.

use std::any::TypeId;
use std::fmt;
use std::mem::{self, ManuallyDrop, MaybeUninit};

/// Words a closure may have to be stored without a box.
const WORDS: usize = 4;

type Store = [MaybeUninit<usize>; WORDS];

/// What is known of the closure's type.
struct Type {
    /// SAFETY: the pointer is to a store that holds a closure of this type; it is moved out.
    call: unsafe fn(*mut Store),
    /// SAFETY: as for `call`. `None`: there is nothing to drop.
    drop: Option<unsafe fn(*mut Store)>,
    id: fn() -> TypeId,
}

/// An `FnOnce() + Send` of any type.
pub(crate) struct Closure {
    of: &'static Type,
    store: Store,
}

// SAFETY: `new` asks for a closure that is Send, and nothing else is in the store.
unsafe impl Send for Closure {}

/// The two functions of one closure type.
trait Stored: FnOnce() + Send + Sized + 'static {
    const TYPE: Type = Type {
        call: call::<Self>,
        drop: if mem::needs_drop::<Self>() { Some(drop_in_place::<Self>) } else { None },
        id: TypeId::of::<Self>,
    };
}

/// A closure that was called: nothing is in its store.
static CALLED: Type = Type { call: nothing, drop: None, id: TypeId::of::<Called> };

/// Nobody else can name it, so no closure is of this type.
struct Called;

/// # Safety
/// None is needed.
unsafe fn nothing(_store: *mut Store) {}

impl<F: FnOnce() + Send + 'static> Stored for F {}

/// # Safety
/// `store` holds an `F`, which is moved out.
unsafe fn call<F: FnOnce()>(store: *mut Store) {
    // SAFETY: by the caller; `put` checked size and alignment.
    let closure = unsafe { store.cast::<F>().read() };
    closure();
}

/// # Safety
/// `store` holds an `F`, which is dropped there.
unsafe fn drop_in_place<F>(store: *mut Store) {
    // SAFETY: by the caller; `put` checked size and alignment.
    unsafe { store.cast::<F>().drop_in_place() }
}

const fn fits<F>() -> bool {
    size_of::<F>() <= size_of::<Store>() && align_of::<F>() <= align_of::<Store>()
}

impl Closure {
    #[inline]
    pub(crate) fn new<F: FnOnce() + Send + 'static>(closure: F) -> Self {
        if fits::<F>() { Self::put(closure) } else { Self::put(Box::new(closure)) }
    }

    #[inline]
    fn put<F: FnOnce() + Send + 'static>(closure: F) -> Self {
        const { assert!(fits::<Box<F>>()) };
        assert!(fits::<F>(), "`new` puts what is too large into a box");
        let mut store: Store = [MaybeUninit::uninit(); WORDS];
        // SAFETY: the store is ours, and large and aligned enough, as just checked.
        unsafe { store.as_mut_ptr().cast::<F>().write(closure) };
        Self { of: &<F as Stored>::TYPE, store }
    }

    /// None: calling it, or dropping it, does nothing.
    #[inline]
    pub(crate) fn called() -> Self {
        Self { of: &CALLED, store: [MaybeUninit::uninit(); WORDS] }
    }

    /// Calls it where it stands: a copy of what was just written would cost more than a small closure. Its panic goes
    /// on to the caller, after the closure is dropped. It has been [`called`](Self::called) then.
    #[inline]
    pub(crate) fn call(&mut self) {
        let of = mem::replace(&mut self.of, &CALLED);
        // SAFETY: `of` belongs to the type that `put` stored; it is moved out once, since nobody finds `of` again.
        unsafe { (of.call)(&mut self.store) };
    }

    /// The closure itself, for one that was refused. `None`: it is of another type.
    pub(crate) fn into_inner<F: FnOnce() + Send + 'static>(self) -> Option<F> {
        if fits::<F>() { self.take() } else { self.take::<Box<F>>().map(|boxed| *boxed) }
    }

    fn take<F: 'static>(self) -> Option<F> {
        if (self.of.id)() != TypeId::of::<F>() {
            return None;
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the store holds an F, by its `TypeId`; it is moved out once, since `this` is not dropped.
        Some(unsafe { this.store.as_mut_ptr().cast::<F>().read() })
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        if let Some(drop) = self.of.drop {
            // SAFETY: the closure is still there: who moves it out says so in `of`, or does not drop `self`.
            unsafe { drop(&mut self.store) };
        }
    }
}

impl fmt::Debug for Closure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closure")
            .field("bytes", &mem::size_of_val(&self.store))
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(work_permit_loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    /// Calls, drops and takes back a closure that owns `payload` and a reference to count.
    fn lives_once<P: Send + 'static>(payload: fn() -> P) {
        let counted = Arc::new(());
        let make = || {
            let (mine, payload) = (Arc::clone(&counted), payload());
            move || {
                let _both = (&payload, mine);
            }
        };
        Closure::new(make()).call();
        assert_eq!(Arc::strong_count(&counted), 1, "called, and dropped with its call");
        drop(Closure::new(make()));
        assert_eq!(Arc::strong_count(&counted), 1, "dropped without a call");
        drop(take_back(make()));
        assert_eq!(Arc::strong_count(&counted), 1, "taken back");
    }

    fn take_back<F: FnOnce() + Send + 'static>(closure: F) -> F {
        Closure::new(closure).into_inner::<F>().expect("the type that went in")
    }

    #[repr(align(64))]
    struct Aligned(#[allow(dead_code)] u8);

    #[test]
    fn small_large_and_aligned_closures_live_once() {
        lives_once(|| ());
        lives_once(|| [0_usize; WORDS - 1]);
        lives_once(|| [0_usize; WORDS]);
        lives_once(|| [0_u8; 4096]);
        lives_once(|| Aligned(1));
        lives_once(|| String::from("owned"));
    }

    #[test]
    fn a_panic_drops_what_the_closure_owns() {
        let counted = Arc::new(());
        let mine = Arc::clone(&counted);
        let mut closure = Closure::new(move || {
            let _mine = mine;
            panic!("out");
        });
        assert!(catch_unwind(AssertUnwindSafe(|| closure.call())).is_err());
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn another_type_is_not_taken_for_it() {
        let counted = Arc::new(());
        let mine = Arc::clone(&counted);
        fn as_type_of<F: FnOnce() + Send + 'static>(closure: Closure, _like: &F) -> bool {
            closure.into_inner::<F>().is_some()
        }
        let other = || ();
        assert!(!as_type_of(Closure::new(move || drop(mine)), &other));
        assert_eq!(Arc::strong_count(&counted), 1, "and it is dropped");
    }
}
