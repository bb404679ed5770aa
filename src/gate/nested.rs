//! Nested waiters: a thread that has the permits of the levels above waits for those of the levels below alone, at the
//! front of their lines. See [`super::chain`].
//!
//! *All or none.* He stands in one line at a time, with no permit of any of these levels in his hand. When that level
//! has one for him he takes it with those of all others, or else none, and goes to the front of the line of the level
//! where one is missing, in the same step: so from his arrival to his end he is somewhere in the tree, and nobody
//! goes without a permit that he cannot use. He does not go ahead of another nested waiter who stands at such a level.
//!
//! His [`Aim`] is the lowest level, which he keeps in the tree from afar (`pins`): who drains it waits for him, who
//! shuts it down turns him away, and who takes the task out that he joins tells him, wherever he stands.
#![forbid(unsafe_code)]

use super::below::Kin;
use super::chain::undo_reserve;
use super::{Ask, Errand, Gate, Inner, Ledger, Step, Turn, Work};
use crate::line::{Aim, Entry, Index, Ticket, Waiting};
use crate::permits::state::Duty;
use crate::sync::{MutexGuard, Unparker};
use std::mem;

impl<T: Work, L: Ledger> Gate<T, L> {
    /// Takes a place at the front of the line of the lowest of `levels`, behind others of the kind, to come to have a
    /// permit of each. `None`: one of these is closed itself, and this is new work; or the task is gone.
    pub(crate) fn arrive_nested(
        &self,
        levels: &[&T::Kin],
        signal: &Unparker,
        ask: Ask,
        came_ns: u64,
    ) -> Option<(Ticket, Errand)> {
        let mut inner = self.inner.lock();
        let target = levels[0];
        let aim = match ask {
            Ask::New if levels.iter().any(|kin| kin.level().is_closed()) => return None,
            Ask::New => Aim { child: inner.below.enter(target), task: None },
            Ask::Task(task) => Aim { child: inner.find_task(target, task)?, task: Some(task) },
        };
        inner.below.node(aim.child).pins += 1;
        let waiting = Waiting { signal: signal.clone(), has_token: false };
        let entry = Entry::Nested(waiting, aim);
        let ticket = self.put_in_front(&mut inner, aim.child, entry, came_ns);
        let errand = self.pass_on_or_over(Duty::Nothing, &mut inner).end(inner);
        Some((ticket, errand))
    }

    fn put_in_front(
        &self,
        inner: &mut Inner<T>,
        at: Index,
        entry: Entry<T>,
        came_ns: u64,
    ) -> Ticket {
        let ticket = inner.below.ticket_of_front();
        let node = inner.below.node(at);
        node.line.push_to_front(ticket, entry, came_ns);
        let stood = node.place.is_some();
        let mut duty = node.word().line_up();
        if stood {
            // What stood for the line so far is the token of whoever is at its front now.
            self.withdraw(inner, at);
            duty = Duty::Attend;
        }
        if duty == Duty::Attend {
            let _nothing = self.attend_at(inner, at);
            debug_assert_eq!(_nothing, Duty::Nothing, "it goes to a nested waiter");
        }
        ticket
    }

    /// As [`turn`](Self::turn), for a nested waiter who needs a permit of each of `levels`, the lowest first, and stands
    /// in the line of that at `at`.
    pub(crate) fn turn_nested(
        &self,
        levels: &[&T::Kin],
        at: usize,
        ticket: Ticket,
        leave: bool,
    ) -> Step<T> {
        let mut inner = self.inner.lock();
        let Some(index) = inner.below.find(levels[at]) else {
            return Step::Turn(Turn::Gone);
        };
        let Some(Entry::Nested(waiting, aim)) = inner.below.node(index).line.get(ticket) else {
            return Step::Turn(Turn::Gone);
        };
        let (mut has_token, aim) = (mem::take(&mut waiting.has_token), *aim);
        let is_over = aim.task.is_some_and(|task| !inner.has_task(aim.child, task));
        let word = &levels[at].level().word;
        let line = &mut inner.below.node(index).line;
        while !is_over && line.head().is_some_and(|(head, _)| head == ticket) {
            if word.reserve() {
                return self.reserved_nested(inner, levels, at, has_token);
            }
            if !has_token || word.end_if_saturated() {
                has_token = false;
                break;
            }
        }
        if leave || is_over {
            self.give_up_nested(&mut inner, index, ticket, aim.child);
        }
        let duty = if has_token { Duty::Attend } else { Duty::Nothing };
        Step::Turn(match self.settle_below(&mut inner, levels[at], duty).end(inner) {
            Errand::Nothing if is_over => Turn::Gone,
            Errand::Nothing if !leave => Turn::Wait,
            errand if leave && !is_over => Turn::Left(errand),
            // Where it is over the next look says so.
            errand => Turn::Sent(errand),
        })
    }

