//! One of many: at random, in turn, or by load.
#![forbid(unsafe_code)]

use crate::draws;
use crate::executor::Executor;
use crate::sync::Arc;
use crate::sync::Ordering::Relaxed;
use crate::sync::plain::AtomicU64;
use crossbeam_utils::CachePadded;
use std::fmt;

/// Draws before the healthy items are counted.
const DRAWS: usize = 16;
/// Turns beyond one round that a chooser takes before it looks for a healthy item itself.
const SPARE_TURNS: u64 = 64;
/// An executor of which as much is asked as it has permits.
const FULL: u64 = 1 << 16;

/// How a [`Chooser`] chooses, among the items that are healthy.
///
/// ```
/// use work_permit::{Chooser, Load, Policy};
/// #[derive(Debug, PartialEq)]
/// struct Queue(u64);
/// impl Load for Queue {
///     fn load(&self) -> u64 { self.0 }
/// }
/// let queues = Chooser::new([Queue(3), Queue(1), Queue(2)], Policy::LeastLoaded);
/// assert_eq!(queues.choose(), Some(&Queue(1)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// Each with the same chance. Every thread has a generator of its own: with one for all, the choice itself is what
    /// threads wait for. (Apache Ozone measured 295 against 6 ns a choice with eight threads, HDDS-14345.)
    Random,
    /// One after the other. Exact, also among threads: who chooses takes the next number of one shared counter, which
    /// is what it costs.
    RoundRobin,
    /// The one with the least load, of all. It asks every item, and as long as its load does not tell, everybody goes
    /// to the same one.
    LeastLoaded,
    /// Draws two and takes the one with less load: nearly as even as asking all of them, at the price of asking two, and
    /// without a rush to one. (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001.)
    TwoChoices,
}

/// What a [`Chooser`] wants to know of an item. Both may change at any time, also while others choose.
///
/// ```
/// use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
/// use work_permit::{Chooser, Load, Policy};
///
/// #[derive(Default)]
/// struct Replica { requests: AtomicU64, down: AtomicBool }
///
/// impl Load for Replica {
///     fn load(&self) -> u64 { self.requests.load(Relaxed) }
///     fn is_healthy(&self) -> bool { !self.down.load(Relaxed) }
/// }
///
/// let replicas = Chooser::new([Replica::default(), Replica::default()], Policy::TwoChoices);
/// replicas.items()[0].requests.fetch_add(1, Relaxed);
/// assert_eq!(replicas.choose().unwrap().load(), 0, "the other one");
/// replicas.items()[1].down.store(true, Relaxed);
/// assert_eq!(replicas.choose().unwrap().load(), 1, "the only one");
/// ```
pub trait Load {
    /// How much is asked of the item, in any unit: it is only compared. Of several with 0 any is as good.
    fn load(&self) -> u64;

    /// Whether it can be chosen at all. Default: yes.
    fn is_healthy(&self) -> bool {
        true
    }
}

/// *Load*: tasks under permits, queued tasks and waiting threads, as a share of the limit: 65,536 when as much is asked
/// as there are permits. *Healthy*: open, and its limit is not 0.
///
/// It reads three words, for a child two for each level above it more, and takes a lock only where work waits. While
/// nothing does, permits that stay with threads
/// ([`leases`](crate::ExecutorBuilder::leases)) count as free although some may be in use; once permits are scarce they
/// are called back, and every task counts.
///
/// ```
/// use work_permit::{Load, Pool};
/// let exec = Pool::global().executor("reads").limit(4).build()?;
/// assert_eq!(exec.load(), 0);
/// let _permits = (exec.acquire().unwrap(), exec.acquire().unwrap());
/// assert_eq!(exec.load(), 65_536 / 2);
/// exec.close();
/// assert!(!exec.is_healthy());
/// # Ok::<(), work_permit::ConfigError>(())
/// ```
impl Load for Executor {
    fn load(&self) -> u64 {
        let demand = self.engine().demand();
        demand.asked.saturating_mul(FULL).checked_div(demand.limit).unwrap_or(u64::MAX)
    }

    fn is_healthy(&self) -> bool {
        let demand = self.engine().demand();
        !demand.closed && demand.limit > 0
    }
}

macro_rules! pass_on {
    ($($pointer:ty),*) => { $(
        impl<T: Load + ?Sized> Load for $pointer {
            fn load(&self) -> u64 {
                (**self).load()
            }

            fn is_healthy(&self) -> bool {
                (**self).is_healthy()
            }
        }
    )* };
}

pass_on!(&T, Box<T>, Arc<T>);

/// Chooses one of its items, by a [`Policy`], among those that are healthy.
///
/// It can be shared by any number of threads; to choose takes no lock of its own and allocates nothing. The items stay what they
/// are, while their load and health change as they like ([`Load`]); a [`Roster`](crate::Roster) is for items that come
/// and go.
///
/// *How even?* Unhealthy items do not favour their neighbours. `Random` and `TwoChoices` draw again, and count the
/// healthy items where that does not help: each has exactly the same chance. `RoundRobin` takes the next turn, so each
/// healthy item has one turn in a round. Only `LeastLoaded` is rough: among items of equal load it takes the first from
/// a place drawn at random, so that one behind a gap of busier items is taken more often than one in a row; an exact
/// draw would have to remember all of them.
///
/// ```
/// use work_permit::{Chooser, Policy, Pool};
/// let pool = Pool::new();
/// let shards = ["a", "b", "c"].map(|name| pool.executor(name).limit(2).build().unwrap());
/// let shards = Chooser::new(shards, Policy::TwoChoices);
/// let shard = shards.choose().expect("all of them are open");
/// assert_eq!(shard.run(|| 6 * 7).unwrap(), 42);
/// shards.items().iter().for_each(|shard| shard.close());
/// assert!(shards.choose().is_none());
/// ```
pub struct Chooser<T> {
    items: Box<[T]>,
    policy: Policy,
    /// Items to draw from at random; 0 where there are none, or another policy chooses.
    drawn_from: usize,
    /// Turns taken. On a line of its own: everybody reads the rest.
    turns: CachePadded<AtomicU64>,
}

