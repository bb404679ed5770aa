//! Claim: what is put into the run queue is served, whatever the workers are doing meanwhile; a
//! thread that is owed stays; when nothing is left the threads go.
//!
//! Modelled: [`Headcount`], the two fences of the run queue's handshake, and [`PoolCore`] with real
//! workers that serve a stand-in for executors. Left out: time (nobody watches, nobody leaves for
//! lack of work: workers leave when the pool is retired), threads that the system refuses.

use crate::pool::headcount::{Headcount, Leave};
use crate::pool::worker::Worker;
use crate::pool::{PoolConfig, PoolCore, Serve};
use crate::sync::{AtomicBool, Condvar, Mutex, published_then_check, stood_down_then_check};
use crate::{Size, model};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// A pool that needs no watcher for so few threads.
pub(super) fn config(max_threads: usize) -> PoolConfig {
    PoolConfig {
        name: "model".to_owned(),
        max_threads,
        keep_alive: Duration::MAX,
        stack_size: None,
        on_thread_start: None,
        on_thread_stop: None,
        on_panic: None,
        cores: 8,
    }
}

/// The end of every model: nothing is owed, so the threads go.
fn shut_down(pool: &PoolCore) {
    pool.shutdown(Duration::MAX).unwrap();
    assert_eq!(pool.stats().alive, 0);
}

/// What a stand-in does when it is served.
enum Act {
    Nothing,
    /// Its line is empty now, as far as the pool's debts go.
    Settle,
    /// More of it can start: another worker is to serve this one.
    Share(Arc<Line>),
    /// It waits until this one was served.
    Await(Arc<Line>),
    /// It puts this one into the run queue and waits until it was served.
    SubmitAndAwait(Arc<Line>),
}

/// An executor, seen from below.
struct Line {
    pool: Arc<PoolCore>,
    act: Act,
    served: AtomicUsize,
    over: Mutex<bool>,
    changed: Condvar,
}

impl Line {
    fn new(pool: &Arc<PoolCore>, act: Act) -> Arc<Self> {
        let pool = Arc::clone(pool);
        let (served, over) = (AtomicUsize::new(0), Mutex::new(false));
        Arc::new(Self { pool, act, served, over, changed: Condvar::new() })
    }

    fn submit(self: &Arc<Self>) {
        self.pool.submit(Arc::clone(self) as Arc<dyn Serve>);
    }

    fn wait(&self) {
        let mut over = self.over.lock();
        while !*over {
            over = self.changed.wait_until(over, None);
        }
    }

    fn assert_served(&self) {
        assert_eq!(self.served.load(Relaxed), 1);
    }
}

impl Serve for Line {
    fn serve(self: Arc<Self>, worker: &Worker<'_>) {
        self.served.fetch_add(1, Relaxed);
        match &self.act {
            Act::Nothing => {}
            Act::Settle => self.pool.settle(),
            Act::Share(other) => worker.share(Arc::clone(other) as Arc<dyn Serve>),
            Act::Await(other) => other.wait(),
            Act::SubmitAndAwait(other) => {
                other.submit();
                other.wait();
            }
        }
        *self.over.lock() = true;
        self.changed.notify_all();
    }
}

/// The last thread leaves, or a first task is accepted: never both.
#[test]
fn owe_races_leave() {
    model("owe_races_leave", Size::Proof, 16..=37, || {
        let count = Arc::new(Headcount::new());
        count.join();
        let leaver = leaver(&count);
        let owed = count.owe();
        let left = leaver.join().unwrap() == Leave::Left;
        assert_ne!(owed, left, "G13");
        assert_eq!(count.alive(), usize::from(!left));
        assert_eq!(owed && count.settle(), owed, "a lingering thread is woken");
    });
}

/// A thread that wants to leave, and what it is told.
fn leaver(count: &Arc<Headcount>) -> thread::JoinHandle<Leave> {
    let count = Arc::clone(count);
    thread::spawn(move || count.leave())
}

/// Who holds a thread and sees one can rely on it.
#[test]
fn hold_races_leave() {
    model("hold_races_leave", Size::Proof, 42..=96, || {
        let count = Arc::new(Headcount::new());
        count.join();
        let leaver = leaver(&count);
        count.hold();
        let there = count.alive() > 0;
        let left = leaver.join().unwrap() == Leave::Left;
        assert_ne!(there, left, "G13");
        assert_eq!(count.settle(), there, "a lingering thread is woken");
    });
}

/// The last thread goes once nothing is owed, or it stays and whoever settles knows.
#[test]
fn settle_races_leave() {
    model("settle_races_leave", Size::Proof, 16..=37, || {
        let count = Arc::new(Headcount::new());
        count.join();
        assert!(count.owe());
        let leaver = leaver(&count);
        let lingers = count.settle();
        let stayed = leaver.join().unwrap() == Leave::Stay;
        assert_eq!(lingers, stayed, "G11: a thread that nobody wakes stays for ever");
    });
}

/// Of two threads that want to leave while something is owed one stays.
#[test]
fn leave_races_leave() {
    model("leave_races_leave", Size::Proof, 16..=37, || {
        let count = Arc::new(Headcount::new());
        count.join();
        count.join();
        assert!(count.owe());
        let other = leaver(&count);
        let told = [count.leave(), other.join().unwrap()];
        assert_eq!(told.iter().filter(|leave| **leave == Leave::Stay).count(), 1, "{told:?}");
    });
}

