//! What goes in and out at the gate: plain answers, and who answers for queued tasks.
#![forbid(unsafe_code)]

use super::below::Kin;
use crate::line::{Entry, Ticket};
use crate::permits::state::Take;

/// Who answers for queued tasks: the pool, which keeps a thread while it owes one.
pub(crate) trait Ledger: Send + Sync {
    /// A line that had no task gets one. `false`: there is no thread, and nothing was noted.
    fn owe(&self) -> bool;
    /// A line has no task any more.
    fn settle(&self);
}

/// What is left to the caller after a visit at the gate.
#[must_use = "a token without a worker leaves tasks waiting for ever"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Nothing.
    Nothing,
    /// The caller has the token, and the head of the line is a task: send a worker.
    SendWorker,
}

/// Why a task was not put into the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotQueued {
    /// The line holds as many tasks as it may.
    Full,
    /// No new work is accepted.
    Closed,
    /// No thread exists that could serve it.
    NoThread,
}

/// The permit of a caller that did not stand in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// The one that stays with his thread.
    Leased,
    /// One of the word.
    Taken(Take),
}

/// What a line has as tasks.
pub(crate) trait Work {
    /// A child, where tasks of children come out.
    type Kin: Kin;
}

/// What a worker with a token found.
pub(crate) enum Claim<T: Work> {
    /// A task and a permit to run it under, and what became of the token.
    Run(T, u64, Errand),
    /// A task of this child, and a permit of each level.
    Below(T::Kin, T, u64, Errand),
    /// Nothing for a worker; the token is gone, or with a waiter.
    Nothing,
}

/// What a nested waiter wants permits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// New work, which a closed child refuses.
    New,
    /// The child's task at this place, as long as nobody else has it.
    Task(Ticket),
}

/// What a worker has in hand: a task, which is moved here from its place in the line and run where it is.
pub(crate) struct Hand<T: Work> {
    /// The child whose task it is, with a permit of each level below the root; else it is the root's own.
    pub(crate) of: Option<T::Kin>,
    pub(super) entry: Option<Entry<T>>,
    pub(crate) came_ns: u64,
}

impl<T: Work> Hand<T> {
    pub(crate) fn of(of: Option<T::Kin>, task: T, came_ns: u64) -> Self {
        Self { of, entry: Some(Entry::Task(task)), came_ns }
    }

    /// Nothing.
    #[cfg(work_permit_loom)]
    pub(crate) fn empty() -> Self {
        Self { of: None, entry: None, came_ns: 0 }
    }

    /// The task. It stays in the hand until that is cleared.
    #[inline]
    pub(crate) fn task(&mut self) -> &mut T {
        match &mut self.entry {
            Some(Entry::Task(task)) => task,
            _ => unreachable!("with a task in it"),
        }
    }

    /// Drops what is left of the task.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.entry = None;
    }
}

/// Whether a worker goes on under the permit that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward {
    /// There is nothing in its hand: it gives the permit back.
    Stop,
    /// With what is in its hand.
    Go,
    /// The same, and the token that was at the pool has ended: there is nothing more to start.
    GoLast,
}

/// The answer to an arriving waiter.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A permit, at once.
    Taken(Take),
    /// A place in the line.
    Standing(Ticket),
    /// No new work is accepted.
    Closed,
}

/// What one look of somebody in the line found.
#[derive(Debug)]
pub(crate) enum Turn<T> {
    /// The permit is his; the task is the one that stood there.
    Granted { task: Option<T>, came_ns: u64, errand: Errand },
    /// Not yet.
    Wait,
    /// Not yet: he does the errand first, and looks again.
    Sent(Errand),
    /// He asked to leave and has left; a joined task stays as a plain one.
    Left(Errand),
    /// The entry is gone from the line: claimed, or the executor was shut down.
    Gone,
}

/// What one look of a nested waiter found.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// What any waiter can find; `Gone` also where the task that he joins is somebody else's.
    Turn(Turn<T>),
    /// The level at this place has no permit for him: this is where he stands in its line.
    Moved(usize, Ticket, Errand),
}

/// Numbers kept under the line's lock.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) accepted: u64,
    pub(crate) ran: u64,
    pub(crate) cancelled: u64,
    pub(crate) unrun: u64,
}

/// A consistent look at the gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GateStats {
    pub(crate) limit: usize,
    pub(crate) taken: usize,
    pub(crate) free: usize,
    pub(crate) tasks: usize,
    pub(crate) waiters: usize,
    pub(crate) tally: Tally,
}

impl GateStats {
    /// With so many tasks and threads more.
    pub(super) fn and(self, (tasks, waiters): (usize, usize)) -> Self {
        Self { tasks: self.tasks + tasks, waiters: self.waiters + waiters, ..self }
    }
}
