//! The line: who waits for a permit, in order. Queued tasks, tasks whose joiner waits for them, and waiters
//! stand in one sequence. Plain data; [`crate::gate`] keeps it under its lock.
//!
//! A ring of slots with rising sequence numbers. Taking one out of the middle leaves a gap, which costs a
//! binary search and no move; gaps are swept when they are more than half of the ring, so cancelled and
//! timed-out entries cost a constant each and never pile up behind a head that cannot move.
//! (crossbeam-deque's injector, which the pool uses, has no way to take an entry out of the middle.)
#![forbid(unsafe_code)]

use crate::sync::Ordering::Relaxed;
use crate::sync::plain::AtomicU64;
use crate::sync::{Arc, Unparker};
use std::collections::VecDeque;

/// Gaps below this number are not worth a sweep.
const SWEEP_FLOOR: usize = 32;
/// An empty ring larger than this gives its memory back.
const KEEP_CAPACITY: usize = 1024;

/// A place in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// Somebody who waits in the line and runs the work himself.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) signal: Unparker,
    /// He holds the token (I5) and is on his way.
    pub(crate) has_token: bool,
}

/// What stands at a place.
#[derive(Debug)]
pub(crate) enum Entry<T> {
    /// A task for a worker.
    Task(T),
    /// A task whose joiner will run it himself.
    Joined(T, Waiting),
    /// A thread that wants a permit and nothing else.
    Waiter(Waiting),
}

impl<T> Entry<T> {
    /// The one who waits here, if it is not only a task.
    pub(crate) fn waiting(&mut self) -> Option<&mut Waiting> {
        match self {
            Entry::Task(_) => None,
            Entry::Joined(_, waiting) | Entry::Waiter(waiting) => Some(waiting),
        }
    }

    /// The task, if there is one.
    pub(crate) fn into_task(self) -> Option<T> {
        match self {
            Entry::Task(task) | Entry::Joined(task, _) => Some(task),
            Entry::Waiter(_) => None,
        }
    }

    fn is_waiter(&self) -> bool {
        matches!(self, Entry::Waiter(_))
    }
}

#[derive(Debug)]
struct Slot<T> {
    ticket: Ticket,
    /// When it came, in nanoseconds of its executor's clock; 0 where nobody asked.
    came_ns: u64,
    entry: Option<Entry<T>>,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Line<T> {
    slots: VecDeque<Slot<T>>,
    next: u64,
    gaps: usize,
    waiters: usize,
    /// A copy of `len` for those who look without the lock.
    length: Arc<AtomicU64>,
}

impl<T> Line<T> {
    pub(crate) fn new() -> Self {
        Self { slots: VecDeque::new(), next: 1, gaps: 0, waiters: 0, length: Arc::default() }
    }

    /// Entries of every kind, as of some moment, to be read by anybody at any time.
    pub(crate) fn length(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.length)
    }

