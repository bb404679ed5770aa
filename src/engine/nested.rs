//! A thread that is inside of a task of some level above a child: it waits for the permits of the levels below that
//! alone, and goes ahead of the child's queue, where others may need the permit that it holds.
#![forbid(unsafe_code)]

use super::Engine;
use super::child::ALL_LEVELS;
use crate::counters::Kind;
use crate::error::Reason;
use crate::gate::{Ask, Step, Turn};
use crate::line::Ticket;
use crate::permits::state::Refusal;
use crate::sync::{Arc, with_parker};
use std::cell::Cell;
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

    /// Takes the permits of so many levels, all or none: it keeps those of the task around it while it waits, and no
    /// others.
    fn wait_nested(
        self: &Arc<Self>,
        many: usize,
        deadline: Option<Instant>,
        ask: Ask,
        meanwhile: impl FnOnce(),
    ) -> Result<(), Reason> {
        match self.take_levels(many) {
            Ok(()) => return Ok(()),
            Err(Refusal::Closed) if ask == Ask::New => return Err(Reason::Closed),
            Err(_) => {}
        }
        let levels: Vec<_> = self.levels(many).collect();
        with_parker(|parker| {
            let (signal, came_ns) = (parker.unparker(), self.waits.now_ns());
            let arrived = self.gate.arrive_nested(&levels, &signal, ask, came_ns);
            let (ticket, errand) = arrived.ok_or(Reason::Closed)?;
            self.carry_out(errand);
            meanwhile();
            let place = Cell::new((0, ticket));
            let look = |leave| {
                let (at, ticket) = place.get();
                match self.gate.turn_nested(&levels, at, ticket, leave) {
                    Step::Turn(turn) => turn,
                    Step::Moved(at, ticket, errand) => {
                        place.set((at, ticket));
                        Turn::Sent(errand)
                    }
                }
            };
            self.wait_for_turn(parker, deadline, look).map(drop)
        })?;
        self.note_taken(many);
        Ok(())
    }

    /// As [`join_queued`](Self::join_queued), ahead of the queue. It waits for the permits as long as the task is in
    /// the queue.
    pub(super) fn join_nested(
        self: &Arc<Self>,
        ticket: Ticket,
        deadline: Option<Instant>,
    ) -> Result<(), Reason> {
        if !self.gate.is_queued_below(self, ticket) {
            return Ok(());
        }
        let levels = self.levels_to_run();
        match self.wait_nested(levels, deadline, Ask::Task(ticket), || {}) {
            Ok(()) => self.run_queued(ticket, Kind::Joined, levels),
            // It is somebody else's, or was taken out by a shutdown, like this thread.
            Err(Reason::Closed) => {}
            Err(reason) => return Err(reason),
        }
        Ok(())
    }
}
