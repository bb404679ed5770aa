//! A child over its lifetime: another limit, an end, and what it says about itself.
#![forbid(unsafe_code)]

use super::below::Kin;
use super::{Demand, Errand, Gate, GateStats, Inner, Ledger, Tally, Work};
use crate::counters::Books;
use crate::line::Index;
use crate::permits::state::Duty;
use crate::sync::Unparker;
use std::time::Instant;

/// A task that a shutdown took out, and the child that it is of; `None`: the root's own.
pub(crate) type TakenOut<T> = (Option<<T as Work>::Kin>, T);

impl<T: Work, L: Ledger> Gate<T, L> {
    /// Changes the child's limit (T8).
    pub(crate) fn set_limit_below(&self, kin: &T::Kin, limit: usize) -> Errand {
        let mut inner = self.inner.lock();
        let level = kin.level();
        let by = limit as i64 - level.limit() as i64;
        level.set_limit(limit);
        let duty = level.word.resize(by);
        self.settle_below(&mut inner, kin, duty).end(inner)
    }

    /// The child, and with it all below, accepts nothing new (T9).
    pub(crate) fn close_below(&self, kin: &T::Kin) {
        let inner = self.inner.lock();
        kin.level().word.close();
        self.quiet.notify_all();
        drop(inner);
    }

    /// Closes the child, and empties its line and those below it; who waits further up for one of these goes too.
    pub(crate) fn close_and_take_below(&self, kin: &T::Kin) -> (Vec<TakenOut<T>>, Errand) {
        let mut inner = self.inner.lock();
        kin.level().word.close();
        let mut tasks = Vec::new();
        let mut signals = Vec::new();
        let mut duty = Duty::Nothing;
        if let Some(at) = inner.below.find(kin) {
            let parent = inner.below.node(at).parent;
            let tokens = self.turn_away(&mut inner, at, &mut signals);
            self.empty(&mut inner, Some(at), &mut tasks, &mut signals, &mut duty);
            for at in tokens {
                if self.attend_at(&mut inner, at) == Duty::Attend {
                    duty = Duty::Attend;
                }
            }
            if let Some(parent) = parent {
                self.leave_below(&mut inner, parent);
            }
        }
        self.quiet.notify_all();
        let errand = self.pass_on_or_over(duty, &mut inner).end(inner);
        signals.iter().for_each(Unparker::unpark);
        (tasks, errand)
    }

    /// Empties the lines of `top` and of all below it; of all children with `None`. `duty`: the root's token was
    /// with one of those who waited there.
    pub(super) fn empty(
        &self,
        inner: &mut Inner<T>,
        top: Option<Index>,
        tasks: &mut Vec<TakenOut<T>>,
        signals: &mut Vec<Unparker>,
        duty: &mut Duty,
    ) {
        if let Some(top) = top {
            let node = inner.below.node(top);
            if node.place.is_some() {
                // T7, then T5: its line is as good as empty.
                node.word().clear_line();
                node.word().stand_down();
                self.withdraw(inner, top);
            }
        }
        for mut node in inner.below.remove_all(top) {
            let mut ends = node.place.is_some();
            let before = tasks.len();
            while let Some((mut entry, _)) = node.line.pop() {
                let nested = matches!(entry, crate::line::Entry::Nested(..));
                if let Some(waiting) = entry.waiting() {
                    if waiting.has_token && nested {
                        ends = true;
                    } else if waiting.has_token {
                        *duty = Duty::Attend;
                    }
                    signals.push(waiting.signal.clone());
                }
                tasks.extend(entry.into_task().map(|task| (Some(node.kin.clone()), task)));
            }
            node.kin.level().word.clear_line();
            if ends {
                node.kin.level().word.stand_down();
            }
            let unrun = tasks.len() - before;
            if unrun > 0 {
                node.kin.counters().book(Books::Unrun, unrun);
                self.ledger.settle();
            }
        }
    }

    fn is_quiet_below(&self, inner: &Inner<T>, kin: &T::Kin) -> bool {
        let level = kin.level();
        let free = level.word.observe().free();
        inner.below.find(kin).is_none() && i64::from(free) == level.limit() as i64
    }

    /// As [`wait_quiet`](Self::wait_quiet), for a closed child.
    pub(crate) fn wait_quiet_below(
        &self,
        kin: &T::Kin,
        deadline: Option<Instant>,
    ) -> Result<(), GateStats> {
        let mut inner = self.inner.lock();
        loop {
            if self.is_quiet_below(&inner, kin) {
                return Ok(());
            }
            if deadline.is_some_and(|at| at <= Instant::now()) {
                return Err(self.count_left_below(&mut inner, kin));
            }
            inner = self.quiet.wait_until(inner, deadline);
        }
    }

    /// The child in numbers.
    pub(crate) fn stats_below(&self, kin: &T::Kin) -> GateStats {
        self.count_below(&mut self.inner.lock(), kin)
    }

    /// The same with what waits further down, which a drain waits for too.
    pub(crate) fn left_below(&self, kin: &T::Kin) -> GateStats {
        self.count_left_below(&mut self.inner.lock(), kin)
    }

    /// Something waits in the child, or below it, that needs a permit of every level.
    pub(crate) fn waits_for_all_levels(&self, kin: &T::Kin) -> bool {
        let mut inner = self.inner.lock();
        let at = inner.below.find(kin);
        at.is_some_and(|at| inner.below.waits_for_all_levels(at))
    }

    fn count_left_below(&self, inner: &mut Inner<T>, kin: &T::Kin) -> GateStats {
        let left = self.count_below(inner, kin);
        match inner.below.find(kin) {
            Some(at) => left.and(inner.below.count_waiting(Some(at))),
            None => left,
        }
    }

    fn count_below(&self, inner: &mut Inner<T>, kin: &T::Kin) -> GateStats {
        let level = kin.level();
        let limit = level.limit() as i64;
        let free = i64::from(level.word.observe().free()).min(limit);
        let at = inner.below.find(kin);
        let (tasks, waiters) = at.map_or((0, 0), |at| {
            let node = inner.below.node(at);
            (node.line.tasks(), node.waiters())
        });
        let booked = |book| kin.counters().booked(book);
        let (cancelled, unrun) = (booked(Books::Cancelled), booked(Books::Unrun));
        GateStats {
            limit: limit as usize,
            taken: (limit - free) as usize,
            free: free.max(0) as usize,
            tasks,
            waiters,
            tally: Tally { accepted: booked(Books::Accepted), ran: 0, cancelled, unrun },
        }
    }

    /// As [`demand`](Self::demand), for a child: at limit 0 when one above it is.
    pub(crate) fn demand_below(&self, kin: &T::Kin) -> Demand {
        let root = self.demand();
        let level = kin.level();
        let state = level.word.peek();
        let mut limit = level.limit() as u64;
        let taken = (limit as i64 - i64::from(state.free())).max(0) as u64;
        let asked = taken + if state.is_waiting() { self.waiting_below(kin) } else { 0 };
        let (mut next, mut closed) = (Some(kin), root.closed);
        while let Some(kin) = next {
            closed |= kin.level().word.peek().is_closed();
            limit = if kin.level().limit() == 0 { 0 } else { limit };
            next = kin.parent();
        }
        Demand { limit: if root.limit == 0 { 0 } else { limit }, asked, closed }
    }

    fn waiting_below(&self, kin: &T::Kin) -> u64 {
        let mut inner = self.inner.lock();
        let at = inner.below.find(kin);
        at.map_or(0, |at| inner.below.node(at).line.len() as u64)
    }
}
