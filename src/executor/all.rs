//! Fan-out: many tasks at once, and all of their results.
#![forbid(unsafe_code)]

use super::Executor;
use crate::counters::Kind;
use crate::error::{JoinError, Reason, Rejected};
use crate::scope::{Kept, Scope, ScopedCell, hold};
use crate::sync::Arc;
use crate::task::cell::Runnable;
use crate::task::context::{Id, Standing};
use crate::task::unwind::drop_quietly;
use std::panic::resume_unwind;

/// The tasks of one call, in order.
type Cells<F, R> = Vec<Arc<ScopedCell<F, R>>>;

impl Executor {
    /// Runs all of `tasks`, which may borrow, and returns their results in order. A single one is
    /// [`run`](Self::run).
    ///
    /// All but the last are queued together. The last runs here, as [`run`](Self::run) would run it: with no
    /// permit free, this thread waits its turn, with a place in the queue before those. Then this thread runs those
    /// of its own that have not started, each in its turn (inside a task of the executor at once), never a
    /// stranger's, and waits for the others. So tasks run together, as far as the limit lets them, and a free
    /// permit is never left to the arrival of a worker.
    ///
    /// *No room.* Tasks that the queue refuses run here, before the last, each as `run` would run it: the queue's
    /// capacity bounds how many run beside this thread, not how many there may be.
    ///
    /// *Closing* (the idea of one admission for a whole batch is Open Liberty's `invokeAll`). All tasks are
    /// accepted with the first: after a [`close`](Self::close) in between, all of them run, also those that the
    /// queue had refused. A [`shutdown_now`](Self::shutdown_now) in between takes out those that have not started.
    ///
    /// # Errors
    /// The tasks that did not run come back, in order. All of them, before anything ran:
    /// [`Reason::Closed`], [`Reason::NotFit`] on a thread that is not [fit](crate::fitness), or
    /// [`Reason::Deadlock`] when this thread itself holds all the permits as guards. Some
    /// of them: [`Reason::Closed`] after a [`shutdown_now`](Self::shutdown_now) in between; then those that had
    /// started have run to their end, and their results are dropped. (A limit that is lowered in between to what
    /// this thread holds as guards does the same with [`Reason::Deadlock`].)
    ///
    /// # Panics
    /// When all tasks have ended, with the panic of the first in order that panicked. The results of the others
    /// are dropped. A panic of the iterator goes on before anything ran.
    ///
    /// ```
    /// let exec = work_permit::Pool::global().executor("sums").limit(4).build()?;
    /// let numbers: Vec<u64> = (1..=1000).collect();
    /// let sums = exec.run_all(numbers.chunks(250).map(|part| || part.iter().sum::<u64>())).unwrap();
    /// assert_eq!(sums, [31375, 93875, 156375, 218875]);
    /// # Ok::<(), work_permit::ConfigError>(())
    /// ```
    pub fn run_all<F, R>(
        &self,
        tasks: impl IntoIterator<Item = F>,
    ) -> Result<Vec<R>, Rejected<Vec<F>>>
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        let mut tasks: Vec<F> = tasks.into_iter().collect();
        if tasks.len() > 1 {
            return self.run_batch(tasks);
        }
        let Some(only) = tasks.pop() else {
            return Ok(Vec::new());
        };
        self.run(only).map(|value| vec![value]).map_err(|rejected| {
            let reason = rejected.reason();
            Rejected::new(vec![rejected.into_task()], reason)
        })
    }

    fn run_batch<F, R>(&self, tasks: Vec<F>) -> Result<Vec<R>, Rejected<Vec<F>>>
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        if self.engine().standing() == Standing::Unfit {
            return Err(self.reject(tasks, Reason::NotFit));
        }
        let held = hold(self, |scope| {
            let cell = |task| Arc::new(ScopedCell::kept(task, Arc::clone(scope.frame())));
            let cells: Cells<F, R> = tasks.into_iter().map(cell).collect();
            let refused = self.start_all(scope, &cells);
            (cells, refused)
        });
        match held.result {
            Ok((cells, refused)) => {
                let stuck = if held.stuck > 0 { Reason::Deadlock } else { Reason::Closed };
                self.collect(cells, refused.unwrap_or(stuck))
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Queues all but the last and runs the rest here. `Some`: it may not run, or not all of it.
    fn start_all<'scope, F, R>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        cells: &[Arc<ScopedCell<F, R>>],
    ) -> Option<Reason>
    where
        F: FnOnce() -> R + Send + 'scope,
        R: Send + 'scope,
    {
        let engine = self.engine();
        let (_last, others) = cells.split_last()?;
        let queue = || {
            let others = others.iter().map(|cell| Arc::clone(cell) as Arc<dyn Runnable + 'scope>);
            scope.queue_many(others.collect())
        };
        let is_nested = engine.standing() == Standing::Inside;
        let mut queued = None;
        if !is_nested {
            // From here on a permit or a place in the line is ours until the last of these has run: it is that
            // which makes all of them accepted.
            if let Err(reason) = engine.permit_in_turn(|| queued = Some(queue())) {
                return Some(reason);
            }
        }
        let queued = queued.unwrap_or_else(queue);
        let kind = if is_nested { Kind::Nested } else { Kind::Inline };
        for (n, cell) in cells[queued..].iter().enumerate() {
            if n > 0 && !is_nested {
                if let Err(reason) = engine.go_behind() {
                    return Some(reason);
                }
            }
            cell.run_here(&|body| engine.run_here(kind, Id::NONE, body));
        }
        if !is_nested {
            engine.give_back_run();
        }
        None
    }

    /// What came of all tasks, when each has ended or never will.
    fn collect<F, R>(&self, cells: Cells<F, R>, reason: Reason) -> Result<Vec<R>, Rejected<Vec<F>>>
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        let mut results = Vec::with_capacity(cells.len());
        let mut unrun = Vec::new();
        let mut panic = None;
        for cell in cells {
            match cell.open() {
                Kept::Unrun(task) => unrun.push(task),
                Kept::Ran(Ok(value)) => results.push(value),
                Kept::Ran(Err(JoinError::Panicked(first))) if panic.is_none() => {
                    panic = Some(first);
                }
                Kept::Ran(Err(error)) => drop_quietly(error),
            }
        }
        if let Some(panic) = panic {
            results.into_iter().for_each(drop_quietly);
            unrun.into_iter().for_each(drop_quietly);
            resume_unwind(panic.into_payload());
        }
        if unrun.is_empty() {
            return Ok(results);
        }
        results.into_iter().for_each(drop_quietly);
        Err(self.reject(unrun, reason))
    }
}
