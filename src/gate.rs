//! The gate: the permit word and the line behind it, with the one admission function.
//!
//! A free permit is taken on the word alone. Everything else happens under the line's lock, and ends in one of
//! two answers: nothing is left to do, or the token (I5 of [`crate::permits::state`]) needs a worker.
//!
//! # How waiting work is never forgotten
//! Each event that could let work start (a permit given back, a raised limit, an arrival, a departure) either
//! finds a token already under way, or makes one and hands it to the head of the line: [`Gate::pass_on`]. A
//! head that waits is signalled; for a task the caller sends a worker. The token's holder takes the line's lock
//! and looks: with a permit free it serves the head and passes the token on while more can start; with none it
//! stands down in the same step of the word that sees `free <= 0`, so the next permit that comes back makes a
//! new token. A holder that leaves (a timeout, a cancellation) passes the token on before it goes.
//!
//! No foreign code runs under the lock: tasks are moved out and dropped by the callers.
#![forbid(unsafe_code)]

use crate::line::{Entry, Line, Ticket, Waiting};
use crate::permits::state::{Duty, Refusal, Serve, Take};
use crate::permits::word::PermitWord;
use crate::sync::{Condvar, Mutex, MutexGuard, Unparker};
use crossbeam_utils::CachePadded;
use std::time::Instant;

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

/// What a worker with a token found.
#[derive(Debug)]
pub(crate) enum Claim<T> {
    /// A task and a permit to run it under, and what became of the token.
    Run(T, u64, Errand),
    /// Nothing for a worker; the token is gone, or with a waiter.
    Nothing,
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
    Granted {
        task: Option<T>,
        came_ns: u64,
        errand: Errand,
    },
    /// Not yet.
    Wait,
    /// He asked to leave and has left; a joined task stays as a plain one.
    Left(Errand),
    /// The entry is gone from the line: claimed, or the executor was shut down.
    Gone,
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

#[derive(Debug)]
struct Inner<T> {
    line: Line<T>,
    limit: usize,
    tally: Tally,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Gate<T, L> {
    word: CachePadded<PermitWord>,
    inner: CachePadded<Mutex<Inner<T>>>,
    quiet: Condvar,
    max_overtakes: u16,
    capacity: usize,
    ledger: L,
}

/// Where the token goes next.
enum Pass {
    Ended,
    Signal(Unparker),
    Worker,
}

impl Pass {
    /// Signals outside of the lock.
    fn carry_out(self) -> Errand {
        match self {
            Pass::Ended => Errand::Nothing,
            Pass::Signal(unparker) => {
                unparker.unpark();
                Errand::Nothing
            }
            Pass::Worker => Errand::SendWorker,
        }
    }
}

impl<T, L: Ledger> Gate<T, L> {
    pub(crate) fn new(limit: usize, max_overtakes: u16, capacity: usize, ledger: L) -> Self {
        Self {
            word: CachePadded::new(PermitWord::new(limit)),
            inner: CachePadded::new(Mutex::new(Inner {
                line: Line::new(),
                limit,
                tally: Tally::default(),
            })),
            quiet: Condvar::new(),
            max_overtakes,
            capacity,
            ledger,
        }
    }

    /// Takes a permit without standing in the line (T1).
    #[inline]
    pub(crate) fn try_take(&self) -> Result<Take, Refusal> {
        self.word.take(self.max_overtakes)
    }

    /// Gives a permit back (T2).
    #[inline]
    pub(crate) fn give(&self) -> Errand {
        match self.word.give() {
            (Duty::Nothing, false) => Errand::Nothing,
            (duty, closed) => self.give_slow(duty, closed),
        }
    }

    #[cold]
    fn give_slow(&self, duty: Duty, closed: bool) -> Errand {
        let mut inner = self.inner.lock();
        if closed {
            self.tell_if_quiet(&inner);
        }
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        pass.carry_out()
    }

    /// The one admission function: the caller, who has the token, hands it to the head of the line.
    fn pass_on(&self, duty: Duty, inner: &mut Inner<T>) -> Pass {
        if duty == Duty::Nothing {
            return Pass::Ended;
        }
        match inner.line.head() {
            None => {
                self.word.stand_down();
                Pass::Ended
            }
            Some((_, entry)) => match entry.waiting() {
                None => Pass::Worker,
                Some(waiting) => {
                    waiting.has_token = true;
                    Pass::Signal(waiting.signal.clone())
                }
            },
        }
    }

    /// Puts a task at the end of the line.
    pub(crate) fn push(&self, task: T, came_ns: u64) -> Result<(Ticket, Errand), (T, NotQueued)> {
        let mut inner = self.inner.lock();
        if self.word.peek().is_closed() {
            return Err((task, NotQueued::Closed));
        }
        if inner.line.tasks() >= self.capacity {
            return Err((task, NotQueued::Full));
        }
        if inner.line.tasks() == 0 && !self.ledger.owe() {
            return Err((task, NotQueued::NoThread));
        }
        inner.tally.accepted += 1;
        let ticket = inner.line.push(Entry::Task(task), came_ns);
        let duty = self.word.line_up();
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        Ok((ticket, pass.carry_out()))
    }

