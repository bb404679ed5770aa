//! A measured amount of CPU work.

use std::{hint::black_box, time::Instant};

const CALIBRATION_ROUNDS: u64 = 100_000;
const CALIBRATION_RUNS: usize = 9;

/// Counted in rounds, not in time: a thread that loses its processor still does all of its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    rounds: u64,
}

impl Work {
    /// About `microseconds` of this machine's time when nothing disturbs it.
    pub(crate) fn microseconds(microseconds: u64) -> Self {
        if microseconds == 0 {
            return Self { rounds: 0 };
        }
        let run = |_| {
            let before = Instant::now();
            spin(CALIBRATION_ROUNDS);
            before.elapsed().as_nanos()
        };
        // The fastest run is the one that was disturbed least.
        let nanos = (0..CALIBRATION_RUNS).map(run).min().map_or(1, |least| least.max(1));
        let rounds = u128::from(CALIBRATION_ROUNDS) * u128::from(microseconds) * 1000 / nanos;
        Self { rounds: u64::try_from(rounds).unwrap_or(u64::MAX) }
    }

    pub(crate) fn is_none(self) -> bool {
        self.rounds == 0
    }

    pub(crate) fn burn(self) {
        spin(self.rounds);
    }
}

fn spin(rounds: u64) {
    let mut state = black_box(rounds | 1);
    for _ in 0..rounds {
        state = black_box(state.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ state >> 29);
    }
}
