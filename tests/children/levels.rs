//! Permits of every level: limits, counters, turns.
#![forbid(unsafe_code)]

use crate::support::{
    HANG, Latch, Meeting, Meter, assert_quiet, executor, hang_guard, occupy, until,
};
use crate::{at_rest, child, root, strand};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use work_permit::{Load, Pool, Reason};

#[test]
fn a_task_of_a_child_has_a_permit_of_each_level() {
    hang_guard(|| {
        let top = root(2);
        let middle = child(&top, 2);
        let low = child(&middle, 1);
        let all = [&top, &middle, &low];
        let active = || all.map(|exec| exec.stats().active);
        assert_eq!(low.run(active).unwrap(), [1, 1, 1]);
        assert_eq!(middle.run(active).unwrap(), [1, 1, 0]);
        let guard = low.acquire().unwrap();
        assert_eq!(active(), [1, 1, 1]);
        assert!(all.iter().all(|exec| exec.is_held()));
        let stats = top.stats();
        assert_eq!((stats.below, stats.guards, stats.inline), (1, 0, 0));
        assert_eq!((low.stats().guards, low.stats().below), (1, 0));
        drop(guard.into_owned());
        assert_eq!(active(), [0, 0, 0]);
        let held = low.clone();
        let spawned = low.spawn(move || held.stats().on_workers).unwrap();
        until("a worker has run it", || spawned.is_finished());
        assert_eq!(spawned.join().unwrap(), 1);
        at_rest(&all);
        // Each counts its own.
        assert_eq!(top.stats().accepted, 0);
        assert_eq!(middle.stats().accepted, 1);
        assert_eq!(low.stats().accepted, 2);
    });
}

