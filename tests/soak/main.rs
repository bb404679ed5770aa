//! Everything at once, for as long as you like: eight threads call every verb of several executors, some of them
//! children of others, on shared pools, resize, cancel, panic (also where closures, results and payloads are dropped), drop handles and
//! executors, close, drain, shut down. After each round everything is accounted for.
//!
//! `.ci/soak SECONDS` runs it in release; the short run is part of `cargo test`. `SOAK_SEED` repeats the
//! choices of a run (not the schedule).
//!
//! A round that does not end is the failure to look for: [`watchdog`] prints the state of every executor and
//! aborts when nothing has moved for a minute. A broken promise inside of a task aborts as well, because a
//! panic there would only land in a handle.

#[path = "../support/mod.rs"]
mod support;

mod acts;
mod diary;
mod end;
mod locks;
mod round;
mod tally;
mod watchdog;
mod work;

use round::Round;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use support::{Numbers, resident_kib};

/// What the short run takes.
const SECONDS_BY_DEFAULT: u64 = 2;
const THREADS: u64 = 8;
/// Calls of each thread in a round.
const CALLS: u64 = 400;
/// Memory may grow by this much after the first quarter of a long run.
const GROWTH_KIB: u64 = 64 * 1024;

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

#[test]
fn a_short_soak() {
    soak(Duration::from_secs(SECONDS_BY_DEFAULT));
}

#[test]
#[ignore = "takes SOAK_SECONDS; see .ci/soak"]
fn a_soak_of_any_length() {
    soak(Duration::from_secs(number_from("SOAK_SECONDS").unwrap_or(60)));
}

fn soak(length: Duration) {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64);
    let seed = number_from("SOAK_SEED").unwrap_or(clock);
    println!("soak: {length:?}, SOAK_SEED={seed}");
    let watchdog = watchdog::start();
    let mut numbers = Numbers::from_seed(seed);
    let (began, mut said, mut rounds) = (Instant::now(), Instant::now(), 0_u64);
    let mut memory = None;
    while began.elapsed() < length {
        play(&mut numbers, rounds);
        rounds += 1;
        if memory.is_none() && began.elapsed() > length / 4 {
            memory = resident_kib();
        }
        if said.elapsed() > Duration::from_secs(10) {
            say(began, rounds);
            said = Instant::now();
        }
    }
    say(began, rounds);
    watchdog.stop();
    if let (Some(early), Some(late)) = (memory, resident_kib()) {
        println!("soak: {early} KiB resident after a quarter, {late} KiB at the end");
        assert!(length.as_secs() < 60 || late < early + GROWTH_KIB, "memory grows");
    }
}

fn say(began: Instant, rounds: u64) {
    let seconds = began.elapsed().as_secs();
    println!("soak: {seconds} s, {rounds} rounds, all accounted for; {}", tally::TOTALS.text());
}

fn play(numbers: &mut Numbers, number: u64) {
    let round = Round::new(numbers, number);
    watchdog::watch(&round);
    let threads: Vec<_> = (0..THREADS).map(|n| start(&round, n, numbers.next())).collect();
    for thread in threads {
        if thread.join().is_err() {
            watchdog::fail("a thread of the soak panicked");
        }
    }
    end::settle(round, numbers);
}

fn start(round: &Arc<Round>, n: u64, seed: u64) -> thread::JoinHandle<()> {
    let round = Arc::clone(round);
    thread::spawn(move || {
        let mut numbers = Numbers::from_seed(seed);
        let is_janitor = n == 0;
        work::set_janitor(is_janitor);
        for call in 0..CALLS {
            if is_janitor {
                acts::keep_house(&round, &mut numbers);
            }
            acts::act(&round, &mut numbers, 0);
            if call > CALLS * 3 / 4 && numbers.one_in(100) {
                end::end_one(&round, &mut numbers);
            }
        }
        round.callers.fetch_sub(1, SeqCst);
        // The others may still wait for permits that lie around.
        while is_janitor && round.callers.load(SeqCst) > 0 {
            acts::keep_house(&round, &mut numbers);
            thread::yield_now();
        }
    })
}
