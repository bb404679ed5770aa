//! The engine over its lifetime: limit, numbers, end.
#![forbid(unsafe_code)]

use super::Engine;
use super::child::ALL_LEVELS;
use crate::error::{Reason, Unfinished};
use crate::gate::{Demand, GateStats, TakenOut};
use crate::pool::Member;
use crate::sync::Arc;
use crate::task::cell::{End, Task};
use crate::task::context;
use std::fmt;
use std::time::Instant;

impl Engine {
    pub(crate) fn set_limit(self: &Arc<Self>, limit: usize) {
        let errand = match self.is_child() {
            false => self.gate.set_limit(limit),
            true => self.gate.set_limit_below(self, limit),
        };
        self.carry_out(errand);
    }

    pub(crate) fn limit(&self) -> usize {
        if self.is_child() { self.level.limit() } else { self.gate.limit() }
    }

    pub(crate) fn demand(self: &Arc<Self>) -> Demand {
        if self.is_child() { self.gate.demand_below(self) } else { self.gate.demand() }
    }

    pub(crate) fn gate_stats(self: &Arc<Self>) -> GateStats {
        if self.is_child() { self.gate.stats_below(self) } else { self.gate.stats() }
    }

    /// What a drain would wait for.
    fn gate_left(self: &Arc<Self>) -> GateStats {
        if self.is_child() { self.gate.left_below(self) } else { self.gate.left() }
    }

    pub(crate) fn close(self: &Arc<Self>) {
        match self.is_child() {
            false => self.carry_out(self.gate.close()),
            true => self.gate.close_below(self),
        }
    }

    /// Closes, and empties the queue and those of all below: each task with the engine that it is of. Tasks that
    /// borrow end here: they must not come out.
    pub(crate) fn close_and_take(self: &Arc<Self>) -> Vec<(Arc<Engine>, Task)> {
        let tasks: Vec<TakenOut<Task>> = match self.is_child() {
            false => self.gate.close_and_take(),
            true => {
                let (tasks, errand) = self.gate.close_and_take_below(self);
                self.carry_out(errand);
                tasks
            }
        };
        let (here, out): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|(_, task)| task.borrows());
        here.into_iter().for_each(|(_, task)| Engine::end_task(task, End::Closed));
        let with_engine =
            |(of, task): TakenOut<Task>| (of.unwrap_or_else(|| Arc::clone(self)), task);
        out.into_iter().map(with_engine).collect()
    }

    /// This thread runs under a permit of this executor.
    pub(crate) fn is_held(self: &Arc<Self>) -> bool {
        context::is_inside(self.id()) || context::guards(self.id()) > 0
    }

    pub(crate) fn drain(self: &Arc<Self>, deadline: Option<Instant>) -> Result<(), Unfinished> {
        self.close();
        if self.is_held() {
            return Err(unfinished(self.gate_left(), Reason::Deadlock));
        }
        let wait = |deadline| match self.is_child() {
            false => self.gate.wait_quiet(deadline),
            true => self.gate.wait_quiet_below(self, deadline),
        };
        // All permits of a level above are this thread's: what is queued cannot run before it goes on. What runs has
        // its permits.
        let is_stuck = self.is_child() && self.would_deadlock_within(ALL_LEVELS);
        if is_stuck && self.gate.waits_for_all_levels(self) {
            return Err(unfinished(self.gate_left(), Reason::Deadlock));
        }
        let waited = wait(deadline);
        waited.map_err(|left| unfinished(left, Reason::TimedOut))
    }
}

fn unfinished(left: GateStats, reason: Reason) -> Unfinished {
    Unfinished { active: left.taken, queued: left.tasks + left.waiters, reason }
}

/// Of a pool; children are seen to by their roots.
impl Member for Engine {
    fn close(self: Arc<Self>) {
        Engine::close(&self);
    }

    fn wait_quiet(&self, deadline: Option<Instant>) -> Result<(), Unfinished> {
        self.gate.wait_quiet(deadline).map_err(|left| unfinished(left, Reason::TimedOut))
    }

    fn left(&self, reason: Reason) -> Unfinished {
        unfinished(self.gate.left(), reason)
    }

    fn is_held(self: Arc<Self>) -> bool {
        Engine::is_held(&self)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("settings", &self.settings)
            .field("is_child", &self.is_child())
            .finish_non_exhaustive()
    }
}
