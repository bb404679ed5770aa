//! A caller that holds a lock which its task wants.

use crate::support::{assert_quiet, executor, hang_guard};
use std::sync::{Arc, Mutex};
use std::thread;
use work_permit::{Reason, fitness};

#[test]
fn b12_a_caller_with_a_lock_can_say_so() {
    hang_guard(|| {
        let exec = executor(2);
        let sum = Arc::new(Mutex::new(0));
        let add = || {
            let sum = Arc::clone(&sum);
            move || *sum.lock().unwrap() += 1
        };
        let handles = {
            let held = sum.lock().unwrap();
            let _no_inline = fitness::no_inline();
            // Each of these would wait for its own caller, if it ran here.
            assert_eq!(exec.try_run(add()).unwrap_err().reason(), Reason::NotFit);
            assert_eq!(exec.run(add()).unwrap_err().reason(), Reason::NotFit);
            let dispatched = exec.dispatch(add()).unwrap();
            assert!(!dispatched.is_inline());
            assert_eq!(*held, 0);
            (dispatched, exec.spawn(add()).unwrap())
        };
        handles.0.join().unwrap();
        handles.1.join().unwrap();
        assert_eq!(*sum.lock().unwrap(), 2);
        assert!(exec.dispatch(add()).unwrap().is_inline(), "the lock is free and so is the thread");
        assert_quiet(&exec);
    });
}

/// The lock is taken far below the call that knows of it, inside of a task.
#[test]
fn b12_also_inside_of_a_task() {
    hang_guard(|| {
        let exec = executor(1);
        let state = Arc::new(Mutex::new(Vec::new()));
        let threads = 4;
        thread::scope(|s| {
            for n in 0..threads {
                let (exec, state) = (&exec, &state);
                s.spawn(move || {
                    let task = || {
                        let mut held = state.lock().unwrap();
                        let _no_inline = fitness::no_inline();
                        held.push(n);
                        let (state, inner) = (Arc::clone(state), exec.clone());
                        inner.dispatch(move || state.lock().unwrap().push(n)).unwrap()
                    };
                    let queued = exec.run(task).unwrap();
                    assert!(!queued.is_inline());
                    queued.join().unwrap();
                });
            }
        });
        assert_eq!(state.lock().unwrap().len(), 2 * threads);
        assert_eq!(exec.stats().not_fit, threads as u64);
        assert_quiet(&exec);
    });
}
