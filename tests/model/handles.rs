//! The verbs of handles, and the ends of executors.
#![forbid(unsafe_code)]

use crate::driver::Driver;
use crate::jobs::{Id, Kind, Product, quietly};
use crate::ops::{HandleOp, Wait};
use crate::reference::{End, Entry, Fate};
use crate::support::until;
use crate::tally;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use work_permit::{JoinError, JoinHandle, Reason};

const SHORT: Duration = Duration::from_millis(1);

/// What will come of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    /// It has ended.
    Ready(End),
    /// It runs here: under the permit of a task around, or under one of its own.
    Here {
        is_nested: bool,
    },
    /// Its gate and all others are opened first; it runs here or on a worker.
    Opened,
    Deadlock,
    /// The handle comes back.
    NotYet,
    /// It would wait for ever: the driver does not call.
    Never,
}

impl Driver<'_> {
    pub(crate) fn handle(&mut self, op: HandleOp, which: usize) {
        if self.handles.is_empty() {
            return;
        }
        let which = which % self.handles.len();
        match op {
            HandleOp::Cancel => self.cancel(which),
            HandleOp::Join(wait) => self.join(which, wait),
            HandleOp::Poll => self.poll(which),
            HandleOp::Drop => {
                let (_, handle) = self.handles.swap_remove(which);
                drop(handle);
            }
        }
    }

    fn cancel(&mut self, which: usize) {
        let (id, handle) = &self.handles[which];
        let id = *id;
        let is_queued = self.model.jobs[id].fate == Fate::Queued;
        assert_eq!(handle.cancel(), is_queued, "cancel of job {id}");
        if is_queued {
            tally::note("cancelled");
            assert_eq!(self.real.world.drops_of(id), 1, "dropped before `cancel` returned");
            assert!(self.model.remove(id));
            let job = &mut self.model.jobs[id];
            job.fate = Fate::Ended(End::Cancelled);
            self.model.execs[job.exec].counts.cancelled += 1;
        }
    }

    fn plan_join(&self, id: Id, wait: Wait) -> Join {
        let not_yet = if wait == Wait::Forever { Join::Never } else { Join::NotYet };
        let job = self.model.jobs[id];
        match job.fate {
            Fate::Ended(end) => return Join::Ready(end),
            Fate::Running if wait == Wait::Forever => return Join::Opened,
            Fate::Queued if wait != Wait::Zero => {}
            _ => return not_yet,
        }
        if self.model.is_inside(job.exec) {
            return Join::Here { is_nested: true };
        }
        if self.model.would_deadlock(job.exec) {
            return Join::Deadlock;
        }
        let e = &self.model.execs[job.exec];
        let is_head = e.line.front() == Some(&Entry::Task(id));
        if is_head && self.model.taken(job.exec) < e.limit {
            return Join::Here { is_nested: false };
        }
        let reached = self.model.would_be_served(job.exec, |e| {
            let place = e.line.iter().position(|entry| *entry == Entry::Task(id));
            e.line[place.expect("it is queued")] = Entry::Joined(id);
        });
        if wait == Wait::Forever && reached { Join::Opened } else { not_yet }
    }

    fn join(&mut self, which: usize, wait: Wait) {
        let id = self.handles[which].0;
        let plan = self.plan_join(id, wait);
        if plan == Join::Never {
            return;
        }
        tally::note(match plan {
            Join::Ready(_) => "join of an ended task",
            Join::Here { is_nested: false } => "join here",
            Join::Here { is_nested: true } => "join here, nested",
            Join::Opened => "join with gates opened",
            Join::Deadlock => "join refused: Deadlock",
            Join::NotYet | Join::Never => "join not yet",
        });
        let (_, handle) = self.handles.swap_remove(which);
        let exec = self.model.jobs[id].exec;
        match plan {
            Join::Here { is_nested } => {
                assert!(self.model.remove(id));
                self.model.execs[exec].line_was_served(!is_nested);
                self.model.note_start(id, false);
                self.model.end_queued(id);
            }
            Join::Opened => {
                self.mark_joined(exec, id);
                let ids = self.model.open_all(exec);
                self.open_gates(&ids);
            }
            _ => {}
        }
        let answer = match (wait, plan) {
            (Wait::Forever, _) => Ok(handle.join()),
            (Wait::Zero, Join::Ready(_)) => Ok(wait_for_zero(handle)),
            (Wait::Zero, _) => handle.join_timeout(Duration::ZERO),
            _ => handle.join_timeout(SHORT),
        };
        match answer {
            Err(handle) => {
                assert_eq!(plan, Join::NotYet, "join of job {id}");
                self.handles.push((id, handle));
            }
            Ok(result) => {
                assert_ne!(plan, Join::NotYet, "join of job {id}: {result:?}");
                self.joined(id, plan == Join::Deadlock, result);
            }
        }
    }

    fn mark_joined(&mut self, exec: usize, id: Id) {
        let line = &mut self.model.execs[exec].line;
        if let Some(place) = line.iter().position(|entry| *entry == Entry::Task(id)) {
            line[place] = Entry::Joined(id);
        }
    }

    fn joined(&mut self, id: Id, deadlock: bool, result: Result<Product, JoinError>) {
        let seen = match &result {
            Ok(product) => {
                assert_eq!(product.job, id);
                Some(End::Ran)
            }
            Err(JoinError::Panicked(_)) => Some(End::Panicked),
            Err(JoinError::Cancelled) => Some(End::Cancelled),
            Err(JoinError::Closed) => Some(End::Closed),
            Err(JoinError::Deadlock) => None,
            Err(other) => panic!("{other:?}"),
        };
        if deadlock {
            assert_eq!(seen, None, "job {id}");
        } else {
            assert_eq!(self.model.jobs[id].fate, Fate::Ended(seen.unwrap()), "job {id}");
        }
        quietly(|| drop(result));
    }

    fn poll(&mut self, which: usize) {
        let (id, mut handle) = self.handles.swap_remove(which);
        let is_over = matches!(self.model.jobs[id].fate, Fate::Ended(_));
        let mut context = Context::from_waker(Waker::noop());
        let mut polled = Pin::new(&mut handle).poll(&mut context);
        // It is finished, but its worker may not have let go of it yet.
        until("a finished task is ready", || {
            if is_over && polled.is_pending() {
                polled = Pin::new(&mut handle).poll(&mut context);
            }
            !is_over || polled.is_ready()
        });
        match polled {
            Poll::Ready(result) => {
                assert!(is_over, "job {id} is ready: {result:?}");
                self.joined(id, false, result);
            }
            Poll::Pending => self.handles.push((id, handle)),
        }
    }

    pub(crate) fn close(&mut self, exec: usize) {
        self.exec(exec).close();
        self.model.close(exec);
    }

    pub(crate) fn drain_zero(&mut self, exec: usize) {
        self.model.close(exec);
        let left = self.exec(exec).drain(Duration::ZERO);
        let (taken, waits) = (self.model.taken(exec), self.model.execs[exec].line.len());
        match left {
            Ok(()) => assert!(taken == 0 && waits == 0 && !self.model.is_held(exec)),
            Err(left) => {
                assert_eq!((left.active, left.queued), (taken, waits));
                let held = self.model.is_held(exec);
                let reason = if held { Reason::Deadlock } else { Reason::TimedOut };
                assert_eq!(left.reason(), reason);
                assert!(held || taken > 0 || waits > 0);
            }
        }
    }

    pub(crate) fn shutdown_now(&mut self, exec: usize) {
        let unruns = self.exec(exec).shutdown_now();
        let ids = self.model.shutdown_now(exec);
        assert_eq!(unruns.len(), ids.len());
        self.unruns.extend(ids.into_iter().zip(unruns));
    }

    pub(crate) fn run_unrun(&mut self, which: usize) {
        if self.unruns.is_empty() {
            return;
        }
        let (id, unrun) = self.unruns.swap_remove(which % self.unruns.len());
        let job = self.model.jobs[id];
        let is_inside = self.model.is_inside(job.exec);
        if job.kind == Kind::CallsAgain && !is_inside {
            // Its executor is closed, and there is no task around.
            return self.end_unrun(id, || drop(unrun));
        }
        tally::note("unrun ran");
        unrun.run();
        self.model.note_start(id, false);
        self.model.reported += u64::from(job.kind.panics());
        if job.kind == Kind::CallsAgain {
            self.model.execs[job.exec].counts.calls_again();
        }
        self.model.jobs[id].fate = Fate::Ended(crate::reference::ended(job.kind));
        assert_eq!(self.real.world.drops_of(id), 1);
    }

    pub(crate) fn drop_unrun(&mut self, which: usize) {
        if !self.unruns.is_empty() {
            let (id, unrun) = self.unruns.swap_remove(which % self.unruns.len());
            self.end_unrun(id, || drop(unrun));
        }
    }

    fn end_unrun(&mut self, id: Id, end: impl FnOnce()) {
        end();
        self.model.jobs[id].fate = Fate::Ended(End::Closed);
        assert_eq!(self.real.world.drops_of(id), 1);
    }
}

/// The result of a task that is finished, but whose worker may not have let go of it yet.
fn wait_for_zero(handle: JoinHandle<Product>) -> Result<Product, JoinError> {
    let mut handle = Some(handle);
    let mut result = None;
    until("a finished task can be joined", || {
        match handle.take().map(|handle| handle.join_timeout(Duration::ZERO)) {
            Some(Ok(joined)) => result = Some(joined),
            Some(Err(back)) => handle = Some(back),
            None => {}
        }
        result.is_some()
    });
    result.expect("waited for")
}
