//! Under the parent's permit: what a thread that is inside of a task needs, and where it waits.
#![forbid(unsafe_code)]

use crate::support::{HANG, hang_guard, occupy, until};
use crate::{at_rest, child, root, strand};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use work_permit::{JoinError, Reason};

#[test]
fn under_the_parents_permit_a_child_needs_only_its_own() {
    hang_guard(|| {
        let top = root(1);
        let middle = child(&top, 1);
        let low = strand(&middle);
        let depth = top
            .run(|| {
                assert_eq!(top.stats().active, 1);
                middle
                    .run(|| {
                        let free = low.try_run(|| (top.stats().free, low.stats().free));
                        assert_eq!(free.unwrap(), (0, 0));
                        low.dispatch(|| 3).unwrap().join().unwrap()
                    })
                    .unwrap()
            })
            .unwrap();
        assert_eq!(depth, 3);
        assert_eq!(top.run(|| low.run(|| low.stats().active).unwrap()).unwrap(), 1);
        at_rest(&[&top, &middle, &low]);
    });
}

#[test]
fn inside_of_a_child_is_inside_of_its_parent() {
    hang_guard(|| {
        let top = root(1);
        let low = strand(&top);
        let nested = low
            .run(|| {
                assert!(top.is_held() && low.is_held());
                let up = top.run(|| low.dispatch(|| 5).unwrap().is_inline()).unwrap();
                assert_eq!(top.drain(Duration::ZERO).unwrap_err().reason(), Reason::Deadlock);
                up
            })
            .unwrap();
        assert!(nested);
        assert_eq!(top.stats().ran_inline, 1, "counted where it was asked for");
        at_rest(&[&top, &low]);
    });
}

/// C30, B11: whoever waits on a child under the parent's permit goes ahead of those who need that permit.
#[test]
fn c30_who_waits_under_the_parents_permit_is_first_at_the_child() {
    hang_guard(|| {
        let top = root(1);
        let low = strand(&top);
        let order = Arc::new(Mutex::new(Vec::new()));
        for n in 0..3 {
            let latch = occupy(&top);
            let ran = Arc::clone(&order);
            low.execute(move || ran.lock().unwrap().push((n, 'q'))).unwrap();
            latch.open();
            // Waits for the same permit and then, with it, for the strand: the queued task may be first or not.
            top.run(|| {
                let ran = Arc::clone(&order);
                low.run(move || ran.lock().unwrap().push((n, 'n'))).unwrap();
            })
            .unwrap();
        }
        low.drain(HANG).unwrap();
        assert_eq!(order.lock().unwrap().len(), 6);
        at_rest(&[&top, &low]);
    });
}

#[test]
fn a_nested_waiter_goes_ahead_of_queued_tasks() {
    hang_guard(|| {
        let top = root(2);
        let low = strand(&top);
        let busy = occupy(&low);
        let order = Arc::new(Mutex::new(Vec::new()));
        let queue = |name: char| {
            let order = Arc::clone(&order);
            low.execute(move || order.lock().unwrap().push(name)).unwrap();
        };
        ['a', 'b'].into_iter().for_each(queue);
        let (exec, strand, ran) = (top.clone(), low.clone(), Arc::clone(&order));
        let nested = thread::spawn(move || {
            exec.run(|| strand.run(|| ran.lock().unwrap().push('n')).unwrap()).unwrap();
        });
        until("he waits", || low.stats().waiting == 1);
        busy.open();
        nested.join().unwrap();
        low.drain(HANG).unwrap();
        assert_eq!(*order.lock().unwrap(), ['n', 'a', 'b']);
        at_rest(&[&top, &low]);
    });
}

