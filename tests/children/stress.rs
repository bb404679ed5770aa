//! Many strands, eight threads, exact order on each.
#![forbid(unsafe_code)]

use crate::root;
use crate::support::{HANG, Numbers, assert_quiet, resident_kib, within};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;
use work_permit::Executor;

const THREADS: u32 = 8;

/// What a strand has seen, without a lock: the strand is the lock.
#[derive(Default)]
struct Key {
    /// The next number of each thread.
    next: [AtomicU32; THREADS as usize],
    inside: AtomicU32,
    ran: AtomicU64,
}

impl Key {
    fn run(&self, thread: u32, n: u32) {
        assert_eq!(self.inside.swap(1, Relaxed), 0, "two at once");
        let next = &self.next[thread as usize];
        assert_eq!(next.load(Relaxed), n, "out of order");
        next.store(n + 1, Relaxed);
        // Not atomic: the task before this one is seen, or a count is lost.
        self.ran.store(self.ran.load(Relaxed) + 1, Relaxed);
        self.inside.store(0, Relaxed);
    }
}

/// Each thread gives `tasks` to strands drawn at random, by every verb.
fn run(strands: usize, tasks: u64, limit: usize) {
    let top = root(limit);
    let began = Instant::now();
    let build = |n| top.strand(format!("{n}")).unbounded_queue().build().unwrap();
    let execs: Arc<[Executor]> = (0..strands).map(build).collect();
    let keys: Arc<[Key]> = (0..strands).map(|_| Key::default()).collect();
    let built = began.elapsed();
    let (memory, each) = (Mutex::new(vec![resident_kib()]), tasks / u64::from(THREADS));
    thread::scope(|s| {
        for thread in 0..THREADS {
            let (execs, keys, memory) = (&execs, &keys, &memory);
            s.spawn(move || {
                let mut random = Numbers::from_seed(u64::from(thread));
                let mut next = vec![0_u32; strands];
                for done in 1..=each {
                    if thread == 0 && done % each.div_ceil(4) == 0 {
                        memory.lock().unwrap().push(resident_kib());
                    }
                    let at = random.below(strands as u64) as usize;
                    let n = next[at];
                    next[at] += 1;
                    let keys = Arc::clone(keys);
                    let task = move || keys[at].run(thread, n);
                    match random.below(8) {
                        0 => drop(execs[at].spawn(task).unwrap()),
                        1 => execs[at].execute(task).unwrap(),
                        2 => execs[at].run(task).unwrap(),
                        3 => execs[at].spawn(task).unwrap().join().unwrap(),
                        _ => drop(execs[at].dispatch(task).unwrap()),
                    }
                }
            });
        }
    });
    let given = began.elapsed();
    top.drain(HANG * 10).unwrap();
    let ran: u64 = keys.iter().map(|key| key.ran.load(Relaxed)).sum();
    assert_eq!(ran, each * u64::from(THREADS));
    let memory = memory.into_inner().unwrap();
    // What a strand gets with its first queued task it has by half of the way.
    if let [_, _, Some(half), .., Some(end)] = memory[..] {
        assert!(end < half + half / 10 + 64 * 1024, "memory grows: {memory:?} KiB");
    }
    execs.iter().for_each(assert_quiet);
    assert_quiet(&top);
    let inline: u64 = execs.iter().map(|exec| exec.stats().ran_inline).sum();
    println!(
        "{strands} strands, {tasks} tasks, limit {limit}: built in {built:?}, given after {given:?}, \
         done after {:?}; {inline} inline; KiB resident when built and after each quarter: {memory:?}",
        began.elapsed()
    );
}

#[test]
fn order_on_each_of_many_strands() {
    within(HANG, || {
        run(1, 4_000, 2);
        run(10, 20_000, 4);
        run(1_000, 20_000, 3);
    });
}

/// The sizes come from `STRANDS` and `STRAND_TASKS`; 10⁶ and 10⁷ without them.
#[test]
#[ignore = "minutes; `tests/README.md` has the command"]
fn order_on_each_of_many_strands_full() {
    let number = |name: &str, default| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (strands, tasks) = (number("STRANDS", 1_000_000), number("STRAND_TASKS", 10_000_000));
    within(HANG * 30, move || run(strands as usize, tasks, 4));
}