#[test]
fn inline_only_if_every_level_has_a_permit() {
    hang_guard(|| {
        let top = root(1);
        let (a, b) = (strand(&top), strand(&top));
        let permit = a.acquire().unwrap();
        for exec in [&top, &a, &b] {
            assert_eq!(exec.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
        }
        let queued = b.dispatch(|| 7).unwrap();
        assert!(!queued.is_inline());
        assert_eq!(b.stats().free, 1, "what it could not use went back");
        drop(permit);
        assert_eq!(queued.join().unwrap(), 7);
        assert!(b.dispatch(|| ()).unwrap().is_inline());
        at_rest(&[&top, &a, &b]);
    });
}

#[test]
fn children_share_the_limit_of_their_parent() {
    hang_guard(|| {
        let top = root(3);
        let children: Vec<_> = (0..4).map(|_| child(&top, 2)).collect();
        let (whole, own) = (Arc::new(Meter::new()), Arc::new(Meter::new()));
        let ran = Arc::new(AtomicUsize::new(0));
        for n in 0..400 {
            let (whole, own, ran) = (Arc::clone(&whole), Arc::clone(&own), Arc::clone(&ran));
            let first = n % 4 == 0;
            let task = move || {
                let _whole = whole.enter();
                let _own = first.then(|| own.enter());
                thread::yield_now();
                ran.fetch_add(1, SeqCst);
            };
            children[n % 4].execute(task).unwrap();
        }
        children.iter().for_each(|child| child.drain(HANG).unwrap());
        assert_eq!(ran.load(SeqCst), 400);
        assert!(whole.peak() <= 3 && own.peak() <= 2, "{} {}", whole.peak(), own.peak());
        top.drain(HANG).unwrap();
        children.iter().for_each(assert_quiet);
        assert_quiet(&top);
    });
}

#[test]
fn all_permits_of_the_parent_can_be_used_through_children() {
    hang_guard(|| {
        let top = root(4);
        let (a, b) = (child(&top, 4), child(&top, 2));
        let meeting = Meeting::of(4);
        let tasks: Vec<_> = [&a, &b, &a, &b]
            .map(|exec| {
                let meeting = meeting.clone();
                exec.spawn(move || meeting.meet()).unwrap()
            })
            .into_iter()
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        at_rest(&[&top, &a, &b]);
    });
}

/// C26, C27: however much one has queued, another one waits for one task of it.
#[test]
fn c26_tenants_take_turns_whatever_their_backlog() {
    hang_guard(|| {
        let top = root(1);
        let (busy, small) = (child(&top, 8), child(&top, 8));
        let order = Arc::new(Mutex::new(Vec::new()));
        let latch = occupy(&top);
        let queue = |exec: &work_permit::Executor, name: char| {
            let order = Arc::clone(&order);
            exec.execute(move || order.lock().unwrap().push(name)).unwrap();
        };
        (0..100).for_each(|_| queue(&busy, 'b'));
        (0..5).for_each(|_| queue(&small, 's'));
        latch.open();
        top.drain(HANG).unwrap();
        let order = order.lock().unwrap();
        let last = order.iter().rposition(|&name| name == 's').unwrap();
        assert_eq!(order.len(), 105);
        assert!(last <= 10, "the last of five came as number {last}: {order:?}");
    });
}

/// C26: long tasks of one kind leave room for another.
#[test]
fn c26_a_child_with_a_lower_limit_leaves_room() {
    hang_guard(|| {
        let top = root(4);
        let (slow, quick) = (child(&top, 3), child(&top, 4));
        let latch = Latch::new();
        for _ in 0..20 {
            let latch = latch.clone();
            slow.execute(move || latch.wait()).unwrap();
        }
        until("three are slow", || slow.stats().active == 3);
        assert_eq!(quick.spawn(|| 1).unwrap().join().unwrap(), 1);
        assert_eq!(quick.run(|| 2).unwrap(), 2);
        latch.open();
        top.drain(HANG).unwrap();
        at_rest(&[&top, &slow, &quick]);
    });
}

/// C25: a task that queues itself again and again keeps nobody from his turn.
#[test]
fn c25_a_task_that_queues_itself_lets_the_others_run() {
    hang_guard(|| {
        let top = root(1);
        let (again, other) = (strand(&top), strand(&top));
        let stop = Latch::new();
        fn turn(exec: &work_permit::Executor, stop: &Latch) {
            if !stop.is_open() {
                let (exec, stop) = (exec.clone(), stop.clone());
                let inner = exec.clone();
                let _closed = exec.execute(move || turn(&inner, &stop));
            }
        }
        turn(&again, &stop);
        for n in 0..100 {
            let (tx, rx) = mpsc::channel();
            other.execute(move || tx.send(n).unwrap()).unwrap();
            assert_eq!(rx.recv().unwrap(), n);
            assert_eq!(other.run(|| n).unwrap(), n);
        }
        stop.open();
        drop(top);
    });
}

/// C27: a thousand tasks of one key take one permit, and leave the others to other keys.
#[test]
fn c27_one_key_takes_one_permit() {
    hang_guard(|| {
        let top = root(8);
        let key = strand(&top);
        let latch = Latch::new();
        for _ in 0..1000 {
            let latch = latch.clone();
            key.execute(move || latch.wait()).unwrap();
        }
        until("one runs", || key.stats().active == 1);
        assert_eq!(top.stats().active, 1);
        let meeting = Meeting::of(7);
        let others: Vec<_> = (0..7).map(|_| strand(&top)).collect();
        let met: Vec<_> = others
            .iter()
            .map(|exec| {
                let meeting = meeting.clone();
                exec.spawn(move || meeting.meet()).unwrap()
            })
            .collect();
        met.into_iter().for_each(|task| task.join().unwrap());
        latch.open();
        top.drain(HANG).unwrap();
        assert_eq!(key.stats().completed, 1000);
    });
}

/// B11: tasks that need permits of two executors take them in one order, whoever asks and however.
#[test]
fn b11_two_levels_are_taken_all_or_none() {
    hang_guard(|| {
        let top = root(1);
        let (a, b) = (strand(&top), strand(&top));
        let ran = AtomicUsize::new(0);
        thread::scope(|s| {
            for n in 0..6 {
                let (top, exec, ran) = (&top, if n % 2 == 0 { &a } else { &b }, &ran);
                s.spawn(move || {
                    for turn in 0..200 {
                        let count = || _ = ran.fetch_add(1, SeqCst);
                        match turn % 4 {
                            0 => exec.run(count).unwrap(),
                            1 => exec.dispatch(|| ()).unwrap().join().map(|()| count()).unwrap(),
                            2 => top.run(|| exec.run(count).unwrap()).unwrap(),
                            _ => exec.acquire().map(|_permit| count()).unwrap(),
                        }
                    }
                });
            }
        });
        assert_eq!(ran.load(SeqCst), 1200);
        at_rest(&[&top, &a, &b]);
    });
}

/// B45: a request that can never be met is refused, and does not block the line of the parent.
#[test]
fn b45_a_child_that_cannot_start_blocks_nobody() {
    hang_guard(|| {
        let top = root(4);
        let (paused, other) = (child(&top, 0), child(&top, 1));
        let stuck: Vec<_> = (0..10).map(|n| paused.spawn(move || n).unwrap()).collect();
        for n in 0..100 {
            assert_eq!(other.spawn(move || n).unwrap().join().unwrap(), n);
            assert!(top.dispatch(|| ()).unwrap().is_inline(), "nothing waits in its queue");
        }
        let guards: Vec<_> = (0..4).map(|_| top.acquire().unwrap()).collect();
        assert_eq!(other.acquire().unwrap_err().reason(), Reason::Deadlock);
        assert_eq!(other.run(|| ()).unwrap_err().reason(), Reason::Deadlock);
        drop(guards);
        paused.set_limit(2).unwrap();
        let sum: i32 = stuck.into_iter().map(|task| task.join().unwrap()).sum();
        assert_eq!(sum, 45);
        at_rest(&[&top, &paused, &other]);
    });
}

#[test]
fn limits_change_at_each_level() {
    hang_guard(|| {
        let top = root(0);
        let (low, meeting) = (child(&top, 1), Meeting::of(3));
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let meeting = meeting.clone();
                low.spawn(move || meeting.meet()).unwrap()
            })
            .collect();
        assert_eq!(low.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
        assert!(!low.is_healthy() && !top.is_healthy(), "its parent is paused");
        top.set_limit(3).unwrap();
        assert!(low.is_healthy());
        until("one waits for the others", || low.stats().active == 1);
        low.set_limit(3).unwrap();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        low.set_limit(0).unwrap();
        assert_eq!(low.try_run(|| ()).unwrap_err().reason(), Reason::Saturated);
        assert!(top.try_run(|| ()).is_ok());
        low.set_limit(1).unwrap();
        at_rest(&[&top, &low]);
    });
}

