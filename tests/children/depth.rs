//! Depth is bounded by memory, not by the stack.
#![forbid(unsafe_code)]

use crate::support::{HANG, assert_quiet, hang_guard};
use crate::{child, root};
use std::thread;
use work_permit::{Executor, Reason};

/// Levels below the root. On the stack of a test's thread a recursion would end long before.
const DEPTH: usize = 100_000;

fn deep() -> (Executor, Executor) {
    let top = root(1);
    let mut low = top.clone();
    for _ in 0..DEPTH {
        low = child(&low, 1);
    }
    (top, low)
}

#[test]
fn a_hundred_thousand_levels_run_close_and_go() {
    hang_guard(|| {
        let (top, low) = deep();
        assert_eq!(low.run(|| top.stats().active).unwrap(), 1);
        let (spawned, queued) = (low.spawn(|| 1).unwrap(), low.clone());
        assert_eq!(spawned.join().unwrap(), 1);
        let held = low.acquire().unwrap();
        assert_eq!(low.stats().active + top.stats().active, 2);
        let waits = thread::spawn(move || queued.run(|| 2).unwrap());
        drop(held);
        assert_eq!(waits.join().unwrap(), 2);
        low.execute(|| ()).unwrap();
        top.close();
        assert_eq!(low.run(|| ()).unwrap_err().reason(), Reason::Closed);
        top.drain(HANG).unwrap();
        assert_quiet(&low);
        let text = format!("{low:?}");
        assert!(text.len() < 1000, "{text}");
        drop(top);
        drop(low);
    });
}

#[test]
fn a_hundred_thousand_levels_are_shut_down() {
    hang_guard(|| {
        let (top, low) = deep();
        let permit = top.acquire().unwrap().into_owned();
        let handle = low.spawn(|| 1).unwrap();
        assert_eq!(top.shutdown_now().len(), 1);
        assert!(handle.join().is_err());
        drop(permit);
        drop(low);
        drop(top);
    });
}
