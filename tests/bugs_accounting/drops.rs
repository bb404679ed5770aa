//! Values whose drop panics, calls back, or comes in the middle of another panic.

use crate::support::{Latch, assert_quiet, executor, hang_guard, until};
use crate::{Bomb, panics, throw};
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use work_permit::{Executor, JoinError};

#[test]
fn b19_an_outcome_that_panics_in_its_drop_harms_nobody() {
    hang_guard(|| {
        let exec = executor(1);
        // Finished, and its owner lets it go unread.
        let value = exec.spawn(|| Bomb(3)).unwrap();
        let payload = exec.spawn(|| resume_unwind(Box::new(Bomb(3)))).unwrap();
        until("both are over", || value.is_finished() && payload.is_finished());
        assert!(!panics(|| drop((value, payload))));
        // Let go first: the worker drops it.
        drop(exec.spawn(|| Bomb(3)).unwrap());
        drop(exec.spawn(|| resume_unwind(Box::new(Bomb(3)))).unwrap());
        exec.execute(|| throw(2)).unwrap();
        assert_eq!(exec.spawn(|| 1).unwrap().join().unwrap(), 1);
        until("all is over", || exec.stats().completed == 6);
        exec.drain(Duration::MAX).unwrap();
        assert_eq!(exec.stats().panicked, 3, "a drop is no panic of the task");
        assert_eq!(exec.pool().stats().left, 0);
        assert_quiet(&exec);
    });
}

#[test]
fn b19_what_an_unrun_task_holds_may_panic_in_its_drop() {
    hang_guard(|| {
        let exec = executor(0);
        let spawn = |exec: &Executor| {
            let bomb = Bomb(3);
            exec.spawn(move || drop(bomb)).unwrap()
        };
        let cancelled = spawn(&exec);
        assert!(!panics(|| assert!(cancelled.cancel())));
        assert!(matches!(cancelled.join(), Err(JoinError::Cancelled)));
        let unrun = spawn(&exec);
        let bomb = Bomb(3);
        exec.execute(move || drop(bomb)).unwrap();
        assert!(!panics(|| drop(exec.shutdown_now())));
        assert!(matches!(unrun.join(), Err(JoinError::Closed)));
        assert_eq!((exec.stats().cancelled, exec.stats().unrun), (1, 2));
        assert_quiet(&exec);
        // The last handle goes, and nobody can raise the limit any more.
        let exec = executor(0);
        let closed = spawn(&exec);
        assert!(!panics(|| drop(exec)));
        assert!(matches!(closed.join(), Err(JoinError::Closed)));
    });
}

/// Uses an executor in its drop.
struct CallsBack {
    exec: Executor,
    done: mpsc::Sender<u32>,
    number: u32,
}

impl CallsBack {
    fn new(exec: &Executor, done: &mpsc::Sender<u32>, number: u32) -> Self {
        Self { exec: exec.clone(), done: done.clone(), number }
    }
}

impl Drop for CallsBack {
    fn drop(&mut self) {
        let (done, number) = (&self.done, self.number);
        self.exec.run(|| done.send(number)).unwrap().unwrap();
    }
}

#[test]
fn b19_an_outcome_that_nobody_reads_may_use_its_executor() {
    hang_guard(|| {
        let exec = executor(1);
        let go = Latch::new();
        let (tx, rx) = mpsc::channel();
        for number in 0..3 {
            let (go, calls_back) = (go.clone(), CallsBack::new(&exec, &tx, number));
            let task = move || {
                go.wait();
                calls_back
            };
            drop(exec.spawn(task).unwrap());
        }
        go.open();
        let mut seen: Vec<u32> = rx.iter().take(3).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2]);
        exec.drain(Duration::MAX).unwrap();
        assert_quiet(&exec);
    });
}

#[test]
fn b19_a_closure_that_never_runs_may_use_its_executor() {
    hang_guard(|| {
        let exec = executor(1);
        let (tx, rx) = mpsc::channel();
        let calls_back = |number| {
            let calls_back = CallsBack::new(&exec, &tx, number);
            move || drop(calls_back)
        };
        // Cancelled by the holder of the only permit, who lends it to the drop.
        let cancelled = exec.run(|| exec.spawn(calls_back(1)).unwrap().cancel());
        assert_eq!((cancelled.unwrap(), rx.recv()), (true, Ok(1)));
        // Cancelled by a thread without one, which waits its turn.
        let guard = exec.acquire().unwrap().into_owned();
        let queued = exec.spawn(calls_back(2)).unwrap();
        let canceller = thread::spawn(move || queued.cancel());
        until("its drop waits", || exec.stats().waiting == 1);
        drop(guard);
        assert!(canceller.join().unwrap());
        assert_eq!(rx.recv(), Ok(2));
        exec.drain(Duration::MAX).unwrap();
        assert_eq!(exec.stats().cancelled, 2);
        assert_quiet(&exec);
    });
}

#[test]
fn b20_nothing_panics_in_an_unwinding() {
    hang_guard(|| {
        const ROUNDS: u64 = 100;
        let exec = executor(3);
        let paused = executor(0);
        let holds_a_bomb = |exec: &Executor| {
            let bomb = Bomb(3);
            exec.spawn(move || drop(bomb)).unwrap()
        };
        for n in 0..ROUNDS {
            let body = || {
                let over = exec.spawn(|| Bomb(3)).unwrap();
                until("over", || over.is_finished());
                let _guard = exec.acquire().unwrap();
                let _owned = exec.acquire().unwrap().into_owned();
                let _refused = paused.try_run(|| ()).unwrap_err();
                let _queued = holds_a_bomb(&paused);
                let closed = executor(0);
                let _closed = holds_a_bomb(&closed);
                let _unrun = closed.shutdown_now();
                let last = executor(0);
                let _lost = holds_a_bomb(&last);
                exec.run(|| throw(n)).unwrap()
            };
            assert!(panics(body));
        }
        until("quiet", || exec.stats().free == 3);
        assert_eq!(exec.stats().panicked, ROUNDS);
        assert_quiet(&exec);
        assert_eq!(paused.stats().queued as u64, ROUNDS, "let go, not lost");
        paused.set_limit(1).unwrap();
        paused.drain(Duration::MAX).unwrap();
        assert_quiet(&paused);
    });
}
