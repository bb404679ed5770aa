//! Items to choose from that come and go while others choose.
#![forbid(unsafe_code)]

use crate::chooser::{Chooser, Policy};
use crate::sync::Arc;
use crate::sync::Ordering::Relaxed;
use crate::sync::plain::{AtomicU64, PlainMutex};
use std::fmt;
use std::sync::PoisonError;

/// A [`Chooser`] that can be replaced while others choose.
///
/// Whoever chooses keeps an `Arc` of the chooser and asks for the [`latest`](Self::latest) one each time: one look at a
/// word that only changes when the items do. So a choice takes no lock, except for the first one after a change; no
/// reader keeps [`replace`](Self::replace) waiting, and what was replaced lives until the last reader has moved on.
///
/// ```
/// use std::thread;
/// use work_permit::{Load, Policy, Roster};
/// struct Node(&'static str);
/// impl Load for Node { fn load(&self) -> u64 { 0 } }
///
/// let nodes = Roster::new([Node("old")], Policy::Random);
/// let mut mine = nodes.chooser();                     // one for each thread
/// assert_eq!(nodes.latest(&mut mine).choose().unwrap().0, "old");
///
/// thread::scope(|s| { s.spawn(|| nodes.replace([Node("new")])); });
/// assert_eq!(nodes.latest(&mut mine).choose().unwrap().0, "new");
/// ```
pub struct Roster<T> {
    policy: Policy,
    current: PlainMutex<Arc<Chooser<T>>>,
    /// Where the current one is. It is only compared: a reader's own one is alive, so no other can be in its place.
    place: AtomicU64,
}

impl<T> Roster<T> {
    /// A roster of these items; they are chosen by `policy`.
    ///
    /// ```
    /// use work_permit::{Executor, Policy, Roster};
    /// let empty = Roster::<Executor>::new([], Policy::RoundRobin);
    /// assert!(empty.chooser().choose().is_none());
    /// ```
    pub fn new(items: impl IntoIterator<Item = T>, policy: Policy) -> Self {
        let current = Arc::new(Chooser::new(items, policy));
        let place = AtomicU64::new(place(&current));
        Self { policy, current: PlainMutex::new(current), place }
    }

    /// Other items from now on: no choice that begins after this returned takes an older one. Items that stay are given
    /// again (`Arc`s, or handles such as [`Executor`](crate::Executor), are cheap to clone); turns begin anew.
    ///
    /// ```
    /// use work_permit::{Policy, Pool, Roster};
    /// let pool = Pool::new();
    /// let node = |name: &str| pool.executor(name).build().unwrap();
    /// let nodes = Roster::new([node("a"), node("b")], Policy::LeastLoaded);
    /// let stay: Vec<_> = nodes.chooser().items()[..1].to_vec();
    /// nodes.replace(stay.into_iter().chain([node("c")]));
    /// assert_eq!(nodes.chooser().items()[1].name(), "c");
    /// ```
    pub fn replace(&self, items: impl IntoIterator<Item = T>) {
        let next = Arc::new(Chooser::new(items, self.policy));
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        self.place.store(place(&next), Relaxed);
        let last = std::mem::replace(&mut *current, next);
        drop(current);
        // The items' Drop is the user's: not under the lock.
        drop(last);
    }

    /// The chooser of this moment, to choose from or to keep for [`latest`](Self::latest).
    ///
    /// ```
    /// # use work_permit::{Policy, Roster};
    /// let words = Roster::new(["one", "two"], Policy::Random);
    /// assert_eq!(words.chooser().items().len(), 2);
    /// ```
    #[must_use]
    pub fn chooser(&self) -> Arc<Chooser<T>> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The chooser of this moment, in `mine`, which is replaced if it is an older one.
    ///
    /// ```
    /// # use work_permit::{Policy, Roster};
    /// let words = Roster::new(["one"], Policy::Random);
    /// let mut mine = words.chooser();
    /// words.replace(["two"]);
    /// assert_eq!(words.latest(&mut mine).items(), ["two"]);
    /// ```
    #[inline]
    pub fn latest<'a>(&self, mine: &'a mut Arc<Chooser<T>>) -> &'a Chooser<T> {
        if self.place.load(Relaxed) != place(mine) {
            self.move_on(mine);
        }
        mine
    }

    #[cold]
    fn move_on(&self, mine: &mut Arc<Chooser<T>>) {
        *mine = self.chooser();
    }
}

fn place<T>(chooser: &Arc<Chooser<T>>) -> u64 {
    Arc::as_ptr(chooser).addr() as u64
}

impl<T> fmt::Debug for Roster<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roster")
            .field("policy", &self.policy)
            .field("items", &self.chooser().items().len())
            .finish_non_exhaustive()
    }
}
