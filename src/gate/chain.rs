//! How the lines of a tree hang together, and how one permit of each level is handed over.
//!
//! A child with a token (I5) stands in the line of its parent, once, whatever its own line holds: that entry *is* its
//! token. So whoever waits in a child is served when the entries that stand for him have come to the head of every
//! line above: [`Inner::first`]. The root's token goes to him, or to a worker for him, as the root's own token does.
//!
//! | event at a child | its word | its entry in the parent's line |
//! |---|---|---|
//! | something comes, a permit comes back, the limit is raised | makes a token: `Attend` | is put there, which is an arrival at the parent: [`Gate::attend`] |
//! | the head is served | T10, then T11: the token goes on or ends | goes to the end, or is gone: [`Gate::commit`]. So siblings take turns |
//! | no permit is free when its turn comes | T12 ends the token | is taken out: [`Gate::withdraw`] |
//! | the line runs empty | T7, then T5 ends the token | is taken out |
//!
//! Between the step of the word and the lock the token is in the hand of one thread, which will come and look.
//!
//! *All or none.* With the root's permit in hand, a permit is reserved at every level down to the one who is served.
//! Where one has none to give, those above it are undone (T2 makes no second token while there is one), its entry
//! goes, and whoever is first then is looked at. Nobody waits with a permit in his hand, so no two wait for each
//! other's.
//!
//! *Nested waiters.* A thread inside of a task of the parent waits for the child's permit alone, at the front of the
//! child's line. Who stands behind may need the very permit that this thread holds. The child's token goes to him
//! directly, and the child leaves its parent's line for as long. Where he needs permits of several levels he gets all
//! or none, too: see [`super::nested`].
#![forbid(unsafe_code)]

use super::below::Kin;
use super::{Claim, Gate, Hand, Inner, Ledger, Onward, Pass, Work};
use crate::line::{Entry, Index};
use crate::permits::state::Duty;
use crate::permits::word::PermitWord;
use crate::sync::MutexGuard;

impl<T: Work, L: Ledger> Gate<T, L> {
    /// The caller has the token of a child: it goes where it belongs. Says what that makes of the root's token.
    pub(super) fn attend(&self, inner: &mut Inner<T>, kin: &T::Kin) -> Duty {
        match inner.below.find(kin) {
            Some(at) => self.attend_at(inner, at),
            None => {
                kin.level().word.stand_down();
                Duty::Nothing
            }
        }
    }

    /// As [`attend`](Self::attend), of a child that is in the tree.
    pub(super) fn attend_at(&self, inner: &mut Inner<T>, mut at: Index) -> Duty {
        loop {
            let node = inner.below.node(at);
            match node.line.head() {
                None => {
                    node.word().stand_down();
                    return Duty::Nothing;
                }
                Some((_, Entry::Nested(waiting, _))) => {
                    waiting.has_token = true;
                    waiting.signal.unpark();
                    return Duty::Nothing;
                }
                Some(_) => {}
            }
            self.stand_for(inner, at);
            match inner.below.node(at).parent {
                None => return self.line_up(inner),
                Some(parent) => {
                    if inner.below.node(parent).word().line_up() == Duty::Nothing {
                        return Duty::Nothing;
                    }
                    at = parent;
                }
            }
        }
    }

    /// Puts the child at the end of its parent's line.
    fn stand_for(&self, inner: &mut Inner<T>, at: Index) {
        let ticket = match inner.below.node(at).parent {
            None => self.stand_for_child(inner, at),
            Some(parent) => {
                let ticket = inner.below.ticket();
                inner.below.node(parent).line.push(ticket, Entry::Child(at), 0);
                ticket
            }
        };
        let before = inner.below.node(at).place.replace(ticket);
        debug_assert!(before.is_none(), "one token, one place");
    }

    /// The child's token is not in its parent's line any more: its entry goes. A parent whose line is empty by that
    /// has no use for its own token either.
    pub(super) fn withdraw(&self, inner: &mut Inner<T>, at: Index) {
        let mut next = Some(at);
        while let Some(at) = next {
            let node = inner.below.node(at);
            let parent = node.parent;
            let Some(place) = node.place.take() else {
                return; // The token is in somebody's hand, who will find the line as it is.
            };
            let line = inner.line_of(parent);
            line.remove(place);
            if line.len() > 0 {
                return;
            }
            let Some(parent) = parent else {
                self.word.clear_line();
                return;
            };
            let node = inner.below.node(parent);
            node.word().clear_line();
            if node.place.is_some() {
                node.word().stand_down();
            }
            next = Some(parent);
        }
    }

    /// Something left the line of a child otherwise than by its turn.
    pub(super) fn after_removal_below(&self, inner: &mut Inner<T>, at: Index) {
        let node = inner.below.node(at);
        if node.line.len() > 0 {
            return;
        }
        node.word().clear_line();
        if node.place.is_some() {
            node.word().stand_down();
            self.withdraw(inner, at);
        }
        self.leave_below(inner, at);
    }

    /// Takes the node out if it is idle, and tells those who wait for that.
    pub(super) fn leave_below(&self, inner: &mut Inner<T>, at: Index) {
        let kin = inner.below.node(at).kin.clone();
        if inner.below.leave(at) && self.is_any_closed(&kin) {
            self.quiet.notify_all();
        }
    }

