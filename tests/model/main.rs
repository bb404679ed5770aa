//! Random sequences of calls on two executors, each answer compared with a plain sequential reference.
//!
//! One thread, the driver, makes the calls. What makes the answers certain although pool workers run: a gated
//! job holds its permit until the driver opens its gate, a stalled pool starts nothing at all, and after each
//! call the driver waits until the executors are where the reference says they must come to by themselves (G3).
//! Then everything is compared: the answer, every gauge and counter, which jobs started and in which order
//! where only one can run, what the handles say, and how often each closure and each outcome was dropped.
//!
//! `MODEL_CALLS=1000000 cargo test --release --test model -- --nocapture` makes a million calls; the default is
//! a few seconds' worth. `MODEL_SEED` repeats a run. A failure prints the smallest case that still fails.
#![forbid(unsafe_code)]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod counts;
mod driver;
mod finale;
mod handles;
mod jobs;
mod ops;
mod reference;
mod stalled;
mod tally;

use driver::{CALLS, PATIENCE_MS};
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Calls in a run that was asked for nothing.
const CALLS_BY_DEFAULT: u64 = 20_000;

/// Cases with one seed.
const BATCH: u64 = 16;

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

#[test]
fn executors_do_what_the_reference_says() {
    let calls = number_from("MODEL_CALLS").unwrap_or(CALLS_BY_DEFAULT);
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    let seed = number_from("MODEL_SEED").unwrap_or(clock);
    let (stop, stopped) = mpsc::channel();
    let watchdog = thread::spawn(move || watch(&stopped));
    let began = Instant::now();
    let mut batches = 0;
    while CALLS.load(SeqCst) < calls {
        play_batch(seed.wrapping_add(batches));
        batches += 1;
    }
    drop(stop);
    watchdog.join().unwrap();
    let made = CALLS.load(SeqCst);
    println!("model: {made} calls in {} cases, {:?}", batches * BATCH, began.elapsed());
    if calls >= CALLS_BY_DEFAULT {
        tally::assert_all_seen();
    }
}

/// Ends a run that stands still: a call that waits for ever cannot be compared with anything.
fn watch(stopped: &Receiver<()>) {
    let (mut seen, mut since) = (0, Instant::now());
    while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        let now = CALLS.load(SeqCst);
        if now != seen {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() > Duration::from_secs(90) {
            eprintln!("model: a call does not return, after {now}");
            std::process::abort();
        }
    }
}

/// The cases of one seed.
fn play_batch(seed: u64) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: BATCH as u32,
        failure_persistence: None,
        max_shrink_time: 60_000,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let result = TestRunner::new_with_rng(config, rng).run(&ops::case(), |(setup, ops)| {
        if let Err(failure) = catch_unwind(AssertUnwindSafe(|| finale::play(&setup, &ops))) {
            // Smaller cases fail as well, or soon.
            PATIENCE_MS.store(2_000, SeqCst);
            resume_unwind(failure);
        }
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => {
            panic!("MODEL_SEED={seed}: {why}\nsmallest case: {case:?}")
        }
        Err(TestError::Abort(why)) => panic!("MODEL_SEED={seed}: gave up: {why}"),
    }
}
