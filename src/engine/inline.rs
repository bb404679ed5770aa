//! Inline runs, and the one function through which everything runs.
#![forbid(unsafe_code)]

use super::Engine;
use super::child::ALL_LEVELS;
use crate::counters::{Kind, Slot, Why};
use crate::gate::{Denied, Grant};
use crate::lease::{Begin, Mark};
use crate::permits::state::{Refusal, Take};
use crate::sync::Arc;
use crate::task::context::{self, Id, Standing};
use std::mem;

/// A run on its way: counted, and its permit given back, at its end.
#[derive(Clone, Copy)]
struct Run<'a> {
    engine: &'a Arc<Engine>,
    slot: Option<&'a Slot>,
    kind: Kind,
    /// The permit that goes back with it; `None`: the caller sees to that.
    grant: Option<Grant>,
}

impl Run<'_> {
    #[inline(always)]
    fn end(self) {
        self.engine.counters.end(self.slot, self.kind);
        if let Some(grant) = self.grant {
            self.engine.carry_out(self.engine.gate.exit(self.slot, grant));
        }
    }

    #[cold]
    #[inline(never)]
    fn end_by_panic(self) {
        self.engine.counters.panicked();
        if self.kind == Kind::Attempt {
            self.engine.counters.attempt_done(self.slot);
        }
        self.end();
    }
}

/// Ends a run by a panic, unless forgotten. Both are values that nobody has the address of, so they stay in
/// registers: on the stack, a copy of what was just written would wait for longer than all the rest takes.
struct ByPanic<'a>(Run<'a>);

impl Drop for ByPanic<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.end_by_panic();
    }
}

impl Engine {
    /// How this thread stands to the executor.
    #[inline]
    pub(crate) fn standing(&self) -> Standing {
        context::standing(self.id(), self.settings.requires)
    }

    /// How this thread stands to work that may also be queued; `Err`: why it must be.
    #[inline]
    pub(crate) fn may_inline(&self) -> Result<Standing, Why> {
        if self.settings.dispatches_freely && context::is_plain() {
            return Ok(Standing::Outside);
        }
        self.may_inline_closer()
    }

    fn may_inline_closer(&self) -> Result<Standing, Why> {
        if self.settings.never_inline {
            return Err(Why::Asked);
        }
        match self.standing() {
            Standing::Unfit => Err(Why::NotFit),
            _ if context::is_as_deep_as(self.settings.max_inline_depth as usize) => {
                Err(Why::TooDeep)
            }
            standing => Ok(standing),
        }
    }

    /// A permit of the word, if one is free for a caller that does not stand in the queue. A child's comes with one
    /// of each level above it.
    #[inline]
    pub(crate) fn try_take(self: &Arc<Self>) -> Result<(), Refusal> {
        if self.is_child() {
            return self.take_levels(ALL_LEVELS);
        }
        let mark = self.gate.lease_mark();
        match self.gate.try_take() {
            Ok(how) => {
                self.note(how);
                Ok(())
            }
            Err(refusal) => self.take_recalled(refusal, mark),
        }
    }

    #[inline]
    fn note(&self, how: Take) {
        if how == Take::Overtook {
            self.counters.overtook();
        }
    }

    /// The word has no permit: those that stay with idle threads are called back.
    #[cold]
    fn take_recalled(self: &Arc<Self>, refusal: Refusal, mark: Mark) -> Result<(), Refusal> {
        if refusal == Refusal::Saturated && self.gate.hid_permits_since(mark) {
            self.carry_out(self.gate.recall());
            self.note(self.gate.try_take()?);
            return Ok(());
        }
        Err(refusal)
    }

    /// Runs `f` here if there is a permit for a caller that does not stand in the queue.
    #[inline]
    pub(crate) fn run_inline<F, R>(self: &Arc<Self>, f: F) -> Result<R, (F, Refusal)>
    where
        F: FnOnce() -> R,
    {
        if self.is_child() {
            return self.run_inline_in_child(f);
        }
        let slot = self.gate.slot();
        match self.gate.begin(slot) {
            Begin::Leased => {
                let grant = Some(Grant::Leased);
                Ok(self.run_counted(slot, Kind::Leased, grant, Id::NONE, f))
            }
            begin => self.run_from_word(slot, begin, f),
        }
    }

