//! How many threads there are: enough for work that blocks, few for work that does not, none for none.
#![forbid(unsafe_code)]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use support::{
    HANG, Latch, Meeting, Meter, assert_quiet, block_on, executor, hang_guard, occupy,
    threads_named, until, until_asleep, within,
};
use work_permit::{Executor, Pool, PoolBuilder};

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn on(pool: PoolBuilder, limit: usize) -> Executor {
    let pool = pool.build().unwrap();
    let builder = pool.executor("tested").limit(limit);
    builder.unbounded_queue().build().unwrap()
}

/// `n` tasks that wait for each other, so that they end only when all of them run together. When they started,
/// counted from the first call.
fn run_together(exec: &Executor, n: usize) -> Vec<Duration> {
    let meeting = Meeting::of(n);
    let began = Instant::now();
    let spawn = |_| {
        let meeting = meeting.clone();
        let task = move || {
            let started = began.elapsed();
            meeting.meet();
            started
        };
        exec.spawn(task).unwrap()
    };
    let handles: Vec<_> = (0..n).map(spawn).collect();
    // A handle that is polled runs nothing here.
    let starts = handles.into_iter().map(|handle| block_on(handle).unwrap());
    let mut starts: Vec<_> = starts.collect();
    starts.sort();
    starts
}

#[test]
fn blocking_tasks_run_together() {
    hang_guard(|| {
        let exec = executor(64);
        for round in ["cold", "warm"] {
            let starts = run_together(&exec, 64);
            println!("64 blocking tasks, {round}: all started within {:?}", starts[63]);
        }
        // As many again from one task that knows of no other.
        let nested = exec.clone();
        let fan_out = exec.spawn(move || run_together(&nested, 63));
        block_on(fan_out.unwrap()).unwrap();
        let created = exec.pool().stats().created;
        assert!((64..=66).contains(&created), "{created}");
        assert_quiet(&exec);
    });
}

#[test]
fn blocking_tasks_of_many_executors_run_together() {
    hang_guard(|| {
        let pool = Pool::new();
        let meeting = Meeting::of(32);
        let executors: Vec<_> =
            (0..32).map(|n| pool.executor(format!("{n}")).limit(1).build().unwrap()).collect();
        for exec in &executors {
            let meeting = meeting.clone();
            exec.execute(move || meeting.meet()).unwrap();
        }
        for exec in &executors {
            exec.drain(HANG).unwrap();
        }
    });
}

#[test]
fn blocking_tasks_run_together_behind_short_ones() {
    hang_guard(|| {
        let exec = executor(16);
        for _ in 0..20 {
            let meeting = Meeting::of(8);
            for n in 0..800 {
                let meeting = (n % 100 == 99).then(|| meeting.clone());
                let task = move || meeting.iter().for_each(Meeting::meet);
                exec.execute(task).unwrap();
            }
        }
        exec.drain(HANG).unwrap();
        assert_quiet(&exec);
    });
}

fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// How many threads 100,000 short tasks make at a limit that would allow 1000.
fn threads_for_short_tasks() -> u64 {
    let exec = on(Pool::builder(), 1000);
    let began = Instant::now();
    for _ in 0..100_000 {
        exec.execute(|| spin(Duration::from_micros(5))).unwrap();
    }
    exec.drain(HANG).unwrap();
    let stats = exec.pool().stats();
    println!("100,000 tasks of 5 us in {:?}: {stats:?}", began.elapsed());
    assert_quiet(&exec);
    stats.created
}

#[test]
fn c28_short_tasks_make_few_threads() {
    hang_guard(|| {
        // Where other processes take the cores away for long, running looks like blocking: three attempts.
        let few = |_| threads_for_short_tasks() <= 4 * cores() as u64;
        assert!((0..3).any(few), "more than four threads for each core");
    });
}

#[test]
fn threads_are_used_again() {
    hang_guard(|| {
        let exec = on(Pool::builder().keep_alive(Duration::MAX), 2);
        let ids = Mutex::new(Vec::new());
        for _ in 0..500 {
            let id = block_on(exec.spawn(|| thread::current().id()).unwrap()).unwrap();
            let mut ids = ids.lock().unwrap();
            if !ids.contains(&id) {
                ids.push(id);
            }
            drop(ids);
            until_asleep(exec.pool());
        }
        assert_eq!(ids.lock().unwrap().len(), 1);
        assert_eq!(exec.pool().stats().created, 1);
    });
}

