//! A child's line: who comes, who waits, who leaves. Each is one step under the tree's lock; what the child does not
//! do itself is in [`super::chain`].
#![forbid(unsafe_code)]

use super::below::Kin;
use super::chain::undo_reserve;
use super::{Errand, Gate, Inner, Ledger, NotQueued, Pass, Turn, Work};
use crate::counters::Books;
use crate::line::{Entry, Index, Ticket, Waiting};
use crate::permits::state::{Duty, Refusal, Take};
use crate::sync::{MutexGuard, Unparker};
use std::vec;

/// What left a child's line in the middle: with when it came, and what is left to do.
pub(crate) type Removed<T> = (T, u64, Errand);

impl<T: Work, L: Ledger> Gate<T, L> {
    /// Takes a permit of the child without standing in its line (T1).
    #[inline]
    pub(crate) fn try_take_below(&self, kin: &T::Kin) -> Result<Take, Refusal> {
        let level = kin.level();
        level.word.take(level.max_overtakes)
    }

    /// Gives a permit of the child back (T2).
    #[inline]
    pub(crate) fn give_below(&self, kin: &T::Kin) -> Errand {
        match kin.level().word.give() {
            (Duty::Nothing, false) => Errand::Nothing,
            (duty, closed) => self.give_below_slow(kin, duty, closed),
        }
    }

    #[cold]
    fn give_below_slow(&self, kin: &T::Kin, duty: Duty, closed: bool) -> Errand {
        let mut inner = self.inner.lock();
        if closed {
            self.quiet.notify_all();
        }
        self.settle_below(&mut inner, kin, duty).end(inner)
    }

    /// What a step of the child's word makes of the child's token, and that of the root's.
    pub(super) fn settle_below(&self, inner: &mut Inner<T>, kin: &T::Kin, duty: Duty) -> Pass {
        let duty = match duty {
            Duty::Attend => self.attend(inner, kin),
            Duty::Nothing => Duty::Nothing,
        };
        self.pass_on_or_over(duty, inner)
    }

    /// The child, or one above it, accepts nothing new.
    pub(crate) fn is_any_closed(&self, kin: &T::Kin) -> bool {
        let mut next = Some(kin);
        while let Some(kin) = next {
            if kin.level().word.peek().is_closed() {
                return true;
            }
            next = kin.parent();
        }
        self.word.peek().is_closed()
    }

    /// Puts a task at the end of the child's line.
    pub(crate) fn push_below(
        &self,
        kin: &T::Kin,
        task: T,
        came_ns: u64,
    ) -> Result<(Ticket, Errand), (T, NotQueued)> {
        let mut inner = self.inner.lock();
        if let Err(why) = self.accept_below(&mut inner, kin) {
            return Err((task, why));
        }
        let at = inner.below.enter(kin);
        let ticket = self.put_below(&mut inner, at, task, came_ns);
        let duty = kin.level().word.line_up();
        let pass = self.settle_below(&mut inner, kin, duty);
        Ok((ticket, pass.end(inner)))
    }

    /// Whether the child takes one task more; if it is its first, somebody answers for it.
    fn accept_below(&self, inner: &mut Inner<T>, kin: &T::Kin) -> Result<(), NotQueued> {
        if self.is_any_closed(kin) {
            return Err(NotQueued::Closed);
        }
        let at = inner.below.find(kin);
        let tasks = at.map_or(0, |at| inner.below.node(at).line.tasks());
        if !kin.level().has_room_beside(tasks) {
            return Err(NotQueued::Full);
        }
        if tasks == 0 && !self.ledger.owe() {
            return Err(NotQueued::NoThread);
        }
        Ok(())
    }

    fn put_below(&self, inner: &mut Inner<T>, at: Index, task: T, came_ns: u64) -> Ticket {
        let ticket = inner.below.ticket();
        let node = inner.below.node(at);
        node.line.push(ticket, Entry::Task(task), came_ns);
        node.kin.counters().book(Books::Accepted, 1);
        ticket
    }

    /// As [`push_many`](Self::push_many), for a child.
    pub(crate) fn push_many_below(
        &self,
        kin: &T::Kin,
        tasks: &mut vec::IntoIter<T>,
        at_most: usize,
        tickets: &mut Vec<Ticket>,
        came_ns: u64,
    ) -> Result<Errand, NotQueued> {
        let mut inner = self.inner.lock();
        for n in 0..at_most.min(tasks.len()) {
            match self.accept_below(&mut inner, kin) {
                Err(why) if n == 0 => return Err(why),
                Err(_) => break,
                Ok(()) => {}
            }
            let at = inner.below.enter(kin);
            let Some(task) = tasks.next() else { break };
            tickets.push(self.put_below(&mut inner, at, task, came_ns));
        }
        let duty = kin.level().word.line_up();
        Ok(self.settle_below(&mut inner, kin, duty).end(inner))
    }

    /// Takes a place at the end of the child's line, for a permit of every level. `None`: it is closed.
    pub(crate) fn arrive_below(
        &self,
        kin: &T::Kin,
        signal: &Unparker,
        came_ns: u64,
    ) -> Option<(Ticket, Errand)> {
        let inner = self.inner.lock();
        if self.is_any_closed(kin) {
            return None;
        }
        Some(self.stand_below(inner, kin, signal, came_ns))
    }

    /// As [`go_behind`](Self::go_behind), for a child: he has a place, and gives his permits back next.
    pub(crate) fn go_behind_below(
        &self,
        kin: &T::Kin,
        signal: &Unparker,
        came_ns: u64,
    ) -> (Ticket, Errand) {
        self.stand_below(self.inner.lock(), kin, signal, came_ns)
    }

