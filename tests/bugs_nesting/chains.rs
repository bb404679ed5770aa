//! Chains of tasks each of which dispatches the next.

use crate::OneMore;
use crate::support::{assert_quiet, hang_guard, until};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use work_permit::{Dispatched, Executor, JoinError, JoinHandle, Pool};

/// A chain of tasks each of which dispatches the next.
struct Chain {
    execs: Vec<Executor>,
    length: u64,
    next: AtomicU64,
    in_order: AtomicBool,
    deepest: AtomicUsize,
    handles: Mutex<Vec<JoinHandle<()>>>,
    end: Box<dyn Fn() + Send + Sync>,
}

impl Chain {
    fn new(execs: Vec<Executor>, length: u64, end: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            execs,
            length,
            next: AtomicU64::new(0),
            in_order: AtomicBool::new(true),
            deepest: AtomicUsize::new(0),
            handles: Mutex::new(Vec::new()),
            end: Box::new(end),
        })
    }

    fn link(self: Arc<Self>, n: u64) {
        let (_one_more, depth) = OneMore::enter();
        self.deepest.fetch_max(depth, SeqCst);
        self.in_order.fetch_and(self.next.fetch_add(1, SeqCst) == n, SeqCst);
        if n + 1 == self.length {
            return (self.end)();
        }
        let next = Arc::clone(&self);
        let exec = &self.execs[n as usize % self.execs.len()];
        if let Dispatched::Queued(handle) = exec.dispatch(move || next.link(n + 1)).unwrap() {
            self.handles.lock().unwrap().push(handle);
        }
    }
}

fn chain_of(length: u64, executors: usize, stack: usize) {
    let pool = Pool::builder().stack_size(stack).build().unwrap();
    let build = |_| pool.executor("chain").limit(64).build().unwrap();
    let execs: Vec<Executor> = (0..executors).map(build).collect();
    let (tx, rx) = mpsc::channel();
    let chain = Chain::new(execs, length, move || tx.send(()).unwrap());
    Arc::clone(&chain).link(0);
    rx.recv().expect("the last link ran");
    assert!(chain.in_order.load(SeqCst), "the order of the chain");
    let deepest = chain.deepest.load(SeqCst);
    assert!(deepest <= 17, "the first link and 16 inside of it, not {deepest}");
    let mut too_deep = 0;
    for exec in &chain.execs {
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(exec);
        too_deep += exec.stats().too_deep;
    }
    assert!(too_deep >= length / 17, "{too_deep} times on a fresh stack");
}

#[test]
fn b07_recursive_dispatch_does_not_grow_the_stack() {
    hang_guard(|| chain_of(1_000_000, 1, 128 * 1024));
}

#[test]
fn b07_recursion_over_two_executors_does_not_grow_the_stack() {
    hang_guard(|| chain_of(200_000, 2, 128 * 1024));
}

#[test]
fn b08_whatever_ends_a_task_its_handle_completes() {
    hang_guard(|| {
        const LINKS: u64 = 10_000;
        const LAST: &str = "the end of the chain";
        let exec = Pool::new().executor("chain").limit(4).build().unwrap();
        // The last link's panic leaves through the inline runs around it.
        let chain = Chain::new(vec![exec.clone()], LINKS, || panic!("{LAST}"));
        let first = Arc::clone(&chain);
        let root = exec.spawn(move || first.link(0)).unwrap();
        root.join().unwrap();
        until("the last link", || chain.next.load(SeqCst) == LINKS);
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
        let handles = std::mem::take(&mut *chain.handles.lock().unwrap());
        assert!(handles.len() as u64 >= LINKS / 17);
        let ends = handles.into_iter().map(JoinHandle::join);
        let failed: Vec<JoinError> = ends.filter_map(Result::err).collect();
        match &failed[..] {
            [JoinError::Panicked(last)] => assert_eq!(last.message(), Some(LAST)),
            other => panic!("all but the last ended well: {other:?}"),
        }
    });
}
