//! How even the choices are. The generator is seeded, so the numbers are the same in every run; the bounds are those
//! that one run in 10,000 with other seeds would miss.

use crate::{choose, counts, items};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use work_permit::{Chooser, Load, Policy};

/// The chi-square statistic of these counts, were all equally likely.
fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let square = |count: &u64| (*count as f64 - expected).powi(2) / expected;
    counts.iter().map(square).sum()
}

/// What chi-square passes once in 10,000 times, with so many cells (Wilson and Hilferty).
fn bound(cells: usize) -> f64 {
    let free = (cells - 1) as f64;
    free * (1.0 - 2.0 / (9.0 * free) + 3.719 * (2.0 / (9.0 * free)).sqrt()).powi(3)
}

/// Asserts that each healthy item has the same chance.
fn assert_uniform(count: usize, policy: Policy, down: impl Fn(usize) -> bool, times: u64) {
    fastrand::seed(42);
    let chooser = items(count, policy, down);
    choose(&chooser, times);
    let healthy = chooser.items().iter().filter(|item| item.is_healthy());
    let counts: Vec<u64> = healthy.map(|item| item.chosen.load(Relaxed)).collect();
    let found = chi_square(&counts);
    assert!(found < bound(counts.len()), "{policy:?} of {count}: {found:.1}, {counts:?}");
}

#[test]
fn the_bound_is_that_of_the_tables() {
    for (cells, table) in [(2, 15.14), (10, 33.72), (50, 96.0), (100, 161.3)] {
        let found: f64 = bound(cells);
        assert!((found - table).abs() < 0.1 * table, "{cells}: {found} and {table}");
    }
    // It sees what is uneven: one of ten with a tenth too much.
    assert!(chi_square(&[10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 11_000]) > bound(7));
}

#[test]
fn random_is_uniform() {
    for policy in [Policy::Random, Policy::TwoChoices, Policy::LeastLoaded] {
        // Where all loads are the same, it is the draw alone that chooses.
        assert_uniform(2, policy, |_| false, 100_000);
        assert_uniform(50, policy, |_| false, 100_000);
        assert_uniform(500, policy, |_| false, 100_000);
    }
}

#[test]
fn neighbours_of_the_unhealthy_are_not_favoured() {
    for policy in [Policy::Random, Policy::TwoChoices] {
        assert_uniform(10, policy, |at| at == 4, 100_000);
        // A whole range is down.
        assert_uniform(100, policy, |at| (20..70).contains(&at), 100_000);
        // Nearly all of them: more draws fail than are made.
        assert_uniform(500, policy, |at| !matches!(at, 1 | 100 | 101 | 102), 20_000);
        assert_uniform(3, policy, |at| at == 0, 20_000);
    }
}

#[test]
fn round_robin_is_exact_among_threads() {
    const THREADS: u64 = 8;
    const TIMES: u64 = 7_000;
    let chooser = items(7, Policy::RoundRobin, |_| false);
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| choose(&chooser, TIMES));
        }
    });
    assert_eq!(counts(&chooser), [THREADS * TIMES / 7; 7]);
}

#[test]
fn round_robin_passes_over_turns_of_the_unhealthy() {
    const THREADS: u64 = 8;
    const TIMES: u64 = 7_000;
    // Two in a row, so that a neighbour would have three turns in a round.
    let chooser = items(7, Policy::RoundRobin, |at| at == 2 || at == 3);
    let order: Vec<usize> = (0..10).map(|_| chooser.choose().unwrap().at).collect();
    assert_eq!(order, [0, 1, 4, 5, 6, 0, 1, 4, 5, 6]);
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| choose(&chooser, TIMES));
        }
    });
    let counts = counts(&chooser);
    assert_eq!(counts.iter().sum::<u64>(), THREADS * TIMES);
    let healthy = counts.iter().filter(|count| **count > 0);
    let (least, most) = (healthy.clone().min().unwrap(), healthy.max().unwrap());
    assert!(most - least <= 1, "{counts:?}");
}

/// The most that one of 100 items gets above the mean when 100,000 are handed out, each adding to the load.
fn excess(policy: Policy) -> u64 {
    fastrand::seed(7);
    let chooser = items(100, policy, |_| false);
    for _ in 0..100_000 {
        chooser.choose().unwrap().load.fetch_add(1, Relaxed);
    }
    chooser.items().iter().map(Load::load).max().unwrap() - 1000
}

#[test]
fn two_choices_are_nearly_as_even_as_all() {
    let (random, two, least) =
        (excess(Policy::Random), excess(Policy::TwoChoices), excess(Policy::LeastLoaded));
    println!("above the mean of 1000: {random} at random, {two} by two choices, {least} by all");
    assert!(random > 40, "{random}");
    // ln ln 100 / ln 2 is 2.2, and a little.
    assert!(two <= 4, "{two}");
    assert_eq!(least, 0, "each in turn");
    assert_eq!(excess(Policy::RoundRobin), 0);
}

#[test]
fn two_choices_are_two() {
    // Of two items both are looked at, always.
    let pair = items(2, Policy::TwoChoices, |_| false);
    pair.items()[0].load.store(1, Relaxed);
    choose(&pair, 1000);
    assert_eq!(counts(&pair), [0, 1000]);
    // Of three, the worst is chosen never, the best whenever it is drawn: two times in three.
    fastrand::seed(3);
    let three = items(3, Policy::TwoChoices, |_| false);
    for item in three.items() {
        item.load.store(item.at as u64, Relaxed);
    }
    choose(&three, 30_000);
    let counts = counts(&three);
    assert_eq!(counts[2], 0);
    assert!((19_500..20_500).contains(&counts[0]), "{counts:?}");
}

#[test]
fn the_least_loaded_of_all() {
    let chooser = items(100, Policy::LeastLoaded, |at| at == 50);
    for item in chooser.items() {
        item.load.store(1 + (item.at as i64 - 50).unsigned_abs(), Relaxed);
    }
    chooser.items()[99].load.store(1, Relaxed);
    choose(&chooser, 1000);
    // 49 and 51 would be next; 50 is down.
    assert_eq!(chooser.items()[99].chosen.load(Relaxed), 1000);
    let loads = Chooser::new(chooser.items()[..50].iter(), Policy::LeastLoaded);
    assert_eq!(loads.choose().unwrap().at, 49);
}