/// Who publishes work sees that nobody looks for it any more, or who stops looking sees the work.
#[test]
fn publish_races_stand_down() {
    model("publish_races_stand_down", Size::Proof, 25..=57, || {
        let flags = Arc::new((AtomicBool::new(false), AtomicBool::new(true)));
        let searcher = {
            let flags = Arc::clone(&flags);
            thread::spawn(move || {
                flags.1.store(false, Relaxed);
                stood_down_then_check();
                flags.0.load(Relaxed)
            })
        };
        flags.0.store(true, Relaxed);
        published_then_check();
        let unattended = !flags.1.load(Relaxed);
        let seen = searcher.join().unwrap();
        assert!(seen || unattended, "G3: work that nobody is on the way to");
    });
}

/// What is submitted while the only worker goes to rest is served.
#[test]
fn submit_races_rest() {
    model("submit_races_rest", Size::Proof, 240_000..=550_000, || {
        let pool = PoolCore::new(config(1));
        let (first, second) = (Line::new(&pool, Act::Nothing), Line::new(&pool, Act::Nothing));
        first.submit();
        second.submit();
        shut_down(&pool);
        first.assert_served();
        second.assert_served();
    });
}

/// What is submitted while the only worker runs something that waits for it gets another worker.
#[test]
fn submit_races_begin_of_run() {
    model("submit_races_begin_of_run", Size::Wide, 1_700..=3_900, || {
        let pool = PoolCore::new(config(2));
        let inner = Line::new(&pool, Act::Nothing);
        let outer = Line::new(&pool, Act::SubmitAndAwait(Arc::clone(&inner)));
        outer.submit();
        shut_down(&pool);
        inner.assert_served();
        outer.assert_served();
    });
}

/// Two are submitted while one worker searches, and the first waits for the second: the worker
/// that found the first sends another.
#[test]
fn submit_races_search() {
    model("submit_races_search", Size::Wide, 13_000..=30_000, || {
        let pool = PoolCore::new(config(2));
        let second = Line::new(&pool, Act::Nothing);
        let first = Line::new(&pool, Act::Await(Arc::clone(&second)));
        first.submit();
        second.submit();
        shut_down(&pool);
        first.assert_served();
        second.assert_served();
    });
}

/// Two are submitted while the first thread is in its start hook, and the first waits for the
/// second: nobody counts on that thread, and both are served.
#[test]
fn submit_races_start_hook() {
    model("submit_races_start_hook", Size::Wide, 29_000..=66_000, || {
        let hook: Box<dyn Fn() + Send + Sync> = Box::new(|| ());
        let pool = PoolCore::new(PoolConfig { on_thread_start: Some(hook), ..config(2) });
        let second = Line::new(&pool, Act::Nothing);
        let first = Line::new(&pool, Act::Await(Arc::clone(&second)));
        first.submit();
        second.submit();
        shut_down(&pool);
        first.assert_served();
        second.assert_served();
    });
}

/// A worker that ends its run while another searches, finds work and needs one more: it is there.
#[test]
fn submit_races_end_of_run() {
    model("submit_races_end_of_run", Size::Wide, 3_100..=7_100, || {
        let pool = PoolCore::new(config(2));
        let inner = Line::new(&pool, Act::Nothing);
        let outer = Line::new(&pool, Act::SubmitAndAwait(Arc::clone(&inner)));
        let first = Line::new(&pool, Act::Share(Arc::clone(&outer)));
        first.submit();
        shut_down(&pool);
        inner.assert_served();
        outer.assert_served();
    });
}

/// The pool is retired while a debt's work is submitted: it is served, and then the worker goes.
#[test]
fn retire_races_submit() {
    model("retire_races_submit", Size::Wide, 3_100..=7_000, || {
        let pool = PoolCore::new(config(1));
        assert!(pool.hold_thread());
        let line = Line::new(&pool, Act::Settle);
        let retirer = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.retire())
        };
        line.submit();
        retirer.join().unwrap();
        shut_down(&pool);
        line.assert_served();
    });
}

/// The pool is retired while its worker goes to rest: it leaves.
#[test]
fn retire_races_rest() {
    model("retire_races_rest", Size::Proof, 5..=12, || {
        let pool = PoolCore::new(config(1));
        let line = Line::new(&pool, Act::Nothing);
        line.submit();
        // Nobody waits for the worker; the model ends when it does.
        pool.retire();
    });
}

/// The last worker may not leave a pool that is shut down, and then may: whoever settles the debt wakes it.
#[test]
fn settle_races_rest() {
    model("settle_races_rest", Size::Wide, 490..=1_101, || {
        let pool = PoolCore::new(config(1));
        assert!(pool.hold_thread());
        let debtor = Arc::clone(&pool);
        let debtor = thread::spawn(move || debtor.settle());
        shut_down(&pool);
        debtor.join().unwrap();
    });
}

/// A thread is held while the last one leaves: it stays, or another is made, and work is served.
#[test]
fn hold_thread_races_leave() {
    model("hold_thread_races_leave", Size::Wide, 610..=1_400, || {
        let pool = PoolCore::new(config(2));
        assert!(pool.hold_thread());
        pool.settle();
        pool.retire();
        assert!(pool.hold_thread());
        let line = Line::new(&pool, Act::Settle);
        line.submit();
        shut_down(&pool);
        line.assert_served();
    });
}

/// Two that need the first thread of a pool: one makes it, the other finds it.
#[test]
fn hold_thread_races_hold_thread() {
    model("hold_thread_races_hold_thread", Size::Wide, 5_700..=13_000, || {
        let pool = PoolCore::new(config(2));
        let other = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                assert!(pool.hold_thread());
                pool.settle();
            })
        };
        assert!(pool.hold_thread());
        pool.settle();
        other.join().unwrap();
        shut_down(&pool);
        assert_eq!(pool.stats().created, 1);
    });
}