impl<T> Chooser<T> {
    /// A chooser among `items`. There may be none: then it chooses nothing.
    ///
    /// ```
    /// use work_permit::{Chooser, Executor, Policy};
    /// let nobody = Chooser::<Executor>::new([], Policy::Random);
    /// assert!(nobody.choose().is_none());
    /// ```
    pub fn new(items: impl IntoIterator<Item = T>, policy: Policy) -> Self {
        let items: Box<[T]> = items.into_iter().collect();
        let drawn_from = if policy == Policy::Random { items.len() } else { 0 };
        Self { items, policy, drawn_from, turns: CachePadded::new(AtomicU64::new(0)) }
    }

    /// All of them, healthy or not, in the order in which they were given.
    ///
    /// ```
    /// use work_permit::{Chooser, Policy};
    /// assert_eq!(Chooser::new(["a", "b"], Policy::Random).items(), ["a", "b"]);
    /// ```
    #[must_use]
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// How it chooses.
    ///
    /// ```
    /// use work_permit::{Chooser, Policy};
    /// assert_eq!(Chooser::new([(); 2], Policy::RoundRobin).policy(), Policy::RoundRobin);
    /// ```
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }
}

impl<T: Load> Chooser<T> {
    /// One of the healthy items; `None` when there is none.
    ///
    /// The item was healthy at some moment during the call, and may not be any more.
    ///
    /// ```
    /// use work_permit::{Chooser, Load, Policy};
    /// struct Down;
    /// impl Load for Down {
    ///     fn load(&self) -> u64 { 0 }
    ///     fn is_healthy(&self) -> bool { false }
    /// }
    /// assert!(Chooser::new([Down, Down], Policy::LeastLoaded).choose().is_none());
    /// ```
    #[inline]
    #[must_use]
    pub fn choose(&self) -> Option<&T> {
        // The random choice is in its caller's loop, the others are not.
        if self.drawn_from == 0 {
            return self.choose_otherwise();
        }
        match self.items.get(draws::below(self.drawn_from)) {
            Some(item) if item.is_healthy() => Some(item),
            _ => self.choose_again(),
        }
    }

    #[cold]
    fn choose_again(&self) -> Option<&T> {
        self.draw(None).map(|at| &self.items[at])
    }

    #[inline(never)]
    fn choose_otherwise(&self) -> Option<&T> {
        match self.policy {
            Policy::Random => None,
            Policy::RoundRobin => self.next_in_turn(),
            Policy::LeastLoaded => self.least_loaded(),
            Policy::TwoChoices => self.better_of_two(),
        }
    }

    /// A healthy item other than `not`, each with the same chance.
    fn draw(&self, not: Option<usize>) -> Option<usize> {
        let others = self.items.len() - usize::from(not.is_some());
        if others == 0 {
            return None;
        }
        let draw = |_| {
            let at = draws::below(others);
            at + usize::from(not.is_some_and(|not| at >= not))
        };
        let found = (0..DRAWS).map(draw).find(|at| self.items[*at].is_healthy());
        found.or_else(|| self.draw_of_the_healthy(not))
    }

    #[cold]
    fn draw_of_the_healthy(&self, not: Option<usize>) -> Option<usize> {
        let can_be = |at: &usize| Some(*at) != not && self.items[*at].is_healthy();
        let healthy = || (0..self.items.len()).filter(can_be);
        let count = healthy().count();
        if count == 0 {
            return None;
        }
        // Should some have failed since they were counted, any that is left will do.
        healthy().nth(draws::below(count)).or_else(|| healthy().next())
    }

    fn better_of_two(&self) -> Option<&T> {
        let first = self.draw(None)?;
        let second = self.draw(Some(first));
        let first = &self.items[first];
        let better = second.map(|at| &self.items[at]).filter(|second| second.load() < first.load());
        Some(better.unwrap_or(first))
    }

    fn least_loaded(&self) -> Option<&T> {
        if self.items.is_empty() {
            return None;
        }
        let (before, from) = self.items.split_at(draws::below(self.items.len()));
        let mut best: Option<(u64, &T)> = None;
        for item in from.iter().chain(before).filter(|item| item.is_healthy()) {
            let load = item.load();
            if load == 0 {
                return Some(item);
            }
            if best.is_none_or(|(least, _)| load < least) {
                best = Some((load, item));
            }
        }
        best.map(|(_, item)| item)
    }

    fn next_in_turn(&self) -> Option<&T> {
        let count = self.items.len() as u64;
        if count == 0 {
            return None;
        }
        let turn = || &self.items[(self.turns.fetch_add(1, Relaxed) % count) as usize];
        let first = turn();
        if first.is_healthy() {
            return Some(first);
        }
        let any_healthy = || self.items.iter().find(|item| item.is_healthy());
        any_healthy()?;
        // Each turn is taken once: who meets an unhealthy item passes over its turn, not his own.
        let more = std::iter::repeat_with(turn).take((count + SPARE_TURNS) as usize);
        // Others may have had all the turns of the healthy ones.
        more.into_iter().find(|item| item.is_healthy()).or_else(any_healthy)
    }
}

impl<T> fmt::Debug for Chooser<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chooser")
            .field("policy", &self.policy)
            .field("items", &self.items.len())
            .finish_non_exhaustive()
    }
}
