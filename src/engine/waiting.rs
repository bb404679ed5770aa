//! Threads that wait in the line: for a permit, or to run the task that they join.
#![forbid(unsafe_code)]

use super::Engine;
use super::child::ALL_LEVELS;
use crate::counters::Kind;
use crate::error::Reason;
use crate::gate::{Arrival, Turn};
use crate::line::Ticket;
use crate::permits::state::Take;
use crate::sync::{Arc, Parker, with_parker};
use crate::task::cell::Task;
use crate::task::context::{self, Standing};
use std::time::Instant;

impl Engine {
    /// This thread waits in the line until it is handed a permit; a child's with one of each level above it.
    #[cold]
    pub(crate) fn wait_for_permit(
        self: &Arc<Self>,
        deadline: Option<Instant>,
    ) -> Result<(), Reason> {
        self.wait_for_permit_while(deadline, || {})
    }

    /// As `wait_for_permit`; with a place in the line it first does what `meanwhile` says, which is short and
    /// no foreign code.
    pub(super) fn wait_for_permit_while(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        meanwhile: impl FnOnce(),
    ) -> Result<(), Reason> {
        if self.is_closed() {
            return Err(Reason::Closed);
        }
        if self.would_deadlock_within(ALL_LEVELS) {
            return Err(Reason::Deadlock);
        }
        with_parker(|parker| {
            let came_ns = self.waits.now_ns();
            let ticket = match self.arrive(parker, came_ns) {
                Arrival::Standing(ticket) => ticket,
                Arrival::Closed => return Err(Reason::Closed),
                Arrival::Taken(how) => {
                    if how == Take::Overtook {
                        self.counters.overtook();
                    }
                    return Ok(());
                }
            };
            meanwhile();
            self.stand(parker, ticket, deadline)
        })
    }

    fn arrive(self: &Arc<Self>, parker: &Parker, came_ns: u64) -> Arrival {
        if !self.is_child() {
            return self.gate.arrive(&parker.unparker(), came_ns);
        }
        match self.gate.arrive_below(self, &parker.unparker(), came_ns) {
            None => Arrival::Closed,
            Some((ticket, errand)) => {
                self.carry_out(errand);
                Arrival::Standing(ticket)
            }
        }
    }

    fn is_closed(self: &Arc<Self>) -> bool {
        if self.is_child() { self.gate.is_any_closed(self) } else { self.gate.is_closed() }
    }

    /// One look of this thread from its place in the line.
    fn turn(self: &Arc<Self>, ticket: Ticket, leave: bool) -> Turn<Task> {
        if !self.is_child() {
            return self.gate.turn(ticket, leave);
        }
        let turn = self.gate.turn_below(self, ticket, leave);
        if matches!(turn, Turn::Granted { .. }) {
            self.note_taken(ALL_LEVELS);
        }
        turn
    }

    /// This thread has a place in the line and waits for its turn.
    pub(super) fn stand(
        self: &Arc<Self>,
        parker: &Parker,
        ticket: Ticket,
        deadline: Option<Instant>,
    ) -> Result<(), Reason> {
        self.wait_for_turn(parker, deadline, |leave| self.turn(ticket, leave)).map(drop)
    }

    /// Looks until something comes of it. `Closed`: the place is gone.
    pub(super) fn wait_for_turn(
        self: &Arc<Self>,
        parker: &Parker,
        deadline: Option<Instant>,
        look: impl Fn(bool) -> Turn<Task>,
    ) -> Result<Option<Task>, Reason> {
        loop {
            match look(has_passed(deadline)) {
                Turn::Granted { task, errand, came_ns } => {
                    self.carry_out(errand);
                    self.waits.record(came_ns);
                    return Ok(task);
                }
                Turn::Wait => parker.park_until(deadline),
                Turn::Sent(errand) => self.carry_out(errand),
                Turn::Left(errand) => {
                    self.carry_out(errand);
                    return Err(Reason::TimedOut);
                }
                Turn::Gone => return Err(Reason::Closed),
            }
        }
    }

    /// Of all permits that a run needs, those that this thread itself holds leave none to wait for.
    pub(super) fn would_deadlock(self: &Arc<Self>) -> bool {
        self.would_deadlock_within(if self.is_child() { self.levels_to_run() } else { 1 })
    }

    /// The same of those of so many levels.
    pub(super) fn would_deadlock_within(self: &Arc<Self>, levels: usize) -> bool {
        self.levels(levels).any(|engine| {
            let held = context::held(engine.id());
            held > 0 && held >= engine.limit()
        })
    }

    /// Runs the task at `ticket` here if it has not started: at once inside a task of this executor, else when
    /// its turn comes; not at all on a thread that is not fit, where a worker will. Returns when it is stored and
    /// published, or is somebody else's to run, or `Err` when the time has passed or the wait could not end.
    pub(crate) fn join_queued(
        self: &Arc<Self>,
        ticket: Ticket,
        deadline: Option<Instant>,
    ) -> Result<(), Reason> {
        let standing = self.standing();
        if standing == Standing::Inside {
            self.run_queued(ticket, Kind::JoinedNested, 0);
            return Ok(());
        }
        // For a thread that is not fit a worker runs it, who needs a permit of every level.
        let is_unfit = standing == Standing::Unfit;
        let stuck = match is_unfit {
            true => self.would_deadlock_within(ALL_LEVELS),
            false => self.would_deadlock(),
        };
        if stuck && self.is_queued(ticket) {
            return Err(Reason::Deadlock);
        }
        if is_unfit {
            return Ok(());
        }
        if self.is_child() && self.levels_to_run() != ALL_LEVELS {
            return self.join_nested(ticket, deadline);
        }
        let granted = with_parker(|parker| {
            if !self.join(ticket, parker) {
                return Ok(None);
            }
            match self.wait_for_turn(parker, deadline, |leave| self.turn(ticket, leave)) {
                Err(Reason::Closed) => Ok(None),
                turn => turn,
            }
        })?;
        // Outside of the loan of the parker: the task may wait itself.
        if let Some(mut task) = granted {
            let stored = self.run_task(Kind::Joined, &mut task);
            self.give_back();
            stored.publish();
        }
        Ok(())
    }

    /// Makes the queued task one that this thread will run. `false`: it is somebody else's.
    fn join(self: &Arc<Self>, ticket: Ticket, parker: &Parker) -> bool {
        match self.is_child() {
            false => self.gate.join(ticket, &parker.unparker()),
            true => self.gate.join_below(self, ticket, &parker.unparker()),
        }
    }

    fn is_queued(self: &Arc<Self>, ticket: Ticket) -> bool {
        match self.is_child() {
            false => self.gate.is_queued(ticket),
            true => self.gate.is_queued_below(self, ticket),
        }
    }

    /// Takes the task out of the line, if it is there, and runs it under permits that this thread has; then so many
    /// go back.
    pub(super) fn run_queued(self: &Arc<Self>, ticket: Ticket, kind: Kind, gives: usize) {
        let removed = match self.is_child() {
            false => self.gate.remove_to_run(ticket),
            true => self.gate.remove_below(self, ticket, None),
        };
        let Some((mut task, came_ns, errand)) = removed else {
            return self.give_levels(gives);
        };
        self.carry_out(errand);
        self.waits.record(came_ns);
        let stored = self.run_task(kind, &mut task);
        self.give_levels(gives);
        stored.publish();
    }
}

fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|at| at <= Instant::now())
}