    /// Entries of every kind.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.gaps
    }

    /// Tasks, joined or not.
    pub(crate) fn tasks(&self) -> usize {
        self.len() - self.waiters
    }

    /// Threads that wait for a permit.
    pub(crate) fn waiters(&self) -> usize {
        self.waiters
    }

    pub(crate) fn push(&mut self, entry: Entry<T>, came_ns: u64) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiters += usize::from(entry.is_waiter());
        self.slots.push_back(Slot { ticket, came_ns, entry: Some(entry) });
        self.length.store(self.len() as u64, Relaxed);
        ticket
    }

    /// The oldest entry. The front slot is never a gap.
    pub(crate) fn head(&mut self) -> Option<(Ticket, &mut Entry<T>)> {
        let slot = self.slots.front_mut()?;
        let ticket = slot.ticket;
        slot.entry.as_mut().map(|entry| (ticket, entry))
    }

    pub(crate) fn get(&mut self, ticket: Ticket) -> Option<&mut Entry<T>> {
        let at = self.find(ticket)?;
        self.slots[at].entry.as_mut()
    }

    /// Makes another kind of entry of the one at `ticket`, which keeps its place. `false`: it is gone.
    pub(crate) fn convert(&mut self, ticket: Ticket, f: impl FnOnce(Entry<T>) -> Entry<T>) -> bool {
        let Some(slot) = self.find(ticket).map(|at| &mut self.slots[at]) else {
            return false;
        };
        slot.entry = slot.entry.take().map(f);
        slot.entry.is_some()
    }

    /// Takes the oldest entry out, with the moment it came.
    pub(crate) fn pop(&mut self) -> Option<(Entry<T>, u64)> {
        let slot = self.slots.pop_front()?;
        let entry = slot.entry?;
        self.waiters -= usize::from(entry.is_waiter());
        self.trim();
        Some((entry, slot.came_ns))
    }

    /// Takes an entry out wherever it stands.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<(Entry<T>, u64)> {
        let at = self.find(ticket)?;
        let came_ns = self.slots[at].came_ns;
        let entry = self.slots[at].entry.take()?;
        self.waiters -= usize::from(entry.is_waiter());
        self.gaps += 1;
        self.trim();
        if self.gaps > SWEEP_FLOOR && self.gaps > self.slots.len() / 2 {
            self.slots.retain(|slot| slot.entry.is_some());
            self.gaps = 0;
        }
        Some((entry, came_ns))
    }

    fn find(&self, ticket: Ticket) -> Option<usize> {
        self.slots.binary_search_by_key(&ticket, |slot| slot.ticket).ok()
    }

    /// After an entry has gone: drops gaps at both ends, and the memory of a large burst once it is over.
    fn trim(&mut self) {
        self.length.store(self.len() as u64, Relaxed);
        while self.slots.front().is_some_and(|slot| slot.entry.is_none()) {
            self.slots.pop_front();
            self.gaps -= 1;
        }
        while self.slots.back().is_some_and(|slot| slot.entry.is_none()) {
            self.slots.pop_back();
            self.gaps -= 1;
        }
        if self.slots.is_empty() && self.slots.capacity() > KEEP_CAPACITY {
            self.slots = VecDeque::new();
        }
    }
}

#[cfg(all(test, not(work_permit_loom)))]
mod tests {
    use super::*;
    use crate::sync::Parker;

    fn waiter() -> Entry<u32> {
        Entry::Waiter(Waiting { signal: Parker::new().unparker(), has_token: false })
    }

    #[test]
    fn keeps_order_around_gaps() {
        let mut line = Line::new();
        let tickets: Vec<_> = (0..10).map(|n| line.push(Entry::Task(n), 0)).collect();
        for n in [0, 3, 4, 9] {
            assert!(line.remove(tickets[n]).is_some());
            assert!(line.remove(tickets[n]).is_none(), "only once");
        }
        let mut left = Vec::new();
        while let Some((entry, _)) = line.pop() {
            left.extend(entry.into_task());
        }
        assert_eq!(left, [1, 2, 5, 6, 7, 8]);
        assert_eq!((line.len(), line.gaps), (0, 0));
    }

    #[test]
    fn counts_tasks_and_waiters_apart() {
        let mut line = Line::new();
        line.push(Entry::Task(1), 0);
        let second = line.push(waiter(), 0);
        line.push(waiter(), 0);
        let seen = |line: &Line<u32>, length: &AtomicU64| {
            assert_eq!(line.len() as u64, length.load(Relaxed));
            (line.tasks(), line.waiters(), line.len())
        };
        let length = line.length();
        assert_eq!(seen(&line, &length), (1, 2, 3));
        line.remove(second);
        assert_eq!(seen(&line, &length), (1, 1, 2));
        line.pop();
        assert_eq!(seen(&line, &length), (0, 1, 1));
        line.pop();
        assert_eq!(seen(&line, &length), (0, 0, 0));
    }

    #[test]
    fn gaps_behind_a_stuck_head_do_not_pile_up() {
        let mut line = Line::new();
        line.push(Entry::Task(0), 0);
        let mut last = line.push(Entry::Task(1), 0);
        for n in 2..100_000 {
            let ticket = line.push(Entry::Task(n), 0);
            line.remove(last);
            last = ticket;
            assert!(line.slots.len() <= 2 * line.len() + SWEEP_FLOOR + 2);
        }
        assert_eq!(line.len(), 2);
    }

    #[test]
    fn a_burst_gives_its_memory_back() {
        let mut line = Line::new();
        for n in 0..10_000 {
            line.push(Entry::Task(n), 0);
        }
        while line.pop().is_some() {}
        assert!(line.slots.capacity() <= KEEP_CAPACITY);
    }
}
