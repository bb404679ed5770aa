//! The way into the line.
//!
//! Those who queue tasks and those who take them out would meet on one lock for every task. So while the line has
//! tasks anyway, the next ones go into the *intake*, under a lock of its own, and whoever works on the line takes
//! the whole intake over when it needs it: to see who comes next, or to find a task by its ticket.
//!
//! # Why a task in the intake is never forgotten
//! `room` is how many tasks the intake may take. It is above 0 only while a task stands in the line itself: so
//! `WAITING` is set, the debt to the pool is noted, the executor is open, and whoever serves that task comes by.
//! He takes the intake over *before* the last task leaves the line, under both locks, and when nothing was there
//! he sets `room` to 0: the next one to come goes the long way, under the line's lock, where `WAITING` is set and
//! the token made. Close does the same. In short: no task in the line, no room, and nothing in the intake.
//!
//! Tickets come from the intake, for waiters too, who take it over first: so all stand in one order.
#![forbid(unsafe_code)]

use super::{Arrival, Errand, Gate, Inner, Ledger, NotQueued, Work};
use crate::line::{Entry, Index, Line, Slots, Ticket, Waiting};
use crate::permits::state::Refusal;
use crate::sync::{MutexGuard, Unparker};

/// See the module's text.
#[derive(Debug)]
pub(super) struct Intake<T> {
    slots: Slots<T>,
    /// Tasks that may still come without a look at the line.
    room: usize,
    next: Ticket,
    accepted: u64,
}

impl<T> Intake<T> {
    pub(super) fn new() -> Self {
        Self { slots: Slots::new(), room: 0, next: Ticket::FIRST, accepted: 0 }
    }

    fn ticket(&mut self) -> Ticket {
        let ticket = self.next;
        self.next = ticket.next();
        ticket
    }

    /// Takes the task, if there is room for it.
    #[inline(always)]
    fn take_in(&mut self, task: T, came_ns: u64) -> Result<Ticket, T> {
        if self.room == 0 {
            return Err(task);
        }
        self.room -= 1;
        self.accepted += 1;
        let ticket = self.ticket();
        self.slots.push_back(Entry::Task(task).at(ticket, came_ns));
        Ok(ticket)
    }

    /// Puts a task into the line itself, behind all that came.
    pub(super) fn accept(&mut self, line: &mut Line<T>, task: T, came_ns: u64) -> Ticket {
        self.accepted += 1;
        let ticket = self.ticket();
        line.push(ticket, Entry::Task(task), came_ns);
        ticket
    }

    /// Takes so many tasks more. Only after `line_up`: who finds room counts on `WAITING`.
    pub(super) fn open(&mut self, room: usize) {
        self.room = room;
    }

    /// Moves what came to the end of the line.
    pub(super) fn hand_over(&mut self, line: &mut Line<T>) {
        let is_shut = self.room == 0 && self.slots.is_empty();
        debug_assert!(line.tasks() > 0 || is_shut, "a task that nobody comes for");
        line.append(&mut self.slots);
    }
}

impl<T: Work, L: Ledger> Gate<T, L> {
    /// Puts a task at the end of the line.
    #[inline]
    pub(crate) fn push(&self, task: T, came_ns: u64) -> Result<(Ticket, Errand), (T, NotQueued)> {
        let taken_in = self.intake.lock().take_in(task, came_ns);
        match taken_in {
            Ok(ticket) => Ok((ticket, Errand::Nothing)),
            Err(task) => self.push_into_line(task, came_ns),
        }
    }

    #[cold]
    fn push_into_line(&self, task: T, came_ns: u64) -> Result<(Ticket, Errand), (T, NotQueued)> {
        let mut inner = self.inner.lock();
        let mut intake = self.intake.lock();
        match self.room_in_line(&mut inner, &mut intake) {
            Ok(_) => {
                let ticket = intake.accept(&mut inner.line, task, came_ns);
                Ok((ticket, self.let_in(inner, intake)))
            }
            Err(refusal) => Err((task, refusal)),
        }
    }