/// C29: what promises one at a time is not resized to more.
#[test]
fn c29_a_strand_stays_one() {
    let top = executor(4);
    let error = top.strand("two").limit(2).build().unwrap_err();
    assert!(error.to_string().contains("limit 2 of a strand"), "{error}");
    assert!(top.strand("loose").max_overtakes(1).build().is_err());
    let one = strand(&top);
    assert!(one.set_limit(2).is_err());
    assert_eq!(one.limit(), 1);
    one.set_limit(0).unwrap();
    one.set_limit(1).unwrap();
    assert!(one.try_run(|| ()).is_ok());
}

#[test]
fn a_child_takes_over_what_its_parent_asks_of_threads() {
    use work_permit::{Inline, Operations, fitness};
    let (a, b) = (Operations::only(0).unwrap(), Operations::only(1).unwrap());
    let top = Pool::new().executor("files").requires(a).build().unwrap();
    let low = top.child("writes").requires(b).build().unwrap();
    let _a = fitness::allow(a);
    assert!(top.try_run(|| ()).is_ok());
    assert_eq!(low.try_run(|| ()).unwrap_err().reason(), Reason::NotFit);
    let _both = fitness::allow(a | b);
    assert!(low.try_run(|| ()).is_ok());
    let queued = Pool::new().executor("queued").inline(Inline::Never).build().unwrap();
    assert!(!child(&queued, 1).dispatch(|| ()).unwrap().is_inline());
}
