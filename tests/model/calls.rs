//! The verbs of executors, pools and permits.
#![forbid(unsafe_code)]

use crate::counts::Why;
use crate::driver::{Answer, Driver, Other};
use crate::jobs::{Id, Job, Kind, Product, quietly};
use crate::ops::{Op, Verb, Wait};
use crate::reference::{End, Entry, Fate, Plan};
use crate::support::{Latch, until};
use crate::tally;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use work_permit::{Dispatched, Executor, Permit, Reason, Rejected};

/// Long enough to wait, and to leave again.
const SHORT: Duration = Duration::from_millis(1);

impl<'e> Driver<'e> {
    pub(crate) fn run(&mut self, exec: usize, wait: Wait, kind: Kind, inside: &[Op]) {
        let job = self.job(exec, kind);
        let id = job.id;
        let plan = self.model.plan(exec, wait, true);
        if plan == Plan::Never {
            return self.discard(id, job);
        }
        tally::note(match plan {
            Plan::Nested => "run nested",
            Plan::Taken => "run at once",
            Plan::Waits => "run waits in line",
            Plan::Refused(Reason::Saturated) => "run refused: Saturated",
            Plan::Refused(Reason::Closed) => "run refused: Closed",
            Plan::Refused(Reason::Deadlock) => "run refused: Deadlock",
            _ => "run refused: TimedOut",
        });
        let helper = (plan == Plan::Waits).then(|| self.wait_in_line(exec));
        let real = self.exec(exec);
        let this = &mut *self;
        let body = move || {
            this.begin_inline(exec, id, plan == Plan::Nested);
            job.note_start();
            if plan == Plan::Waits {
                // What stood before the driver may still be on its way.
                this.check(&"the wait");
            }
            inside.iter().for_each(|op| this.call(op));
            job.finish()
        };
        let answer = quietly(|| match wait {
            Wait::Never => real.try_run(body).map_err(split),
            Wait::Zero => real.run_timeout(Duration::ZERO, body).map_err(split),
            Wait::Short => real.run_timeout(SHORT, body).map_err(split),
            Wait::Forever => real.run(body).map_err(split),
        });
        if let Some(helper) = helper {
            helper.join().unwrap();
        }
        match (plan, answer) {
            (Plan::Refused(expected), Some(Err(reason))) => {
                assert_eq!(reason, expected);
                assert_eq!(self.real.world.drops_of(id), 1);
                self.model.refuse(exec, reason);
            }
            (Plan::Refused(expected), _) => panic!("not refused: {expected:?}"),
            (_, Some(Err(reason))) => panic!("refused: {reason:?}"),
            (_, Some(Ok(product))) => {
                assert!(!kind.panics() && product.job == id);
                quietly(|| drop(product));
                self.end_inline(id);
            }
            (_, None) => {
                assert!(kind.panics());
                self.end_inline(id);
            }
        }
    }

    fn begin_inline(&mut self, exec: usize, id: Id, is_nested: bool) {
        self.model.execs[exec].granted = false;
        self.model.execs[exec].counts.accepted_inline += 1;
        self.model.note_start(id, false);
        self.model.frames.push((exec, !is_nested));
    }

    fn end_inline(&mut self, id: Id) {
        assert_eq!(self.real.world.drops_of(id), 1, "the closure is gone when the call returns");
        self.model.frames.pop();
        self.model.end_inline(id);
    }

    /// The driver is about to stand in the line: another thread opens every gate as soon as it does.
    fn wait_in_line(&mut self, exec: usize) -> thread::JoinHandle<()> {
        let before = self.model.execs[exec].waiting();
        self.model.execs[exec].line.push_back(Entry::Driver);
        let ids = self.model.open_all(exec);
        assert!(self.model.execs[exec].granted);
        let gates: Vec<Latch> = ids.iter().map(|id| self.gates[*id].clone()).collect();
        let real = self.exec(exec).clone();
        thread::spawn(move || {
            until("the driver stands in the line", || real.stats().waiting > before);
            gates.iter().for_each(Latch::open);
        })
    }

    pub(crate) fn queue(&mut self, exec: usize, verb: Verb, kind: Kind) {
        let job = self.job(exec, kind);
        let id = job.id;
        let plan = match verb {
            Verb::Dispatch => self.model.plan_dispatch(exec),
            Verb::Spawn | Verb::Execute => Err(Why::Asked),
        };
        let real = self.exec(exec);
        match plan {
            Ok(is_nested) => {
                tally::note(if is_nested { "dispatch nested" } else { "dispatch inline" });
                self.begin_inline(exec, id, is_nested);
                self.dispatch_here(real, job, kind);
            }
            Err(why) => {
                let expected = self.model.queue(exec, id, why);
                tally::note(match (expected, why) {
                    (Err(Reason::Closed), _) => "queue refused: Closed",
                    (Err(_), _) => "queue refused: QueueFull",
                    (Ok(()), Why::NoPermit) => "queued: NoPermit",
                    (Ok(()), Why::TooDeep) => "queued: TooDeep",
                    (Ok(()), Why::Asked) => "queued: Asked",
                    (Ok(()), Why::WouldBlock) => unreachable!("no attempt"),
                });
                let answer = match verb {
                    Verb::Dispatch => real.dispatch(move || job.run()).map_err(split).map(Some),
                    Verb::Spawn => {
                        let handle = real.spawn(move || job.run()).map_err(split);
                        handle.map(|handle| Some(Dispatched::Queued(handle)))
                    }
                    Verb::Execute => {
                        let quiet = move || quietly_or_on(job);
                        real.execute(quiet).map_err(split).map(|()| None)
                    }
                };
                self.queued(exec, id, expected, answer);
            }
        }
    }

