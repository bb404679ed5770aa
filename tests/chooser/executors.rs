//! Executors as items: their load, and when they count as healthy.

use crate::support::{assert_quiet, executor, hang_guard, until};
use std::thread;
use std::time::Duration;
use work_permit::{Chooser, Executor, Load, Policy, Pool};

const FULL: u64 = 65_536;

#[test]
fn load_is_what_is_asked_as_a_share_of_the_limit() {
    hang_guard(|| {
        let exec = executor(4);
        assert_eq!((exec.load(), exec.is_healthy()), (0, true));
        let permits: Vec<_> = (1..=4)
            .map(|n| {
                let permit = exec.acquire().unwrap();
                assert_eq!(exec.load(), n * FULL / 4);
                permit
            })
            .collect();
        let queued: Vec<_> = (5..=10)
            .map(|n| {
                let handle = exec.spawn(|| ()).unwrap();
                assert_eq!(exec.load(), n * FULL / 4);
                handle
            })
            .collect();
        thread::scope(|s| {
            s.spawn(|| exec.run(|| ()).unwrap());
            until("it waits", || exec.stats().waiting == 1);
            assert_eq!(exec.load(), 11 * FULL / 4);
            assert!(queued[0].cancel() && queued[5].cancel());
            assert_eq!(exec.load(), 9 * FULL / 4);
            exec.set_limit(8).unwrap();
            until("all ran", || exec.stats().completed == 5);
            until("and gave their permits back", || exec.stats().active == 4);
            assert_eq!(exec.load(), 4 * FULL / 8, "of a larger limit");
        });
        drop(permits);
        assert_eq!(exec.load(), 0);
        assert_quiet(&exec);
    });
}

#[test]
fn a_permit_that_stays_with_its_thread_is_no_load() {
    let exec = executor(1);
    for _ in 0..100 {
        exec.run(|| ()).unwrap();
        assert_eq!(exec.load(), 0);
    }
    // Nor does it starve an executor of choices.
    let idle = Chooser::new([exec.clone(), executor(1)], Policy::LeastLoaded);
    fastrand::seed(5);
    let chosen = (0..1000).filter(|_| idle.choose().unwrap().name() == exec.name()).count();
    assert!(chosen > 0);
    assert_quiet(&exec);
}

#[test]
fn closed_and_paused_executors_are_passed_over() {
    let pool = Pool::new();
    let named = |name: &str| pool.executor(name).limit(2).build().unwrap();
    for policy in crate::POLICIES {
        let chooser = Chooser::new([named("a"), named("b"), named("c")], policy);
        let [a, b, c] = chooser.items() else { unreachable!("there are three") };
        let only = |name: &str| {
            (0..50).for_each(|_| assert_eq!(chooser.choose().map(Executor::name), Some(name)));
        };
        a.close();
        b.set_limit(0).unwrap();
        assert_eq!(b.load(), u64::MAX);
        only("c");
        c.set_limit(0).unwrap();
        assert!(chooser.choose().is_none(), "{policy:?}");
        b.set_limit(1).unwrap();
        only("b");
    }
}

/// Work goes where permits are free, whatever the policy's luck.
#[test]
fn work_goes_to_the_executor_with_the_free_permit() {
    hang_guard(|| {
        for policy in [Policy::LeastLoaded, Policy::TwoChoices] {
            let chooser = Chooser::new([executor(2), executor(2)], policy);
            let full = &chooser.items()[0];
            let permits = (full.acquire().unwrap(), full.acquire().unwrap());
            for _ in 0..100 {
                assert!(chooser.choose().unwrap().dispatch(|| ()).unwrap().is_inline());
            }
            drop(permits);
            assert_eq!(chooser.items()[1].stats().ran_inline, 100);
            chooser.items().iter().for_each(|exec| exec.drain(Duration::MAX).unwrap());
        }
    });
}
