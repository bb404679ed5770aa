//! Work of a known length: a chain of multiplications, so that it takes the CPU and nothing else.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// So many turns of the chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    turns: u64,
}

impl Work {
    /// Work that takes `length` on a core of its own.
    pub(crate) fn lasting(length: Duration) -> Self {
        static TURNS_PER_MS: OnceLock<u64> = OnceLock::new();
        let per_ms = *TURNS_PER_MS.get_or_init(calibrate);
        let turns = u128::from(per_ms) * length.as_nanos() / 1_000_000;
        Self { turns: u64::try_from(turns).expect("lengths are short") }
    }

    #[inline]
    pub(crate) fn run(self) -> u64 {
        let mut x = black_box(1_u64);
        for _ in 0..self.turns {
            x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        x
    }
}

/// Turns in a millisecond, at the best of many tries: others on the machine only ever make it slower.
fn calibrate() -> u64 {
    const TURNS: u64 = 20_000;
    let time_one = || {
        let began = Instant::now();
        black_box(Work { turns: TURNS }.run());
        began.elapsed()
    };
    let best = (0..200).map(|_| time_one()).min().unwrap_or_default();
    u64::try_from(u128::from(TURNS) * 1_000_000 / best.as_nanos().max(1)).expect("a small number")
}
