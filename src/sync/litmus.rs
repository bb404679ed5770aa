//! The fences between real processors: of two threads that each write and then look, one sees the other. A model
//! has fences of its own, so the standard library's are shown here.
#![forbid(unsafe_code)]

use super::{AtomicU32, Barrier, Ordering::Relaxed, published_then_check, stood_down_then_check};
use crate::sync::plain::PlainMutex;
use crossbeam_utils::CachePadded;
use std::sync::PoisonError;
use std::thread;

/// One of two threads: where it is, and what it wrote last.
#[derive(Default)]
struct Side {
    round: CachePadded<AtomicU32>,
    wrote: CachePadded<AtomicU32>,
}

impl Side {
    /// In each round: waits for the other side, writes, passes `fence`, and looks. Says where it saw the other.
    fn play(&self, other: &Side, rounds: u32, fence: impl Fn()) -> Vec<bool> {
        let round = |n| {
            self.round.store(n, Relaxed);
            let mut looks = 0_u32;
            while other.round.load(Relaxed) < n {
                looks += 1;
                if looks % 1_000 == 0 {
                    thread::yield_now();
                }
                std::hint::spin_loop();
            }
            self.wrote.store(n, Relaxed);
            fence();
            other.wrote.load(Relaxed) >= n
        };
        (1..=rounds).map(round).collect()
    }
}

/// With a fence that is too weak, some of these many rounds end with neither side having seen the other, on a
/// machine with more than one processor.
fn one_side_sees_the_other(rounds: u32, first: impl Fn() + Sync, second: impl Fn() + Sync) {
    // One pair of threads at a time: more would not run side by side.
    static ONE_PAIR: PlainMutex<()> = PlainMutex::new(());
    let _one_pair = ONE_PAIR.lock().unwrap_or_else(PoisonError::into_inner);
    let sides = (Side::default(), Side::default());
    let (mine, theirs) = thread::scope(|scope| {
        let other = scope.spawn(|| sides.1.play(&sides.0, rounds, &second));
        (sides.0.play(&sides.1, rounds, &first), other.join().unwrap())
    });
    let neither = mine.iter().zip(&theirs).filter(|(mine, theirs)| !**mine && !**theirs).count();
    assert_eq!(neither, 0, "rounds of {rounds} in which nobody saw anything");
}

#[test]
fn publisher_or_searcher_sees() {
    one_side_sees_the_other(20_000, published_then_check, stood_down_then_check);
}

#[test]
fn owner_or_collector_sees_with_fences() {
    one_side_sees_the_other(20_000, || Barrier::Fences.light(), || Barrier::Fences.heavy());
}

#[test]
fn owner_or_collector_sees_with_what_the_system_offers() {
    let barrier = Barrier::detect();
    one_side_sees_the_other(5_000, || barrier.light(), || barrier.heavy());
}
