//! Threads that receive closures from a channel: what many programs write instead of using a pool.

use crate::adapter::{Adapter, Ask, Execute, Job, TryRun};
use std::thread;

/// Sends `work` off and waits for its answer on a channel made for it.
pub(crate) fn reply(send: impl FnOnce(Job), work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
    let (answer, wait) = crossbeam_channel::bounded(1);
    send(Box::new(move || answer.send(work()).expect("the caller waits")));
    wait.recv().expect("the task runs")
}

/// crossbeam-channel, unbounded, and `limit` threads.
#[derive(Clone)]
pub(crate) struct CrossbeamChannel {
    jobs: crossbeam_channel::Sender<Job>,
}

impl Adapter for CrossbeamChannel {
    const NAME: &'static str = "crossbeam-channel";

    fn new(limit: usize) -> Self {
        let (jobs, inbox) = crossbeam_channel::unbounded::<Job>();
        for _ in 0..limit {
            let inbox = inbox.clone();
            thread::spawn(move || inbox.iter().for_each(|job| job()));
        }
        Self { jobs }
    }
}

impl Execute for CrossbeamChannel {
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        self.jobs.send(Box::new(work)).expect("the threads live");
    }
}

impl Ask for CrossbeamChannel {
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        reply(|job| self.jobs.send(job).expect("the threads live"), work)
    }
}

/// kanal, unbounded, and `limit` threads; answers come over kanal too.
#[derive(Clone)]
pub(crate) struct Kanal {
    jobs: kanal::Sender<Job>,
}

impl Adapter for Kanal {
    const NAME: &'static str = "kanal";

    fn new(limit: usize) -> Self {
        let (jobs, inbox) = kanal::unbounded::<Job>();
        for _ in 0..limit {
            let inbox = inbox.clone();
            thread::spawn(move || {
                while let Ok(job) = inbox.recv() {
                    job();
                }
            });
        }
        Self { jobs }
    }
}

impl Execute for Kanal {
    fn execute(&self, work: impl FnOnce() + Send + 'static) {
        self.jobs.send(Box::new(work)).expect("the threads live");
    }
}

impl Ask for Kanal {
    fn ask(&mut self, work: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        let (answer, wait) = kanal::bounded(1);
        self.execute(move || answer.send(work()).expect("the caller waits"));
        wait.recv().expect("the task runs")
    }
}

/// A bounded channel filled with tokens: receive one, run, send it back.
#[derive(Clone)]
pub(crate) struct Tokens {
    put: crossbeam_channel::Sender<()>,
    take: crossbeam_channel::Receiver<()>,
}

impl Adapter for Tokens {
    const NAME: &'static str = "crossbeam-channel tokens";

    fn new(limit: usize) -> Self {
        let (put, take) = crossbeam_channel::bounded(limit);
        for _ in 0..limit {
            put.send(()).expect("both ends are here");
        }
        Self { put, take }
    }
}

impl TryRun for Tokens {
    #[inline]
    fn try_run(&mut self, work: impl FnOnce()) -> bool {
        if self.take.try_recv().is_err() {
            return false;
        }
        work();
        self.put.send(()).expect("both ends are here");
        true
    }
}
