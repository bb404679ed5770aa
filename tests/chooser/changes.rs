//! Items that come and go while others choose.

use crate::support::{Latch, Meeting, hang_guard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use work_permit::{Load, Policy, Roster};

/// The last generation of items.
const LAST: u64 = 2003;

/// Alive in one generation of items.
struct Member {
    generation: u64,
    alive: Arc<AtomicU64>,
}

impl Member {
    fn new(generation: u64, alive: &Arc<AtomicU64>) -> Self {
        alive.fetch_add(1, SeqCst);
        Self { generation, alive: Arc::clone(alive) }
    }
}

impl Load for Member {
    fn load(&self) -> u64 {
        0
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, SeqCst);
    }
}

fn generation(generation: u64, alive: &Arc<AtomicU64>) -> impl Iterator<Item = Member> {
    // Sizes differ, so that an index of another list would show.
    (0..1 + generation % 5).map(move |_| Member::new(generation, alive))
}

#[test]
fn nothing_old_is_chosen_after_a_change() {
    hang_guard(|| {
        for policy in crate::POLICIES {
            let alive = Arc::new(AtomicU64::new(0));
            let roster = Roster::new(generation(0, &alive), policy);
            // Replaced up to here, as everybody knows.
            let replaced = AtomicU64::new(0);
            let end = Latch::new();
            thread::scope(|s| {
                for _ in 0..4 {
                    s.spawn(|| {
                        let mut mine = roster.chooser();
                        let mut last = 0;
                        while !end.is_open() {
                            let least = replaced.load(SeqCst);
                            let member = roster.latest(&mut mine).choose().expect("never empty");
                            assert!(member.generation >= least, "{policy:?}");
                            assert!(member.generation >= last, "never back");
                            last = member.generation;
                        }
                    });
                }
                for next in 1..=LAST {
                    roster.replace(generation(next, &alive));
                    replaced.store(next, SeqCst);
                }
                end.open();
            });
            // All readers have gone, so only the last generation is there.
            assert_eq!(alive.load(SeqCst), 1 + LAST % 5);
            drop(roster);
            assert_eq!(alive.load(SeqCst), 0);
        }
    });
}

#[test]
fn a_reader_keeps_what_it_chose() {
    let alive = Arc::new(AtomicU64::new(0));
    let roster = Roster::new(generation(4, &alive), Policy::Random);
    let mut mine = roster.chooser();
    let chosen = roster.latest(&mut mine).choose().unwrap();
    roster.replace(generation(0, &alive));
    assert_eq!((chosen.generation, alive.load(SeqCst)), (4, 6), "it is in use");
    assert_eq!(roster.latest(&mut mine).choose().unwrap().generation, 0);
    assert_eq!(alive.load(SeqCst), 1, "and gone with its last reader");
    roster.replace([]);
    assert!(roster.latest(&mut mine).choose().is_none());
    assert_eq!(alive.load(SeqCst), 0);
}

/// Uses the roster when it is dropped.
struct Busy(Option<Arc<Roster<Busy>>>);

impl Load for Busy {
    fn load(&self) -> u64 {
        0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(roster) = self.0.take() {
            assert_eq!(roster.chooser().items().len(), 1, "no lock is held here");
        }
    }
}

#[test]
fn no_item_is_dropped_under_the_lock() {
    hang_guard(|| {
        let roster = Arc::new(Roster::new([], Policy::RoundRobin));
        roster.replace([Busy(Some(Arc::clone(&roster)))]);
        let mut mine = roster.chooser();
        roster.replace([Busy(None)]);
        assert!(roster.latest(&mut mine).choose().is_some(), "the old one went here");
        roster.replace([Busy(Some(Arc::clone(&roster)))]);
        drop(mine);
        roster.replace([Busy(None)]);
    });
}

#[test]
fn a_reader_never_waits_for_another() {
    hang_guard(|| {
        let alive = Arc::new(AtomicU64::new(0));
        let roster = Roster::new(generation(0, &alive), Policy::TwoChoices);
        let (all, done) = (Meeting::of(3), Meeting::of(3));
        thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    // Each holds an item of its own while the roster changes and the others choose.
                    let mine = roster.chooser();
                    let held = mine.choose().unwrap();
                    all.meet();
                    let mut other = roster.chooser();
                    (0..1000).for_each(|_| assert!(roster.latest(&mut other).choose().is_some()));
                    done.meet();
                    assert_eq!(held.generation, 0);
                });
            }
            all.meet();
            (1..100).for_each(|next| roster.replace(generation(next, &alive)));
            done.meet();
        });
    });
}
