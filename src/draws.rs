//! Random numbers, from a generator in each thread: fastrand's, whose state is kept here so that a draw is a handful of
//! instructions in its caller's loop. (fastrand's own thread-local asks each time whether it was set up.)
#![forbid(unsafe_code)]

use fastrand::Rng;
use std::cell::Cell;

thread_local! {
    /// The state of this thread's generator; 0: it has none yet.
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// A number below `count`, each with the same chance. `count` is not 0.
#[inline]
pub(crate) fn below(count: usize) -> usize {
    STATE.with(|state| {
        let mut generator = Rng::with_seed(match state.get() {
            0 => seed(),
            state => state,
        });
        let number = generator.usize(..count);
        state.set(generator.get_seed());
        number
    })
}

/// From fastrand's generator of this thread: who seeds that one first has the same numbers each time.
#[cold]
fn seed() -> u64 {
    fastrand::u64(1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_draw_different_numbers_and_seeded_ones_the_same() {
        let draw = || -> Vec<usize> { (0..20).map(|_| below(1000)).collect() };
        let seeded = |seed| {
            std::thread::spawn(move || {
                fastrand::seed(seed);
                draw()
            })
        };
        let numbers = [seeded(1), seeded(1), seeded(2), std::thread::spawn(draw)];
        let numbers = numbers.map(|thread| thread.join().unwrap());
        assert_eq!(numbers[0], numbers[1]);
        assert!(numbers[1] != numbers[2] && numbers[2] != numbers[3]);
    }
}