    /// An attempt that is done, or that leaves its job to the queue.
    pub(crate) fn attempt(&mut self, exec: usize, blocks: bool, kind: Kind, inside: &[Op]) {
        let job = self.job(exec, kind);
        let id = job.id;
        if kind == Kind::CallsAgain && !blocks && !self.model.is_inside(exec) {
            // It expects a permit.
            return self.discard(id, job);
        }
        let real = self.exec(exec);
        let this = &mut *self;
        let attempt = || {
            this.model.begin_attempt(exec);
            this.check(&"the begin of an attempt");
            inside.iter().for_each(|op| this.call(op));
            if blocks {
                return Err(move || job.run());
            }
            this.model.note_start(id, false);
            job.note_start();
            Ok(job.finish())
        };
        let answer = quietly(|| real.speculate(attempt).map_err(split));
        self.model.end_attempt();
        if blocks {
            let expected = self.model.queue(exec, id, Why::WouldBlock);
            tally::note(if expected.is_ok() { "attempt blocks" } else { "attempt refused" });
            return match answer {
                Some(answer) => self.queued(exec, id, expected, answer.map(Some)),
                None => panic!("it only said that it would block"),
            };
        }
        tally::note("attempt done");
        match answer {
            Some(Ok(Dispatched::Inline(product))) => {
                assert!(!kind.panics() && product.job == id);
                quietly(|| drop(product));
            }
            None => assert!(kind.panics()),
            other => panic!("not done: {other:?}"),
        }
        assert_eq!(self.real.world.drops_of(id), 1, "the closure is gone when the call returns");
        self.model.execs[exec].counts.accepted_inline += 1;
        self.model.execs[exec].counts.speculated += 1;
        self.model.end_inline(id);
    }

    fn dispatch_here(&mut self, real: &Executor, job: Job, kind: Kind) {
        let id = job.id;
        let answer = quietly(|| real.dispatch(move || job.run()).map_err(split));
        match answer {
            Some(Ok(Dispatched::Inline(product))) => {
                assert!(!kind.panics() && product.job == id);
                quietly(|| drop(product));
            }
            None => assert!(kind.panics()),
            other => panic!("not inline: {other:?}"),
        }
        self.end_inline(id);
    }

    fn queued(
        &mut self,
        exec: usize,
        id: Id,
        expected: Result<(), Reason>,
        answer: Result<Option<Dispatched<Product>>, Reason>,
    ) {
        match answer {
            Ok(queued) => {
                assert_eq!(expected, Ok(()));
                match queued {
                    Some(Dispatched::Queued(handle)) => self.handles.push((id, handle)),
                    None => {}
                    Some(inline) => panic!("ran here: {inline:?}"),
                }
            }
            Err(reason) => {
                assert_eq!(expected, Err(reason));
                assert_eq!(self.real.world.drops_of(id), 1);
                self.model.refuse(exec, reason);
            }
        }
    }