    /// Reserves a permit of each level from the root's head down to the one who is first, the root's left out.
    /// `false`: one has none, and its entry is gone.
    pub(super) fn reserve_below(&self, inner: &mut Inner<T>) -> bool {
        let mut reserved = None;
        while let Some((_, Entry::Child(next))) = inner.line_of(reserved).head() {
            let next = *next;
            if inner.below.node(next).word().reserve() {
                reserved = Some(next);
                continue;
            }
            while let Some(at) = reserved {
                let node = inner.below.node(at);
                undo_reserve(node.word());
                reserved = node.parent;
            }
            if inner.below.node(next).word().end_if_saturated() {
                self.withdraw(inner, next);
            }
            return false;
        }
        true
    }

    /// Takes the first one out, for whom a permit of each level was reserved. Children that have more to start go
    /// to the end of their parents' lines.
    pub(super) fn commit(&self, inner: &mut Inner<T>, end: Index) -> (T::Kin, Entry<T>, u64) {
        let node = inner.below.node(end);
        let kin = node.kin.clone();
        // Who waits for it in front of it, or further up, keeps it from being first.
        debug_assert_eq!(node.pins, 0, "a nested waiter was overtaken");
        let Some((entry, came_ns)) = node.line.pop() else {
            unreachable!("the end of the chain was looked at under the same lock");
        };
        if entry.is_task() && node.line.tasks() == 0 {
            self.ledger.settle();
        }
        let mut next = Some(end);
        while let Some(at) = next {
            let node = inner.below.node(at);
            let more = node.line.len() > 0;
            let goes_on = node.word().served(more, true) == Duty::Attend;
            node.place = None;
            next = node.parent;
            let popped = inner.line_of(next).pop();
            debug_assert!(matches!(popped, Some((Entry::Child(head), _)) if head == at));
            if goes_on {
                self.stand_for(inner, at);
            }
        }
        self.leave_below(inner, end);
        (kin, entry, came_ns)
    }

    /// The root's permit is in the caller's hand, and a child is the root's head: a task of the tree, with a permit
    /// of each level below. `None`: that is not so any more, or a waiter is first.
    fn take_below(&self, inner: &mut Inner<T>) -> Option<(T::Kin, T, u64)> {
        while let Some(end) = inner.end_of_chain() {
            match inner.below.node(end).line.head() {
                Some((_, Entry::Task(_))) => {}
                _ => return None,
            }
            if self.reserve_below(inner) {
                let (kin, entry, came_ns) = self.commit(inner, end);
                return entry.into_task().map(|task| (kin, task, came_ns));
            }
        }
        None
    }

    /// A worker comes with the root's token, and a child is the root's head. `Err`: it is not any more.
    #[cold]
    pub(super) fn claim_below<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner<T>>,
    ) -> Result<Claim<T>, MutexGuard<'a, Inner<T>>> {
        loop {
            if self.word.reserve() {
                break;
            }
            if self.word.end_if_saturated() {
                return Ok(Claim::Nothing);
            }
        }
        match self.take_below(&mut inner) {
            Some((kin, task, came_ns)) => {
                let more = inner.line.len() > 0;
                let duty = self.word.served(more, true);
                let pass = self.pass_on(duty, &mut inner);
                drop(inner);
                Ok(Claim::Below(kin, task, came_ns, pass.carry_out()))
            }
            None => {
                undo_reserve(&self.word);
                if !inner.line.is_headed_by_child() {
                    return Err(inner);
                }
                let pass = self.pass_on(Duty::Attend, &mut inner);
                drop(inner);
                pass.carry_out_for_waiter();
                Ok(Claim::Nothing)
            }
        }
    }

    /// A worker goes on under the root's permit (T6), and a child is the root's head.
    #[cold]
    pub(super) fn hand_on_below(
        &self,
        mut inner: MutexGuard<'_, Inner<T>>,
        hand: &mut Hand<T>,
    ) -> Onward {
        if self.word.peek().free() < 0 {
            return Onward::Stop;
        }
        let taken = self.take_below(&mut inner);
        let mut token_ended = false;
        if taken.is_some() {
            let more = inner.line.len() > 0;
            let is_ours = self.word.hand_on(more);
            debug_assert!(is_ours, "only the limit makes it less than 0, under this lock");
            // This worker has just made the token itself, with what he takes now: nobody need come for it.
            token_ended = !more && std::mem::take(&mut inner.token_at_pool);
            if token_ended {
                self.word.stand_down();
            }
        }
        let pass = self.pass_on_or_over(Duty::Nothing, &mut inner);
        drop(inner);
        pass.carry_out_for_waiter();
        match taken {
            None => Onward::Stop,
            Some((kin, task, came_ns)) => {
                *hand = Hand::of(Some(kin), task, came_ns);
                if token_ended { Onward::GoLast } else { Onward::Go }
            }
        }
    }
}

/// A permit was reserved for nothing, by this thread under this lock. It was free before, so by I1 whoever waits has a
/// token, and that ends under the lock alone: T2 makes none. Nor did anybody look meanwhile who waits for the quiet.
pub(super) fn undo_reserve(word: &PermitWord) {
    let (_nothing, _) = word.give();
    debug_assert_eq!(_nothing, Duty::Nothing, "a second token");
}

impl Pass {
    /// It goes to a waiter, if anywhere.
    pub(super) fn carry_out_for_waiter(self) {
        match self.carry_out() {
            super::Errand::Nothing => {}
            super::Errand::SendWorker => unreachable!("a waiter is first, or nobody"),
        }
    }
}
