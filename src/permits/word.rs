//! **Permit word**: owns the atomic; one update loop, one method for each transition of [`State`].
//!
//! *What the word owes the outside world.* Work under a permit sees everything that was done under the
//! permits given back before: with limit 1 the permit is a mutex. T2 (Release) heads a release sequence; every
//! later change of the word is a read-modify-write, so the sequence is not broken by whatever comes between,
//! and T1, T4 and T10 (Acquire) read a value in it. T6 stays on one thread. All else that the transitions publish
//! (the line and its entries) goes through the line's lock, so the other orders are Relaxed.
//!
//! Failed attempts only compute anew: Relaxed.
//!
//! *Steps that change nothing.* T3 and T6 of a busy line mostly change nothing, and are then only read. The value
//! may be old, but not older than the last change of `WAITING`, which the line's lock orders; and with `WAITING`
//! set every value keeps I1, so T3 owes nothing in any of them. T6 on an old value counts the overtakes since
//! then against the next head, which is where they were.
#![forbid(unsafe_code)]

use super::state::{Duty, Refusal, Serve, State, Take};
use crate::sync::AtomicU64;
use crate::sync::Ordering::{self, Acquire, Relaxed, Release};

/// The owner of the permit word.
#[derive(Debug)]
pub(crate) struct PermitWord(AtomicU64);

impl PermitWord {
    pub(crate) fn new(limit: usize) -> Self {
        Self(AtomicU64::new(State::new(limit).bits()))
    }

    /// The value of some moment, for decisions that are checked again.
    #[inline]
    pub(crate) fn peek(&self) -> State {
        State::from_bits(self.0.load(Relaxed))
    }

    /// The value, and what was done under the permits that came back before it.
    pub(crate) fn observe(&self) -> State {
        State::from_bits(self.0.load(Acquire)) // pairs with T2
    }

    /// The only place where the word changes.
    #[inline]
    fn update<T>(&self, order: Ordering, next: impl Fn(State) -> (State, T)) -> T {
        let mut bits = self.0.load(Relaxed);
        loop {
            let (state, answer) = next(State::from_bits(bits));
            debug_assert!(state.is_sound(), "unsound: {state:?}");
            if state.bits() == bits && order == Relaxed {
                return answer; // Nothing to write and nothing to order: see "Steps that change nothing".
            }
            match self.0.compare_exchange_weak(bits, state.bits(), order, Relaxed) {
                Ok(_) => return answer,
                Err(now) => bits = now,
            }
        }
    }

    /// T1.
    #[inline]
    pub(crate) fn take(&self, max_overtakes: u16) -> Result<Take, Refusal> {
        let mut bits = self.0.load(Relaxed);
        loop {
            let (state, how) = State::from_bits(bits).take(max_overtakes)?;
            debug_assert!(state.is_sound(), "unsound: {state:?}");
            // Acquire: pairs with T2 of earlier holders.
            match self.0.compare_exchange_weak(bits, state.bits(), Acquire, Relaxed) {
                Ok(_) => return Ok(how),
                Err(now) => bits = now,
            }
        }
    }

    /// T2. Says also whether the executor is closed, since then somebody may wait for the last permit.
    #[inline]
    pub(crate) fn give(&self) -> (Duty, bool) {
        // Release: pairs with T1 and T4 of later holders, and with `observe`.
        self.update(Release, |s| {
            let (next, duty) = s.give();
            (next, (duty, next.is_closed()))
        })
    }

    /// T3, under the line's lock.
    pub(crate) fn line_up(&self) -> Duty {
        self.update(Relaxed, State::line_up)
    }

    /// T4 or T5, under the line's lock.
    pub(crate) fn serve(&self, more: bool, token: bool) -> Serve {
        self.update(Acquire, |s| s.serve(more, token)) // pairs with T2 of earlier holders
    }

    /// T10, under the line's lock.
    pub(crate) fn reserve(&self) -> bool {
        let mut bits = self.0.load(Relaxed);
        while let Some(state) = State::from_bits(bits).reserve() {
            debug_assert!(state.is_sound(), "unsound: {state:?}");
            // Acquire: pairs with T2 of earlier holders.
            match self.0.compare_exchange_weak(bits, state.bits(), Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => bits = now,
            }
        }
        false
    }

    /// T11, under the line's lock.
    pub(crate) fn served(&self, more: bool, token: bool) -> Duty {
        self.update(Relaxed, |s| s.served(more, token))
    }

    /// T12, under the line's lock.
    pub(crate) fn end_if_saturated(&self) -> bool {
        self.update(Relaxed, |s| match s.end_if_saturated() {
            Some(next) => (next, true),
            None => (s, false),
        })
    }

    /// T5 on an empty line, under the line's lock.
    pub(crate) fn stand_down(&self) {
        self.update(Relaxed, |s| (s.stand_down(), ()));
    }

    /// T6, under the line's lock.
    pub(crate) fn hand_on(&self, more: bool) -> bool {
        self.update(Relaxed, |s| match s.hand_on(more) {
            Some(next) => (next, true),
            None => (s, false),
        })
    }

    /// T7, under the line's lock.
    pub(crate) fn clear_line(&self) {
        self.update(Relaxed, |s| (s.clear_line(), ()));
    }

    /// T8, under the line's lock.
    pub(crate) fn resize(&self, by: i64) -> Duty {
        self.update(Relaxed, |s| s.resize(by))
    }

    /// T9, under the line's lock.
    pub(crate) fn close(&self) {
        self.update(Relaxed, |s| (s.close(), ()));
    }
}
