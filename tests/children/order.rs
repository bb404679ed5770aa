//! Order on a strand: one at a time, as they came, each sees the ones before it.
#![forbid(unsafe_code)]

use crate::support::{HANG, Latch, Numbers, hang_guard, occupy, until};
use crate::{at_rest, root, strand};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use work_permit::{Pool, Reason};

/// B62: two tasks of one key never interleave, wherever they run.
#[test]
fn b62_a_strand_is_a_mutex() {
    hang_guard(|| {
        let top = root(4);
        let key = strand(&top);
        let inside = Arc::new(Mutex::new(0_u64));
        thread::scope(|s| {
            for n in 0..6 {
                let (key, inside) = (&key, &inside);
                s.spawn(move || {
                    for _ in 0..300 {
                        let held = Arc::clone(inside);
                        let task = move || {
                            let mut held = held.try_lock().expect("one at a time");
                            *held += 1;
                            thread::yield_now();
                        };
                        match n % 3 {
                            0 => key.run(task).unwrap(),
                            1 => key.dispatch(task).unwrap().join().unwrap(),
                            _ => key.execute(task).unwrap(),
                        }
                    }
                });
            }
        });
        key.drain(HANG).unwrap();
        assert_eq!(*inside.lock().unwrap(), 1800);
        at_rest(&[&top, &key]);
    });
}

/// B63: inline only while nothing is queued or runs, so what one thread submits stays in order.
#[test]
fn b63_inline_and_queued_work_of_a_key_stay_in_order() {
    hang_guard(|| {
        let top = root(2);
        let key = strand(&top);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut random = Numbers::from_seed(63);
        for n in 0..2_000 {
            let seen = Arc::clone(&seen);
            let task = move || seen.lock().unwrap().push(n);
            match random.below(3) {
                0 => drop(key.dispatch(task).unwrap()),
                1 => drop(key.execute(task)),
                _ => key.run(task).unwrap(),
            }
        }
        key.drain(HANG).unwrap();
        assert!(seen.lock().unwrap().iter().copied().eq(0..2_000));
        assert!(key.stats().ran_inline > 0 && key.stats().ran_queued > 0);
    });
}

#[test]
fn nothing_overtakes_what_is_queued_on_a_strand() {
    hang_guard(|| {
        let top = root(1);
        let key = strand(&top);
        let busy = occupy(&top);
        key.execute(|| ()).unwrap();
        assert_eq!(key.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
        busy.open();
        until("it ran", || key.stats().completed == 1);
        until("its permit is back", || key.stats().free == 1);
        assert!(key.try_run(|| ()).is_ok());
        assert_eq!(key.stats().overtakes, 0);
    });
}

/// S9: a serial executor with a full queue; who runs himself waits his turn.
#[test]
fn s09_a_strand_with_a_full_queue_takes_turns() {
    hang_guard(|| {
        let top = root(4);
        let key = top.strand("serial").queue_capacity(1).build().unwrap();
        let order = Mutex::new(Vec::new());
        let latch = occupy(&key);
        key.execute(|| ()).unwrap();
        assert_eq!(key.execute(|| ()).unwrap_err().reason(), Reason::QueueFull);
        thread::scope(|s| {
            for n in 0..10 {
                let (key, order) = (&key, &order);
                s.spawn(move || key.run(|| order.lock().unwrap().push(n)).unwrap());
                until("he stands", || key.stats().waiting == n + 1);
            }
            latch.open();
        });
        assert!(order.lock().unwrap().iter().copied().eq(0..10), "in the order they came");
        at_rest(&[&top, &key]);
    });
}

/// S15: tasks of one key in order and never two at once, those of others beside them.
#[test]
fn s15_keys_run_beside_each_other_and_in_order() {
    hang_guard(|| {
        let pool = Pool::builder().max_threads(8).build().unwrap();
        let top = pool.executor("keys").limit(8).build().unwrap();
        let (a, b) = (strand(&top), strand(&top));
        let (b_ran, order) = (Latch::new(), Arc::new(Mutex::new(Vec::new())));
        let (wait, first, second) = (b_ran.clone(), Arc::clone(&order), Arc::clone(&order));
        a.execute(move || {
            wait.wait();
            first.lock().unwrap().push(1);
        })
        .unwrap();
        a.execute(move || second.lock().unwrap().push(2)).unwrap();
        b.execute(move || b_ran.open()).unwrap();
        a.drain(HANG).unwrap();
        assert_eq!(*order.lock().unwrap(), [1, 2]);
        let keys: Vec<_> = (0..5).map(|_| strand(&top)).collect();
        let seen: Vec<_> = (0..5).map(|_| Arc::new(Mutex::new(Vec::new()))).collect();
        for n in 0..100 {
            let seen = Arc::clone(&seen[n % 5]);
            keys[n % 5].execute(move || seen.try_lock().expect("alone").push(n)).unwrap();
        }
        top.drain(HANG).unwrap();
        for (n, seen) in seen.iter().enumerate() {
            assert!(seen.lock().unwrap().iter().copied().eq((n..100).step_by(5)));
        }
    });
}

#[test]
fn what_one_task_wrote_the_next_one_sees() {
    hang_guard(|| {
        let top = root(3);
        let key = strand(&top);
        // A plain number behind a lock that is only tried: it is there when the task before it is done.
        let number = Arc::new(Mutex::new(0_u64));
        let (tx, rx) = mpsc::channel();
        for n in 0..500 {
            let (number, tx) = (Arc::clone(&number), tx.clone());
            key.execute(move || {
                let mut number = number.try_lock().expect("alone");
                assert_eq!(*number, n);
                *number += 1;
                tx.send(n).unwrap();
            })
            .unwrap();
        }
        drop(tx);
        assert!(rx.iter().eq(0..500));
        drop(top);
    });
}
