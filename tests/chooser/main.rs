//! One of many: how evenly each policy chooses, whom it passes over, and what happens while items change.
#![forbid(unsafe_code)]

mod changes;
mod even;
mod executors;
#[path = "../support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use work_permit::{Chooser, Load, Policy};

pub(crate) const POLICIES: [Policy; 4] =
    [Policy::Random, Policy::RoundRobin, Policy::LeastLoaded, Policy::TwoChoices];

/// An item that counts how often it was chosen.
#[derive(Debug, Default)]
pub(crate) struct Item {
    pub(crate) at: usize,
    pub(crate) load: AtomicU64,
    pub(crate) down: AtomicBool,
    pub(crate) chosen: AtomicU64,
}

impl Load for Item {
    fn load(&self) -> u64 {
        self.load.load(Relaxed)
    }

    fn is_healthy(&self) -> bool {
        !self.down.load(Relaxed)
    }
}

impl Item {
    fn numbered(at: usize) -> Self {
        Self { at, ..Self::default() }
    }

    fn count(&self) -> u64 {
        self.chosen.load(Relaxed)
    }
}

/// So many items, of which these are down.
pub(crate) fn items(count: usize, policy: Policy, down: impl Fn(usize) -> bool) -> Chooser<Item> {
    let chooser = Chooser::new((0..count).map(Item::numbered), policy);
    for item in chooser.items() {
        item.down.store(down(item.at), Relaxed);
    }
    chooser
}

/// Chooses so many times.
pub(crate) fn choose(chooser: &Chooser<Item>, times: u64) {
    for _ in 0..times {
        let item = chooser.choose().expect("some are healthy");
        assert!(item.is_healthy());
        item.chosen.fetch_add(1, Relaxed);
    }
}

pub(crate) fn counts(chooser: &Chooser<Item>) -> Vec<u64> {
    chooser.items().iter().map(Item::count).collect()
}

#[test]
fn nothing_healthy_is_none() {
    for policy in POLICIES {
        for count in [0, 1, 2, 3, 100] {
            let all_down = items(count, policy, |_| true);
            for _ in 0..100 {
                assert!(all_down.choose().is_none(), "{policy:?} of {count}");
            }
            // One comes up: it is found, and nothing else.
            if let Some(last) = all_down.items().last() {
                last.down.store(false, Relaxed);
                choose(&all_down, 100);
                assert_eq!(last.count(), 100, "{policy:?} of {count}");
            }
        }
    }
}

#[test]
fn what_is_down_is_never_chosen() {
    for policy in POLICIES {
        fastrand::seed(1);
        let chooser = items(10, policy, |at| at % 3 == 0);
        choose(&chooser, 10_000);
        for item in chooser.items() {
            assert_eq!(item.count() > 0, item.at % 3 != 0, "{policy:?}: {:?}", counts(&chooser));
        }
    }
}

#[test]
fn health_may_change_at_any_time() {
    // Of a pair, one is always healthy while the other goes up and down: so there is always an answer.
    for policy in POLICIES {
        let chooser = items(2, policy, |at| at == 1);
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                let flaky = &chooser.items()[1];
                while !done.load(Relaxed) {
                    flaky.down.fetch_xor(true, Relaxed);
                    flaky.load.fetch_add(1, Relaxed);
                }
            });
            for _ in 0..100_000 {
                assert!(chooser.choose().is_some(), "{policy:?}");
            }
            done.store(true, Relaxed);
        });
    }
}

#[test]
fn a_chooser_of_anything_that_has_a_load() {
    let boxed: [Box<dyn Load + Send + Sync>; 2] =
        [Box::new(Item::numbered(0)), Box::new(Item::numbered(1))];
    let shared = std::sync::Arc::new(Item::default());
    shared.load.store(5, Relaxed);
    assert_eq!(Chooser::new(boxed, Policy::TwoChoices).choose().map(Load::load), Some(0));
    assert_eq!(Chooser::new([&shared], Policy::Random).choose().map(Load::load), Some(5));
}