    /// Takes a permit, or a place at the end of the line.
    pub(crate) fn arrive(&self, signal: &Unparker, came_ns: u64) -> Arrival {
        let mut inner = self.inner.lock();
        match self.word.take(self.max_overtakes) {
            Ok(how) => return Arrival::Taken(how),
            Err(Refusal::Closed) => return Arrival::Closed,
            Err(Refusal::Saturated) => {}
        }
        let waiting = Waiting {
            signal: signal.clone(),
            has_token: false,
        };
        let ticket = inner.line.push(Entry::Waiter(waiting), came_ns);
        let duty = self.word.line_up();
        // The head may be ourselves: then the token is ours, and the signal is for our own first look.
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        match pass.carry_out() {
            Errand::Nothing => Arrival::Standing(ticket),
            Errand::SendWorker => {
                unreachable!("I1: a line with a task in it and a free permit has a token")
            }
        }
    }

    /// Makes a queued task one that its joiner will run. `false`: it is not in the line any more.
    pub(crate) fn join(&self, ticket: Ticket, signal: &Unparker) -> bool {
        let mut inner = self.inner.lock();
        let waiting = Waiting {
            signal: signal.clone(),
            has_token: false,
        };
        inner.line.convert(ticket, |entry| match entry {
            Entry::Task(task) => Entry::Joined(task, waiting),
            Entry::Joined(..) | Entry::Waiter(_) => unreachable!("a task has one handle"),
        })
    }

    /// One look of the thread that stands at `ticket`; `leave`: it will not wait any longer.
    pub(crate) fn turn(&self, ticket: Ticket, leave: bool) -> Turn<T> {
        let mut inner = self.inner.lock();
        let is_head = inner.line.head().is_some_and(|(head, _)| head == ticket);
        let Some(waiting) = inner.line.get(ticket).and_then(Entry::waiting) else {
            return Turn::Gone;
        };
        let had_token = std::mem::take(&mut waiting.has_token);
        if is_head {
            if let Serve::Served(duty) = self.word.serve(inner.line.len() > 1, had_token) {
                return self.granted(inner, duty);
            }
            return if leave {
                self.leave(inner, ticket, Duty::Nothing)
            } else {
                Turn::Wait
            };
        }
        let duty = if had_token {
            Duty::Attend
        } else {
            Duty::Nothing
        };
        if leave {
            return self.leave(inner, ticket, duty);
        }
        // Somebody was put in front of us after we got the token.
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        match pass.carry_out() {
            Errand::Nothing => Turn::Wait,
            Errand::SendWorker => unreachable!("only waiters are put in front"),
        }
    }

    fn granted(&self, mut inner: MutexGuard<'_, Inner<T>>, duty: Duty) -> Turn<T> {
        let Some((entry, came_ns)) = inner.line.pop() else {
            unreachable!("the head was looked at under the same lock");
        };
        let task = entry.into_task();
        if task.is_some() {
            inner.tally.ran += 1;
            self.settle_tasks(&inner);
        }
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        Turn::Granted {
            task,
            came_ns,
            errand: pass.carry_out(),
        }
    }

    fn leave(&self, mut inner: MutexGuard<'_, Inner<T>>, ticket: Ticket, duty: Duty) -> Turn<T> {
        if matches!(inner.line.get(ticket), Some(Entry::Waiter(_))) {
            inner.line.remove(ticket);
            self.after_removal(&inner);
        } else {
            inner.line.convert(ticket, |entry| match entry {
                Entry::Joined(task, _) => Entry::Task(task),
                other => other,
            });
        }
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        Turn::Left(pass.carry_out())
    }

    /// A worker comes with the token.
    pub(crate) fn claim(&self) -> Claim<T> {
        let mut inner = self.inner.lock();
        let more = inner.line.len() > 1;
        match inner.line.head() {
            Some((_, Entry::Task(_))) => {}
            _ => {
                let pass = self.pass_on(Duty::Attend, &mut inner);
                drop(inner);
                return match pass.carry_out() {
                    Errand::Nothing => Claim::Nothing,
                    Errand::SendWorker => unreachable!("the head is no task"),
                };
            }
        }
        match self.word.serve(more, true) {
            Serve::StoodDown => Claim::Nothing,
            Serve::Served(duty) => {
                let (task, came_ns) = self.pop_task(&mut inner);
                let pass = self.pass_on(duty, &mut inner);
                drop(inner);
                Claim::Run(task, came_ns, pass.carry_out())
            }
        }
    }

    /// A worker that is done asks for the next task under the permit it has (T6). `None`: it gives it back.
    pub(crate) fn hand_on(&self) -> Option<(T, u64)> {
        if !self.word.peek().is_waiting() {
            return None;
        }
        let mut inner = self.inner.lock();
        let more = inner.line.len() > 1;
        match inner.line.head() {
            Some((_, Entry::Task(_))) if self.word.hand_on(more) => Some(self.pop_task(&mut inner)),
            _ => None,
        }
    }

