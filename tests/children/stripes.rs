//! Order by key.
#![forbid(unsafe_code)]

use crate::root;
use crate::support::{HANG, hang_guard, occupy};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread;
use work_permit::{Executor, Reason, Stripes};

#[test]
fn a_key_has_one_stripe_and_keys_have_all() {
    let top = root(4);
    let stripes = Stripes::new(&top, 8).unwrap();
    let at = |exec: &Executor| stripes.all().iter().position(|one| one.name() == exec.name());
    let used: HashSet<_> = (0..1000).map(|key| at(stripes.of(&key)).unwrap()).collect();
    assert_eq!(used.len(), 8);
    assert_eq!(stripes.of("key").name(), stripes.of(&String::from("key")).name());
    let copy = stripes.clone();
    assert!((0..1000).all(|key| copy.of(&key).name() == stripes.of(&key).name()));
    assert!(Stripes::new(&top, 0).unwrap_err().to_string().contains("0 stripes"));
    assert_eq!(Stripes::new(&top, 1).unwrap().of(&1).limit(), 1);
}

#[test]
fn every_verb_goes_to_the_stripe_of_its_key() {
    hang_guard(|| {
        let top = root(2);
        let stripes = Stripes::new(&top, 16).unwrap();
        let busy = occupy(stripes.of("busy"));
        assert_eq!(stripes.try_run("busy", || ()).unwrap_err().reason(), Reason::Saturated);
        let queued = stripes.dispatch("busy", || 1).unwrap();
        assert!(!queued.is_inline());
        let spawned = stripes.spawn("busy", || 2).unwrap();
        stripes.execute("busy", || ()).unwrap();
        let idle = (0..100).find(|key| stripes.of(key).name() != stripes.of("busy").name());
        let idle = idle.unwrap();
        assert!(stripes.dispatch(&idle, || ()).unwrap().is_inline());
        assert_eq!(stripes.run(&idle, || 3).unwrap() + stripes.try_run(&idle, || 4).unwrap(), 7);
        busy.open();
        assert_eq!(queued.join().unwrap() + spawned.join().unwrap(), 3);
        stripes.of("busy").drain(HANG).unwrap();
        assert_eq!(stripes.of("busy").stats().completed, 4);
    });
}

/// B63, S15: eight threads, each with keys of its own; those of a key are in order, inline and queued.
#[test]
fn tasks_of_a_key_are_in_order() {
    hang_guard(|| {
        let top = root(3);
        let stripes = Stripes::new(&top, 5).unwrap();
        let seen: Vec<_> = (0..16).map(|_| Arc::new(Mutex::new(Vec::new()))).collect();
        thread::scope(|s| {
            for thread in 0..8 {
                let (stripes, seen) = (&stripes, &seen);
                s.spawn(move || {
                    for n in 0..500 {
                        let key = 2 * thread + n % 2;
                        let seen = Arc::clone(&seen[key]);
                        let task = move || seen.lock().unwrap().push(n);
                        match n % 5 {
                            0 => stripes.execute(&key, task).unwrap(),
                            1 => stripes.run(&key, task).unwrap(),
                            2 => drop(stripes.spawn(&key, task).unwrap()),
                            _ => drop(stripes.dispatch(&key, task).unwrap()),
                        }
                    }
                });
            }
        });
        top.drain(HANG).unwrap();
        for (key, seen) in seen.iter().enumerate() {
            assert!(seen.lock().unwrap().iter().copied().eq((key % 2..500).step_by(2)));
        }
    });
}
