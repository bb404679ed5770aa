//! Calls one verb on a free permit so many times, for a program that counts instructions: `benches/instructions`.
//!
//! The difference between two counts is what the calls took, without what the process took to start.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;
use work_permit::{Chooser, Dispatched, Executor, Load, Policy, Pool};

const USAGE: &str = "inline_loop try_run|run|dispatch|strand|speculate|acquire|tokio|pair|bare|choose|fastrand CALLS";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (verb, calls) = (args.next(), args.next().and_then(|calls| calls.parse().ok()));
    let (Some(verb), Some(calls)) = (verb, calls) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let executor = Pool::new().executor("loop").limit(64).build().expect("the settings make sense");
    match verb.as_str() {
        "try_run" => repeat(calls, |n| executor.try_run(|| n).expect("a permit is free")),
        "run" => repeat(calls, |n| executor.run(|| n).expect("a permit is free")),
        "dispatch" => repeat(calls, |n| dispatch(&executor, n)),
        "strand" => {
            let strand = executor.strand("loop").build().expect("the settings make sense");
            // A closure of its own, or the two verbs would share one function that is then inlined in neither.
            repeat(calls, |n| match strand.dispatch(move || n + 1) {
                Ok(Dispatched::Inline(n)) => n,
                _ => unreachable!("a permit is free"),
            })
        }
        "speculate" => repeat(calls, |n| {
            let done = executor.speculate(|| Ok::<_, fn() -> u64>(n));
            done.map_or(0, |done| done.join().unwrap_or(0))
        }),
        "acquire" => repeat(calls, |n| {
            let _permit = executor.try_acquire().expect("a permit is free");
            black_box(n)
        }),
        "tokio" => tokio_loop(calls),
        "pair" => pair_loop(calls),
        "bare" => repeat(calls, |n| n),
        "choose" => choose_loop(calls),
        "fastrand" => repeat(calls, |n| n + fastrand::u64(..black_box(CHOICES))),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

const CHOICES: u64 = 500;

/// An item that may be down.
struct Item(AtomicU64);

impl Load for Item {
    fn load(&self) -> u64 {
        0
    }

    fn is_healthy(&self) -> bool {
        self.0.load(Ordering::Relaxed) < CHOICES
    }
}

fn choose_loop(calls: u64) {
    let items = Chooser::new((0..CHOICES).map(|n| Item(AtomicU64::new(n))), Policy::Random);
    repeat(calls, |n| n + items.choose().expect("all are up").0.load(Ordering::Relaxed));
}

#[inline(always)]
fn repeat(calls: u64, mut call: impl FnMut(u64) -> u64) {
    for n in 0..calls {
        black_box(call(black_box(n)));
    }
}

#[inline(always)]
fn dispatch(executor: &Executor, n: u64) -> u64 {
    match executor.dispatch(move || n) {
        Ok(Dispatched::Inline(n)) => n,
        _ => unreachable!("a permit is free"),
    }
}

fn tokio_loop(calls: u64) {
    let permits = Semaphore::new(64);
    repeat(calls, |n| {
        let _permit = permits.try_acquire().expect("a permit is free");
        black_box(n)
    });
}

fn pair_loop(calls: u64) {
    let free = AtomicU64::new(64);
    repeat(calls, |n| {
        let take = |free: u64| free.checked_sub(1);
        let taken = free.fetch_update(Ordering::Acquire, Ordering::Relaxed, take);
        assert!(taken.is_ok(), "a permit is free");
        let n = black_box(n);
        free.fetch_add(1, Ordering::Release);
        n
    });
}
