//! Many at once: a batch of tasks into the line, and a caller who runs several things one after the other.
#![forbid(unsafe_code)]

use super::{Errand, Gate, Ledger, NotQueued, Work};
use crate::line::Ticket;
use crate::permits::state::Duty;
use crate::sync::Unparker;
use std::vec;

impl<T: Work, L: Ledger> Gate<T, L> {
    /// Puts tasks at the end of the line, in order: `at_most` of them, and no more than it may hold. Each leaves
    /// its ticket. `Err`: not even the first one was put there.
    pub(crate) fn push_many(
        &self,
        tasks: &mut vec::IntoIter<T>,
        at_most: usize,
        tickets: &mut Vec<Ticket>,
        came_ns: u64,
    ) -> Result<Errand, NotQueued> {
        debug_assert!(tasks.len() > 0, "a thread would be owed to no task");
        let mut inner = self.inner.lock();
        let mut intake = self.intake.lock();
        let room = self.room_in_line(&mut inner, &mut intake)?.min(at_most);
        for task in tasks.by_ref().take(room) {
            tickets.push(intake.accept(&mut inner.line, task, came_ns));
        }
        Ok(self.let_in(inner, intake))
    }

    /// A caller who has a permit may go on under it: nobody waits, and no more run than may.
    pub(crate) fn may_go_on(&self) -> bool {
        let state = self.word.peek();
        !state.is_waiting() && state.free() >= 0
    }

    /// The permit of a caller who has more to do goes to those who wait, and he stands behind them. `None`: with
    /// nobody waiting he keeps it. Also when closed, since what he does was accepted before; he never has
    /// neither permit nor place, so nobody takes the gate for quiet.
    pub(crate) fn go_behind(&self, signal: &Unparker, came_ns: u64) -> Option<(Ticket, Errand)> {
        let mut inner = self.inner.lock();
        if inner.line.len() == 0 && self.word.peek().free() >= 0 {
            return None;
        }
        let ticket = self.stand_at_the_end(&mut inner, signal, came_ns);
        // T3, then T2: at most one of the two makes the token.
        let mut duty = self.line_up(&inner);
        if self.word.give().0 == Duty::Attend {
            duty = Duty::Attend;
        }
        let pass = self.pass_on_or_over(duty, &mut inner);
        drop(inner);
        Some((ticket, pass.carry_out()))
    }
}
