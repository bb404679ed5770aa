//! What a hostile user found: tokens, permits and tasks that were left where nobody looks.
#![forbid(unsafe_code)]

use std::sync::mpsc;
use std::time::Duration;
use work_permit::{JoinError, Pool, Reason};

/// Far beyond what any of these take: it only ends what would hang.
const HANG: Duration = Duration::from_secs(30);

/// A pool whose only thread is busy until the sender is dropped.
fn busy_pool() -> (Pool, mpsc::Sender<()>) {
    let pool = Pool::builder().max_threads(1).build().unwrap();
    let busy = pool.executor("busy").limit(1).build().unwrap();
    let (release, held) = mpsc::channel::<()>();
    let (started, wait) = mpsc::channel();
    busy.execute(move || {
        started.send(()).unwrap();
        let _released = held.recv();
    })
    .unwrap();
    wait.recv().unwrap();
    (pool, release)
}

#[test]
fn a_waiter_behind_a_cancelled_task_needs_no_worker() {
    let (pool, release) = busy_pool();
    let exec = pool.executor("strict").limit(1).max_overtakes(0).build().unwrap();
    let ahead = exec.spawn(|| ()).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| exec.run_timeout(HANG, || 7).map_err(|r| r.reason()));
        while exec.stats().waiting == 0 {
            std::thread::yield_now();
        }
        assert!(ahead.cancel());
        assert_eq!(waiter.join().unwrap(), Ok(7));
    });
    drop(release);
}

#[test]
fn a_waiter_behind_a_joined_task_needs_no_worker() {
    let (pool, release) = busy_pool();
    let exec = pool.executor("strict").limit(1).max_overtakes(0).build().unwrap();
    let (go, wait) = mpsc::channel::<()>();
    let ahead = exec.spawn(move || wait.recv().unwrap()).unwrap();
    std::thread::scope(|scope| {
        let joiner = scope.spawn(|| ahead.join().unwrap());
        while exec.stats().active == 0 {
            std::thread::yield_now();
        }
        let waiter = scope.spawn(|| exec.run_timeout(HANG, || 7).map_err(|r| r.reason()));
        while exec.stats().waiting == 0 {
            std::thread::yield_now();
        }
        go.send(()).unwrap();
        joiner.join().unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(7));
    });
    drop(release);
}

#[test]
fn a_forgotten_guard_is_no_other_executors() {
    let pool = Pool::new();
    for _ in 0..200 {
        let exec = pool.executor("leaks").limit(1).build().unwrap();
        std::mem::forget(exec.acquire().unwrap());
        drop(exec);
        let others: Vec<_> =
            (0..50).map(|_| pool.executor("fresh").limit(1).build().unwrap()).collect();
        assert!(others.iter().all(|exec| !exec.is_held()));
    }
}

#[test]
fn a_leaked_permit_loses_no_handle_and_pins_no_thread() {
    let pool = Pool::builder().keep_alive(Duration::ZERO).build().unwrap();
    let exec = pool.executor("leaks").limit(1).build().unwrap();
    std::mem::forget(exec.acquire().unwrap());
    exec.execute(|| unreachable!("its permit is gone")).unwrap();
    drop(exec);
    pool.shutdown(HANG).unwrap();
    assert_eq!(pool.stats().alive, 0);
}

#[test]
fn a_task_that_runs_after_shutdown_cannot_join_itself() {
    let exec = Pool::new().executor("paused").limit(0).build().unwrap();
    let (send, receive) = mpsc::channel::<work_permit::JoinHandle<()>>();
    let (tell, told) = mpsc::channel();
    let handle = exec
        .spawn(move || {
            let itself = receive.recv().unwrap();
            tell.send(matches!(itself.join(), Err(JoinError::Deadlock))).unwrap();
        })
        .unwrap();
    send.send(handle).unwrap();
    exec.shutdown_now().into_iter().for_each(|unrun| unrun.run());
    assert!(told.recv().unwrap());
    assert_eq!(exec.run(|| ()).unwrap_err().reason(), Reason::Closed);
}

#[test]
fn a_detached_result_may_cancel_the_next_task() {
    struct CancelsOnDrop(Option<work_permit::JoinHandle<()>>, mpsc::Sender<bool>);
    impl Drop for CancelsOnDrop {
        fn drop(&mut self) {
            let cancelled = self.0.take().map(|next| next.cancel());
            self.1.send(cancelled.unwrap_or(false)).unwrap();
        }
    }
    let exec = Pool::new().executor("one").limit(1).build().unwrap();
    let guard = exec.acquire().unwrap().into_owned();
    let (send, receive) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let first = exec.spawn(move || CancelsOnDrop(receive.recv().ok(), tell)).unwrap();
    let next = exec.spawn(|| ()).unwrap();
    send.send(next).unwrap();
    drop(first);
    drop(guard);
    // It was cancelled, or another worker had started it: it is with nobody.
    told.recv_timeout(HANG).unwrap();
    exec.drain(HANG).unwrap();
    let stats = exec.stats();
    assert_eq!(stats.accepted, stats.completed + stats.cancelled);
}
