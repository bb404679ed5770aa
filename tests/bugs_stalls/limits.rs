//! Limits that are raised, lowered, or zero, and time that has passed already.

use crate::support::{
    Latch, Meeting, Meter, assert_quiet, executor, hang_guard, until, use_of_threads,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use work_permit::{Executor, Pool, Reason};

#[test]
fn b32_a_raise_from_zero_starts_what_is_queued() {
    hang_guard(|| {
        let exec = executor(0);
        let meter = Meter::new();
        let meetings = [Meeting::of(4), Meeting::of(4)];
        for meeting in meetings.iter().flat_map(|meeting| vec![meeting.clone(); 4]) {
            let meter = Arc::clone(&meter);
            let body = move || {
                let _inside = meter.enter();
                meeting.meet();
            };
            exec.execute(body).unwrap();
        }
        assert_eq!((exec.stats().queued, meter.now()), (8, 0));
        exec.set_limit(4).unwrap();
        // Each four of them wait for each other, and nobody calls the executor any more.
        until("all have run", || exec.stats().completed == 8);
        assert_eq!(meter.peak(), 4, "as many as there are permits");
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b32_a_raise_beside_running_work_starts_what_is_queued() {
    hang_guard(|| {
        let exec = executor(1);
        let go = Latch::new();
        let holds = go.clone();
        exec.execute(move || holds.wait()).unwrap();
        until("the permit is taken", || exec.stats().active == 1);
        let (together, all_started) = (Meeting::of(3), mpsc::channel());
        for n in 0..3 {
            let (together, started) = (together.clone(), all_started.0.clone());
            let body = move || {
                together.meet();
                started.send(n).unwrap();
            };
            exec.execute(body).unwrap();
        }
        exec.set_limit(4).unwrap();
        assert_eq!(all_started.1.iter().take(3).count(), 3, "while the first goes on");
        assert!(!go.is_open());
        go.open();
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

/// `n` threads that ask for a permit each and hold it until `leave` opens.
fn waiters<'s>(s: &'s thread::Scope<'s, '_>, exec: &'s Executor, n: usize, leave: &'s Latch) {
    for _ in 0..n {
        s.spawn(|| {
            let _permit = exec.acquire().unwrap();
            leave.wait();
        });
    }
    until("all wait", || exec.stats().waiting == n);
}

#[test]
fn b33_no_waiter_is_left_behind_by_a_raise() {
    hang_guard(|| {
        let exec = executor(1);
        let guard = exec.acquire().unwrap();
        let leave = Latch::new();
        thread::scope(|s| {
            waiters(s, &exec, 6, &leave);
            for (limit, waiting) in [(2, 5), (4, 3), (3, 3), (4, 3), (7, 0)] {
                exec.set_limit(limit).unwrap();
                until("as many as fit are in", || exec.stats().waiting == waiting);
                let stats = exec.stats();
                assert_eq!((stats.active, stats.free), (7 - waiting, 0), "{stats:?}");
            }
            exec.set_limit(8).unwrap();
            // Nobody waits any more, so a later call does not either.
            assert!(exec.dispatch(|| ()).unwrap().is_inline());
            assert!(exec.try_run(|| ()).is_ok());
            leave.open();
        });
        drop(guard);
        assert_quiet(&exec);
    });
}

#[test]
fn b33_a_raise_serves_waiters_and_tasks_in_their_order() {
    hang_guard(|| {
        let exec = executor(0);
        let leave = Latch::new();
        let (tx, rx) = mpsc::channel();
        thread::scope(|s| {
            waiters(s, &exec, 1, &leave);
            let started = tx.clone();
            exec.execute(move || started.send("task").unwrap()).unwrap();
            exec.set_limit(1).unwrap();
            until("the waiter is in", || exec.stats().waiting == 0);
            assert_eq!(rx.try_recv(), Err(mpsc::TryRecvError::Empty), "it stands behind");
            exec.set_limit(2).unwrap();
            assert_eq!(rx.recv(), Ok("task"));
            leave.open();
        });
        until("quiet", || exec.stats().free == 2);
        assert_quiet(&exec);
    });
}

#[test]
fn b41_a_lower_limit_blocks_nobody_and_holds_from_then_on() {
    hang_guard(|| {
        const RUNNING: usize = 5;
        let exec = executor(RUNNING);
        let (ends, started) = (mpsc::channel(), mpsc::channel());
        let inside = Arc::new(AtomicUsize::new(0));
        let (all_run, resized) = (Meeting::of(RUNNING), Latch::new());
        let leave: Vec<Latch> = (0..RUNNING).map(|_| Latch::new()).collect();
        for (n, leave) in leave.iter().enumerate() {
            let (exec_inside, leave, beside) = (exec.clone(), leave.clone(), Arc::clone(&inside));
            let (all_run, resized, ends) = (all_run.clone(), resized.clone(), ends.0.clone());
            let body = move || {
                beside.fetch_add(1, SeqCst);
                all_run.meet();
                if n == 0 {
                    // From inside, and again before the first took effect.
                    [2, 0, 3, 1].iter().for_each(|limit| exec_inside.set_limit(*limit).unwrap());
                    resized.open();
                }
                leave.wait();
                beside.fetch_sub(1, SeqCst);
                ends.send(n).unwrap();
            };
            exec.execute(body).unwrap();
        }
        resized.wait();
        assert_eq!(exec.limit(), 1);
        exec.set_limit(2).unwrap();
        assert_eq!((exec.limit(), exec.stats().limit, exec.stats().active), (2, 2, RUNNING));
        for n in 0..3 {
            let (inside, started) = (Arc::clone(&inside), started.0.clone());
            exec.execute(move || started.send((n, inside.load(SeqCst))).unwrap()).unwrap();
        }
        assert_eq!(exec.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
        for (n, leave) in leave.iter().enumerate() {
            leave.open();
            assert_eq!(ends.1.recv(), Ok(n));
            until("its permit is back", || exec.stats().active < RUNNING - n);
        }
        for (n, (task, beside)) in started.1.iter().take(3).enumerate() {
            assert_eq!(task, n, "in order");
            assert!(beside < 2, "it started beside {beside} others");
        }
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b43_zero_is_paused_and_without_limit_has_its_own_name() {
    hang_guard(|| {
        let pool = Pool::new();
        let exec = pool.executor("paused").limit(0).queue_capacity(2).build().unwrap();
        let short = Duration::from_millis(5);
        assert_eq!(exec.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
        assert_eq!(exec.try_acquire().unwrap_err().reason(), Reason::Saturated);
        assert_eq!(exec.run_timeout(short, || ()).unwrap_err().reason(), Reason::TimedOut);
        assert_eq!(exec.acquire_timeout(short).unwrap_err().reason(), Reason::TimedOut);
        let queued = exec.dispatch(|| 1).unwrap();
        assert!(!queued.is_inline());
        let spawned = exec.spawn(|| 2).unwrap().join_timeout(short).unwrap_err();
        assert_eq!(exec.dispatch(|| 3).unwrap_err().reason(), Reason::QueueFull);
        assert_eq!((exec.stats().queued, exec.stats().active), (2, 0));
        exec.set_limit(Executor::MAX_LIMIT).unwrap();
        assert_eq!(queued.join().unwrap() + spawned.join().unwrap(), 3);
        until("quiet", || exec.stats().active == 0);
        assert_eq!(exec.stats().free, Executor::MAX_LIMIT);
        assert_quiet(&exec);
        // The number after it is refused by name, and so is a pool without threads.
        for wrong in [Executor::MAX_LIMIT + 1, usize::MAX] {
            let refused = exec.set_limit(wrong).unwrap_err().to_string();
            assert!(refused.contains(&format!("limit {wrong}")), "{refused}");
            let refused = pool.executor("wrong").limit(wrong).build().unwrap_err().to_string();
            assert!(refused.contains(&format!("limit {wrong}")), "{refused}");
        }
        assert_eq!(exec.limit(), Executor::MAX_LIMIT);
        let refused = Pool::builder().max_threads(0).build().unwrap_err();
        assert!(refused.to_string().contains("max_threads 0"), "{refused}");
        // No place in the queue: inline, or not at all.
        let exec = pool.executor("no queue").limit(1).queue_capacity(0).build().unwrap();
        assert!(exec.dispatch(|| ()).unwrap().is_inline());
        assert_eq!(exec.spawn(|| ()).unwrap_err().reason(), Reason::QueueFull);
        assert_quiet(&exec);
    });
}

#[test]
fn b43_waiting_for_a_permit_of_none_costs_no_processor_time() {
    hang_guard(|| {
        for (name, keep_alive) in [("b43-stay", Duration::MAX), ("b43-go", Duration::ZERO)] {
            let builder = Pool::builder().name(name).keep_alive(keep_alive);
            let pool = builder.build().unwrap();
            let exec = pool.executor("paused").limit(0).build().unwrap();
            let handles: Vec<_> = (0..100).map(|n| exec.spawn(move || n).unwrap()).collect();
            until("its thread rests", || pool.stats().idle == 1);
            let before = use_of_threads(name);
            // sleep: the time in which nothing may be busy is the subject.
            thread::sleep(Duration::from_millis(200));
            let after = use_of_threads(name);
            if let (Some(before), Some(after)) = (before, after) {
                let busy = Duration::from_nanos(after.cpu_ns - before.cpu_ns);
                assert!(busy < Duration::from_millis(20), "{name}: busy for {busy:?}");
                assert!(after.naps - before.naps < 10, "{name}: {} naps", after.naps);
            }
            assert_eq!((pool.stats().alive, pool.stats().created), (1, 1));
            exec.set_limit(2).unwrap();
            for (n, handle) in handles.into_iter().enumerate() {
                assert_eq!(handle.join().unwrap(), n);
            }
            pool.shutdown(Duration::MAX).unwrap();
            assert_quiet(&exec);
        }
    });
}

#[test]
fn b46_no_time_left_takes_nothing() {
    hang_guard(|| {
        let exec = executor(1);
        for n in 0..1000 {
            let refused = exec.run_timeout(Duration::ZERO, || n).unwrap_err();
            assert_eq!((refused.reason(), refused.into_task()()), (Reason::TimedOut, n));
            let refused = exec.acquire_timeout(Duration::ZERO).unwrap_err();
            assert_eq!(refused.reason(), Reason::TimedOut);
        }
        assert_eq!((exec.stats().free, exec.stats().accepted), (1, 0));
        assert_eq!(exec.stats().refused.timed_out, 2000);
        // Hardly any time: either it ran, or it says so.
        let mut ran = 0_u64;
        for _ in 0..1000 {
            let got = exec.run_timeout(Duration::from_nanos(1), || ()).is_ok();
            ran += u64::from(got);
        }
        assert_eq!(exec.stats().ran_inline, ran);
        assert_eq!(exec.stats().refused.timed_out, 3000 - ran);
        // Inside a task there is nothing to wait for.
        assert!(exec.run(|| exec.run_timeout(Duration::ZERO, || ()).is_ok()).unwrap());
        assert_quiet(&exec);
    });
}

#[test]
fn b46_a_join_without_time_neither_runs_nor_loses_the_task() {
    hang_guard(|| {
        let exec = executor(1);
        let guard = exec.acquire().unwrap().into_owned();
        let mut handle = exec.spawn(|| 7).unwrap();
        for _ in 0..100 {
            handle = handle.join_timeout(Duration::ZERO).unwrap_err();
            handle = handle.join_timeout(Duration::from_nanos(1)).unwrap_err();
        }
        assert_eq!((exec.stats().queued, exec.stats().waiting), (1, 0));
        drop(guard);
        until("a worker has run it", || handle.is_finished());
        until("it is counted", || exec.stats().completed == 1);
        until("the permit is back", || exec.stats().free == 1);
        let done = loop {
            match handle.join_timeout(Duration::ZERO) {
                Ok(done) => break done,
                Err(late) => handle = late,
            }
        };
        assert_eq!(done.unwrap(), 7);
        assert_quiet(&exec);
    });
}

#[test]
fn b46_a_join_without_time_leaves_a_task_that_could_run_alone() {
    hang_guard(|| {
        let pool = Pool::builder().max_threads(1).build().unwrap();
        let build = |name| pool.executor(name).limit(1).build().unwrap();
        let (blocks, exec) = (build("blocks"), build("could run"));
        let go = Latch::new();
        let closed = go.clone();
        blocks.execute(move || closed.wait()).unwrap();
        until("the only thread is busy", || blocks.stats().on_workers == 1);
        let here = thread::current().id();
        let mut handle = exec.spawn(move || thread::current().id() == here).unwrap();
        for _ in 0..100 {
            handle = handle.join_timeout(Duration::ZERO).unwrap_err();
        }
        assert_eq!((exec.stats().queued, exec.stats().free), (1, 1));
        let done = handle.join_timeout(Duration::from_secs(50)).unwrap();
        assert!(done.unwrap(), "with time it runs here, under the free permit");
        go.open();
        pool.shutdown(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}
