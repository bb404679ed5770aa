//! Ways to draw a number.

use crate::adapter::{Adapter, Choose};
use crate::groups::Role;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use work_permit::{Chooser, Load, Policy};

/// Items to choose from.
pub(crate) const CHOICES: usize = 500;

/// What a peer would keep of an item too: its number, and whether it is up.
struct Item {
    number: usize,
    down: AtomicBool,
}

impl Load for Item {
    fn load(&self) -> u64 {
        0
    }

    fn is_healthy(&self) -> bool {
        !self.down.load(Ordering::Relaxed)
    }
}

/// work-permit's chooser, which also asks whether the item is healthy.
#[derive(Clone)]
pub(crate) struct Ours {
    chooser: Arc<Chooser<Item>>,
}

impl Adapter for Ours {
    const NAME: &'static str = "work-permit";
    const ROLE: Role = Role::Ours;

    fn new(_limit: usize) -> Self {
        let item = |number| Item { number, down: AtomicBool::new(false) };
        Self { chooser: Arc::new(Chooser::new((0..CHOICES).map(item), Policy::Random)) }
    }
}

impl Choose for Ours {
    #[inline]
    fn choose(&mut self, _count: usize) -> usize {
        self.chooser.choose().expect("all are healthy").number
    }
}

/// fastrand's thread-local generator.
#[derive(Clone)]
pub(crate) struct ThreadLocal;

impl Adapter for ThreadLocal {
    const NAME: &'static str = "thread-local fastrand";
    const ROLE: Role = Role::Bare;

    fn new(_limit: usize) -> Self {
        Self
    }
}

impl Choose for ThreadLocal {
    #[inline]
    fn choose(&mut self, count: usize) -> usize {
        fastrand::usize(..count)
    }
}

/// rand's thread-local generator.
#[derive(Clone)]
pub(crate) struct RandRng;

impl Adapter for RandRng {
    const NAME: &'static str = "rand::rng()";

    fn new(_limit: usize) -> Self {
        Self
    }
}

impl Choose for RandRng {
    #[inline]
    fn choose(&mut self, count: usize) -> usize {
        rand::rng().random_range(..count)
    }
}

/// One generator for all, under a mutex.
#[derive(Clone)]
pub(crate) struct SharedMutex {
    generator: Arc<Mutex<SmallRng>>,
}

impl Adapter for SharedMutex {
    const NAME: &'static str = "one under a mutex";

    fn new(_limit: usize) -> Self {
        Self { generator: Arc::new(Mutex::new(SmallRng::seed_from_u64(1))) }
    }
}

impl Choose for SharedMutex {
    #[inline]
    fn choose(&mut self, count: usize) -> usize {
        self.generator.lock().unwrap_or_else(PoisonError::into_inner).random_range(..count)
    }
}

/// One atomic counter for all, its values scrambled (splitmix64).
#[derive(Clone)]
pub(crate) struct SharedAtomic {
    counter: Arc<AtomicU64>,
}

impl Adapter for SharedAtomic {
    const NAME: &'static str = "one atomic splitmix";

    fn new(_limit: usize) -> Self {
        Self { counter: Arc::new(AtomicU64::new(1)) }
    }
}

impl Choose for SharedAtomic {
    #[inline]
    fn choose(&mut self, count: usize) -> usize {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.counter.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * count as u128) >> 64) as usize
    }
}

/// One generator for all, as `java.util.Random` is: a compare-exchange on its state for each draw.
#[derive(Clone)]
pub(crate) struct SharedCas {
    seed: Arc<AtomicU64>,
}

impl SharedCas {
    /// 31 random bits.
    #[inline]
    fn next(&self) -> u32 {
        const MULTIPLIER: u64 = 0x5_DEEC_E66D;
        const MASK: u64 = (1 << 48) - 1;
        let step = |seed: u64| seed.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        let mut seed = self.seed.load(Ordering::Relaxed);
        loop {
            let next = step(seed);
            let order = Ordering::Relaxed;
            match self.seed.compare_exchange_weak(seed, next, order, order) {
                Ok(_) => return (next >> 17) as u32,
                Err(now) => seed = now,
            }
        }
    }
}

impl Adapter for SharedCas {
    const NAME: &'static str = "one java.util.Random";

    fn new(_limit: usize) -> Self {
        Self { seed: Arc::new(AtomicU64::new(1)) }
    }
}

impl Choose for SharedCas {
    #[inline]
    fn choose(&mut self, count: usize) -> usize {
        self.next() as usize % count
    }
}
