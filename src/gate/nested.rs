//! Nested waiters: a thread that has the permits of the levels above waits for those of the levels below alone, at the
//! front of their lines. See [`super::chain`].
//!
//! He takes the permits from the highest down, and stands in one line at a time. With the permit of one level he goes
//! on to the line of the next in the same step, so from his arrival to his end he is somewhere in the tree. His [`Aim`]
//! is the lowest level, which he keeps in the tree from afar (`pins`): who drains it waits for him, who shuts it down
//! turns him away, and who takes the task out that he joins tells him, wherever he stands.
#![forbid(unsafe_code)]

use super::below::Kin;
use super::{Ask, Errand, Gate, Inner, Ledger, Step, Turn, Work};
use crate::line::{Aim, Entry, Index, Ticket, Waiting};
use crate::permits::state::{Duty, Serve};
use crate::sync::{MutexGuard, Unparker};
use std::{mem, ptr};

impl<T: Work, L: Ledger> Gate<T, L> {
    /// Takes a place at the front of the line of `top`, behind others of the kind, to come to have the permits of
    /// all levels down to `target`. `None`: one of these is closed itself, and this is new work; or the task is gone.
    pub(crate) fn arrive_nested(
        &self,
        top: &T::Kin,
        target: &T::Kin,
        signal: &Unparker,
        ask: Ask,
        came_ns: u64,
    ) -> Option<(Ticket, Errand)> {
        let mut inner = self.inner.lock();
        let aim = match ask {
            Ask::New if is_closed_between(top, target) => return None,
            Ask::New => Aim { child: inner.below.enter(target), task: None },
            Ask::Task(task) => Aim { child: inner.find_task(target, task)?, task: Some(task) },
        };
        inner.below.node(aim.child).pins += 1;
        let at = inner.below.enter(top);
        let waiting = Waiting { signal: signal.clone(), has_token: false };
        let ticket = self.put_in_front(&mut inner, at, Entry::Nested(waiting, aim), came_ns);
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

    /// As [`turn`](Self::turn), for a nested waiter who stands in the line of `kin`.
    pub(crate) fn turn_nested(&self, kin: &T::Kin, ticket: Ticket, leave: bool) -> Step<T> {
        let mut inner = self.inner.lock();
        let Some(at) = inner.below.find(kin) else {
            return Step::Turn(Turn::Gone);
        };
        let Some(Entry::Nested(waiting, aim)) = inner.below.node(at).line.get(ticket) else {
            return Step::Turn(Turn::Gone);
        };
        let (mut has_token, aim) = (mem::take(&mut waiting.has_token), *aim);
        let is_over = aim.task.is_some_and(|task| !inner.has_task(aim.child, task));
        let line = &mut inner.below.node(at).line;
        if !is_over && line.head().is_some_and(|(head, _)| head == ticket) {
            match kin.level().word.serve(line.len() > 1, has_token) {
                Serve::Served(duty) => return self.granted_nested(inner, kin, duty),
                Serve::StoodDown => has_token = false,
            }
        }
        if leave || is_over {
            self.give_up_nested(&mut inner, at, ticket, aim.child);
        }
        let duty = if has_token { Duty::Attend } else { Duty::Nothing };
        Step::Turn(match self.pass_on_nested(inner, kin, duty) {
            Errand::Nothing if is_over => Turn::Gone,
            Errand::Nothing if !leave => Turn::Wait,
            errand if leave && !is_over => Turn::Left(errand),
            // Where it is over the next look says so.
            errand => Turn::Sent(errand),
        })
    }

    /// The head has the permit of `kin`. It was the last one for him, or he goes on.
    fn granted_nested(
        &self,
        mut inner: MutexGuard<'_, Inner<T>>,
        kin: &T::Kin,
        duty: Duty,
    ) -> Step<T> {
        let at = inner.below.enter(kin);
        let Some((entry @ Entry::Nested(_, aim), came_ns)) = inner.below.node(at).line.pop() else {
            unreachable!("the head was looked at under the same lock");
        };
        if at == aim.child {
            self.unpin(&mut inner, at);
            let errand = self.pass_on_nested(inner, kin, duty);
            return Step::Turn(Turn::Granted { task: None, came_ns, errand });
        }
        let next = inner.below.step_down(at, aim.child);
        let ticket = self.put_in_front(&mut inner, next, entry, came_ns);
        Step::Down(ticket, self.pass_on_nested(inner, kin, duty))
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

    /// With `duty` the token of `kin` goes on. Its node may have gone by then: that ends the token.
    fn pass_on_nested(
        &self,
        mut inner: MutexGuard<'_, Inner<T>>,
        kin: &T::Kin,
        duty: Duty,
    ) -> Errand {
        let root = if duty == Duty::Attend { self.attend(&mut inner, kin) } else { Duty::Nothing };
        self.pass_on_or_over(root, &mut inner).end(inner)
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

/// `target`, or one above it up to `top`, accepts nothing new.
fn is_closed_between<K: Kin>(top: &K, target: &K) -> bool {
    let mut next = Some(target);
    while let Some(kin) = next {
        if kin.level().is_closed() {
            return true;
        }
        if ptr::eq(kin.level(), top.level()) {
            return false;
        }
        next = kin.parent();
    }
    false
}
