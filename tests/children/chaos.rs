//! Short lives of small trees: a few threads make a few calls at every level, while limits change, and then nothing else
//! happens. Whatever was forgotten on the way stays forgotten, so the drain at the end finds it.
#![forbid(unsafe_code)]

use crate::support::{HANG, Numbers, until, within};
use crate::{at_rest, child, strand};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use work_permit::{Executor, Pool};

/// A level, and who is inside of it.
#[derive(Clone)]
struct Place {
    exec: Executor,
    inside: Arc<AtomicU32>,
    at_most: u32,
}

impl Place {
    fn new(exec: Executor, at_most: u32) -> Self {
        Self { exec, inside: Arc::default(), at_most }
    }

    fn task(&self, panics: bool) -> impl FnOnce() + Send + 'static {
        let (inside, at_most) = (Arc::clone(&self.inside), self.at_most);
        move || {
            let now = 1 + inside.fetch_add(1, Relaxed);
            assert!(now <= at_most, "G1: {now} of {at_most}");
            thread::yield_now();
            inside.fetch_sub(1, Relaxed);
            if panics {
                resume_unwind(Box::new("out"));
            }
        }
    }
}

/// Where a call comes from.
#[derive(Clone, Copy)]
enum From<'a> {
    /// The thread itself, which may go into a task of the parent first.
    Outside(Option<&'a Place>),
    /// A task of the parent.
    Parent,
}

/// One call of a verb at one of the places. Inside of a task of the parent nobody waits for a guard without an end: it
/// needs a permit of the parent too, and all of these may be with threads that wait for one.
fn call(place: &Place, from: From<'_>, random: &mut Numbers) {
    let (exec, panics) = (&place.exec, random.one_in(8));
    let task = || place.task(panics);
    let short = Duration::from_micros(random.below(100));
    let quietly = |run: &mut dyn FnMut()| drop(catch_unwind(AssertUnwindSafe(run)));
    match random.below(15) {
        0 => drop(exec.execute(task())),
        1 => drop(exec.spawn(task())),
        2 => drop(exec.spawn(task()).map(|handle| handle.join())),
        3 => drop(exec.spawn(task()).map(|handle| handle.cancel())),
        4 => drop(exec.spawn(task()).map(|handle| handle.join_timeout(short))),
        5 => quietly(&mut || drop(exec.run(task()))),
        6 => quietly(&mut || drop(exec.try_run(task()))),
        7 => quietly(&mut || drop(exec.run_timeout(short, task()))),
        8 => quietly(&mut || drop(exec.dispatch(task()).map(|it| it.join()))),
        9 if matches!(from, From::Outside(_)) => drop(exec.acquire()),
        9 | 10 => drop(exec.acquire_timeout(short).map(|permit| permit.into_owned())),
        11 => quietly(&mut || drop(exec.run_all((0..3).map(|_| place.task(false))))),
        12 => exec.scope(|s| drop(s.spawn(place.task(false)))),
        n => {
            let From::Outside(Some(above)) = from else { return };
            let mut again = Numbers::from_seed(random.next());
            quietly(&mut || {
                let nested = || call(place, From::Parent, &mut again);
                if n == 13 {
                    drop(above.exec.run(nested))
                } else {
                    drop(above.exec.try_run(nested))
                }
            });
        }
    }
}

fn episode(pool: &Pool, seed: u64) {
    let mut random = Numbers::from_seed(seed);
    let limit = 1 + random.below(3) as usize;
    let top = pool.executor("top").limit(limit).build().unwrap();
    let middle = child(&top, 2);
    let (one, low) = (strand(&top), strand(&middle));
    let deep = child(&low, 2);
    let places = [
        Place::new(top, 3),
        Place::new(middle, 2),
        Place::new(one, 1),
        Place::new(low, 1),
        Place::new(deep, 1),
    ];
    /// Where the parent of each stands.
    const ABOVE: [Option<usize>; 5] = [None, Some(0), Some(0), Some(1), Some(3)];
    let shut = random.one_in(4).then(|| random.below(5) as usize);
    let calls = 1 + random.below(8);
    thread::scope(|s| {
        for _ in 0..3 {
            let (places, mut random) = (&places, Numbers::from_seed(random.next()));
            s.spawn(move || {
                for _ in 0..calls {
                    let at = random.below(5) as usize;
                    let above = ABOVE[at].map(|above| &places[above]);
                    call(&places[at], From::Outside(above), &mut random);
                }
            });
        }
        if let Some(at) = shut {
            thread::yield_now();
            drop(places[at].exec.shutdown_now());
        }
        if random.one_in(2) {
            for _ in 0..random.below(6) {
                let exec = &places[random.below(5) as usize].exec;
                let limit = exec.limit();
                exec.set_limit(0).unwrap();
                thread::yield_now();
                exec.set_limit(limit).unwrap();
            }
        }
    });
    places[0].exec.drain(HANG).unwrap();
    at_rest(&places.each_ref().map(|place| &place.exec));
    until("nobody is inside", || places.iter().all(|place| place.inside.load(Relaxed) == 0));
}

fn episodes(seeds: std::ops::Range<u64>) {
    within(HANG * 20, move || {
        for keep_alive in [Duration::MAX, Duration::ZERO] {
            let pool = Pool::builder().keep_alive(keep_alive).build().unwrap();
            for seed in seeds.clone() {
                let run = || episode(&pool, seed);
                if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
                    eprintln!("seed {seed}");
                    resume_unwind(panic);
                }
            }
            pool.shutdown(HANG).unwrap();
        }
    });
}

#[test]
fn nothing_is_forgotten_in_a_tree() {
    episodes(0..500);
}

/// As many episodes as `TREES` says, or 200,000.
#[test]
#[ignore = "minutes; `tests/README.md` has the command"]
fn nothing_is_forgotten_in_a_tree_full() {
    let trees = std::env::var("TREES").ok().and_then(|text| text.parse().ok());
    episodes(1_000..1_000 + trees.unwrap_or(200_000));
}
