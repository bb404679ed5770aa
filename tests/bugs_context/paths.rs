//! Every way in which a task can come to run goes through the same books.

use crate::support::{Latch, assert_quiet, block_on, hang_guard, occupy, until};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use work_permit::{Executor, Inline, Pool};

/// What a task finds and leaves: it is held, it alone is under the permit, it is counted; then it panics or does not.
struct Task {
    exec: Executor,
    ran: Arc<AtomicU64>,
    panics: bool,
}

impl Task {
    fn run(self) {
        assert!(self.exec.is_held());
        let stats = self.exec.stats();
        assert_eq!((stats.active, stats.inline + stats.on_workers, stats.guards), (1, 1, 0));
        self.ran.fetch_add(1, SeqCst);
        if self.panics {
            resume_unwind(Box::new("out"));
        }
    }
}

/// Ends a panic of the task's here.
fn calmly<R>(f: impl FnOnce() -> R) -> Option<R> {
    let ended: Result<R, Box<dyn Any + Send>> = catch_unwind(AssertUnwindSafe(f));
    ended.map_err(|payload| assert_eq!(payload.downcast_ref(), Some(&"out"))).ok()
}

type Way = fn(&Executor, Task);

/// With a permit free, or with none until the caller stands in the line.
const WAYS: [(&str, Way); 12] = [
    ("try_run", |exec, task| {
        calmly(|| exec.try_run(|| task.run()).unwrap());
    }),
    ("run", |exec, task| {
        calmly(|| exec.run(|| task.run()).unwrap());
    }),
    ("run_timeout", |exec, task| {
        calmly(|| exec.run_timeout(Duration::MAX, || task.run()).unwrap());
    }),
    ("run after a wait", |exec, task| {
        let latch = occupy(exec);
        thread::scope(|s| {
            s.spawn(|| calmly(|| exec.run(|| task.run()).unwrap()));
            until("it waits", || exec.stats().waiting == 1);
            latch.open();
        });
    }),
    ("dispatch inline", |exec, task| {
        let inline = calmly(|| exec.dispatch(move || task.run()).unwrap().is_inline());
        assert_ne!(inline, Some(false));
    }),
    ("dispatch behind another", |exec, task| {
        let latch = occupy(exec);
        let queued = exec.dispatch(move || task.run()).unwrap();
        assert!(!queued.is_inline());
        latch.open();
        drop(block_on(queued));
    }),
    ("spawn", |exec, task| drop(block_on(exec.spawn(move || task.run()).unwrap()))),
    ("spawn and join", |exec, task| drop(exec.spawn(move || task.run()).unwrap().join())),
    ("execute", |exec, task| {
        let ran = Arc::clone(&task.ran);
        let before = ran.load(SeqCst);
        exec.execute(move || task.run()).unwrap();
        until("it ran", || ran.load(SeqCst) > before && exec.stats().active == 0);
    }),
    ("nested", |exec, task| {
        exec.run(|| calmly(|| exec.run(|| task.run()).unwrap())).unwrap();
    }),
    ("joined in a task", |exec, task| {
        exec.run(|| drop(exec.spawn(move || task.run()).unwrap().join())).unwrap();
    }),
    ("the rest of an attempt", |exec, task| {
        let queued = exec.speculate(|| Err(move || task.run())).unwrap();
        drop(block_on(queued));
    }),
];

#[test]
fn b56_every_way_goes_through_the_same_books() {
    hang_guard(|| {
        for leases in [true, false] {
            let exec = Pool::new().executor("books").limit(1).leases(leases).build().unwrap();
            let ran = Arc::new(AtomicU64::new(0));
            for (way, go) in WAYS {
                for panics in [false, true] {
                    let before = exec.stats();
                    go(&exec, Task { exec: exec.clone(), ran: Arc::clone(&ran), panics });
                    until(way, || exec.stats().active == 0);
                    let after = exec.stats();
                    let task_and_others = after.completed - before.completed;
                    assert!((1..=2).contains(&task_and_others), "{way}: {after:?}");
                    let panicked = after.panicked - before.panicked;
                    assert_eq!(panicked, u64::from(panics), "{way}, leases {leases}");
                    assert_eq!(after.refused.total(), 0, "{way}");
                    assert_quiet(&exec);
                    assert!(!exec.is_held(), "{way}");
                }
            }
            assert_eq!(ran.load(SeqCst), 2 * WAYS.len() as u64);
        }
    });
}

/// The key is free again after its task, however that ran and ended: here a key is an executor of limit 1.
#[test]
fn b56_a_key_is_free_after_its_task() {
    hang_guard(|| {
        let pool = Pool::new();
        for inline in [Inline::WhenFree, Inline::Never] {
            let key = pool.executor("key").limit(1).inline(inline).build().unwrap();
            for n in 0..100 {
                let task = move || if n % 3 == 0 { resume_unwind(Box::new("out")) } else { n };
                let ended = calmly(|| key.dispatch(task).unwrap().join().ok()).flatten();
                assert_eq!(ended, (n % 3 != 0).then_some(n));
                assert_eq!(key.stats().free, 1);
            }
            assert_quiet(&key);
        }
        let (opened, waits) = (Latch::new(), Latch::new());
        let key = pool.executor("key").limit(1).build().unwrap();
        let (open, wait) = (opened.clone(), waits.clone());
        key.execute(move || {
            open.open();
            wait.wait();
        })
        .unwrap();
        opened.wait();
        assert!(!key.dispatch(|| ()).unwrap().is_inline(), "busy");
        waits.open();
        key.drain(Duration::MAX).unwrap();
    });
}
