//! Foreign code that may panic, kept away from workers and from permits.
#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Drops a value of the user's. A panic in its `Drop` ends here, and so does one in the `Drop` of that panic's
/// payload (whose own panic is then forgotten with its memory).
pub(crate) fn drop_quietly<T>(value: T) {
    call_quietly(|| drop(value));
}

/// Calls a hook of the user's; a panic in it ends here.
pub(crate) fn call_quietly(hook: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(hook)) {
        drop_payload(payload);
    }
}

/// Drops a panic's payload, whose `Drop` is the user's as well.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                std::panic::panic_any(Bomb(self.0 - 1));
            }
        }
    }

    #[test]
    fn panics_in_drop_end_here() {
        for depth in 0..4 {
            drop_quietly(Bomb(depth));
        }
    }
}
