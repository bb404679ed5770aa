//! Threads that wait in the line: for a permit, or to run the task that they join.
#![forbid(unsafe_code)]

use super::Engine;
use crate::counters::Kind;
use crate::error::Reason;
use crate::gate::{Arrival, Turn};
use crate::line::Ticket;
use crate::permits::state::Take;
use crate::sync::{Arc, Parker, with_parker};
use crate::task::context::{self, Standing};
use std::time::Instant;

impl Engine {
    /// This thread waits in the line until it is handed a permit.
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
        if self.gate.is_closed() {
            return Err(Reason::Closed);
        }
        if self.would_deadlock() {
            return Err(Reason::Deadlock);
        }
        with_parker(|parker| {
            let came_ns = self.waits.now_ns();
            let ticket = match self.gate.arrive(&parker.unparker(), came_ns) {
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

    /// This thread has a place in the line and waits for its turn.
    pub(super) fn stand(
        self: &Arc<Self>,
        parker: &Parker,
        ticket: Ticket,
        deadline: Option<Instant>,
    ) -> Result<(), Reason> {
        loop {
            let leave = has_passed(deadline);
            match self.gate.turn(ticket, leave) {
                Turn::Granted { errand, came_ns, .. } => {
                    self.carry_out(errand);
                    self.waits.record(came_ns);
                    return Ok(());
                }
                Turn::Wait => parker.park_until(deadline),
                Turn::Left(errand) => {
                    self.carry_out(errand);
                    return Err(Reason::TimedOut);
                }
                Turn::Gone => return Err(Reason::Closed),
            }
        }
    }

    /// Of all permits, those that this thread itself holds leave none to wait for.
    pub(super) fn would_deadlock(self: &Arc<Self>) -> bool {
        let held = context::held(self.id());
        held > 0 && held >= self.gate.limit()
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
            if let Some((task, came_ns, errand)) = self.gate.remove_to_run(ticket) {
                self.carry_out(errand);
                self.waits.record(came_ns);
                self.run_task(Kind::JoinedNested, task).publish();
            }
            return Ok(());
        }
        if self.would_deadlock() && self.gate.is_queued(ticket) {
            return Err(Reason::Deadlock);
        }
        if standing == Standing::Unfit {
            return Ok(());
        }
        let granted = with_parker(|parker| {
            if !self.gate.join(ticket, &parker.unparker()) {
                return Ok(None);
            }
            loop {
                let leave = has_passed(deadline);
                match self.gate.turn(ticket, leave) {
                    Turn::Granted { task, came_ns, errand } => {
                        self.carry_out(errand);
                        self.waits.record(came_ns);
                        return Ok(task);
                    }
                    Turn::Wait => parker.park_until(deadline),
                    Turn::Left(errand) => {
                        self.carry_out(errand);
                        return Err(Reason::TimedOut);
                    }
                    Turn::Gone => return Ok(None),
                }
            }
        })?;
        // Outside of the loan of the parker: the task may wait itself.
        if let Some(task) = granted {
            let stored = self.run_task(Kind::Joined, task);
            self.give_back();
            stored.publish();
        }
        Ok(())
    }
}

fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|at| at <= Instant::now())
}