#[test]
fn a_nested_join_goes_ahead_of_what_needs_its_permit() {
    hang_guard(|| {
        let top = root(1);
        let low = strand(&top);
        let results = top
            .run(|| {
                let first = low.spawn(|| 1).unwrap();
                let second = low.spawn(|| 2).unwrap();
                let third = low.spawn(|| 3).unwrap();
                low.close();
                // Nobody else can run them: this thread has the only permit of the parent.
                let second = second.join().unwrap();
                let first = first.join_timeout(Duration::MAX).unwrap().unwrap();
                assert!(third.cancel());
                (first, second, matches!(third.join(), Err(JoinError::Cancelled)))
            })
            .unwrap();
        assert_eq!(results, (1, 2, true));
        low.drain(HANG).unwrap();
        at_rest(&[&top, &low]);
    });
}

#[test]
fn a_nested_waiter_that_leaves_lets_the_others_on() {
    hang_guard(|| {
        let top = root(2);
        let low = strand(&top);
        let busy = occupy(&low);
        let handle = low.spawn(|| 'q').unwrap();
        let late = top.run(|| {
            let short = Duration::from_millis(1);
            low.run_timeout(short, || ()).unwrap_err().reason()
        });
        assert_eq!(late.unwrap(), Reason::TimedOut);
        busy.open();
        assert_eq!(handle.join().unwrap(), 'q');
        at_rest(&[&top, &low]);
    });
}

#[test]
fn guards_take_a_permit_of_each_level_and_say_when_they_cannot() {
    hang_guard(|| {
        let top = root(2);
        let low = child(&top, 1);
        let guard = top.run(|| low.acquire().unwrap()).unwrap();
        assert_eq!((top.stats().active, low.stats().active), (1, 1), "it outlived the task");
        assert_eq!(low.acquire().unwrap_err().reason(), Reason::Deadlock);
        drop(guard);
        let first = top.acquire().unwrap();
        let refused = top.run(|| low.acquire().unwrap_err().reason()).unwrap();
        assert_eq!(refused, Reason::Deadlock, "this thread has both permits of the parent");
        drop(first);
        let timeout = low.acquire_timeout(Duration::ZERO).unwrap_err().reason();
        assert_eq!(timeout, Reason::TimedOut);
        at_rest(&[&top, &low]);
    });
}

#[test]
fn scopes_and_batches_of_a_child() {
    hang_guard(|| {
        let top = root(2);
        let low = child(&top, 2);
        let numbers: Vec<u64> = (1..=100).collect();
        let sums = low.run_all(numbers.chunks(10).map(|part| || part.iter().sum::<u64>()));
        assert_eq!(sums.unwrap().iter().sum::<u64>(), 5050);
        let mut parts = [0; 4];
        low.scope(|s| {
            for (n, part) in parts.iter_mut().enumerate() {
                s.spawn(move || *part = n).unwrap();
            }
        });
        assert_eq!(parts, [0, 1, 2, 3]);
        let inside = top.run(|| low.run_all((0..4).map(|n| move || n)).unwrap()).unwrap();
        assert_eq!(inside, [0, 1, 2, 3]);
        top.run(|| low.scope(|s| drop(s.spawn(|| ()).unwrap()))).unwrap();
        assert_eq!(low.speculate(|| Ok::<_, fn() -> i32>(1)).unwrap().join().unwrap(), 1);
        assert_eq!(low.speculate(|| Err::<i32, _>(|| 2)).unwrap().join().unwrap(), 2);
        low.drain(HANG).unwrap();
        at_rest(&[&top, &low]);
    });
}

#[test]
fn many_threads_wait_under_the_parents_permits() {
    hang_guard(|| {
        let top = root(3);
        let low = strand(&top);
        let (tx, rx) = mpsc::channel();
        thread::scope(|s| {
            for n in 0..6 {
                let (top, low, tx) = (&top, &low, tx.clone());
                s.spawn(move || {
                    for _ in 0..200 {
                        match n % 3 {
                            0 => top.run(|| low.run(|| ()).unwrap()).unwrap(),
                            1 => low.run(|| top.run(|| ()).unwrap()).unwrap(),
                            _ => top.run(|| low.spawn(|| ()).unwrap().join().unwrap()).unwrap(),
                        }
                    }
                    tx.send(n).unwrap();
                });
            }
        });
        drop(tx);
        assert_eq!(rx.iter().count(), 6);
        at_rest(&[&top, &low]);
    });
}
