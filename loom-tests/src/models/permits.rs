//! Claim: the word's loops apply the transitions of `src/permits/state.rs` one at a time, in an
//! order that lets work under a permit see the work under the permits that came back before.
//!
//! Modelled: [`PermitWord`], with a number under a lock for the line. Left out: everything that
//! stands in the line (that is the gate's), and all sequences of transitions (the walk in
//! `src/permits/state_walk.rs` goes through those; here it is about two at the same time).

use super::Floor;
use crate::permits::state::{Duty, Refusal, Serve, State, Take};
use crate::permits::word::PermitWord;
use crate::sync::Mutex;
use crate::{Size, model};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A word, and a line in which nobody has a name.
struct Bench {
    word: PermitWord,
    line: Mutex<usize>,
    floor: Floor,
    served: AtomicUsize,
}

impl Bench {
    /// With `taken` of the permits taken already. `at_most` run at a time, whatever the limit does.
    fn new(limit: usize, taken: usize, at_most: usize) -> Arc<Self> {
        let word = PermitWord::new(limit);
        for _ in 0..taken {
            word.take(0).unwrap();
        }
        let (line, served) = (Mutex::new(0), AtomicUsize::new(0));
        Arc::new(Self { word, line, floor: Floor::new(at_most), served })
    }

    /// Runs under a permit that the caller has, and gives it back.
    fn run_and_give(&self) {
        self.floor.body();
        let (duty, _) = self.word.give();
        self.attend(duty);
    }

    /// Whoever has the token serves the line until nothing can start.
    fn attend(&self, mut duty: Duty) {
        while duty == Duty::Attend {
            let mut line = self.line.lock();
            if *line == 0 {
                self.word.stand_down();
                return;
            }
            let Serve::Served(next) = self.word.serve(*line > 1, true) else {
                return;
            };
            *line -= 1;
            drop(line);
            self.served.fetch_add(1, Relaxed);
            self.run_and_give();
            duty = next;
        }
    }

    fn line_up(&self) {
        let mut line = self.line.lock();
        *line += 1;
        let duty = self.word.line_up();
        drop(line);
        self.attend(duty);
    }

    fn resize(&self, by: i64) {
        let line = self.line.lock();
        let duty = self.word.resize(by);
        drop(line);
        self.attend(duty);
    }

    fn take_and_run(&self, max_overtakes: u16) -> Result<Take, Refusal> {
        let taken = self.word.take(max_overtakes);
        if taken.is_ok() {
            self.run_and_give();
        }
        taken
    }

    /// The word is what it is when nothing ever ran; `served` stood in the line, and were served.
    fn assert_quiet(&self, limit: usize, served: usize) {
        assert_eq!(self.word.observe(), State::new(limit));
        assert_eq!(*self.line.lock(), 0);
        assert_eq!(self.served.load(Relaxed), served);
    }
}

/// Runs `f` on another thread, with the bench.
fn beside(bench: &Arc<Bench>, f: impl FnOnce(&Bench) + 'static) -> thread::JoinHandle<()> {
    let bench = Arc::clone(bench);
    thread::spawn(move || f(&bench))
}

/// Of two that take the only permit one gets it, and the other is refused only while it is taken.
#[test]
fn take_races_take() {
    model("take_races_take", Size::Proof, 97..=220, || {
        let bench = Bench::new(1, 0, 1);
        let other = beside(&bench, |bench| assert_ne!(bench.take_and_run(0), Err(Refusal::Closed)));
        let here = bench.take_and_run(0);
        other.join().unwrap();
        assert!((1..=2).contains(&bench.floor.ran()));
        assert!(here.is_ok() || bench.floor.ran() == 1, "G4: refused, but never taken");
        bench.assert_quiet(1, 0);
    });
}

/// Two permits are enough for two: nobody is refused.
#[test]
fn take_races_take_with_enough_for_both() {
    model("take_races_take_with_enough_for_both", Size::Proof, 1_400..=3_200, || {
        let bench = Bench::new(2, 0, 2);
        let other = beside(&bench, |bench| assert_eq!(bench.take_and_run(0), Ok(Take::Taken)));
        assert_eq!(bench.take_and_run(0), Ok(Take::Taken), "G4");
        other.join().unwrap();
        bench.assert_quiet(2, 0);
    });
}

/// Who takes the permit that somebody gives back sees what was done under it (T2 and T1).
#[test]
fn take_sees_work_of_last_holder() {
    model("take_sees_work_of_last_holder", Size::Proof, 7..=16, || {
        let bench = Bench::new(1, 1, 1);
        let holder = beside(&bench, Bench::run_and_give);
        let seen = bench.take_and_run(0).is_ok();
        holder.join().unwrap();
        assert_eq!(bench.floor.ran(), 1 + usize::from(seen));
        bench.assert_quiet(1, 0);
    });
}

/// Who sees that all permits are back sees what was done under them (T2 and `observe`).
#[test]
fn observe_sees_work_of_last_holder() {
    model("observe_sees_work_of_last_holder", Size::Proof, 7..=16, || {
        let bench = Bench::new(1, 1, 1);
        let holder = beside(&bench, Bench::run_and_give);
        if bench.word.observe().free() == 1 {
            bench.floor.assert_all_is_seen();
        }
        holder.join().unwrap();
        bench.assert_quiet(1, 0);
    });
}

/// The head of the line is served, whether the permit comes back before or after it lined up, and
/// sees what was done under it (T2 and T4).
#[test]
fn give_races_line_up() {
    model("give_races_line_up", Size::Proof, 16..=37, || {
        let bench = Bench::new(1, 1, 1);
        let holder = beside(&bench, Bench::run_and_give);
        bench.line_up();
        holder.join().unwrap();
        bench.assert_quiet(1, 1);
    });
}

