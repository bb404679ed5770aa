//! Inline runs, and the one function through which everything runs.
#![forbid(unsafe_code)]

use super::Engine;
use super::child::ALL_LEVELS;
use crate::counters::{Kind, Slot, Why};
use crate::gate::{Denied, Grant};
use crate::lease::Mark;
use crate::permits::state::{Refusal, Take};
use crate::sync::Arc;
use crate::task::context::{self, Id, Standing};
use std::mem;

/// A permit for an inline run. It goes back when the run ends, also by a panic.
#[must_use = "the permit goes back only after `run`"]
pub(crate) struct Entered<'a> {
    engine: &'a Arc<Engine>,
    slot: Option<&'a Slot>,
    grant: Grant,
}

impl<'a> Entered<'a> {
    pub(super) fn new(engine: &'a Arc<Engine>, slot: Option<&'a Slot>, grant: Grant) -> Self {
        Self { engine, slot, grant }
    }

    /// Runs `f` under the permit.
    #[inline]
    pub(crate) fn run<R>(self, f: impl FnOnce() -> R) -> R {
        if let Grant::Below(levels) = self.grant {
            return self.engine.run_in_child(Kind::Inline, levels, Id::NONE, f);
        }
        let kind = if self.grant == Grant::Leased { Kind::Leased } else { Kind::Inline };
        self.engine.run_counted(self.slot, kind, Some(self.grant), Id::NONE, f)
    }
}

/// A run on its way: counted, and its permit given back, at its end. It is dropped only by a panic.
struct Run<'a> {
    engine: &'a Arc<Engine>,
    slot: Option<&'a Slot>,
    kind: Kind,
    /// The permit that goes back with it; `None`: the caller sees to that.
    grant: Option<Grant>,
}

impl Run<'_> {
    #[inline(always)]
    fn finish(self) {
        self.end();
        mem::forget(self);
    }

    #[inline(always)]
    fn end(&self) {
        self.engine.counters.end(self.slot, self.kind);
        if let Some(grant) = self.grant {
            self.engine.carry_out(self.engine.gate.exit(self.slot, grant));
        }
    }
}

impl Drop for Run<'_> {
    #[cold]
    fn drop(&mut self) {
        self.engine.counters.panicked();
        if self.kind == Kind::Attempt {
            self.engine.counters.attempt_done(self.slot);
        }
        self.end();
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
        if self.dispatches_freely && context::is_plain() {
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
            _ if context::is_as_deep_as(self.settings.max_inline_depth) => Err(Why::TooDeep),
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

    /// A permit for an inline run, if there is one for a caller that does not stand in the queue.
    #[inline]
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Entered<'_>, Refusal> {
        if self.is_child() {
            return self.enter_child();
        }
        let slot = self.gate.slot();
        match self.gate.enter(slot) {
            Ok(grant) => {
                if grant == Grant::Taken(Take::Overtook) {
                    self.counters.overtook();
                }
                Ok(Entered { engine: self, slot, grant })
            }
            Err(denied) => self.enter_slow(denied),
        }
    }

    #[cold]
    fn enter_slow(self: &Arc<Self>, denied: Denied) -> Result<Entered<'_>, Refusal> {
        match denied {
            Denied::Refused(refusal, mark) => self.take_recalled(refusal, mark)?,
            Denied::InHand if self.gate.is_calm() => {}
            Denied::InHand => {
                self.give_back();
                self.try_take()?;
            }
        }
        Ok(self.entered())
    }

    /// The caller has a permit of the word, for an inline run.
    #[inline]
    pub(crate) fn entered(self: &Arc<Self>) -> Entered<'_> {
        if self.is_child() {
            return Entered::new(self, None, Grant::Below(self.levels_to_run()));
        }
        let slot = self.gate.slot();
        Entered { engine: self, slot, grant: Grant::Taken(Take::Taken) }
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

    /// The one run function: context, counters, panic, permit.
    #[inline]
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
        let own_permit = !matches!(kind, Kind::Nested | Kind::JoinedNested | Kind::Attempt);
        let executor = if kind == Kind::Attempt { Id::NONE } else { self.id() };
        let result = context::enter(executor, task, own_permit, f);
        run.finish();
        result
    }
}
