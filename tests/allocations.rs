//! What is allocated, counted by a global allocator: nothing for an inline run, for a guard of fitness or for a choice,
//! one block for a spawned task.
//!
//! A thread counts for whoever it was told to count for, so tests beside each other, and the test harness
//! itself, do not disturb the numbers. What is left to the run queue's blocks (one for each 63 entries) is
//! allowed for.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use support::{HANG, assert_quiet, executor, hang_guard, until};
use work_permit::{Chooser, Dispatched, Executor, JoinHandle, Operations, Policy, Pool, fitness};

struct Counting;

thread_local! {
    /// Where this thread's allocations are counted.
    static COUNT: Cell<Option<&'static AtomicU64>> = const { Cell::new(None) };
}

thread_local! {
    /// Bytes that this thread has allocated and not freed itself.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

fn count_bytes(bytes: isize) {
    let _gone = BYTES.try_with(|all| all.set(all.get() + bytes));
}

fn count() {
    // `None` while the thread is being torn down.
    if let Ok(Some(count)) = COUNT.try_with(Cell::get) {
        count.fetch_add(1, SeqCst);
    }
}

// SAFETY: each call is passed on to the system's allocator as it came; counting allocates nothing, since the
// thread-local is constant at first and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        count_bytes(layout.size() as isize);
        // SAFETY: the caller's duties are the same as the callee's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_bytes(-(layout.size() as isize));
        // SAFETY: as above; the block came from `System`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        count_bytes(size as isize - layout.size() as isize);
        // SAFETY: as above; the block came from `System`.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn new_count() -> &'static AtomicU64 {
    Box::leak(Box::new(AtomicU64::new(0)))
}

/// Allocations of this thread during `f`.
fn allocations(f: impl FnOnce()) -> u64 {
    let count = new_count();
    let before = COUNT.replace(Some(count));
    f();
    COUNT.set(before);
    count.load(SeqCst)
}

/// An executor with one worker that counts its allocations in the second.
fn counted_workers(limit: usize) -> (Executor, &'static AtomicU64) {
    let count = new_count();
    let pool = Pool::builder()
        .keep_alive(Duration::MAX)
        .max_threads(1)
        .on_thread_start(move || COUNT.set(Some(count)));
    let builder = pool.build().unwrap().executor("counted").limit(limit);
    (builder.build().unwrap(), count)
}

/// Every verb that can run here, each with something to carry.
fn call_inline(exec: &Executor, words: &[u64; 8]) {
    let words = *words;
    assert_eq!(exec.try_run(|| words[0]).unwrap(), 1);
    assert_eq!(exec.run(|| words[1]).unwrap(), 2);
    assert_eq!(exec.run_timeout(HANG, || words[2]).unwrap(), 3);
    let dispatched = exec.dispatch(move || words[3]).unwrap();
    assert!(matches!(dispatched, Dispatched::Inline(4)));
    assert_eq!(dispatched.join().unwrap(), 4);
    let attempt = || Ok::<_, fn() -> u64>(words[7]);
    assert_eq!(exec.speculate(attempt).unwrap().join().unwrap(), 8);
    let nested = exec.run(|| {
        let inner = exec.try_run(|| exec.run(|| words[4]).unwrap()).unwrap();
        let handle = exec.clone();
        inner + exec.dispatch(move || words[handle.limit()]).unwrap().join().unwrap()
    });
    assert_eq!(nested.unwrap(), 5 + 2);
    assert_eq!(block_on_inline(exec), 9);
}

/// An inline result as a future is ready at once: nothing is needed to wait with.
fn block_on_inline(exec: &Executor) -> u64 {
    use std::future::IntoFuture;
    use std::task::{Context, Poll, Waker};
    let mut future = std::pin::pin!(exec.dispatch(|| 9).unwrap().into_future());
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.unwrap(),
        Poll::Pending => panic!("an inline result is there"),
    }
}

#[test]
fn guards_of_fitness_use_the_same_list_again() {
    let exec = executor(1);
    let nested = || {
        let _allowed = fitness::allow(Operations::ALL);
        let _none = fitness::no_inline();
        assert!(exec.try_run(|| ()).is_err());
        let _again = fitness::allow(Operations::NONE);
        exec.run(|| drop(fitness::no_inline())).unwrap();
    };
    nested();
    assert_eq!(allocations(|| (0..1000).for_each(|_| nested())), 0);
    assert_quiet(&exec);
}

#[test]
fn choices_allocate_nothing() {
    let (a, b) = (executor(1), executor(2));
    let choose_of_each = |policy| {
        let chooser = Chooser::new([&a, &b], policy);
        allocations(|| (0..100).for_each(|_| drop(chooser.choose().unwrap().try_run(|| ()))))
    };
    for policy in [Policy::Random, Policy::RoundRobin, Policy::LeastLoaded, Policy::TwoChoices] {
        assert_eq!(choose_of_each(policy), 0, "{policy:?}");
    }
}

