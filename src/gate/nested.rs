//! Nested waiters: a thread that has the permits of the levels above waits for the child's alone, at the front of
//! the child's line. See [`super::chain`].
#![forbid(unsafe_code)]

use super::below::Kin;
use super::{Ask, Errand, Gate, Ledger, Turn, Work};
use crate::line::{Entry, Ticket, Waiting};
use crate::permits::state::{Duty, Serve};
use crate::sync::Unparker;

impl<T: Work, L: Ledger> Gate<T, L> {
    /// Takes a place at the front of the child's line, behind others of the kind. `None`: it is closed itself,
    /// and this is new work.
    pub(crate) fn arrive_nested(
        &self,
        kin: &T::Kin,
        signal: &Unparker,
        ask: Ask,
        came_ns: u64,
    ) -> Option<(Ticket, Errand)> {
        let mut inner = self.inner.lock();
        let word = &kin.level().word;
        if ask == Ask::New && word.peek().is_closed() {
            return None;
        }
        let at = inner.below.enter(kin);
        let ticket = inner.below.ticket_of_front();
        let waiting = Waiting { signal: signal.clone(), has_token: false };
        let node = inner.below.node(at);
        node.line.push_to_front(ticket, Entry::Nested(waiting), came_ns);
        let stood = node.place.is_some();
        let mut duty = word.line_up();
        if stood {
            // What stood for the line so far is the token of whoever is at its front now.
            self.withdraw(&mut inner, at);
            duty = Duty::Attend;
        }
        let root = if duty == Duty::Attend { self.attend(&mut inner, kin) } else { Duty::Nothing };
        let errand = self.pass_on_or_over(root, &mut inner).end(inner);
        Some((ticket, errand))
    }

    /// As [`turn`](Self::turn), for a nested waiter.
    pub(crate) fn turn_nested(&self, kin: &T::Kin, ticket: Ticket, leave: bool) -> Turn<T> {
        let mut inner = self.inner.lock();
        let Some(at) = inner.below.find(kin) else {
            return Turn::Gone;
        };
        let word = &kin.level().word;
        let line = &mut inner.below.node(at).line;
        let is_head = line.head().is_some_and(|(head, _)| head == ticket);
        let Some(waiting) = line.get(ticket).and_then(Entry::waiting) else {
            return Turn::Gone;
        };
        let mut has_token = std::mem::take(&mut waiting.has_token);
        let mut granted = None;
        if is_head {
            match word.serve(line.len() > 1, has_token) {
                Serve::Served(duty) => {
                    has_token = duty == Duty::Attend;
                    granted = line.pop().map(|(_, came_ns)| came_ns);
                }
                Serve::StoodDown => has_token = false,
            }
        }
        if granted.is_none() && leave {
            line.remove(ticket);
        }
        if granted.is_some() || leave {
            if line.len() == 0 && granted.is_none() {
                word.clear_line();
            }
            // With the token in hand the node may go first: then `attend` finds an empty line, and ends it.
            self.leave_below(&mut inner, at);
        }
        let duty = if has_token { self.attend(&mut inner, kin) } else { Duty::Nothing };
        let errand = self.pass_on_or_over(duty, &mut inner).end(inner);
        match (granted, errand) {
            (Some(came_ns), errand) => Turn::Granted { task: None, came_ns, errand },
            (None, errand) if leave => Turn::Left(errand),
            (None, Errand::Nothing) => Turn::Wait,
            (None, errand) => Turn::Sent(errand),
        }
    }
}