    /// How many tasks more the line may hold, with a thread that is owed to them. The intake is empty then.
    pub(super) fn room_in_line(
        &self,
        inner: &mut Inner<T>,
        intake: &mut Intake<T>,
    ) -> Result<usize, NotQueued> {
        if self.word.peek().is_closed() {
            return Err(NotQueued::Closed);
        }
        intake.hand_over(&mut inner.line);
        let tasks = inner.line.tasks();
        if tasks >= self.capacity {
            return Err(NotQueued::Full);
        }
        if tasks == 0 && !self.ledger.owe() {
            return Err(NotQueued::NoThread);
        }
        Ok(self.capacity - tasks)
    }

    /// Tasks were put into the line: says so in the word, and lets more come by the intake.
    pub(super) fn let_in(
        &self,
        mut inner: MutexGuard<'_, Inner<T>>,
        mut intake: MutexGuard<'_, Intake<T>>,
    ) -> Errand {
        // One token serves them all: who claims one passes it on while more can start.
        let duty = self.line_up(&inner);
        intake.open(self.capacity - inner.line.tasks());
        drop(intake);
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        pass.carry_out()
    }

    /// Takes a permit, or a place at the end of the line.
    pub(crate) fn arrive(&self, signal: &Unparker, came_ns: u64) -> Arrival {
        let mut inner = self.inner.lock();
        match self.word.take(self.max_overtakes) {
            Ok(how) => return Arrival::Taken(how),
            Err(Refusal::Closed) => return Arrival::Closed,
            Err(Refusal::Saturated) => {}
        }
        let ticket = self.stand_at_the_end(&mut inner, signal, came_ns);
        let duty = self.line_up(&inner);
        // The head may be ourselves: then the token is ours, and the signal is for our own first look.
        let pass = self.pass_on_or_over(duty, &mut inner);
        drop(inner);
        match pass.carry_out() {
            Errand::Nothing => Arrival::Standing(ticket),
            Errand::SendWorker => {
                unreachable!("I1: a line with a task in it and a free permit has a token")
            }
        }
    }

    /// A place for a waiter behind all that came.
    pub(super) fn stand_at_the_end(
        &self,
        inner: &mut Inner<T>,
        signal: &Unparker,
        came_ns: u64,
    ) -> Ticket {
        let waiting = Waiting { signal: signal.clone(), has_token: false };
        let mut intake = self.intake.lock();
        intake.hand_over(&mut inner.line);
        let ticket = intake.ticket();
        inner.line.push(ticket, Entry::Waiter(waiting), came_ns);
        ticket
    }

    /// A place for a child behind all that came.
    pub(super) fn stand_for_child(&self, inner: &mut Inner<T>, child: Index) -> Ticket {
        let mut intake = self.intake.lock();
        intake.hand_over(&mut inner.line);
        let ticket = intake.ticket();
        inner.line.push(ticket, Entry::Child(child), 0);
        ticket
    }

    /// Takes the intake over. `leaving` tasks are about to leave the line: with no other there, the intake shuts.
    pub(super) fn take_over_intake(&self, inner: &mut Inner<T>, leaving: usize) {
        let mut intake = self.intake.lock();
        intake.hand_over(&mut inner.line);
        if inner.line.tasks() <= leaving {
            intake.room = 0;
            inner.line.give_memory_back();
            if intake.slots.capacity() > Line::<T>::KEEP_CAPACITY {
                intake.slots = Slots::new();
            }
        }
    }

    /// The head is about to leave: whether somebody stands behind it.
    pub(super) fn look_behind_head(&self, inner: &mut Inner<T>) -> bool {
        let leaving = usize::from(inner.line.head().is_some_and(|(_, head)| head.is_task()));
        if inner.line.tasks() <= leaving {
            self.take_over_intake(inner, leaving);
        }
        inner.line.len() > 1
    }

    /// No task comes in any more without a look at the line, where it finds the gate closed.
    pub(super) fn shut_intake(&self, inner: &mut Inner<T>) {
        let mut intake = self.intake.lock();
        intake.hand_over(&mut inner.line);
        intake.room = 0;
    }

    /// Tasks in the intake, and all that were ever accepted.
    pub(super) fn count_intake(&self) -> (usize, u64) {
        let intake = self.intake.lock();
        (intake.slots.len(), intake.accepted)
    }
}