const WORDS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

#[test]
fn inline_runs_allocate_nothing() {
    let exec = executor(1);
    let first = allocations(|| call_inline(&exec, &WORDS));
    let later = allocations(|| (0..1000).for_each(|_| call_inline(&exec, &WORDS)));
    assert_eq!((first, later), (0, 0));
    assert_quiet(&exec);
}

#[test]
fn a_threads_first_inline_run_allocates_nothing() {
    let exec = executor(1);
    for _ in 0..20 {
        let fresh = exec.clone();
        let first = thread::spawn(move || allocations(|| call_inline(&fresh, &WORDS)));
        assert_eq!(first.join().unwrap(), 0);
    }
    // Many threads at once, so that their numbers are new as well.
    let meeting = support::Meeting::of(100);
    let counts: Vec<_> = (0..100)
        .map(|_| {
            let (exec, meeting) = (exec.clone(), meeting.clone());
            thread::spawn(move || {
                let run = || allocations(|| drop(exec.try_run(|| ())));
                let first = run();
                meeting.meet();
                first
            })
        })
        .collect();
    for count in counts {
        assert_eq!(count.join().unwrap(), 0);
    }
}

#[test]
fn refusals_and_guards_allocate_nothing() {
    let exec = executor(1);
    drop(exec.acquire().unwrap()); // this thread's list of guards
    let count = allocations(|| {
        for _ in 0..100 {
            let guard = exec.acquire().unwrap();
            assert!(exec.try_run(|| ()).is_err());
            assert!(exec.run(|| ()).is_err(), "it would wait for itself");
            assert!(exec.run_timeout(Duration::ZERO, || ()).is_err());
            drop(guard.into_owned());
            drop(exec.try_acquire().unwrap());
        }
    });
    assert_eq!(count, 0);
}

/// More than the run queue can need for this many entries: a block for each 63, and two at its ends.
fn blocks(entries: u64) -> u64 {
    entries / 63 + 2
}

/// Tasks of one measurement; the line keeps the memory for so many.
const TASKS: u64 = 500;

/// Spawns while the only permit is taken, so that nothing but the spawn happens.
fn spawn_behind_a_guard(exec: &Executor, handles: &mut Vec<JoinHandle<u64>>) -> u64 {
    let guard = exec.acquire().unwrap();
    let count = allocations(|| {
        for n in 0..TASKS {
            let words = WORDS;
            let task = move || words[n as usize % 8];
            handles.push(exec.spawn(task).unwrap());
        }
    });
    drop(guard);
    count
}

#[test]
fn a_spawned_task_is_one_block() {
    hang_guard(|| {
        let (exec, _) = counted_workers(1);
        let mut handles = Vec::with_capacity(TASKS as usize);
        // Twice, as the line and the way into it take turns with their memory.
        for _ in 0..2 {
            spawn_behind_a_guard(&exec, &mut handles);
            handles.drain(..).for_each(|h| assert!(h.join().is_ok()));
        }
        // From here on both have it, and this thread has what it waits with.
        assert_eq!(spawn_behind_a_guard(&exec, &mut handles), TASKS);
        let joins = allocations(|| handles.drain(..).for_each(|h| assert!(h.join().is_ok())));
        assert!(joins <= blocks(TASKS), "{joins} for {TASKS} joins");
        // A dispatch that queues is the same, and a cancelled one needs no more.
        let guard = exec.acquire().unwrap();
        let count = allocations(|| {
            for _ in 0..TASKS {
                let words = WORDS;
                match exec.dispatch(move || words).unwrap() {
                    Dispatched::Queued(handle) => assert!(handle.cancel()),
                    Dispatched::Inline(_) => panic!("no permit is free"),
                }
            }
        });
        assert_eq!(count, TASKS);
        drop(guard);
        assert_quiet(&exec);
    });
}

#[test]
fn spawn_run_and_join_is_one_block() {
    hang_guard(|| {
        let (exec, workers) = counted_workers(4);
        let spawn = || {
            let words = WORDS;
            exec.spawn(move || words).unwrap()
        };
        // On a worker: this thread only asks.
        let on_a_worker = || {
            let mut handle = spawn();
            while let Err(back) = handle.join_timeout(Duration::ZERO) {
                handle = back;
                thread::yield_now();
            }
        };
        // By whoever comes first.
        let joined = || assert!(spawn().join().is_ok());
        (0..TASKS).for_each(|_| on_a_worker());
        (0..TASKS).for_each(|_| joined());
        let before = workers.load(SeqCst);
        let asked = allocations(|| (0..TASKS).for_each(|_| on_a_worker()));
        let joins = allocations(|| (0..TASKS).for_each(|_| joined()));
        let by_workers = workers.load(SeqCst) - before;
        println!("{TASKS} tasks: {asked} asked for, {joins} joined, {by_workers} on workers");
        assert!((TASKS..=TASKS + blocks(TASKS)).contains(&asked), "{asked}");
        assert!((TASKS..=TASKS + blocks(TASKS)).contains(&joins), "{joins}");
        assert!(by_workers <= blocks(2 * TASKS), "{by_workers} on workers");
        assert_quiet(&exec);
    });
}

