//! The way in and out for inline runs, with leases.
#![forbid(unsafe_code)]

use super::{Errand, Gate, Grant, Inner, Ledger, Work};
use crate::counters::{Slot, slot_of_this_thread};
use crate::lease::{Begin, End, Mark};
use crate::permits::state::{Duty, Refusal, Take};

/// Why a caller has no permit yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// None for him now; with the mark that was taken before the word was asked.
    Refused(Refusal, Mark),
    /// His lease was being called back, and its permit is in his hand, as if he had taken it from the word. He
    /// runs under it if nothing waits, else he gives it back and asks again.
    InHand,
}

impl<T: Work, L: Ledger> Gate<T, L> {
    /// What this thread has of the root.
    #[inline]
    pub(crate) fn slot(&self) -> Option<&Slot> {
        slot_of_this_thread(&self.slots)
    }

    /// A permit for a caller that does not stand in the line: the one leased to his thread, or one of the word.
    #[cfg(any(test, work_permit_loom))]
    pub(crate) fn enter(&self, slot: Option<&Slot>) -> Result<Grant, Denied> {
        match self.begin(slot) {
            Begin::Leased => Ok(Grant::Leased),
            begin => self.enter_word(begin).map(Grant::Taken),
        }
    }

    /// The lease of the caller's thread, if it has one: then he runs under it.
    #[inline(always)]
    pub(crate) fn begin(&self, slot: Option<&Slot>) -> Begin {
        slot.map_or(Begin::Nothing, |slot| slot.lease.begin(&self.leases))
    }

    /// A permit of the word, for a caller who has no lease to run under.
    #[inline]
    pub(crate) fn enter_word(&self, begin: Begin) -> Result<Take, Denied> {
        if begin == Begin::InHand {
            return Err(Denied::InHand);
        }
        // A run under a lease does not come here, and pays nothing for it.
        let mark = self.lease_mark();
        let refused = |refusal| Denied::Refused(refusal, mark);
        self.try_take().map_err(refused)
    }

    /// The run is over: the permit stays with the thread, or goes back.
    #[inline]
    pub(crate) fn exit(&self, slot: Option<&Slot>, grant: Grant) -> Errand {
        let end = match (slot, grant) {
            (Some(slot), Grant::Leased) => slot.lease.end(&self.leases),
            (Some(slot), Grant::Taken(_)) => slot.lease.keep(&self.leases, || self.is_calm()),
            (None, _) => End::GiveBack,
        };
        match end {
            End::Done => Errand::Nothing,
            End::GiveBack => self.give(),
        }
    }

    /// A permit may stay with its thread, or be used by it: nothing waits, it is open and not over its limit.
    pub(crate) fn is_calm(&self) -> bool {
        let state = self.word.peek();
        !state.is_waiting() && !state.is_closed() && state.free() >= 0
    }

    /// See [`hid_permits_since`](Self::hid_permits_since).
    #[inline]
    pub(crate) fn lease_mark(&self) -> Mark {
        self.leases.mark()
    }

    /// Whether the word, asked after `mark` was taken, may have had no permit only for the sake of leases.
    pub(crate) fn hid_permits_since(&self, mark: Mark) -> bool {
        self.leases.hid_permits_since(mark)
    }

    /// Calls idle leases back: their permits are in the word then.
    #[cold]
    pub(crate) fn recall(&self) -> Errand {
        let mut inner = self.inner.lock();
        let duty = self.recall_locked(&inner);
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        pass.carry_out()
    }

    fn recall_locked(&self, inner: &Inner<T>) -> Duty {
        let permits = self.leases.recall(self.slots.iter().map(|slot| &slot.lease));
        let mut duty = Duty::Nothing;
        for _ in 0..permits {
            if self.word.give().0 == Duty::Attend {
                duty = Duty::Attend;
            }
        }
        if permits > 0 {
            self.leases.collected(permits);
            self.tell_if_quiet(inner);
        }
        duty
    }

    /// After a change of the word that leases must heed, under the line's lock: calls them back.
    pub(super) fn recall_after_change(&self, inner: &Inner<T>) -> Duty {
        if self.leases.any_out_after_change() { self.recall_locked(inner) } else { Duty::Nothing }
    }

    /// T3. Leases are called back as soon as anything waits.
    pub(super) fn line_up(&self, inner: &Inner<T>) -> Duty {
        let first = !self.word.peek().is_waiting();
        let duty = self.word.line_up();
        if !first {
            return duty;
        }
        // At most one of the two makes the token.
        match self.recall_after_change(inner) {
            Duty::Attend => Duty::Attend,
            Duty::Nothing => duty,
        }
    }
}
