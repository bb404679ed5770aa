//! Batches: many tasks into the queue at once, and a caller who runs several under permits of his own.
#![forbid(unsafe_code)]

use super::Engine;
use super::child::ALL_LEVELS;
use crate::counters::Why;
use crate::error::Reason;
use crate::gate::{Errand, NotQueued};
use crate::line::Ticket;
use crate::sync::{Arc, with_parker};
use crate::task::cell::Task;
use std::vec;

/// Tasks put into the line under one hold of its lock; then others have their chance at it.
#[cfg(not(work_permit_loom))]
const CHUNK: usize = 128;
#[cfg(work_permit_loom)]
const CHUNK: usize = 2;

impl Engine {
    /// Puts tasks into the queue, in order, until one is refused; the rest stays in `tasks`. Each that was
    /// accepted leaves its ticket.
    pub(crate) fn enqueue_many(
        self: &Arc<Self>,
        tasks: &mut vec::IntoIter<Task>,
        why: Why,
    ) -> Vec<Ticket> {
        let mut tickets = Vec::with_capacity(tasks.len());
        let came_ns = self.waits.now_ns();
        while tasks.len() > 0 {
            let mut push = || self.push_many(tasks, &mut tickets, came_ns);
            let pushed = match push() {
                Err(NotQueued::NoThread) => {
                    self.with_thread((), |()| push()).unwrap_or(Err(NotQueued::NoThread))
                }
                pushed => pushed,
            };
            let Ok(errand) = pushed else {
                break;
            };
            self.after_push(errand);
        }
        self.counters.queued_many(why, tickets.len());
        tickets
    }

    fn push_many(
        self: &Arc<Self>,
        tasks: &mut vec::IntoIter<Task>,
        tickets: &mut Vec<Ticket>,
        came_ns: u64,
    ) -> Result<Errand, NotQueued> {
        if self.is_child() {
            return self.gate.push_many_below(self, tasks, CHUNK, tickets, came_ns);
        }
        self.gate.push_many(tasks, CHUNK, tickets, came_ns)
    }

    /// A permit for a caller who runs here: one that is free, or the one he is handed in his turn. With a place
    /// in the line, and before he waits, he does what `meanwhile` says.
    pub(crate) fn permit_in_turn(self: &Arc<Self>, meanwhile: impl FnOnce()) -> Result<(), Reason> {
        match self.try_take_to_run() {
            Ok(()) => Ok(()),
            Err(_) => self.wait_to_run_while(None, meanwhile),
        }
    }

    /// The caller has a permit and more to run: it goes to those who wait, and he waits behind them for another.
    /// With nobody waiting he goes on under the one he has. `Err`: he has none any more.
    pub(crate) fn go_behind(self: &Arc<Self>) -> Result<(), Reason> {
        if self.may_go_on() {
            return Ok(());
        }
        if self.would_deadlock() {
            self.give_back_run();
            return Err(Reason::Deadlock);
        }
        with_parker(|parker| {
            let came_ns = self.waits.now_ns();
            if self.is_child() {
                let (ticket, errand) = self.gate.go_behind_below(self, &parker.unparker(), came_ns);
                self.carry_out(errand);
                self.give_levels(ALL_LEVELS);
                return self.stand(parker, ticket, None);
            }
            match self.gate.go_behind(&parker.unparker(), came_ns) {
                None => Ok(()),
                Some((ticket, errand)) => {
                    self.carry_out(errand);
                    self.stand(parker, ticket, None)
                }
            }
        })
    }

    /// Nobody waits who could start if the caller's permit went back.
    fn may_go_on(self: &Arc<Self>) -> bool {
        match self.is_child() {
            false => self.gate.may_go_on(),
            // With a permit that came from a task around it he is ahead of all who wait, and stays so.
            true => self.levels_to_run() != ALL_LEVELS || self.gate.may_go_on_below(self),
        }
    }

    /// The permits of a run that does not give them back itself go back.
    pub(crate) fn give_back_run(self: &Arc<Self>) {
        match self.is_child() {
            false => self.give_back(),
            true => self.give_levels(self.levels_to_run()),
        }
    }
}
