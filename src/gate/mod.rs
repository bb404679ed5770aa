//! The gate: the permit word and the line behind it, with the one admission function.
//!
//! A free permit is taken on the word alone, and behind tasks that wait a task comes in by a lock of its own
//! (`intake`). Everything else happens under the line's lock, and ends in one of two answers: nothing is left to
//! do, or the token (I5 of [`crate::permits::state`]) needs a worker.
//!
//! # How waiting work is never forgotten
//! Each event that could let work start (a permit given back, a raised limit, an arrival, a departure) either
//! finds a token already under way, or makes one and hands it to the head of the line: [`Gate::pass_on`]. A
//! head that waits is signalled; for a task the caller sends a worker. The token's holder takes the line's lock
//! and looks: with a permit free it serves the head and passes the token on while more can start; with none it
//! stands down in the same step of the word that sees `free <= 0`, so the next permit that comes back makes a
//! new token. A holder that leaves (a timeout, a cancellation) passes the token on before it goes.
//!
//! Executors below this one have words of their own, and their lines under this lock: see [`below`] and [`chain`].
//!
//! No foreign code runs under the lock: tasks are moved out and dropped by the callers.
#![forbid(unsafe_code)]

mod answers;
mod below;
mod chain;
mod child;
mod child_life;
mod demand;
mod inline;
mod intake;
mod life;
mod many;
mod nested;

pub(crate) use answers::{
    Arrival, Ask, Claim, Errand, GateStats, Grant, Hand, Ledger, NotQueued, Onward, Step, Tally,
    Turn, Work,
};
pub(crate) use below::{Kin, Level};
pub(crate) use child_life::TakenOut;
pub(crate) use demand::Demand;
pub(crate) use inline::Denied;

use crate::counters::Slots;
use crate::lease::Leases;
use crate::line::{Entry, Line, Ticket, Waiting};
use crate::permits::state::{Duty, Refusal, Serve, Take};
use crate::permits::word::PermitWord;
use crate::sync::{Condvar, Mutex, MutexGuard, Unparker};
use below::Below;
use crossbeam_utils::CachePadded;
use intake::Intake;

struct Inner<T: Work> {
    line: Line<T>,
    below: Below<T>,
    /// The token was handed to the pool: a worker will come with it.
    token_at_pool: bool,
    limit: usize,
    tally: Tally,
}

/// See the module's text.
pub(crate) struct Gate<T: Work, L> {
    word: CachePadded<PermitWord>,
    inner: CachePadded<Mutex<Inner<T>>>,
    /// Locked last, by those who hold `inner` too.
    intake: CachePadded<Mutex<Intake<T>>>,
    quiet: Condvar,
    leases: Leases,
    slots: Slots,
    seen: demand::Seen,
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

impl<T: Work, L: Ledger> Gate<T, L> {
    /// Without leases.
    #[cfg(work_permit_loom)]
    pub(crate) fn new(limit: usize, max_overtakes: u16, capacity: usize, ledger: L) -> Self {
        Self::with_leases(limit, max_overtakes, capacity, ledger, Leases::off(), Slots::from([]))
    }

    pub(crate) fn with_leases(
        limit: usize,
        max_overtakes: u16,
        capacity: usize,
        ledger: L,
        leases: Leases,
        slots: Slots,
    ) -> Self {
        Self {
            word: CachePadded::new(PermitWord::new(limit)),
            seen: demand::Seen::new(limit),
            inner: CachePadded::new(Mutex::new(Inner {
                line: Line::new(),
                below: Below::new(),
                token_at_pool: false,
                limit,
                tally: Tally::default(),
            })),
            intake: CachePadded::new(Mutex::new(Intake::new())),
            quiet: Condvar::new(),
            leases,
            slots,
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
        match inner.first() {
            None => {
                self.word.stand_down();
                Pass::Ended
            }
            Some(entry) => match entry.waiting() {
                None => {
                    inner.token_at_pool = true;
                    Pass::Worker
                }
                Some(waiting) => {
                    waiting.has_token = true;
                    Pass::Signal(waiting.signal.clone())
                }
            },
        }
    }

    /// The head has gone, and the caller's token with `duty`. A token that is at the pool for a task does not do
    /// for a waiter, who needs no worker and must not wait for one: it goes to him, and the worker that comes
    /// for it finds none.
    fn pass_on_or_over(&self, duty: Duty, inner: &mut Inner<T>) -> Pass {
        if duty == Duty::Attend {
            return self.pass_on(duty, inner);
        }
        let goes_over =
            inner.token_at_pool && inner.first().is_some_and(|entry| entry.waiting().is_some());
        if !goes_over {
            return Pass::Ended;
        }
        inner.token_at_pool = false;
        self.pass_on(Duty::Attend, inner)
    }

    /// Makes a queued task one that its joiner will run. `false`: it is not in the line any more, or another
    /// joiner stands for it (the one who has its handle, or the call that it borrows from).
    pub(crate) fn join(&self, ticket: Ticket, signal: &Unparker) -> bool {
        let mut inner = self.inner.lock();
        self.take_over_intake(&mut inner, 0);
        let is_head = match inner.line.head() {
            Some((head, Entry::Task(_))) => head == ticket,
            _ => false,
        };
        // The token that is at the pool for the head is the joiner's now.
        let has_token = is_head && std::mem::take(&mut inner.token_at_pool);
        let waiting = Waiting { signal: signal.clone(), has_token };
        let mut is_ours = false;
        inner.line.convert(ticket, |entry| match entry {
            Entry::Task(task) => {
                is_ours = true;
                Entry::Joined(task, waiting)
            }
            other => other,
        });
        is_ours
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
            let more = self.look_behind_head(&mut inner);
            if let Serve::Served(duty) = self.word.serve(more, had_token) {
                return self.granted(inner, duty);
            }
            return if leave { self.leave(inner, ticket, Duty::Nothing) } else { Turn::Wait };
        }
        let duty = if had_token { Duty::Attend } else { Duty::Nothing };
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
        let pass = self.pass_on_or_over(duty, &mut inner);
        drop(inner);
        Turn::Granted { task, came_ns, errand: pass.carry_out() }
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
        let pass = self.pass_on_or_over(duty, &mut inner);
        drop(inner);
        Turn::Left(pass.carry_out())
    }