#[test]
fn idle_threads_leave_after_keep_alive() {
    hang_guard(|| {
        let (started, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (starts, stops) = (Arc::clone(&started), Arc::clone(&stopped));
        let builder = Pool::builder()
            .name("leave")
            .keep_alive(Duration::from_millis(30))
            .on_thread_start(move || {
                starts.fetch_add(1, SeqCst);
            })
            .on_thread_stop(move || {
                stops.fetch_add(1, SeqCst);
            });
        let exec = on(builder, 8);
        for round in 1..=3 {
            run_together(&exec, 8);
            until("all left", || exec.pool().stats().alive == 0);
            let stats = exec.pool().stats();
            assert_eq!((stats.idle, stats.created), (0, stats.left));
            assert!(stats.created >= 8 * round, "{stats:?}");
            assert_eq!(started.load(SeqCst) as u64, stats.created);
            assert_eq!(stopped.load(SeqCst) as u64, stats.left);
            until("none", || threads_named("leave-").is_none_or(|all| all.is_empty()));
        }
    });
}

#[test]
fn idle_threads_stay_for_as_long_as_asked() {
    hang_guard(|| {
        for keep_alive in [Duration::MAX, Duration::from_secs(3600)] {
            let exec = on(Pool::builder().keep_alive(keep_alive), 8);
            run_together(&exec, 8);
            until_asleep(exec.pool());
            let before = exec.pool().stats();
            // sleep: that nothing happens meanwhile is the subject
            thread::sleep(Duration::from_millis(50));
            assert_eq!(exec.pool().stats(), before);
            assert!(before.alive >= 8 && before.left == 0);
        }
    });
}

#[test]
fn no_thread_stays_with_keep_alive_zero() {
    hang_guard(|| {
        let exec = on(Pool::builder().keep_alive(Duration::ZERO), 4);
        for _ in 0..50 {
            run_together(&exec, 4);
            until("all left", || exec.pool().stats().alive == 0);
        }
        // Work that nobody can start yet keeps one thread, and only until it is done.
        exec.set_limit(0).unwrap();
        exec.execute(|| ()).unwrap();
        let second = exec.spawn(|| ()).unwrap();
        until("parked", || exec.pool().stats().idle == 1);
        assert_eq!(exec.pool().stats().alive, 1);
        exec.set_limit(1).unwrap();
        block_on(second).unwrap();
        until("all left", || exec.pool().stats().alive == 0);
        exec.set_limit(0).unwrap();
        let third = exec.spawn(|| ()).unwrap();
        until("parked", || exec.pool().stats().idle == 1);
        assert!(third.cancel());
        until("all left", || exec.pool().stats().alive == 0);
        exec.drain(HANG).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn never_more_threads_than_allowed() {
    hang_guard(|| {
        let pool = Pool::builder().max_threads(3).build().unwrap();
        let meter = Meter::new();
        let executors: Vec<_> =
            (0..8).map(|n| pool.executor(format!("{n}")).limit(4).build().unwrap()).collect();
        for n in 0..4000 {
            let meter = Arc::clone(&meter);
            let task = move || {
                let _inside = meter.enter();
                if n % 50 == 0 {
                    thread::yield_now();
                }
            };
            executors[n % 8].execute(task).unwrap();
        }
        for exec in &executors {
            exec.drain(HANG).unwrap();
            assert_quiet(exec);
        }
        assert!(meter.peak() <= 3 && pool.stats().created <= 3);
        // All three can be had.
        let exec = pool.executor("three").limit(8).build().unwrap();
        run_together(&exec, 3);
        assert_eq!(pool.stats().created, 3);
    });
}

#[test]
fn one_thread_serves_every_executor_in_turn() {
    hang_guard(|| {
        let pool = Pool::builder().max_threads(1).build().unwrap();
        let executor = |name: &str| pool.executor(name).limit(1).build().unwrap();
        let (busy, other) = (executor("busy"), executor("other"));
        // `busy` has always more to do; `other` gets its turn all the same.
        let stop = Latch::new();
        fn again(exec: &Executor, stop: &Latch) {
            if !stop.is_open() {
                let (next, stop) = (exec.clone(), stop.clone());
                exec.execute(move || again(&next, &stop)).unwrap();
            }
        }
        again(&busy, &stop);
        again(&busy, &stop);
        for _ in 0..100 {
            block_on(other.spawn(|| ()).unwrap()).unwrap();
        }
        stop.open();
        busy.drain(HANG).unwrap();
        assert_quiet(&other);
    });
}

#[test]
fn threads_carry_the_name_of_the_pool() {
    hang_guard(|| {
        let exec = on(Pool::builder().name("db"), 1);
        let name = exec.spawn(|| thread::current().name().map(str::to_owned));
        let name = block_on(name.unwrap()).unwrap().unwrap();
        assert!(name.starts_with("db-"), "{name}");
    });
}

#[test]
fn hooks_run_on_the_threads_and_may_panic() {
    hang_guard(|| {
        let (tx, rx) = mpsc::channel();
        let told = tx.clone();
        let builder = Pool::builder()
            .on_thread_start(move || {
                tx.send(("start", thread::current().id())).unwrap();
                std::panic::resume_unwind(Box::new("start"));
            })
            .on_thread_stop(move || {
                told.send(("stop", thread::current().id())).unwrap();
                std::panic::resume_unwind(Box::new("stop"));
            });
        let exec = on(builder, 1);
        let worker = block_on(exec.spawn(|| thread::current().id()).unwrap()).unwrap();
        exec.pool().shutdown(HANG).unwrap();
        assert_eq!(rx.try_iter().collect::<Vec<_>>(), [("start", worker), ("stop", worker)]);
    });
}

#[test]
fn a_slow_start_hook_delays_no_work_beside_idle_threads() {
    within(HANG / 3, || {
        let (number, slow) = (AtomicUsize::new(0), Latch::new());
        let hold = slow.clone();
        let hook = move || {
            if number.fetch_add(1, SeqCst) == 1 {
                hold.wait();
            }
        };
        let exec = on(Pool::builder().on_thread_start(hook), 2);
        let first = occupy(&exec);
        // The second thread hangs in its hook, so the first takes this task too, and rests.
        let second = exec.spawn(|| ()).unwrap();
        first.open();
        block_on(second).unwrap();
        until("one parked", || exec.pool().stats().idle == 1);
        assert_eq!(exec.pool().stats().alive, 2);
        // One thread is idle and a permit is free.
        block_on(exec.spawn(|| ()).unwrap()).unwrap();
        slow.open();
    });
}

#[test]
fn without_a_thread_to_be_had_the_task_comes_back() {
    // No system has room for such a stack.
    let exec = on(Pool::builder().stack_size(1 << 46), 1);
    let refused = exec.spawn(|| 7).unwrap_err();
    assert_eq!(refused.reason(), work_permit::Reason::NoThread);
    assert_eq!(refused.into_task()(), 7);
    assert!(exec.execute(|| unreachable!()).is_err());
    assert_eq!(exec.run(|| 8).unwrap(), 8, "inline needs none");
    assert!(exec.dispatch(|| ()).unwrap().is_inline());
    let guard = exec.acquire().unwrap();
    assert!(exec.dispatch(|| unreachable!()).is_err());
    drop(guard);
    let stats = exec.pool().stats();
    assert_eq!((stats.created, stats.alive, stats.refused), (0, 0, 3));
    assert_eq!(exec.stats().refused.no_thread, 3);
    assert_quiet(&exec);
}

#[test]
fn a_lowered_and_raised_limit_needs_no_new_threads() {
    hang_guard(|| {
        let exec = on(Pool::builder().keep_alive(Duration::MAX), 4);
        run_together(&exec, 4);
        until_asleep(exec.pool());
        let before = exec.pool().stats().created;
        for _ in 0..20 {
            exec.set_limit(1).unwrap();
            let latch = occupy(&exec);
            exec.set_limit(4).unwrap();
            run_together(&exec, 3);
            latch.open();
            until_asleep(exec.pool());
        }
        assert_eq!(exec.pool().stats().created, before);
    });
}