    // Out of the way of a run under a lease, which is so short that registers saved for this would count.
    #[inline(never)]
    fn run_from_word<F, R>(
        self: &Arc<Self>,
        slot: Option<&Slot>,
        begin: Begin,
        f: F,
    ) -> Result<R, (F, Refusal)>
    where
        F: FnOnce() -> R,
    {
        match self.enter_word(begin) {
            Ok(take) => {
                let grant = Some(Grant::Taken(take));
                Ok(self.run_counted(slot, Kind::Inline, grant, Id::NONE, f))
            }
            Err(refusal) => Err((f, refusal)),
        }
    }

    #[inline]
    fn enter_word(self: &Arc<Self>, begin: Begin) -> Result<Take, Refusal> {
        match self.gate.enter_word(begin) {
            Ok(take) => {
                self.note(take);
                Ok(take)
            }
            Err(denied) => self.enter_slow(denied),
        }
    }

    #[cold]
    fn enter_slow(self: &Arc<Self>, denied: Denied) -> Result<Take, Refusal> {
        match denied {
            Denied::Refused(refusal, mark) => self.take_recalled(refusal, mark)?,
            Denied::InHand if self.gate.is_calm() => {}
            Denied::InHand => {
                self.give_back();
                self.try_take()?;
            }
        }
        Ok(Take::Taken)
    }

    /// Runs `f` here under a permit of the word, which the caller has and which goes back at the end.
    #[inline]
    pub(crate) fn run_taken<R>(self: &Arc<Self>, f: impl FnOnce() -> R) -> R {
        if self.is_child() {
            return self.run_in_child(Kind::Inline, self.levels_to_run(), Id::NONE, f);
        }
        let grant = Some(Grant::Taken(Take::Taken));
        self.run_counted(self.gate.slot(), Kind::Inline, grant, Id::NONE, f)
    }

    /// Runs `f` as part of the executor; a permit is the caller's to have and to give back.
    #[inline]
    pub(crate) fn run_here<R>(self: &Arc<Self>, kind: Kind, task: Id, f: impl FnOnce() -> R) -> R {
        if self.is_child() {
            return self.run_in_child(kind, 0, task, f);
        }
        self.run_counted(self.gate.slot(), kind, None, task, f)
    }

    /// Runs an attempt: under no permit, inside of no executor, counted as a task when it is done.
    #[inline]
    pub(crate) fn attempt<R, Rest>(
        self: &Arc<Self>,
        attempt: impl FnOnce() -> Result<R, Rest>,
    ) -> Result<R, Rest> {
        let slot = if self.is_child() { None } else { self.gate.slot() };
        let result = self.run_counted(slot, Kind::Attempt, None, Id::NONE, attempt);
        if result.is_ok() {
            self.counters.attempt_done(slot);
        }
        result
    }

    /// The one run function: context, counters, panic, permit. Inlined, so that what is known of a run (its kind,
    /// its grant) is not asked again.
    #[inline(always)]
    fn run_counted<R>(
        self: &Arc<Self>,
        slot: Option<&Slot>,
        kind: Kind,
        grant: Option<Grant>,
        task: Id,
        f: impl FnOnce() -> R,
    ) -> R {
        self.counters.begin(slot, kind);
        let run = Run { engine: self, slot, kind, grant };
        let by_panic = ByPanic(run);
        let own_permit = !matches!(kind, Kind::Nested | Kind::JoinedNested | Kind::Attempt);
        let executor = if kind == Kind::Attempt { Id::NONE } else { self.id() };
        let result = context::enter(executor, task, own_permit, f);
        mem::forget(by_panic);
        run.end();
        result
    }
}