/// A caller overtakes the head, or not, while the token's holder serves it: the head is served.
#[test]
fn take_races_serve() {
    model("take_races_serve", Size::Proof, 150..=350, || {
        let bench = Bench::new(1, 1, 1);
        *bench.line.lock() = 1;
        assert_eq!(bench.word.line_up(), Duty::Nothing);
        let holder = beside(&bench, Bench::run_and_give);
        let taken = bench.take_and_run(1);
        holder.join().unwrap();
        assert_eq!(bench.floor.ran(), 2 + usize::from(taken.is_ok()));
        bench.assert_quiet(1, 1);
    });
}

/// No caller starts ahead of the head more often than allowed, however the token's way crosses.
#[test]
fn takes_overtake_no_more_than_allowed() {
    model("takes_overtake_no_more_than_allowed", Size::Proof, 2_200..=5_000, || {
        let bench = Bench::new(1, 1, 1);
        *bench.line.lock() = 1;
        assert_eq!(bench.word.line_up(), Duty::Nothing);
        let holder = beside(&bench, Bench::run_and_give);
        let takes = [bench.take_and_run(1), bench.take_and_run(1)];
        let overtakes = takes.iter().filter(|take| **take == Ok(Take::Overtook)).count();
        assert!(overtakes <= 1, "G5: {takes:?}");
        holder.join().unwrap();
        bench.assert_quiet(1, 1);
    });
}

/// Two line up while the permit comes back: both are served, one after the other, by one token.
#[test]
fn give_races_two_that_line_up() {
    model("give_races_two_that_line_up", Size::Wide, 1_400..=3_300, || {
        let bench = Bench::new(1, 1, 1);
        let holder = beside(&bench, Bench::run_and_give);
        let second = beside(&bench, Bench::line_up);
        bench.line_up();
        holder.join().unwrap();
        second.join().unwrap();
        bench.assert_quiet(1, 2);
    });
}

/// Two permits come back while two stand in the line: both are served.
#[test]
fn give_races_give() {
    model("give_races_give", Size::Proof, 36_000..=83_000, || {
        let bench = Bench::new(2, 2, 2);
        *bench.line.lock() = 2;
        assert_eq!(bench.word.line_up(), Duty::Nothing);
        let other = beside(&bench, Bench::run_and_give);
        bench.run_and_give();
        other.join().unwrap();
        bench.assert_quiet(2, 2);
    });
}

/// The limit goes from 0 to 1 while somebody lines up: he is served.
#[test]
fn raise_races_line_up() {
    model("raise_races_line_up", Size::Proof, 4..=10, || {
        let bench = Bench::new(0, 0, 1);
        let other = beside(&bench, |bench| bench.resize(1));
        bench.line_up();
        other.join().unwrap();
        bench.assert_quiet(1, 1);
    });
}

/// The limit goes from 2 to 1 while a permit comes back and somebody lines up: he is served, and no
/// permit too many is left.
#[test]
fn lower_races_give_and_line_up() {
    model("lower_races_give_and_line_up", Size::Wide, 19_000..=44_000, || {
        let bench = Bench::new(2, 2, 2);
        let holder = beside(&bench, Bench::run_and_give);
        let lower = beside(&bench, |bench| bench.resize(-1));
        bench.line_up();
        bench.run_and_give();
        holder.join().unwrap();
        lower.join().unwrap();
        bench.assert_quiet(1, 1);
    });
}

/// The limit goes up and down again while a permit comes back and somebody lines up.
#[test]
fn raise_and_lower_race_give_and_line_up() {
    model("raise_and_lower_race_give_and_line_up", Size::Wide, 3_200..=7_300, || {
        let bench = Bench::new(1, 1, 2);
        let holder = beside(&bench, Bench::run_and_give);
        let resizer = beside(&bench, |bench| {
            bench.resize(1);
            bench.resize(-1);
        });
        bench.line_up();
        holder.join().unwrap();
        resizer.join().unwrap();
        bench.assert_quiet(1, 1);
    });
}

/// A worker that goes on under its permit (T6) meets the token that a second permit made: both
/// entries are served, by one of them or by both.
#[test]
fn hand_on_races_give() {
    model("hand_on_races_give", Size::Proof, 4_200..=9_801, || {
        let bench = Bench::new(2, 2, 2);
        *bench.line.lock() = 2;
        assert_eq!(bench.word.line_up(), Duty::Nothing);
        let other = beside(&bench, Bench::run_and_give);
        let mut line = bench.line.lock();
        if *line > 0 {
            assert!(bench.word.hand_on(*line > 1));
            *line -= 1;
            bench.served.fetch_add(1, Relaxed);
        }
        drop(line);
        bench.run_and_give();
        other.join().unwrap();
        bench.assert_quiet(2, 2);
    });
}

/// Once `close` is done nobody takes a permit; who had one before gives it back as ever.
#[test]
fn close_races_take() {
    model("close_races_take", Size::Proof, 290..=680, || {
        let bench = Bench::new(1, 0, 1);
        let other = beside(&bench, |bench| match bench.take_and_run(0) {
            Ok(how) => assert_eq!(how, Take::Taken),
            Err(why) => assert_eq!(why, Refusal::Closed),
        });
        bench.word.close();
        assert_eq!(bench.take_and_run(0), Err(Refusal::Closed));
        other.join().unwrap();
        assert_eq!(bench.word.observe(), State::new(1).close());
    });
}
