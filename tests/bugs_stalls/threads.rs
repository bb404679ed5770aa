//! The system refuses threads, for real: stacks that no address space holds, and a limit on the address space of
//! a process of its own.

use crate::support::{Latch, Meeting, Meter, assert_quiet, hang_guard, until, use_of_threads};
use std::env;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use work_permit::{Executor, Pool, Reason};

/// More than any address space has.
const TOO_MUCH_STACK: usize = 1 << 46;

#[test]
fn b58_no_thread_at_all() {
    hang_guard(|| {
        const CALLS: u64 = 100;
        let pool = Pool::builder().stack_size(TOO_MUCH_STACK).build().unwrap();
        let exec = pool.executor("no threads").limit(1).build().unwrap();
        let guard = exec.acquire().unwrap().into_owned();
        for n in 0..CALLS {
            let refused = exec.spawn(move || n).unwrap_err();
            assert_eq!((refused.reason(), refused.into_task()()), (Reason::NoThread, n));
            let refused = exec.dispatch(move || n).unwrap_err();
            assert_eq!((refused.reason(), refused.into_task()()), (Reason::NoThread, n));
            assert_eq!(exec.execute(|| ()).unwrap_err().reason(), Reason::NoThread);
        }
        let stats = pool.stats();
        assert_eq!(stats.refused, 3 * CALLS, "asked once a call, and never on its own");
        assert_eq!((stats.alive, stats.created), (0, 0));
        assert_eq!(exec.stats().refused.no_thread, 3 * CALLS);
        assert_eq!((exec.stats().queued, exec.stats().accepted), (0, 0));
        // What needs no thread of the pool goes on: who waits runs the work itself.
        thread::scope(|s| {
            let waiter = s.spawn(|| exec.run(|| 7).unwrap());
            until("it waits", || exec.stats().waiting == 1);
            drop(guard);
            assert_eq!(waiter.join().unwrap(), 7);
        });
        assert!(exec.dispatch(|| ()).unwrap().is_inline());
        assert_eq!(pool.stats().refused, 3 * CALLS);
        assert_quiet(&exec);
        exec.drain(Duration::MAX).unwrap();
        pool.shutdown(Duration::MAX).unwrap();
    });
}

#[test]
fn b58_no_thread_and_many_callers() {
    hang_guard(|| {
        let pool = Pool::builder().stack_size(TOO_MUCH_STACK).build().unwrap();
        let build = |n: usize| pool.executor("no threads").limit(n % 2).build().unwrap();
        let execs: Vec<Executor> = (0..4).map(build).collect();
        thread::scope(|s| {
            for n in 0..4 {
                let execs = &execs;
                s.spawn(move || {
                    for m in 0..1000 {
                        let refused = execs[(n + m) % 4].spawn(move || m).unwrap_err();
                        assert_eq!(
                            (refused.reason(), refused.into_task()()),
                            (Reason::NoThread, m)
                        );
                    }
                });
            }
        });
        assert!(pool.stats().refused <= 4000);
        assert_eq!(execs.iter().map(|exec| exec.stats().refused.no_thread).sum::<u64>(), 4000);
        execs.iter().for_each(assert_quiet);
        pool.shutdown(Duration::MAX).unwrap();
    });
}

