//! A thread that is inside of a task of some level above a child: it waits for the permits of the levels below that
//! alone, and goes ahead of the child's queue, where others may need the permit that it holds.
#![forbid(unsafe_code)]

use super::Engine;
use super::child::ALL_LEVELS;
use crate::counters::Kind;
use crate::error::Reason;
use crate::gate::{Ask, Step, Turn};
use crate::line::Ticket;
use crate::permits::state::{Refusal, Take};
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

    /// Takes the permits of so many levels, the highest first. While it waits for one it keeps those above, as it does
    /// with those of the task around it: all who do so wait in this order.
    fn wait_nested(
        self: &Arc<Self>,
        many: usize,
        deadline: Option<Instant>,
        ask: Ask,
        meanwhile: impl FnOnce(),
    ) -> Result<(), Reason> {
        let levels: Vec<_> = self.levels(many).collect();
        // So many are still to be taken, the lowest ones.
        let left = Cell::new(levels.len());
        let taken = loop {
            let Some(at) = left.get().checked_sub(1) else { break Ok(()) };
            match self.gate.try_take_below(levels[at]) {
                Ok(how) => {
                    left.set(at);
                    if how == Take::Overtook {
                        levels[at].counters.overtook();
                    }
                }
                Err(Refusal::Closed) if ask == Ask::New => break Err(Reason::Closed),
                // From there it goes down to the last one, without a step out of the tree.
                Err(_) => break self.stand_nested(&levels, &left, deadline, ask, meanwhile),
            }
        };
        match taken {
            Ok(()) => self.note_taken(many),
            Err(_) => levels[left.get()..].iter().for_each(|engine| {
                self.carry_out(self.gate.give_below(engine));
            }),
        }
        taken
    }

    /// Waits in the line of the last one that is left, and from there on down.
    fn stand_nested(
        self: &Arc<Self>,
        levels: &[&Arc<Self>],
        left: &Cell<usize>,
        deadline: Option<Instant>,
        ask: Ask,
        meanwhile: impl FnOnce(),
    ) -> Result<(), Reason> {
        with_parker(|parker| {
            let (signal, came_ns) = (parker.unparker(), self.waits.now_ns());
            let top = levels[left.get() - 1];
            let arrived = self.gate.arrive_nested(top, self, &signal, ask, came_ns);
            let Some((ticket, errand)) = arrived else {
                return Err(Reason::Closed);
            };
            self.carry_out(errand);
            meanwhile();
            let place = Cell::new(ticket);
            let look =
                |leave| match self.gate.turn_nested(levels[left.get() - 1], place.get(), leave) {
                    Step::Turn(turn) => turn,
                    Step::Down(ticket, errand) => {
                        left.set(left.get() - 1);
                        place.set(ticket);
                        Turn::Sent(errand)
                    }
                };
            self.wait_for_turn(parker, deadline, look).map(drop)
        })
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
