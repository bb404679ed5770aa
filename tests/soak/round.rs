//! One round: its pools, its executors, and what its threads leave to each other.
#![forbid(unsafe_code)]

use crate::diary::Diary;
use crate::locks::Mutex;
use crate::support::Numbers;
use crate::tally::Tally;
use crate::work::Product;
use std::fmt::Write;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;
use work_permit::{Executor, Inline, JoinHandle, OwnedPermit, Pool, Unrun};

/// Executors of a round, some of them children of those before.
const ROOMS: usize = 8;

/// One executor, seen from outside.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) number: usize,
    /// Bits of this room and of those above it.
    pub(crate) levels: u32,
    /// Empty once its last handle is to be dropped.
    pub(crate) exec: Mutex<Option<Executor>>,
    /// The limit never changes, and this is it.
    pub(crate) fixed_limit: Option<usize>,
    /// Work inside, guards included.
    pub(crate) inside: AtomicUsize,
    /// Written by those inside, where the limit is 1.
    pub(crate) diary: Diary,
    /// How often they did.
    pub(crate) entries: AtomicU64,
    /// Its pool has a cap: its tasks never wait for anybody.
    pub(crate) is_capped: bool,
    /// The end has begun: the limit stays above 0.
    pub(crate) ending: Mutex<bool>,
    pub(crate) tally: Tally,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Round {
    number: u64,
    pub(crate) pools: Vec<Pool>,
    pub(crate) rooms: Vec<Room>,
    /// Handles that any thread may join, cancel or drop, with the number of their room.
    pub(crate) handles: Mutex<Vec<(usize, JoinHandle<Product>)>>,
    pub(crate) owned: Mutex<Vec<OwnedPermit>>,
    pub(crate) unruns: Mutex<Vec<Unrun>>,
    pub(crate) callers: AtomicU64,
}

impl Round {
    pub(crate) fn new(numbers: &mut Numbers, number: u64) -> Arc<Self> {
        let pools = vec![pool(number, 'a', None), pool(number, 'b', Some(3))];
        let mut rooms = Vec::new();
        for room in 0..ROOMS {
            let parent = numbers.one_in(2).then(|| numbers.below(1 + room as u64) as usize);
            rooms.push(Room::new(&pools, room, parent.and_then(|at| rooms.get(at)), numbers));
        }
        Arc::new(Self {
            number,
            pools,
            rooms,
            handles: Mutex::default(),
            owned: Mutex::default(),
            unruns: Mutex::default(),
            callers: AtomicU64::new(crate::THREADS),
        })
    }

    pub(crate) fn dump(&self) -> String {
        let mut text = format!("round {}\n", self.number);
        for pool in &self.pools {
            let _ = writeln!(text, "  {:?}", pool);
        }
        for room in &self.rooms {
            let exec = room.exec.try_lock().map(|exec| exec.clone());
            let stats = exec.map(|exec| exec.map(|exec| exec.stats()));
            let _ = writeln!(text, "  room {}: {stats:?}\n    {:?}", room.number, room.tally);
        }
        let handles = self.handles.try_lock().map(|handles| handles.len());
        let owned = self.owned.try_lock().map(|owned| owned.len());
        let _ = writeln!(text, "  handles {handles:?}, owned {owned:?}");
        text
    }
}

fn pool(round: u64, letter: char, cap: Option<usize>) -> Pool {
    let reports = AtomicU64::new(0);
    let builder = Pool::builder().name(format!("soak-{letter}-{round}")).on_panic(move |_| {
        // Hooks panic as well.
        if reports.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 8 == 7 {
            resume_unwind(Box::new(()));
        }
    });
    // Threads come and go within a round.
    let builder = builder.keep_alive(Duration::from_micros(200));
    let builder = match cap {
        Some(threads) => builder.max_threads(threads),
        None => builder,
    };
    builder.build().expect("a name and a number that make sense")
}

impl Room {
    /// This one is above that one, or it is that one.
    pub(crate) fn has_below(&self, other: &Room) -> bool {
        other.levels >> self.number & 1 == 1
    }

    fn new(pools: &[Pool], number: usize, parent: Option<&Room>, numbers: &mut Numbers) -> Self {
        let is_capped = parent.map_or(numbers.one_in(3), |parent| parent.is_capped);
        let name = number.to_string();
        let builder = match parent.and_then(Room::executor) {
            Some(parent) => parent.child(name),
            None => pools[usize::from(is_capped)].executor(name),
        };
        let limit = if number == 0 { 1 } else { 1 + numbers.below(4) as usize };
        let capacity = if numbers.one_in(3) { numbers.below(8) as usize } else { 10_000 };
        let overtakes = [0, 1, 16][numbers.below(3) as usize];
        let depth = [0, 2, 16][numbers.below(3) as usize];
        let inline = if numbers.one_in(5) { Inline::Never } else { Inline::WhenFree };
        let builder = builder
            .limit(limit)
            .queue_capacity(capacity)
            .max_overtakes(overtakes)
            .max_inline_depth(depth)
            .inline(inline);
        Self {
            number,
            levels: 1 << number | parent.map_or(0, |parent| parent.levels),
            exec: Mutex::new(Some(builder.build().expect("numbers that make sense"))),
            fixed_limit: (number % 2 == 0).then_some(limit),
            inside: AtomicUsize::new(0),
            diary: Diary::default(),
            entries: AtomicU64::new(0),
            is_capped,
            ending: Mutex::new(false),
            tally: Tally::default(),
        }
    }

    pub(crate) fn executor(&self) -> Option<Executor> {
        self.exec.lock().unwrap().clone()
    }
}
