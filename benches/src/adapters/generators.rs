//! Ways to draw a number. work-permit has no adapter here yet: its `Chooser` is to stand beside these.

use crate::adapter::{Adapter, Choose};
use crate::groups::Role;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