    /// A worker comes with the token.
    pub(crate) fn claim(&self) -> Claim<T> {
        let mut inner = self.inner.lock();
        if !std::mem::take(&mut inner.token_at_pool) {
            return Claim::Nothing; // It went to a waiter.
        }
        while inner.line.is_headed_by_child() {
            inner = match self.claim_below(inner) {
                Ok(claim) => return claim,
                Err(inner) => inner,
            };
        }
        let more = self.look_behind_head(&mut inner);
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
                let Some((Entry::Task(task), came_ns)) = inner.line.pop() else {
                    unreachable!("the head was seen to be a task under the same lock");
                };
                inner.tally.ran += 1;
                self.settle_tasks(&inner);
                let pass = self.pass_on(duty, &mut inner);
                drop(inner);
                Claim::Run(task, came_ns, pass.carry_out())
            }
        }
    }

    /// A worker that is done asks for the next task under the permit it has (T6), to be put into its empty `hand`. It
    /// gets none when it `is_wanted` by others than this gate's own tokens at the pool, of which it is told the number.
    pub(crate) fn hand_on(
        &self,
        hand: &mut Hand<T>,
        is_wanted: impl FnOnce(usize) -> bool,
    ) -> Onward {
        if !self.word.peek().is_waiting() {
            return Onward::Stop;
        }
        let mut inner = self.inner.lock();
        if is_wanted(usize::from(inner.token_at_pool)) {
            return Onward::Stop;
        }
        if inner.line.is_headed_by_child() {
            return self.hand_on_below(inner, hand);
        }
        let more = self.look_behind_head(&mut inner);
        match inner.line.head() {
            Some((_, Entry::Task(_))) if self.word.hand_on(more) => {}
            _ => return Onward::Stop,
        }
        hand.of = None;
        hand.came_ns = inner.line.pop_into(&mut hand.entry);
        inner.tally.ran += 1;
        self.settle_tasks(&inner);
        let pass = self.pass_on_or_over(Duty::Nothing, &mut inner);
        drop(inner);
        match pass.carry_out() {
            Errand::Nothing => Onward::Go,
            Errand::SendWorker => unreachable!("the token goes over to waiters only"),
        }
    }

    /// Takes a task out of the line, to run it under a permit that the caller's thread holds already. `None`:
    /// it is not there any more. Whoever takes it out owns it.
    pub(crate) fn remove_to_run(&self, ticket: Ticket) -> Option<(T, u64, Errand)> {
        self.remove(ticket, |tally| tally.ran += 1)
    }

    /// Takes a task out of the line that will never run.
    pub(crate) fn remove_cancelled(&self, ticket: Ticket) -> Option<(T, Errand)> {
        self.remove(ticket, |tally| tally.cancelled += 1).map(|(task, _, errand)| (task, errand))
    }

    fn remove(&self, ticket: Ticket, note: impl FnOnce(&mut Tally)) -> Option<(T, u64, Errand)> {
        let mut inner = self.inner.lock();
        self.take_over_intake(&mut inner, 1);
        let (mut entry, came_ns) = inner.line.remove(ticket)?;
        note(&mut inner.tally);
        let had_token = entry.waiting().is_some_and(|w| w.has_token);
        // Another joiner, whose place this was, has to look.
        let joiner = entry.waiting().map(|w| w.signal.clone());
        let duty = if had_token { Duty::Attend } else { Duty::Nothing };
        self.settle_tasks(&inner);
        self.after_removal(&inner);
        let pass = self.pass_on_or_over(duty, &mut inner);
        drop(inner);
        joiner.iter().for_each(Unparker::unpark);
        Some((entry.into_task()?, came_ns, pass.carry_out()))
    }

    /// The entry is still in the line.
    pub(crate) fn is_queued(&self, ticket: Ticket) -> bool {
        let mut inner = self.inner.lock();
        self.take_over_intake(&mut inner, 0);
        inner.line.get(ticket).is_some()
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
}

#[cfg(all(test, not(work_permit_loom)))]
mod lease_stress;
