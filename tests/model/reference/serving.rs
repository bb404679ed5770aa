//! What happens by itself in the reference: starts and ends.
#![forbid(unsafe_code)]

use super::{End, Entry, Fate, Model, ended};
use crate::jobs::{Id, Kind};
use crate::tally;

impl Model {
    /// Everything that can start starts, and everything that can end ends.
    pub(crate) fn settle(&mut self) {
        for exec in 0..self.execs.len() {
            self.end_opened(exec);
            while self.serve_head(exec) {
                self.end_opened(exec);
            }
        }
    }

    fn end_opened(&mut self, exec: usize) {
        let jobs = &self.jobs;
        let is_open = |id: Id| jobs[id].open || jobs[id].kind != Kind::Gated;
        let e = &mut self.execs[exec];
        let workers: Vec<Id> = e.on_workers.iter().copied().filter(|id| is_open(*id)).collect();
        e.on_workers.retain(|id| !is_open(*id));
        let others: Vec<_> = e.on_others.iter().copied().filter(|o| is_open(o.0)).collect();
        e.on_others.retain(|other| !is_open(other.0));
        for id in workers {
            self.end_queued(id);
        }
        for (id, holds_guard) in others {
            if holds_guard {
                self.jobs[id].fate = Fate::Ended(End::Ran);
            } else {
                self.end_inline(id);
            }
        }
    }

    fn serve_head(&mut self, exec: usize) -> bool {
        let Some(head) = self.execs[exec].line.front().copied() else {
            return false;
        };
        if !self.is_free(exec) {
            return false;
        }
        if matches!(head, Entry::Task(_)) && self.idle() == 0 {
            tally::note("a task waits for a thread beside a free permit");
            return false;
        }
        let e = &mut self.execs[exec];
        e.line.pop_front();
        e.overtaken = 0;
        match head {
            Entry::Task(id) => {
                self.note_start(id, true);
                self.execs[exec].on_workers.push(id);
                self.jobs[id].fate = Fate::Running;
            }
            Entry::Joined(id) => {
                self.note_start(id, false);
                self.end_queued(id);
            }
            Entry::Driver => e.granted = true,
            Entry::OtherRun(id) => self.start_other(id, false),
            Entry::OtherGuard(id) => self.start_other(id, true),
        }
        true
    }

    pub(crate) fn start_other(&mut self, id: Id, holds_guard: bool) {
        let exec = self.jobs[id].exec;
        self.note_start(id, false);
        self.execs[exec].counts.accepted_inline += u64::from(!holds_guard);
        self.execs[exec].on_others.push((id, holds_guard));
        self.jobs[id].fate = Fate::Running;
    }

    pub(crate) fn note_start(&mut self, id: Id, by_worker: bool) {
        let e = &mut self.execs[self.jobs[id].exec];
        e.started.push(id);
        let alone = e.limit <= 1 || (self.max_threads == Some(1) && by_worker);
        e.in_order &= alone;
    }

    /// A task that was queued has run.
    pub(crate) fn end_queued(&mut self, id: Id) {
        let job = self.jobs[id];
        self.execs[job.exec].counts.end(job.kind, true);
        self.reported += u64::from(job.kind.panics());
        self.jobs[id].fate = Fate::Ended(ended(job.kind));
    }

    /// An inline run is over.
    pub(crate) fn end_inline(&mut self, id: Id) {
        let job = self.jobs[id];
        self.execs[job.exec].counts.end(job.kind, false);
        self.jobs[id].fate = Fate::Ended(ended(job.kind));
    }
}