    pub(crate) fn acquire(&mut self, exec: usize, wait: Wait) {
        let plan = self.model.plan(exec, wait, false);
        if plan == Plan::Never {
            return;
        }
        tally::note(match plan {
            Plan::Taken => "acquire at once",
            Plan::Waits => "acquire waits in line",
            Plan::Refused(Reason::Deadlock) => "acquire refused: Deadlock",
            _ => "acquire refused",
        });
        let helper = (plan == Plan::Waits).then(|| self.wait_in_line(exec));
        let real = self.exec(exec);
        let answer: Result<Permit<'e>, Rejected<()>> = match wait {
            Wait::Never => real.try_acquire(),
            Wait::Zero => real.acquire_timeout(Duration::ZERO),
            Wait::Short => real.acquire_timeout(SHORT),
            Wait::Forever => real.acquire(),
        };
        if let Some(helper) = helper {
            helper.join().unwrap();
        }
        match answer {
            Ok(permit) => {
                assert!(matches!(plan, Plan::Taken | Plan::Waits), "{plan:?}");
                self.model.execs[exec].granted = false;
                self.model.execs[exec].guards += 1;
                self.guards.push((exec, permit));
            }
            Err(refused) => {
                assert_eq!(plan, Plan::Refused(refused.reason()));
                self.model.refuse(exec, refused.reason());
            }
        }
    }

    pub(crate) fn drop_guard(&mut self, which: usize) {
        if let Some((exec, permit)) = take(&mut self.guards, which) {
            drop(permit);
            self.model.execs[exec].guards -= 1;
        }
    }

    pub(crate) fn own_guard(&mut self, which: usize) {
        if let Some((exec, permit)) = take(&mut self.guards, which) {
            self.owned.push((exec, permit.into_owned()));
            self.model.execs[exec].guards -= 1;
            self.model.execs[exec].owned += 1;
        }
    }

    pub(crate) fn drop_owned(&mut self, which: usize) {
        if let Some((exec, permit)) = take(&mut self.owned, which) {
            assert_eq!(permit.executor().name(), self.exec(exec).name());
            drop(permit);
            self.model.execs[exec].owned -= 1;
        }
    }

    pub(crate) fn set_limit(&mut self, exec: usize, limit: usize) {
        let answer = self.exec(exec).set_limit(limit);
        assert_eq!(answer.is_ok(), limit <= Executor::MAX_LIMIT);
        if answer.is_ok() {
            self.model.execs[exec].limit = limit;
        }
        assert_eq!(self.exec(exec).limit(), self.model.execs[exec].limit);
    }

    /// Lets one of the gated jobs end that are under a permit.
    pub(crate) fn open(&mut self, which: usize) {
        let jobs = &mut self.model.jobs;
        let running = |id: &Id| jobs[*id].fate == Fate::Running;
        let running: Vec<Id> = (0..jobs.len()).filter(running).collect();
        if !running.is_empty() {
            let id = running[which % running.len()];
            self.open_gate(id);
        }
    }

    pub(crate) fn open_gate(&mut self, id: Id) {
        self.model.jobs[id].open = true;
        self.gates[id].open();
        self.model.settle();
    }

    pub(crate) fn other(&mut self, exec: usize, acquires: bool, kind: Kind) {
        if !self.model.may_wait {
            return;
        }
        let job = self.job(exec, kind);
        let id = job.id;
        match self.model.take(exec) {
            Ok(()) => self.model.start_other(id, acquires),
            Err(Reason::Saturated) => {
                tally::note("another thread waits");
                let entry = if acquires { Entry::OtherGuard(id) } else { Entry::OtherRun(id) };
                self.model.execs[exec].line.push_back(entry);
                self.model.jobs[id].fate = Fate::Queued;
            }
            Err(reason) => {
                self.model.refuse(exec, reason);
                self.model.jobs[id].fate = Fate::Ended(End::Refused(reason));
            }
        }
        let real = self.exec(exec).clone();
        let thread =
            thread::spawn(move || if acquires { hold(&real, job) } else { run(&real, job) });
        self.others.push(Other { job: id, thread });
    }

    pub(crate) fn stall(&mut self, threads: usize) {
        let idle = self.model.idle();
        if idle == usize::MAX {
            return;
        }
        for _ in 0..threads.min(idle) {
            let (latch, (tx, rx)) = (Latch::new(), mpsc::channel());
            self.blockers.push(latch.clone());
            let block = move || {
                tx.send(()).unwrap();
                latch.wait();
            };
            self.real.blocker.execute(block).unwrap();
            rx.recv().unwrap();
            self.model.stalled += 1;
        }
    }

    pub(crate) fn unstall(&mut self) {
        self.blockers.drain(..).for_each(|latch| latch.open());
        until("nobody stalls", || self.real.blocker.stats().active == 0);
        self.model.stalled = 0;
    }
}

/// What stays of a refusal.
fn split<F>(refused: Rejected<F>) -> Reason {
    let reason = refused.reason();
    let task = refused.into_task();
    quietly(|| drop(task));
    reason
}

/// For `execute`: a result that panics when it is dropped must not look like a task that does.
fn quietly_or_on(job: Job) {
    let product = job.run();
    quietly(|| drop(product));
}

/// Another thread's `run`.
fn run(exec: &Executor, job: Job) -> Answer {
    match quietly(|| exec.run(move || job.run()).map_err(split)) {
        Some(Ok(product)) => Answer::Ran(Some(product)),
        Some(Err(reason)) => Answer::Refused(reason),
        None => Answer::Ran(None),
    }
}

/// Another thread's `acquire`.
fn hold(exec: &Executor, job: Job) -> Answer {
    let answer = match exec.acquire() {
        Ok(permit) => {
            job.note_start();
            job.wait_for_gate();
            drop(permit);
            Answer::HeldGuard
        }
        Err(refused) => Answer::Refused(refused.reason()),
    };
    quietly(|| drop(job));
    answer
}

fn take<T>(list: &mut Vec<T>, which: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.swap_remove(which % list.len()))
}
