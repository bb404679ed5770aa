//! Idle is idle: a process whose executors have nothing to do uses no processor time and wakes no thread.
//!
//! One test in a process of its own, since it counts what every thread of the process does.
#![forbid(unsafe_code)]

mod support;

use std::thread;
use std::time::Duration;
use support::{HANG, Meeting, block_on, until_asleep, use_of_threads};
use work_permit::Pool;

#[test]
fn idle_threads_use_no_processor_time() {
    // Many executors, many threads, work queued that nobody may start yet, and a trickle before it.
    let pool = Pool::builder().keep_alive(Duration::MAX).build().unwrap();
    let executors: Vec<_> =
        (0..100).map(|n| pool.executor(format!("{n}")).limit(8).build().unwrap()).collect();
    let meeting = Meeting::of(8);
    let handles: Vec<_> = (0..8)
        .map(|n| {
            let meeting = meeting.clone();
            executors[n].spawn(move || meeting.meet()).unwrap()
        })
        .collect();
    for handle in handles {
        block_on(handle).unwrap();
    }
    let paused = pool.executor("paused").limit(0).build().unwrap();
    (0..100).for_each(|_| paused.execute(|| ()).unwrap());
    let held = pool.executor("held").limit(1).build().unwrap();
    let guard = held.acquire().unwrap();
    held.execute(|| ()).unwrap();
    until_asleep(&pool);
    assert!(pool.stats().alive >= 8);

    if use_of_threads("").is_none() {
        return println!("not measured: this system does not tell");
    }
    thread::scope(|s| {
        // A thread that waits for a permit is idle too.
        s.spawn(|| held.run(|| ()).unwrap());
        support::until("in line", || held.stats().waiting == 1);
        let before = use_of_threads("").unwrap();
        // sleep: what happens meanwhile is the subject
        thread::sleep(Duration::from_millis(300));
        let after = use_of_threads("").unwrap();
        drop(guard);
        let cpu_ns = after.cpu_ns - before.cpu_ns;
        println!("300 ms of idleness: {cpu_ns} ns, {} naps", after.naps - before.naps);
        assert!(cpu_ns < 20_000_000, "{cpu_ns} ns in 300 ms of idleness");
        // This thread itself naps once; reading the numbers may cost a few.
        assert!(after.naps - before.naps < 10, "{before:?}, {after:?}");
    });
    paused.set_limit(8).unwrap();
    paused.drain(HANG).unwrap();
    pool.shutdown(HANG).unwrap();
}
