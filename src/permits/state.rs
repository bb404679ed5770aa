//! **Permit state**: the value of the permit word. Plain data: no atomics, no unsafe, no clock.
//!
//! ```text
//!  63                            32   31      30        29     28      16 15            0
//! +--------------------------------+--------+---------+--------+----------+--------------+
//! |  free : i32                    | CLOSED | WAITING | WAKING | (unused) | overtakes u16|
//! +--------------------------------+--------+---------+--------+----------+--------------+
//! ```
//!
//! | field | counts or says | range | changed by |
//! |---|---|---|---|
//! | `free` | permits nobody holds: `limit - taken` | -(largest former limit) ..= limit | T1 T2 T4 T8 T10 |
//! | `CLOSED` | no new work is accepted | set once | T9 |
//! | `WAITING` | the line holds a task or a waiter | | T3 T4 T6 T7 T11, only under the line's lock |
//! | `WAKING` | one thread is on its way to serve the line: it holds *the token* | | T2 T3 T4 T5 T8 T11 T12 |
//! | `overtakes` | starts ahead of the line since its head was last served | 0 ..= `max_overtakes` | T1, reset by T4 T6 T7 T11 |
//!
//! *Why this order.* `free` is signed and goes below zero when the limit is lowered under running work. On
//! top of the word its borrow has no neighbour to damage. `overtakes` never passes `max_overtakes`, which fits.
//!
//! *Why one word.* "A permit is free", "somebody waits" and "somebody is on the way to serve the line" must be
//! judged together. In one word they are an invariant of every value; in two they would need a fence and a
//! second look at each call.
//!
//! # Invariants
//! - **I1** (*no idle permit beside waiting work*) `WAITING` and `free > 0` imply `WAKING`: whoever waits has
//!   somebody on the way who will look at the line again.
//! - **I2** `overtakes > 0` implies `WAITING`: what is overtaken is there.
//! - **I3** `CLOSED` is monotonic.
//! - **I4** `limit - free = taken >= 0`. The limit stands beside the line; only T8 changes both.
//! - **I5** (*one token*) while `WAKING` is set exactly one thread, waiter or pool queue entry is responsible
//!   for it. T2, T3 and T8 make it (their answer is [`Duty::Attend`]), T4 and T11 keep or
//!   end it, T5 and T12 end it.
//!
//! # States
//! | name | free | WAITING | WAKING | an arriving caller | a thread that gives a permit back |
//! |---|---|---|---|---|---|
//! | Idle | = limit | 0 | 0 | takes | - |
//! | Running | 1 .. limit-1 | 0 | 0 | takes | gives |
//! | Saturated | <= 0 | 0 | 0 | lines up | gives |
//! | Backlogged | <= 0 | 1 | 0 | lines up | gives and gets the token, if `free` is then above 0 |
//! | Serving | any | 1 | 1 | overtakes while it may, else lines up | gives; the token is on its way already |
//! | Fading | any | 0 | 1 | takes | gives; the token finds an empty line and ends |
//! | Closed | any | any | any | is refused | as above |
//!
//! # Transitions
//! | # | name | enabled when | effect | order in `word` | pairs with |
//! |---|---|---|---|---|---|
//! | T1 | `take` | open, `free > 0`, and not WAITING or `overtakes < max` | free-1; overtakes+1 if WAITING | Acquire | T2 |
//! | T2 | `give` | always | free+1; then *settle* | Release | T1 T4 |
//! | T3 | `line_up` | the entry is in the line | WAITING; then *settle* | Relaxed | - |
//! | T4 | `serve` | WAITING, `free > 0`, the head is ours | free-1, overtakes=0, WAITING=more; a token goes on if more and free are left | Acquire | T2 |
//! | T5 | `stand_down` | the token holder finds no permit or an empty line | WAKING=0 | Relaxed | - |
//! | T6 | `hand_on` | WAITING, `free >= 0`, by a permit holder | overtakes=0, WAITING=more | Relaxed | - |
//! | T7 | `clear_line` | the last entry was taken out | WAITING=0, overtakes=0 | Relaxed | - |
//! | T8 | `resize` | under the line's lock | free+d; then *settle* | Relaxed | - |
//! | T9 | `close` | always | CLOSED | Relaxed | - |
//! | T10 | `reserve` | `free > 0`, under the line's lock | free-1 | Acquire | T2 |
//! | T11 | `served` | the head, for whom a permit was reserved, was taken out | overtakes=0, WAITING=more; a token goes on if more and free are left | Relaxed | - |
//! | T12 | `end_if_saturated` | the token's holder finds no permit | WAKING=0 | Relaxed | - |
//!
//! T10 and T11 are T4 in two steps, for work that needs a permit of several executors (see the gate's tree): the
//! first step can be undone by T2, which makes no second token while there is one.
//!
//! *Settle* restores I1: with WAITING, `free > 0` and no WAKING it sets WAKING, and the caller has the token.
#![forbid(unsafe_code)]

