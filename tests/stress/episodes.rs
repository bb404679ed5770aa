//! Short lives: a few threads make a few calls each, and then nothing else happens. Whatever was forgotten on
//! the way stays forgotten, so the drain at the end of each episode finds it.
#![forbid(unsafe_code)]

use crate::mixed::{self, End, Limits};
use crate::support::{HANG, Numbers, within};
use std::time::Duration;
use work_permit::Pool;

fn episodes(episodes: u64, keep_alive: Duration) {
    within(HANG * 20, move || {
        let pool = Pool::builder().keep_alive(keep_alive).build().unwrap();
        let mut numbers = Numbers::from_seed(episodes);
        for episode in 0..episodes {
            let builder = pool.executor(format!("episode {episode}"));
            let builder = builder
                .limit(1 + numbers.below(3) as usize)
                .max_overtakes([0, 1, 16][numbers.below(3) as usize])
                .queue_capacity([0, 2, 1000][numbers.below(3) as usize]);
            let threads = 2 + numbers.below(2);
            let calls = threads * (1 + numbers.below(8));
            let end = if numbers.one_in(4) { End::ShutDown } else { End::Drained };
            let limits = if numbers.one_in(2) { Limits::Change } else { Limits::Stay };
            let exec = builder.build().unwrap();
            mixed::run(&exec, (threads, calls), 1000 * episode, limits, end);
        }
    });
}

#[test]
fn nothing_is_forgotten_at_the_end_of_an_episode() {
    episodes(4_000, Duration::MAX);
}

#[test]
fn nothing_is_forgotten_while_threads_leave() {
    episodes(1_000, Duration::ZERO);
}

#[test]
#[ignore = "250,000 episodes"]
fn nothing_is_forgotten_full() {
    episodes(200_000, Duration::MAX);
    episodes(50_000, Duration::ZERO);
}
