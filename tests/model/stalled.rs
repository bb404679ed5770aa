//! G3 where every thread of the pool is busy for somebody else: a thread that waits at the head of the line needs
//! no worker, so it must get the permit that is free.
//!
//! The token of the line (I5) was given to the pool for the task that stood before the waiter. When that task
//! leaves (cancelled, or run by its joiner), the token must not stay in the pool's run queue until one of the
//! pool's threads comes, which is never if its work waits for the waiter. The random cases wait there as well.
#![forbid(unsafe_code)]

use crate::support::{Latch, hang_guard, occupy, until};
use std::thread;
use work_permit::{Executor, JoinHandle, Pool};

/// A strict executor with one permit whose pool has one thread, which is busy.
fn stalled() -> (Executor, Latch) {
    let pool = Pool::builder().max_threads(1).build().unwrap();
    let busy = pool.executor("busy").limit(1).build().unwrap();
    let latch = occupy(&busy);
    (pool.executor("stalled").limit(1).max_overtakes(0).build().unwrap(), latch)
}

fn waiter(exec: &Executor) -> thread::JoinHandle<()> {
    let other = exec.clone();
    let waiter = thread::spawn(move || other.run(|| ()).unwrap());
    until("it stands in the line", || exec.stats().waiting == 1);
    waiter
}

fn task_before_a_waiter(exec: &Executor) -> (JoinHandle<()>, thread::JoinHandle<()>) {
    let task = exec.spawn(|| ()).unwrap();
    (task, waiter(exec))
}

#[test]
fn a_waiter_is_served_when_the_task_before_it_is_cancelled() {
    hang_guard(|| {
        let (exec, busy) = stalled();
        let (task, waiter) = task_before_a_waiter(&exec);
        assert!(task.cancel());
        waiter.join().unwrap();
        busy.open();
    });
}

#[test]
fn a_waiter_is_served_when_the_task_before_it_is_joined() {
    hang_guard(|| {
        let (exec, busy) = stalled();
        let (task, waiter) = task_before_a_waiter(&exec);
        task.join().unwrap();
        waiter.join().unwrap();
        busy.open();
    });
}

#[test]
fn a_waiter_is_served_when_a_token_of_the_past_is_on_its_way() {
    hang_guard(|| {
        let (exec, busy) = stalled();
        assert!(exec.spawn(|| ()).unwrap().cancel());
        let permit = exec.try_acquire().unwrap();
        let waiter = waiter(&exec);
        drop(permit);
        waiter.join().unwrap();
        busy.open();
    });
}