/// Runs the test `name` again, alone in a process of its own, where `body` may change what holds for a process.
fn in_own_process(name: &str, body: fn()) {
    const ALONE: &str = "WORK_PERMIT_TEST_ALONE";
    if env::var_os(ALONE).is_some() {
        return hang_guard(body);
    }
    let name = format!("threads::{name}");
    let output = Command::new(env::current_exe().unwrap())
        .args([&name, "--exact", "--include-ignored", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .expect("the test's own program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    let passed = output.status.success() && said.contains("1 passed");
    assert!(passed, "{}\n{said}\n{wrong}", output.status);
}

/// Stack of each thread of a pool that is to be refused some.
const STACK: usize = 512 << 20;

fn limit_address_space(bytes: Option<usize>) {
    // SAFETY: plain numbers, for which all zeros is a value.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: `limit` is a valid place for the answer, and outlives the call.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) }, 0);
    limit.rlim_cur = bytes.map_or(limit.rlim_max, |bytes| bytes as libc::rlim_t);
    // SAFETY: `limit` is a valid value, and is only read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// From now on there is no room for one more stack of [`STACK`] bytes, and enough for all else.
fn refuse_threads() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kib: usize = line.trim().trim_end_matches("kB").trim().parse().unwrap();
    limit_address_space(Some(kib * 1024 + STACK / 2));
}

fn allow_threads() {
    limit_address_space(None);
}

/// A pool with one thread, which runs a task that waits for the latch; no more threads are to be had.
fn one_thread_and_no_more(limit: usize) -> (Pool, Executor, Latch) {
    let builder = Pool::builder().name("b58").stack_size(STACK).keep_alive(Duration::MAX);
    let pool = builder.build().unwrap();
    // No bound: how often a test calls until the pool asks again is not its subject.
    let exec = pool.executor("short of threads").limit(limit).unbounded_queue().build().unwrap();
    let (go, started) = (Latch::new(), Latch::new());
    let (closed, begins) = (go.clone(), started.clone());
    let first = move || {
        begins.open();
        closed.wait();
    };
    exec.execute(first).unwrap();
    started.wait();
    refuse_threads();
    (pool, exec, go)
}

#[test]
fn b58_work_goes_on_with_the_thread_there_is() {
    in_own_process("b58_work_goes_on_with_the_thread_there_is", || {
        const TASKS: u64 = 100;
        const LIMIT: usize = 8;
        let (pool, exec, go) = one_thread_and_no_more(LIMIT);
        let meter = Meter::new();
        for _ in 0..TASKS {
            let meter = Arc::clone(&meter);
            exec.execute(move || drop(meter.enter())).expect("there is a thread for it");
        }
        let (stats, before) = (pool.stats(), use_of_threads("b58"));
        assert!(stats.refused > 0 && stats.created == 1, "{stats:?}");
        assert!(stats.refused < TASKS, "not for each task anew: {stats:?}");
        // sleep: the time in which nobody may be busy, or ask for threads again and again, is the subject.
        thread::sleep(Duration::from_millis(200));
        let after = use_of_threads("b58");
        let busy = Duration::from_nanos(after.unwrap().cpu_ns - before.unwrap().cpu_ns);
        assert!(busy < Duration::from_millis(20), "busy for {busy:?}");
        assert_eq!(pool.stats().refused, stats.refused, "asked without a call");
        assert_eq!((exec.stats().queued, exec.stats().active), (TASKS as usize, 1));
        go.open();
        until("all have run", || exec.stats().completed == TASKS + 1);
        assert_eq!((meter.peak(), pool.stats().created), (1, 1));
        // A later retry works: as many threads as tasks that wait for each other. The pool does not ask again
        // at once after a refusal, so one call alone need not do.
        allow_threads();
        let (together, refused) = (Meeting::of(LIMIT), pool.stats().refused);
        for _ in 0..LIMIT {
            let together = together.clone();
            exec.execute(move || together.meet()).unwrap();
        }
        until("a later call has asked", || {
            exec.execute(|| ()).unwrap();
            pool.stats().created > 1
        });
        until("all have met", || {
            let stats = exec.stats();
            stats.queued + stats.active == 0
        });
        assert_eq!(exec.stats().completed, exec.stats().accepted);
        assert_eq!(pool.stats().refused, refused);
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b58_a_later_call_asks_for_a_thread_again() {
    in_own_process("b58_a_later_call_asks_for_a_thread_again", || {
        let (pool, exec, go) = one_thread_and_no_more(8);
        // Refused a thread, this one waits, and the only thread there is waits too.
        let (ran, has_run) = mpsc::channel();
        exec.execute(move || ran.send("ran").unwrap()).unwrap();
        assert!(pool.stats().refused > 0);
        allow_threads();
        // Not the next call, if it comes too soon after a refusal, but a later one.
        until("a later call has a thread made", || {
            let opens = go.clone();
            exec.execute(move || opens.open()).unwrap();
            pool.stats().created > 1
        });
        assert_eq!(has_run.recv(), Ok("ran"));
        go.wait();
        pool.shutdown(Duration::MAX).unwrap();
        assert_eq!(exec.stats().panicked, 0);
        assert_quiet(&exec);
    });
}

#[test]
fn b58_who_joins_needs_no_thread() {
    in_own_process("b58_who_joins_needs_no_thread", || {
        let (pool, exec, go) = one_thread_and_no_more(2);
        let opens = go.clone();
        exec.spawn(move || opens.open()).unwrap().join().unwrap();
        assert!(pool.stats().refused > 0 && pool.stats().created == 1);
        allow_threads();
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b58_the_first_thread_is_refused_and_comes_later() {
    in_own_process("b58_the_first_thread_is_refused_and_comes_later", || {
        let builder = Pool::builder().name("b58").stack_size(STACK);
        let pool = builder.build().unwrap();
        let exec = pool.executor("starts late").limit(2).build().unwrap();
        refuse_threads();
        let guards = (exec.acquire().unwrap(), exec.acquire().unwrap());
        let refused = exec.dispatch(|| 3).unwrap_err();
        assert_eq!(refused.reason(), Reason::NoThread);
        limit_address_space(None);
        // No pause after a refusal that left a caller without an answer: the next call asks at once.
        let queued = exec.spawn(refused.into_task()).unwrap();
        drop(guards);
        until("a worker has run it", || queued.is_finished());
        assert_eq!(queued.join().unwrap(), 3);
        assert_eq!((pool.stats().refused, pool.stats().created), (1, 1));
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}
