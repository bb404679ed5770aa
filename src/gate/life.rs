//! The gate over its lifetime: another limit, an end, and what it says about itself.
#![forbid(unsafe_code)]

use super::child_life::TakenOut;
use super::{Errand, Gate, GateStats, Inner, Ledger, Tally, Work};
use crate::permits::state::Duty;
use crate::sync::Unparker;
use std::fmt;
use std::time::Instant;

impl<T: Work, L: Ledger> Gate<T, L> {
    /// Who answers for queued tasks.
    pub(crate) fn ledger(&self) -> &L {
        &self.ledger
    }

    /// Changes the limit (T8). Returns at once, whatever runs.
    pub(crate) fn set_limit(&self, limit: usize) -> Errand {
        let mut inner = self.inner.lock();
        let by = limit as i64 - inner.limit as i64;
        inner.limit = limit;
        self.seen.set_limit(limit);
        // At most one of the two makes the token.
        let mut duty = self.word.resize(by);
        if by < 0 && self.recall_after_change(&inner) == Duty::Attend {
            duty = Duty::Attend;
        }
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        pass.carry_out()
    }

    pub(crate) fn limit(&self) -> usize {
        self.inner.lock().limit
    }

    /// Accepts nothing new from now on (T9).
    pub(crate) fn close(&self) -> Errand {
        let mut inner = self.inner.lock();
        self.word.close();
        self.shut_intake(&mut inner);
        let duty = self.recall_after_change(&inner);
        self.tell_if_quiet(&inner);
        let pass = self.pass_on(duty, &mut inner);
        drop(inner);
        pass.carry_out()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.word.peek().is_closed()
    }

    /// Closes, and empties the line and those of all children: the tasks come out, the waiters find their place
    /// gone.
    pub(crate) fn close_and_take(&self) -> Vec<TakenOut<T>> {
        let mut inner = self.inner.lock();
        self.word.close();
        self.shut_intake(&mut inner);
        let had_tasks = inner.line.tasks() > 0;
        let mut tasks = Vec::with_capacity(inner.line.tasks());
        let mut signals = Vec::new();
        let mut token = Duty::Nothing;
        while let Some((mut entry, _)) = inner.line.pop() {
            if let Some(waiting) = entry.waiting() {
                if waiting.has_token {
                    token = Duty::Attend;
                }
                signals.push(waiting.signal.clone());
            }
            tasks.extend(entry.into_task().map(|task| (None, task)));
        }
        inner.tally.unrun += tasks.len() as u64;
        self.empty(&mut inner, None, &mut tasks, &mut signals, &mut token);
        self.word.clear_line();
        if token == Duty::Attend {
            self.word.stand_down();
        }
        // Nothing waits any more, so this makes no token.
        let _nothing = self.recall_after_change(&inner);
        if had_tasks {
            self.ledger.settle();
        }
        // Children may be quiet by this, whatever runs at the root.
        self.quiet.notify_all();
        drop(inner);
        signals.iter().for_each(Unparker::unpark);
        tasks
    }

    fn is_quiet(&self, inner: &Inner<T>) -> bool {
        let is_empty = inner.line.len() == 0 && inner.below.is_empty();
        is_empty && self.word.observe().free() as i64 == inner.limit as i64
    }

    pub(super) fn tell_if_quiet(&self, inner: &Inner<T>) {
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
                return Err(self.count_left(&mut inner));
            }
            inner = self.quiet.wait_until(inner, deadline);
        }
    }

    /// The gate in numbers.
    pub(crate) fn stats(&self) -> GateStats {
        self.count(&self.inner.lock())
    }

    /// The same with what waits in children, which a drain waits for too.
    pub(crate) fn left(&self) -> GateStats {
        self.count_left(&mut self.inner.lock())
    }

    fn count_left(&self, inner: &mut Inner<T>) -> GateStats {
        self.count(inner).and(inner.below.count_waiting(None))
    }

    fn count(&self, inner: &Inner<T>) -> GateStats {
        // A lease that nobody uses is a free permit for whoever asks.
        let idle = self.slots.iter().filter(|slot| slot.lease.is_idle()).count() as i64;
        let limit = inner.limit as i64;
        let (taken_in, accepted) = self.count_intake();
        let free = (i64::from(self.word.observe().free()) + idle).min(limit);
        GateStats {
            limit: inner.limit,
            taken: (limit - free) as usize,
            free: free.max(0) as usize,
            tasks: inner.line.tasks() + taken_in,
            waiters: inner.line.waiters(),
            tally: Tally { accepted, ..inner.tally },
        }
    }
}

impl<T: Work, L> fmt::Debug for Gate<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("word", &self.word).finish_non_exhaustive()
    }
}