    fn pop_task(&self, inner: &mut Inner<T>) -> (T, u64) {
        let Some((Entry::Task(task), came_ns)) = inner.line.pop() else {
            unreachable!("the head was seen to be a task under the same lock");
        };
        inner.tally.ran += 1;
        self.settle_tasks(inner);
        (task, came_ns)
    }

    /// Takes a task out of the line, to run it under a permit that the caller's thread holds already. `None`:
    /// it is not there any more. Whoever takes it out owns it.
    pub(crate) fn remove_to_run(&self, ticket: Ticket) -> Option<(T, u64, Errand)> {
        self.remove(ticket, |tally| tally.ran += 1)
    }

    /// Takes a task out of the line that will never run.
    pub(crate) fn remove_cancelled(&self, ticket: Ticket) -> Option<(T, Errand)> {
        self.remove(ticket, |tally| tally.cancelled += 1)
            .map(|(task, _, errand)| (task, errand))
    }

    fn remove(&self, ticket: Ticket, note: impl FnOnce(&mut Tally)) -> Option<(T, u64, Errand)> {
        let mut inner = self.inner.lock();
        let (mut entry, came_ns) = inner.line.remove(ticket)?;
        note(&mut inner.tally);
        let had_token = entry.waiting().is_some_and(|w| w.has_token);
        let duty = if had_token {
            Duty::Attend
        } else {
            Duty::Nothing
        };
        self.settle_tasks(&inner);
        self.after_removal(&inner);
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        Some((entry.into_task()?, came_ns, pass.carry_out()))
    }

    /// The entry is still in the line.
    pub(crate) fn is_queued(&self, ticket: Ticket) -> bool {
        self.inner.lock().line.get(ticket).is_some()
    }

    fn settle_tasks(&self, inner: &Inner<T>) {
        if inner.line.tasks() == 0 {
            self.ledger.settle();
        }
    }

    fn after_removal(&self, inner: &Inner<T>) {
        if inner.line.len() == 0 {
            self.word.clear_line();
        }
        self.tell_if_quiet(inner);
    }

    /// Changes the limit (T8). Returns at once, whatever runs.
    pub(crate) fn set_limit(&self, limit: usize) -> Errand {
        let mut inner = self.inner.lock();
        let by = limit as i64 - inner.limit as i64;
        inner.limit = limit;
        let duty = self.word.resize(by);
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        pass.carry_out()
    }

    pub(crate) fn limit(&self) -> usize {
        self.inner.lock().limit
    }

    /// Accepts nothing new from now on (T9).
    pub(crate) fn close(&self) {
        let inner = self.inner.lock();
        self.word.close();
        self.tell_if_quiet(&inner);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.word.peek().is_closed()
    }

    /// Closes, and empties the line: the tasks come out, the waiters find their place gone.
    pub(crate) fn close_and_take(&self) -> Vec<T> {
        let mut inner = self.inner.lock();
        self.word.close();
        let had_tasks = inner.line.tasks() > 0;
        let mut tasks = Vec::with_capacity(inner.line.tasks());
        let mut signals = Vec::new();
        let mut had_token = false;
        while let Some((mut entry, _)) = inner.line.pop() {
            if let Some(waiting) = entry.waiting() {
                had_token |= waiting.has_token;
                signals.push(waiting.signal.clone());
            }
            tasks.extend(entry.into_task());
        }
        inner.tally.unrun += tasks.len() as u64;
        self.word.clear_line();
        if had_token {
            self.word.stand_down();
        }
        if had_tasks {
            self.ledger.settle();
        }
        self.tell_if_quiet(&inner);
        drop(inner);
        signals.iter().for_each(Unparker::unpark);
        tasks
    }

    fn is_quiet(&self, inner: &Inner<T>) -> bool {
        inner.line.len() == 0 && self.word.observe().free() as i64 == inner.limit as i64
    }

    fn tell_if_quiet(&self, inner: &Inner<T>) {
        if self.word.peek().is_closed() && self.is_quiet(inner) {
            self.quiet.notify_all();
        }
    }

    /// Waits until nothing runs and nothing waits; for a closed gate. `Err`: what is left at `deadline`.
    pub(crate) fn wait_quiet(&self, deadline: Option<Instant>) -> Result<(), GateStats> {
        let mut inner = self.inner.lock();
        loop {
            if self.is_quiet(&inner) {
                return Ok(());
            }
            if deadline.is_some_and(|at| at <= Instant::now()) {
                return Err(self.count(&inner));
            }
            inner = self.quiet.wait_until(inner, deadline);
        }
    }

    /// The gate in numbers.
    pub(crate) fn stats(&self) -> GateStats {
        self.count(&self.inner.lock())
    }

    fn count(&self, inner: &Inner<T>) -> GateStats {
        let free = i64::from(self.word.observe().free());
        GateStats {
            limit: inner.limit,
            taken: (inner.limit as i64 - free) as usize,
            free: free.max(0) as usize,
            tasks: inner.line.tasks(),
            waiters: inner.line.waiters(),
            tally: inner.tally,
        }
    }
}
