//! A thread that is inside of a task of some level above a child: it waits for the permits of the levels below that
//! alone, and goes ahead of the child's queue, where others may need the permit that it holds.
#![forbid(unsafe_code)]

use super::Engine;
use super::child::ALL_LEVELS;
use crate::counters::Kind;
use crate::error::Reason;
use crate::gate::Ask;
use crate::line::Ticket;
use crate::permits::state::{Refusal, Take};
use crate::sync::{Arc, with_parker};
use std::time::Instant;

impl Engine {
    /// A permit for a run that does not see to it itself, if one is free for a caller that does not
    /// stand in the queue.
    pub(crate) fn try_take_to_run(self: &Arc<Self>) -> Result<(), Refusal> {
        if self.is_child() { self.take_levels(self.levels_to_run()) } else { self.try_take() }
    }

    /// This thread waits until it is handed a permit for a run.
    #[cold]
    pub(crate) fn wait_to_run(self: &Arc<Self>, deadline: Option<Instant>) -> Result<(), Reason> {
        self.wait_to_run_while(deadline, || {})
    }

    /// As `wait_to_run`; before it waits it does what `meanwhile` says, which is short and no foreign code.
    pub(super) fn wait_to_run_while(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        meanwhile: impl FnOnce(),
    ) -> Result<(), Reason> {
        let levels = if self.is_child() { self.levels_to_run() } else { ALL_LEVELS };
        if levels == ALL_LEVELS {
            return self.wait_for_permit_while(deadline, meanwhile);
        }
        if self.would_deadlock() {
            return Err(Reason::Deadlock);
        }
        self.wait_nested(levels, deadline, Ask::New, meanwhile)
    }

    /// Takes the permits of so many levels, the highest first. While it waits for one it keeps those above, as it does
    /// with those of the task around it: all who do so wait in this order.
    fn wait_nested(
        self: &Arc<Self>,
        many: usize,
        deadline: Option<Instant>,
        ask: Ask,
        meanwhile: impl FnOnce(),
    ) -> Result<(), Reason> {
        let mut meanwhile = Some(meanwhile);
        let levels: Vec<_> = self.levels(many).collect();
        for (n, engine) in levels.iter().enumerate().rev() {
            let taken = match self.gate.try_take_below(engine) {
                Ok(Take::Taken) => Ok(()),
                Ok(Take::Overtook) => {
                    engine.counters.overtook();
                    Ok(())
                }
                Err(Refusal::Closed) if ask == Ask::New => Err(Reason::Closed),
                Err(_) => engine.stand_nested(deadline, ask, &mut meanwhile),
            };
            if let Err(reason) = taken {
                for engine in &levels[n + 1..] {
                    self.carry_out(self.gate.give_below(engine));
                }
                return Err(reason);
            }
        }
        self.note_taken(many);
        Ok(())
    }

    fn stand_nested(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        ask: Ask,
        meanwhile: &mut Option<impl FnOnce()>,
    ) -> Result<(), Reason> {
        with_parker(|parker| {
            let came_ns = self.waits.now_ns();
            let arrived = self.gate.arrive_nested(self, &parker.unparker(), ask, came_ns);
            let Some((ticket, errand)) = arrived else {
                return Err(Reason::Closed);
            };
            self.carry_out(errand);
            if let Some(meanwhile) = meanwhile.take() {
                meanwhile();
            }
            let look = |leave| self.gate.turn_nested(self, ticket, leave);
            self.wait_for_turn(parker, deadline, look).map(drop)
        })
    }

    /// As [`join_queued`](Self::join_queued), ahead of the queue. It waits for a permit, not for the task, which may
    /// have been started by another thread when the permit comes: that permit is then the first to be free.
    pub(super) fn join_nested(
        self: &Arc<Self>,
        ticket: Ticket,
        deadline: Option<Instant>,
    ) -> Result<(), Reason> {
        if !self.gate.is_queued_below(self, ticket) {
            return Ok(());
        }
        let levels = self.levels_to_run();
        match self.wait_nested(levels, deadline, Ask::Accepted, || {}) {
            Ok(()) => self.run_queued(ticket, Kind::Joined, levels),
            // It was taken out by a shutdown, like this thread.
            Err(Reason::Closed) => {}
            Err(reason) => return Err(reason),
        }
        Ok(())
    }
}
