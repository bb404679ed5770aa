//! Guards that are let go by mistake, places that are given out twice, limits that are not one's own.

use crate::support::{Meeting, Meter, assert_quiet, executor, hang_guard, until};
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use work_permit::{JoinHandle, Pool, Reason};

#[test]
fn b29_a_guard_without_a_name_goes_back_at_once() {
    let exec = executor(1);
    let _ = exec.acquire().unwrap();
    let _ = exec.acquire().unwrap().into_owned();
    assert_eq!((exec.stats().guards, exec.stats().free), (0, 1));
    let _permit = exec.acquire().unwrap();
    assert_eq!((exec.stats().guards, exec.stats().free), (1, 0));
}

/// Each statement is one that the compiler warns of: an expectation that is not met fails the build.
#[test]
fn b29_the_compiler_warns_of_what_is_let_go() {
    let exec = executor(1);
    #[expect(unused_must_use)]
    exec.acquire().unwrap();
    #[expect(unused_must_use)]
    exec.try_acquire().unwrap().into_owned();
    #[expect(unused_must_use)]
    exec.dispatch(|| ()).unwrap();
    #[expect(unused_must_use)]
    exec.spawn(|| ()).unwrap();
    #[expect(unused_must_use)]
    exec.execute(|| ());
    #[expect(unused_must_use)]
    exec.pool().executor("never built");
    #[expect(unused_must_use)]
    Pool::builder();
    exec.drain(Duration::MAX).unwrap();
    #[expect(unused_must_use)]
    exec.try_run(|| ()).unwrap_err();
    assert_quiet(&exec);
}

#[test]
fn b30_each_permit_that_comes_back_admits_one_waiter() {
    hang_guard(|| {
        const WAITERS: usize = 50;
        let exec = executor(1);
        let guard = exec.acquire().unwrap();
        let inside = Meter::new();
        let (leave, may_leave) = mpsc::channel();
        let may_leave = Mutex::new(may_leave);
        thread::scope(|s| {
            for _ in 0..WAITERS {
                let (exec, inside, may_leave) = (&exec, &inside, &may_leave);
                s.spawn(move || {
                    let body = || {
                        let _inside = inside.enter();
                        may_leave.lock().unwrap().recv().unwrap();
                    };
                    exec.run(body).unwrap();
                });
            }
            until("all wait", || exec.stats().waiting == WAITERS);
            drop(guard);
            for left in (0..WAITERS).rev() {
                until("one more is in", || inside.now() == 1 && exec.stats().waiting == left);
                leave.send(()).unwrap();
                until("it is out", || left == 0 || exec.stats().waiting < left);
            }
        });
        assert_eq!(inside.peak(), 1);
        assert_eq!(exec.stats().ran_inline, WAITERS as u64);
        assert_quiet(&exec);
    });
}

#[test]
fn b30_each_place_in_the_queue_admits_one_task() {
    hang_guard(|| {
        const PRODUCERS: usize = 16;
        let builder = Pool::new().executor("narrow").limit(0);
        let exec = builder.queue_capacity(3).build().unwrap();
        let mut queued: Vec<JoinHandle<usize>> = Vec::new();
        for free_places in [3, 1, 2, 0, 3, 1] {
            // A place is free as soon as its task is taken back.
            let cancelled = queued.drain(..queued.len().min(free_places));
            for handle in cancelled {
                assert!(handle.cancel());
            }
            let together = Meeting::of(PRODUCERS);
            let got: Vec<_> = thread::scope(|s| {
                let produce = |n| {
                    let (exec, together) = (&exec, &together);
                    s.spawn(move || {
                        together.meet();
                        exec.spawn(move || n).map_err(|refused| {
                            assert_eq!(refused.reason(), Reason::QueueFull);
                            assert_eq!(refused.into_task()(), n, "it comes back whole");
                        })
                    })
                };
                let producers: Vec<_> = (0..PRODUCERS).map(produce).collect();
                producers.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let accepted = got.iter().filter(|result| result.is_ok()).count();
            assert_eq!(accepted, free_places, "one for each place");
            queued.extend(got.into_iter().flatten());
            assert_eq!(exec.stats().queued, 3);
        }
        // Nor does a task that its joiner runs leave an empty place behind, or take two.
        exec.set_limit(1).unwrap();
        for handle in queued {
            handle.join().unwrap();
        }
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b31_no_limit_is_shared_by_accident() {
    hang_guard(|| {
        let pool = Pool::new();
        let build = |pool: &Pool| {
            let builder = pool.executor("same name").limit(1).queue_capacity(1);
            builder.build().unwrap()
        };
        let (a, b, c) = (build(&pool), build(&pool), build(&Pool::new()));
        let guard = a.acquire().unwrap();
        let queued = a.spawn(|| ()).unwrap();
        assert_eq!(a.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
        for other in [&b, &c] {
            assert!(!other.is_held() && a.is_held());
            let inside = other.try_run(|| {
                assert!(other.is_held() && other.try_acquire().is_err());
                a.try_run(|| ()).is_err()
            });
            assert!(inside.unwrap(), "inside the one is not inside the other");
            let other_guard = other.acquire().unwrap();
            other.execute(|| ()).unwrap();
            assert_eq!(other.stats().queued, 1, "a queue of its own");
            drop(other_guard);
        }
        b.close();
        assert!(a.try_run(|| ()).is_err_and(|r| r.reason() == Reason::Saturated));
        drop(guard);
        queued.join().unwrap();
        a.set_limit(7).unwrap();
        c.drain(Duration::MAX).unwrap();
        b.drain(Duration::MAX).unwrap();
        assert_eq!([a.limit(), b.limit(), c.limit()], [7, 1, 1]);
        assert_eq!(b.stats().ran_inline, 1);
        assert_quiet(&b);
        assert_quiet(&c);
    });
}

#[test]
fn b31_many_executors_count_for_themselves() {
    hang_guard(|| {
        let pool = Pool::new();
        let build = |_| pool.executor("one of many").limit(1).build().unwrap();
        let execs: Vec<_> = (0..50).map(build).collect();
        let guards: Vec<_> = execs.iter().map(|exec| exec.acquire().unwrap()).collect();
        let (tx, rx) = mpsc::channel();
        for (n, exec) in execs.iter().enumerate() {
            let tx = tx.clone();
            exec.execute(move || tx.send(n).unwrap()).unwrap();
        }
        let mut order: Vec<usize> = (0..50).collect();
        order.rotate_left(17);
        let mut guards: Vec<_> = guards.into_iter().map(Some).collect();
        for n in order {
            // Its permit, and no other, lets its task go.
            guards[n] = None;
            assert_eq!(rx.recv(), Ok(n));
            assert_eq!(rx.try_recv(), Err(mpsc::TryRecvError::Empty));
        }
        pool.shutdown(Duration::MAX).unwrap();
        execs.iter().for_each(assert_quiet);
    });
}