use std::fmt;

/// Largest limit an executor can have: `free` is an `i32`.
pub(crate) const MAX_LIMIT: usize = i32::MAX as usize;
/// Largest bound on overtaking.
pub(crate) const MAX_OVERTAKES: usize = u16::MAX as usize;

const FREE_SHIFT: u32 = 32;
const CLOSED: u64 = 1 << 31;
const WAITING: u64 = 1 << 30;
const WAKING: u64 = 1 << 29;
const OVERTAKES_MASK: u64 = u16::MAX as u64;
const ONE_OVERTAKE: u64 = 1;

const _: () = assert!(CLOSED & WAITING == 0 && WAITING & WAKING == 0 && CLOSED & WAKING == 0);
const _: () = assert!((CLOSED | WAITING | WAKING) & OVERTAKES_MASK == 0);
const _: () = assert!((CLOSED | WAITING | WAKING | OVERTAKES_MASK) >> FREE_SHIFT == 0);

/// What a transition leaves to its caller.
#[must_use = "a duty that is dropped leaves work waiting for ever"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Nothing.
    Nothing,
    /// The caller holds the token now: it must attend to the line.
    Attend,
}

/// What [`State::take`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// A permit, with nobody waiting.
    Taken,
    /// A permit, ahead of somebody who waits.
    Overtook,
}

/// Why [`State::take`] gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No permit is free, or the line has the better claim.
    Saturated,
    /// No new work is accepted.
    Closed,
}

/// What [`State::serve`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serve {
    /// The head of the line has a permit now.
    Served(Duty),
    /// No permit was free; a token that the caller had is gone.
    StoodDown,
}

/// One value of the permit word.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State(u64);

impl State {
    /// All of `limit` permits free, nobody waiting.
    pub(crate) fn new(limit: usize) -> Self {
        debug_assert!(limit <= MAX_LIMIT);
        Self((limit as u64) << FREE_SHIFT)
    }

    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Permits nobody holds; below zero while more run than the limit.
    #[inline]
    pub(crate) fn free(self) -> i32 {
        (self.0 >> FREE_SHIFT) as u32 as i32
    }

    #[inline]
    pub(crate) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    #[inline]
    pub(crate) fn is_waiting(self) -> bool {
        self.0 & WAITING != 0
    }

    #[inline]
    pub(crate) fn is_waking(self) -> bool {
        self.0 & WAKING != 0
    }

    #[inline]
    pub(crate) fn overtakes(self) -> u16 {
        (self.0 & OVERTAKES_MASK) as u16
    }

    #[inline]
    fn with_free_changed(self, by: i64) -> Self {
        // Two's complement: adding `by` in units of the top field wraps only out of the word's top.
        Self(self.0.wrapping_add((by as u64) << FREE_SHIFT))
    }

    #[inline]
    fn with(self, bit: u64, on: bool) -> Self {
        Self(if on { self.0 | bit } else { self.0 & !bit })
    }

    #[inline]
    fn without_overtakes(self) -> Self {
        Self(self.0 & !OVERTAKES_MASK)
    }

    /// Restores I1.
    #[inline]
    fn settle(self) -> (Self, Duty) {
        if self.0 & (WAITING | WAKING) == WAITING && self.free() > 0 {
            (self.with(WAKING, true), Duty::Attend)
        } else {
            (self, Duty::Nothing)
        }
    }

    /// T1: a permit for a caller that did not stand in the line.
    #[inline]
    pub(crate) fn take(self, max_overtakes: u16) -> Result<(Self, Take), Refusal> {
        if self.is_closed() {
            return Err(Refusal::Closed);
        }
        if self.free() <= 0 {
            return Err(Refusal::Saturated);
        }
        if !self.is_waiting() {
            return Ok((self.with_free_changed(-1), Take::Taken));
        }
        if self.overtakes() >= max_overtakes {
            return Err(Refusal::Saturated);
        }
        Ok((Self(self.with_free_changed(-1).0 + ONE_OVERTAKE), Take::Overtook))
    }