#[test]
fn an_executed_task_of_a_small_closure_is_no_block() {
    hang_guard(|| {
        let (exec, workers) = counted_workers(1);
        let (tx, rx) = mpsc::sync_channel(TASKS as usize);
        let small = || {
            for _ in 0..TASKS {
                let tx = tx.clone();
                exec.execute(move || tx.send(()).unwrap()).unwrap();
            }
        };
        let empty = || (0..TASKS).for_each(|_| exec.execute(|| ()).unwrap());
        let measure = |name: &str, execute: &dyn Fn()| {
            let guard = exec.acquire().unwrap();
            let count = allocations(execute);
            let before = workers.load(SeqCst);
            drop(guard);
            until("done", || {
                let stats = exec.stats();
                stats.queued + stats.active == 0
            });
            let by_workers = workers.load(SeqCst) - before;
            println!("{TASKS} {name} closures: {count} to queue them, {by_workers} to run them");
            (count, by_workers)
        };
        for _ in 0..2 {
            measure("first", &small);
            (0..TASKS).for_each(|_| rx.recv().unwrap());
        }
        let (queued, ran) = measure("small", &small);
        assert!(queued == 0 && ran <= blocks(TASKS));
        (0..TASKS).for_each(|_| rx.recv().unwrap());
        assert_eq!(measure("empty", &empty).0, 0);
        let large = || {
            for n in 0..TASKS {
                let (tx, words) = (tx.clone(), [n; 16]);
                let task = move || {
                    black_box(words);
                    tx.send(()).unwrap();
                };
                exec.execute(task).unwrap();
            }
        };
        assert_eq!(measure("large", &large).0, TASKS, "one box each");
    });
}

/// Each with a name of its own.
fn strands(top: &Executor, n: usize) -> Vec<Executor> {
    let mut strands = Vec::with_capacity(n);
    strands.extend((0..n).map(|n| top.strand(format!("key {n}")).build().unwrap()));
    strands
}

/// A million idle strands cost nothing but memory, and not much of it.
#[test]
fn an_idle_strand_is_at_most_200_bytes() {
    const STRANDS: usize = 10_000;
    let top = executor(2);
    let before = BYTES.get();
    let all = strands(&top, STRANDS);
    // Without the list of handles.
    let each = || (BYTES.get() - before) as usize / STRANDS - size_of::<Executor>();
    let fresh = each();
    all.iter().for_each(|strand| strand.run(|| ()).unwrap());
    let used = each();
    println!("{fresh} bytes and a handle, {used} after an inline run");
    assert!(fresh <= 200 && used <= 200, "{fresh} and {used} bytes");
    drop(all);
    assert!((BYTES.get() - before) < 4096, "{} bytes stay", BYTES.get() - before);
}

#[test]
fn inline_runs_of_a_strand_allocate_nothing() {
    let top = executor(2);
    let all = strands(&top, 10);
    let low = all[0].child("below").limit(1).build().unwrap();
    let counted = allocations(|| {
        for exec in all.iter().chain([&low]) {
            assert_eq!(exec.try_run(|| 1).unwrap(), 1);
            assert_eq!(exec.run(|| exec.run(|| 2).unwrap()).unwrap(), 2);
            assert!(exec.dispatch(|| 3).unwrap().is_inline());
            assert_eq!(exec.run_timeout(HANG, || top.run(|| 4).unwrap()).unwrap(), 4);
        }
        top.run(|| assert_eq!(low.run(|| 5).unwrap(), 5)).unwrap();
    });
    assert_eq!(counted, 0);
}

/// A strand has a queue only while something waits there, and gets one that another has left.
#[test]
fn tasks_of_idle_strands_are_no_blocks_of_their_own() {
    hang_guard(|| {
        let top = executor(1);
        let all = strands(&top, 10);
        let queue = || {
            let _busy = top.acquire().unwrap();
            all.iter().for_each(|strand| strand.execute(|| ()).unwrap());
        };
        let run = || {
            until("all have run", || all.iter().all(|s| s.stats().queued + s.stats().active == 0))
        };
        for _ in 0..2 {
            queue();
            run();
        }
        let counted = allocations(queue);
        run();
        assert_eq!(counted, 0);
    });
}