    fn stand_below(
        &self,
        mut inner: MutexGuard<'_, Inner<T>>,
        kin: &T::Kin,
        signal: &Unparker,
        came_ns: u64,
    ) -> (Ticket, Errand) {
        let at = inner.below.enter(kin);
        let ticket = inner.below.ticket();
        let waiting = Waiting { signal: signal.clone(), has_token: false };
        inner.below.node(at).line.push(ticket, Entry::Waiter(waiting), came_ns);
        let duty = kin.level().word.line_up();
        let pass = self.settle_below(&mut inner, kin, duty);
        (ticket, pass.end(inner))
    }

    /// A caller who has a permit of every level may go on: nobody waits, and at no level more run than may.
    pub(crate) fn may_go_on_below(&self, kin: &T::Kin) -> bool {
        let mut next = Some(kin);
        while let Some(kin) = next {
            let state = kin.level().word.peek();
            if state.is_waiting() || state.free() < 0 {
                return false;
            }
            next = kin.parent();
        }
        self.may_go_on()
    }

    /// As [`join`](Self::join), for a child.
    pub(crate) fn join_below(&self, kin: &T::Kin, ticket: Ticket, signal: &Unparker) -> bool {
        let mut inner = self.inner.lock();
        let Some(at) = inner.below.find(kin) else {
            return false;
        };
        let waiting = Waiting { signal: signal.clone(), has_token: false };
        let mut is_ours = false;
        inner.below.node(at).line.convert(ticket, |entry| match entry {
            Entry::Task(task) => {
                is_ours = true;
                Entry::Joined(task, waiting)
            }
            other => other,
        });
        // A token that is at the pool for this task is the joiner's now.
        let pass = self.pass_on_or_over(Duty::Nothing, &mut inner);
        drop(inner);
        pass.carry_out_for_waiter();
        is_ours
    }

    /// As [`turn`](Self::turn), for a child.
    pub(crate) fn turn_below(&self, kin: &T::Kin, ticket: Ticket, leave: bool) -> Turn<T> {
        let mut inner = self.inner.lock();
        let Some(at) = inner.below.find(kin) else {
            return Turn::Gone;
        };
        let Some(waiting) = inner.below.node(at).line.get(ticket).and_then(Entry::waiting) else {
            return Turn::Gone;
        };
        let mut has_token = std::mem::take(&mut waiting.has_token);
        while inner.is_first(at, ticket) {
            if !self.word.reserve() {
                if has_token && !self.word.end_if_saturated() {
                    continue;
                }
                has_token = false;
                break;
            }
            if self.reserve_below(&mut inner) {
                let (_, entry, came_ns) = self.commit(&mut inner, at);
                let more = inner.line.len() > 0;
                let duty = self.word.served(more, has_token);
                let pass = self.pass_on_or_over(duty, &mut inner);
                let (task, errand) = (entry.into_task(), pass.end(inner));
                return Turn::Granted { task, came_ns, errand };
            }
            undo_reserve(&self.word);
        }
        let duty = if has_token { Duty::Attend } else { Duty::Nothing };
        if leave {
            let waiter = matches!(inner.below.node(at).line.get(ticket), Some(Entry::Waiter(_)));
            self.give_up_place(&mut inner, at, ticket, waiter);
            let pass = self.pass_on_or_over(duty, &mut inner);
            return Turn::Left(pass.end(inner));
        }
        match self.pass_on_or_over(duty, &mut inner).end(inner) {
            Errand::Nothing => Turn::Wait,
            errand @ Errand::SendWorker => Turn::Sent(errand),
        }
    }

    fn give_up_place(&self, inner: &mut Inner<T>, at: Index, ticket: Ticket, waiter: bool) {
        let line = &mut inner.below.node(at).line;
        if waiter {
            line.remove(ticket);
            self.after_removal_below(inner, at);
            return;
        }
        line.convert(ticket, |entry| match entry {
            Entry::Joined(task, _) => Entry::Task(task),
            other => other,
        });
    }

    /// Takes a task out of the child's line: to run it under permits that the caller has (no `book`), or because it
    /// never will.
    pub(crate) fn remove_below(
        &self,
        kin: &T::Kin,
        ticket: Ticket,
        book: Option<Books>,
    ) -> Option<Removed<T>> {
        let mut inner = self.inner.lock();
        let at = inner.below.find(kin)?;
        let line = &mut inner.below.node(at).line;
        let (mut entry, came_ns) = line.remove(ticket)?;
        if line.tasks() == 0 {
            self.ledger.settle();
        }
        if let Some(book) = book {
            kin.counters().book(book, 1);
        }
        if inner.below.node(at).pins > 0 {
            inner.tell_nested(at, ticket);
        }
        let had_token = entry.waiting().is_some_and(|waiting| waiting.has_token);
        // Another joiner, whose place this was, has to look.
        let joiner = entry.waiting().map(|waiting| waiting.signal.clone());
        self.after_removal_below(&mut inner, at);
        let duty = if had_token { Duty::Attend } else { Duty::Nothing };
        let errand = self.pass_on_or_over(duty, &mut inner).end(inner);
        joiner.iter().for_each(Unparker::unpark);
        Some((entry.into_task()?, came_ns, errand))
    }

    /// The entry is still in the child's line.
    pub(crate) fn is_queued_below(&self, kin: &T::Kin, ticket: Ticket) -> bool {
        self.inner.lock().find_task(kin, ticket).is_some()
    }
}

impl Pass {
    /// Unlocks, and carries it out.
    pub(super) fn end<T>(self, inner: MutexGuard<'_, T>) -> Errand {
        drop(inner);
        self.carry_out()
    }
}