    /// T2: one permit comes back.
    #[inline]
    pub(crate) fn give(self) -> (Self, Duty) {
        self.with_free_changed(1).settle()
    }

    /// T3: the line has an entry more.
    pub(crate) fn line_up(self) -> (Self, Duty) {
        self.with(WAITING, true).settle()
    }

    /// T4, or T5 when no permit is free: the head of the line, which the caller is about to take out, asks for
    /// a permit. `more`: others stand behind it. `token`: the caller holds the token.
    pub(crate) fn serve(self, more: bool, token: bool) -> (Self, Serve) {
        debug_assert!(self.is_waiting(), "T4 without a head: {self:?}");
        debug_assert!(!token || self.is_waking(), "T4 with a token that nobody made: {self:?}");
        if self.free() <= 0 {
            return (if token { self.stand_down() } else { self }, Serve::StoodDown);
        }
        let next = self.with_free_changed(-1).without_overtakes().with(WAITING, more);
        if !token {
            return (next, Serve::Served(Duty::Nothing));
        }
        if more && next.free() > 0 {
            (next, Serve::Served(Duty::Attend))
        } else {
            (next.with(WAKING, false), Serve::Served(Duty::Nothing))
        }
    }

    /// T10: a permit for the head, or for one who goes ahead of it (a nested waiter). A head stays where it is until [`served`](Self::served). `None`: none is free.
    pub(crate) fn reserve(self) -> Option<Self> {
        (self.free() > 0).then(|| self.with_free_changed(-1))
    }

    /// T11: the head, for which a permit was reserved, has gone. `more`: others stand behind it. `token`: the
    /// caller holds the token.
    pub(crate) fn served(self, more: bool, token: bool) -> (Self, Duty) {
        debug_assert!(self.is_waiting(), "T11 without a head: {self:?}");
        debug_assert!(!token || self.is_waking(), "T11 with a token that nobody made: {self:?}");
        let next = self.without_overtakes().with(WAITING, more);
        if !token {
            return (next, Duty::Nothing);
        }
        if more && next.free() > 0 {
            (next, Duty::Attend)
        } else {
            (next.with(WAKING, false), Duty::Nothing)
        }
    }

    /// T12: the token ends if no permit is free. `None`: one is.
    pub(crate) fn end_if_saturated(self) -> Option<Self> {
        (self.free() <= 0).then(|| self.stand_down())
    }

    /// T5: the token ends.
    pub(crate) fn stand_down(self) -> Self {
        debug_assert!(self.is_waking(), "T5 without a token: {self:?}");
        debug_assert!(!self.is_waiting() || self.free() <= 0, "T5 would break I1: {self:?}");
        self.with(WAKING, false)
    }

    /// T6: a permit holder that is done serves the head of the line under the permit it has. `None`: the limit
    /// was lowered, so the permit must go back first.
    pub(crate) fn hand_on(self, more: bool) -> Option<Self> {
        debug_assert!(self.is_waiting(), "T6 without a head: {self:?}");
        (self.free() >= 0).then(|| self.without_overtakes().with(WAITING, more))
    }

    /// T7: the line is empty.
    pub(crate) fn clear_line(self) -> Self {
        self.without_overtakes().with(WAITING, false)
    }

    /// T8: the limit changes by `by`.
    pub(crate) fn resize(self, by: i64) -> (Self, Duty) {
        self.with_free_changed(by).settle()
    }

    /// T9: nothing new is accepted.
    pub(crate) fn close(self) -> Self {
        self.with(CLOSED, true)
    }

    /// I1 and I2: what every value of the word must satisfy.
    pub(crate) fn is_sound(self) -> bool {
        let idle_permit = self.is_waiting() && self.free() > 0 && !self.is_waking();
        !idle_permit && (self.overtakes() == 0 || self.is_waiting())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("free", &self.free())
            .field("closed", &self.is_closed())
            .field("waiting", &self.is_waiting())
            .field("waking", &self.is_waking())
            .field("overtakes", &self.overtakes())
            .field("bits", &format_args!("{:#018x}", self.0))
            .finish()
    }
}

#[cfg(test)]
#[path = "state_walk.rs"]
mod tests;