    /// The head of the line at `at` has the permit of that level. With those of all others it is granted; else he goes
    /// where one is missing, with nothing in his hand.
    fn reserved_nested(
        &self,
        mut inner: MutexGuard<'_, Inner<T>>,
        levels: &[&T::Kin],
        at: usize,
        has_token: bool,
    ) -> Step<T> {
        let kin = levels[at];
        let missing = self.reserve_beside(&mut inner, levels, at);
        let index = inner.below.enter(kin);
        let node = inner.below.node(index);
        let Some((entry @ Entry::Nested(_, aim), came_ns)) = node.line.pop() else {
            unreachable!("the head was looked at under the same lock");
        };
        let more = node.line.len() > 0;
        let Some(missing) = missing else {
            let duty = node.word().served(more, has_token);
            self.unpin(&mut inner, aim.child);
            let errand = self.settle_below(&mut inner, kin, duty).end(inner);
            return Step::Turn(Turn::Granted { task: None, came_ns, errand });
        };
        undo_reserve(&kin.level().word);
        if !more {
            kin.level().word.clear_line();
        }
        let there = inner.below.enter(levels[missing]);
        let ticket = self.put_in_front(&mut inner, there, entry, came_ns);
        let duty = if has_token { Duty::Attend } else { Duty::Nothing };
        let errand = self.settle_below(&mut inner, kin, duty).end(inner);
        Step::Moved(missing, ticket, errand)
    }

    /// A permit of each of `levels` but that at `at`. `Some`: this one has none, or a nested waiter who came before,
    /// and nothing is taken.
    fn reserve_beside(&self, inner: &mut Inner<T>, levels: &[&T::Kin], at: usize) -> Option<usize> {
        for n in (0..levels.len()).rev().filter(|&n| n != at) {
            let there = inner.below.enter(levels[n]);
            let head = inner.below.node(there).line.head();
            let is_free = !matches!(head, Some((_, Entry::Nested(..))));
            if is_free && levels[n].level().word.reserve() {
                continue;
            }
            let taken = (n + 1..levels.len()).filter(|&n| n != at);
            taken.for_each(|n| undo_reserve(&levels[n].level().word));
            return Some(n);
        }
        None
    }

    fn give_up_nested(&self, inner: &mut Inner<T>, at: Index, ticket: Ticket, aim: Index) {
        let node = inner.below.node(at);
        node.line.remove(ticket);
        if node.line.len() == 0 {
            node.word().clear_line();
        }
        self.unpin(inner, aim);
    }

    /// A waiter has it for his aim no more: it may be idle by that, and with it those above.
    fn unpin(&self, inner: &mut Inner<T>, aim: Index) {
        inner.below.node(aim).pins -= 1;
        self.leave_below(inner, aim);
    }

    /// `child` is shut down: those who wait further up on their way to it, or to one below it, lose their places.
    /// The tokens that they had, one of each of these levels, are the caller's.
    pub(super) fn turn_away(
        &self,
        inner: &mut Inner<T>,
        child: Index,
        signals: &mut Vec<Unparker>,
    ) -> Vec<Index> {
        let mut tokens = Vec::new();
        let mut next = inner.below.node(child).parent;
        while let Some(at) = next {
            let front = inner.below.node(at).line.front().map(|(ticket, _)| ticket);
            for ticket in front.collect::<Vec<_>>() {
                let line = &mut inner.below.node(at).line;
                let Some(Entry::Nested(_, aim)) = line.get(ticket) else { continue };
                let aim = *aim;
                if !inner.below.is_below(aim.child, child) {
                    continue;
                }
                let removed = inner.below.node(at).line.remove(ticket);
                let Some((Entry::Nested(waiting, _), _)) = removed else { continue };
                if waiting.has_token {
                    tokens.push(at);
                }
                signals.push(waiting.signal);
                inner.below.node(aim.child).pins -= 1;
            }
            self.after_removal_below(inner, at);
            next = inner.below.node(at).parent;
        }
        tokens
    }
}

impl<T: Work> Inner<T> {
    /// The child that has this task in its line.
    pub(super) fn find_task(&mut self, kin: &T::Kin, task: Ticket) -> Option<Index> {
        let at = self.below.find(kin)?;
        self.has_task(at, task).then_some(at)
    }

    fn has_task(&mut self, at: Index, task: Ticket) -> bool {
        self.below.node(at).line.get(task).is_some()
    }

    /// The task has left the line of its child. Who waits to run it, there or further up, does so for nothing.
    pub(super) fn tell_nested(&mut self, child: Index, task: Ticket) {
        let mut next = Some(child);
        while let Some(at) = next {
            let node = self.below.node(at);
            for (_, entry) in node.line.front() {
                match entry {
                    Entry::Nested(waiting, aim) if aim.task == Some(task) => {
                        waiting.signal.unpark();
                    }
                    _ => {}
                }
            }
            next = node.parent;
        }
    }
}
