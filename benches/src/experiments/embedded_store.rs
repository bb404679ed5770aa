//! Ignite's: a store inside of the program, used by the program's own thread.
//!
//! Compared: stripes (one for each partition, which run their tasks one after the other) that hand every call to
//! another thread, and the same stripes when the calling thread is fit to do the work itself. Beside them: threads that
//! receive from a channel, one for each stripe; and no stripes at all. Not compared: calls of several threads.

use super::store::{InMemory, Redb, Store, VALUE};
use super::{Contender, Experiment, Size};
use crate::adapter::Job;
use crate::groups::Metric;
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use work_permit::{Operations, Pool, Stripes, fitness};

const ABOUT: &str = "Apache Ignite 3, embedded: PUTs of the caller's own thread, then GETs, each waited for; first with \
                     a switch to the stripe's thread for each, then inline where the thread may do storage operations. \
                     Here: 300,000 of each, values of 100 bytes, 8 stripes.";

const COLUMNS: &[(&str, Metric)] = &[("PUT", Metric::PerSecond), ("GET", Metric::PerSecond)];

const PUBLISHED: &[&str] = &["2976 → 3168 op/s (1.06)", "15921 → 19293 op/s (1.21)"];

pub(super) const IN_MEMORY: Experiment = Experiment {
    name: "embedded_store",
    about: ABOUT,
    columns: COLUMNS,
    contenders: &contenders::<InMemory>(),
    old_new: (0, 1),
    published: PUBLISHED,
};

/// The same on an engine that does something for its calls.
pub(super) const ON_DISK: Experiment = Experiment {
    name: "embedded_store_redb",
    about: "The same on redb, a transaction a call, made durable now and then.",
    columns: COLUMNS,
    contenders: &contenders::<Redb>(),
    old_new: (0, 1),
    published: PUBLISHED,
};

const STRIPES: usize = 8;

const USE_STORAGE: Operations = Operations::only(0).unwrap();

const fn contenders<S: Store>() -> [Contender; 4] {
    [
        Contender { name: "stripes, always switch", run: |size| measure::<S>(size, stripes()) },
        Contender {
            name: "stripes, inline when fit",
            run: |size| {
                let _fit = fitness::allow(USE_STORAGE);
                measure::<S>(size, stripes())
            },
        },
        Contender { name: "a channel a stripe", run: |size| measure::<S>(size, Channels::new()) },
        Contender { name: "no stripes", run: |size| measure::<S>(size, Direct) },
    ]
}

/// How a call gets to its partition.
trait Route {
    fn ask<R: Send + 'static>(&self, stripe: usize, work: impl FnOnce() -> R + Send + 'static)
    -> R;
}

/// The stripes run only on threads that may use the storage.
fn stripes() -> Stripes {
    let root = Pool::new().executor("partitions").limit(STRIPES).requires(USE_STORAGE);
    let stripes = root.build().and_then(|root| Stripes::new(&root, STRIPES));
    stripes.expect("the settings make sense")
}

impl Route for Stripes {
    fn ask<R: Send + 'static>(
        &self,
        stripe: usize,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let dispatched = self.all()[stripe].dispatch(work).expect("the queue has room for one");
        dispatched.join().expect("the work does not panic")
    }
}

/// A thread for each stripe, behind a channel.
struct Channels(Vec<crossbeam_channel::Sender<Job>>);

impl Channels {
    fn new() -> Self {
        let stripe = |_| {
            let (jobs, inbox) = crossbeam_channel::unbounded::<Job>();
            thread::spawn(move || inbox.iter().for_each(|job| job()));
            jobs
        };
        Self((0..STRIPES).map(stripe).collect())
    }
}

impl Route for Channels {
    fn ask<R: Send + 'static>(
        &self,
        stripe: usize,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let (answer, wait) = crossbeam_channel::bounded(1);
        let job = move || {
            // Nobody is left to hear it when the caller panicked.
            let _heard = answer.send(work());
        };
        self.0[stripe].send(Box::new(job)).expect("the thread lives");
        wait.recv().expect("the work does not panic")
    }
}

/// Right here.
struct Direct;

impl Route for Direct {
    #[inline]
    fn ask<R: Send + 'static>(
        &self,
        _stripe: usize,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        work()
    }
}

/// The stripe of a key: all calls of a key go to the same one.
fn stripe_of(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % STRIPES
}

fn measure<S: Store>(size: Size, route: impl Route) -> Vec<f64> {
    let calls = if size == Size::Full { 300_000 } else { 2_000 };
    let store = Arc::new(S::new(STRIPES));
    // An order that is none: a step without a divisor in common with any of the sizes.
    let key = |n: u64| n * 1_000_003 % calls;
    let put = |n: u64| {
        let (key, store) = (key(n), Arc::clone(&store));
        let mut value = [0; VALUE];
        value[..8].copy_from_slice(&key.to_le_bytes());
        route.ask(stripe_of(key), move || store.put(stripe_of(key), key, &value));
    };
    let get = |n: u64| {
        let (key, store) = (key(n), Arc::clone(&store));
        let found = route.ask(stripe_of(key), move || store.get(stripe_of(key), key));
        let value = found.expect("every key was put");
        assert_eq!(value[..8], key.to_le_bytes());
        black_box(value);
    };
    vec![rate(calls, put), rate(calls, get)]
}

/// Calls a second.
fn rate(calls: u64, call: impl Fn(u64)) -> f64 {
    let began = Instant::now();
    (0..calls).for_each(call);
    calls as f64 / began.elapsed().as_secs_f64()
}
